"""A small tree with the closed-form learner, built once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from engineers import StageReport
from envtuning.atlas.build import build
from envtuning.atlas.spec import load_atlas
from envtuning.atlas.store import Tree, read_trees

SMALL = {
    "name": "small",
    "preset": "scripted",
    "changes": {
        "suites.validation_per_slice": 6,
        "suites.test_per_slice": 12,
        "suites.probe_per_slice": 2,
        "suites.validate_every": None,
        "suites.failure_cases": 1,
    },
    "seeds": [1, 2],
    "depth": 2,
    "root_budget": 2000,
    "stage_budget": 3000,
    "menu": {
        "easy": "first",
        "target": "target",
        "crowded": {"slices": {5: {"share": 1.0, "hole_ratio": 0.5, "wait_ratio": 1.0}}},
        "any": "uniform",
    },
}


@pytest.fixture(scope="session")
def spec(tmp_path_factory):
    file = tmp_path_factory.mktemp("atlas") / "small.yaml"
    file.write_text(yaml.safe_dump(SMALL))
    return load_atlas(file)


@pytest.fixture(scope="session")
def stored(spec, tmp_path_factory):
    """The folder of the tree's seeds."""
    folder = tmp_path_factory.mktemp("stored")
    build(spec, folder, tmp_path_factory.mktemp("work"))
    return folder


@pytest.fixture(scope="session")
def trees(spec, stored):
    return read_trees(stored, spec)


ENTRIES = ("keep", "waits", "holes")


def weak(diagnosis, *tested, seed=1):
    """A tree by hand whose root lacks something: success on the test after one stage on each entry."""
    spec = SimpleNamespace(name="weak", diagnosis=diagnosis, first_entry="keep", menu=dict.fromkeys(ENTRIES), depth=1)
    found = {(name,): value for name, value in zip(ENTRIES, tested, strict=True)}
    tree = Tree(spec, seed, {(): StageReport(stage=0, config={})})
    tree.__dict__["tested"] = found
    return tree
