"""The trees that are published can be read, are whole, and say what can be drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.atlas import HERE, names, spec_named
from envtuning.atlas.store import read_tree, stored_seeds
from envtuning.loop.validation import draw_test, draw_validation


@pytest.mark.parametrize("name", names())
def test_a_tree_s_entries_can_be_drawn_and_its_run_can_be_run(name):
    spec = spec_named(name)
    for config in spec.entries(spec.seeds[0], ()).values():
        spec.plan.world.check(config)
    assert len(draw_test(spec.plan, draw_validation(spec.plan))), "there are enough boards of every kind to hold out"
    assert spec.run.budget == spec.root_budget + spec.depth * spec.stage_budget


def test_trees_share_no_seed():
    seeds = [seed for name in names() for seed in spec_named(name).seeds]
    assert len(seeds) == len(set(seeds))


@pytest.mark.parametrize("name", names())
def test_what_is_stored_is_whole(name):
    spec = spec_named(name)
    size = len(spec.menu)
    for seed in stored_seeds(HERE / name, spec)[:1]:
        tree = read_tree(HERE / name, spec, seed)
        assert len(tree.reports) == len(tree.tested) == (size ** (spec.depth + 1) - 1) // (size - 1)


def test_all_trees_together_are_small():
    assert sum(path.stat().st_size for path in Path(HERE).rglob("*.xz")) < 20e6
