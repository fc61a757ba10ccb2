"""Which tasks fit a config, how often each is drawn, and in what passes they are dealt: on a handful of tasks."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.pool import TaskPool, fitting, weight_of
from envtuning.worlds.world import InfeasibleConfig


def task(split, scenario, turns=3, classes=("MathAPI",)):
    return SimpleNamespace(id=f"{split}_{scenario}", split=split, scenario=scenario, turns=turns, classes=classes)


TASKS = [task("base", 0), task("base", 1, 2, ("MathAPI", "TravelAPI")), task("base", 2, 4), task("miss_func", 0, 3)]


class Cut:
    def tasks(self, package, subset, splits):
        assert subset == "train"
        return [one for split in splits for one in TASKS if one.split == split]


def fit(excluded=(), **config):
    return [one.id for one in fitting(None, Cut(), "train", BFCLConfig(**config), excluded)]


def test_a_task_fits_by_split_turns_and_tools_and_is_not_held_out():
    assert fit() == ["base_0", "base_1", "base_2", "miss_func_0"]
    assert fit(slices={"base": {}}) == ["base_0", "base_1", "base_2"]
    assert fit(slices={"base": {"share": 0}, "miss_func": {}}) == ["miss_func_0"]
    assert fit(max_turns=3) == ["base_0", "base_1", "miss_func_0"]
    assert fit(tools={"TravelAPI": 0.0}) == ["base_0", "base_2", "miss_func_0"]
    assert fit(excluded={0}) == ["base_1", "base_2"]


def test_a_task_weighs_as_its_rarest_tool_class():
    assert weight_of(TASKS[1], BFCLConfig(tools={"MathAPI": 0.5, "TravelAPI": 0.25})) == 0.25
    assert weight_of(TASKS[1], BFCLConfig(tools={"MathAPI": 0.5})) == 0.5
    assert weight_of(TASKS[0], BFCLConfig(tools={})) == 1.0


def pool(seed=0, **config):
    return TaskPool(None, Cut(), BFCLConfig(**config), seed=seed)


def test_a_split_is_drawn_by_its_share_however_many_tasks_it_has_and_a_task_by_its_weight_within():
    shares = {"base": {"share": 0.75}, "miss_func": {"share": 0.25}}
    config = {"slices": shares, "tools": {"TravelAPI": 0.5}, "pool_size": 300}
    assert pool(**config)._weights == pytest.approx([0.3, 0.15, 0.3, 0.25])
    one = pool(**config)
    drawn = Counter(one.deal().id for _ in range(300))
    assert drawn == Counter(each.id for each in one.pool)
    assert all(abs(drawn[each.id] / 300 - share) < 0.08 for each, share in zip(TASKS, [0.3, 0.15, 0.3, 0.25]))


def test_a_pool_is_dealt_in_shuffled_passes_and_then_drawn_anew():
    one = pool(pool_size=20, epochs=2)
    first, second, third = ([one.deal().id for _ in range(20)] for _ in range(3))
    assert sorted(first) == sorted(second) != sorted(third)
    assert first != second
    assert [pool(seed=4).deal().id for _ in range(3)] == [pool(seed=4).deal().id] * 3
    assert len({pool(seed=seed).deal().id for seed in range(20)}) > 1
    whole = pool()
    whole.deal()
    assert len(whole.pool) == len(TASKS)


def test_a_pool_of_a_size_is_the_same_for_every_seed_in_another_order():
    dealt = [[one.deal().id for _ in range(6)] for one in (pool(seed=seed, pool_size=6) for seed in range(20))]
    assert len({tuple(sorted(ids)) for ids in dealt}) == 1
    assert len(set(map(tuple, dealt))) > 1


def test_without_a_size_the_draws_are_as_many_as_the_tasks_that_fit_and_other_ones_for_each_seed():
    dealt = [Counter(one.deal().id for _ in TASKS) for one in (pool(seed=seed, epochs=9) for seed in range(20))]
    assert len({frozenset(ids.items()) for ids in dealt}) > 1
    assert any(max(ids.values()) > 1 for ids in dealt)


def test_a_config_that_nothing_fits_is_told_what_to_widen():
    with pytest.raises(InfeasibleConfig, match="no training task has at most 1 turns"):
        pool(max_turns=1)
