"""prime-rl's sampler interface over a curriculum, driven as its orchestrator does: draw, roll out, observe the group, save, load."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

import mapf_frozenlake as mfl
from engineers import Engineer, Proposal
from envtuning import EngineerCurriculum
from envtuning.curriculum.prime_rl import PrimeTaskSampler
from envtuning.errors import SpecError

CONFIG = mfl.LakeConfig(slices={3: {}, 4: {}}, num_agents=2)


def tasks(*sizes: int) -> list[Any]:
    return [
        SimpleNamespace(key=f"lake/{size}/{board}", data=SimpleNamespace(slice=str(size)))
        for size in sizes
        for board in range(10)
    ]


def group(task: Any, *rewards: float, **trace: Any) -> list[Any]:
    """Episodes as prime-rl gives them: their task, and traces of agents."""
    about = {"has_error": False, "agent": SimpleNamespace(trainable=True)} | trace
    return [SimpleNamespace(task=task, traces=[SimpleNamespace(reward=reward, **about)]) for reward in rewards]


class Small(Engineer):
    """Halves the share of 4×4, and keeps what it has read."""

    name = "small"

    def __init__(self) -> None:
        self.read: list[Any] = []

    def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal[Any]:
        self.read.append(report)
        four = current.slices[4].model_copy(update={"share": current.slices[4].share / 2})
        return Proposal(config=current.model_copy(update={"slices": dict(current.slices) | {4: four}}))


def sampler(engineer: Any, every: int = 40, **options: Any) -> PrimeTaskSampler:
    return PrimeTaskSampler(EngineerCurriculum(engineer, CONFIG, target=CONFIG, every=every), tasks(3, 4), **options)


def test_tasks_are_drawn_by_the_shares_and_groups_are_counted_exactly():
    engineer = Small()
    one, counted = sampler(engineer), Counter[str]()
    for _ in range(10):
        task = next(one)
        counted[task.data.slice] += 4
        one.observe(group(task, 1.0, 0.5, 0.0, -2.0))
    assert {row.name: row.episodes for row in engineer.read[0].training_results} == counted
    assert {row.name: 4 * row.questions for row in engineer.read[0].training_results} == counted
    assert engineer.read[0].training_results[0].metrics == {"success_rate": 0.25, "score": 0.375}
    assert one.curriculum.config.slices[4].share == 0.5
    drawn = Counter(next(one).data.slice for _ in range(3_000))
    assert drawn["4"] / 3_000 == pytest.approx(1 / 3, abs=0.03)
    assert one.metrics()["share/4"] == pytest.approx(1 / 3)


def test_errors_other_agents_and_tasks_that_were_drawn_before_the_swap_do_not_count():
    one = sampler(Small(), every=4)
    old, first = next(one), next(one)
    while first.key == old.key:
        first = next(one)
    one.observe(group(first, 1.0, 1.0, has_error=True))
    one.observe(group(first, 1.0, 1.0, agent=SimpleNamespace(trainable=False)))
    one.observe(group(first, 1.0, 1.0, num_turns=0))
    failed = group(first, 1.0, 1.0, num_turns=2)
    for episode in failed:
        episode.ok = False
    one.observe(failed)
    assert one.curriculum.report.training_results == []
    one.observe(group(first, 1.0, 0.0, 1.0, 0.0))
    assert one.curriculum.version == 1
    one.observe(group(old, 1.0, 1.0, 1.0))
    assert one.curriculum.report.training_results == []


def test_after_loading_it_draws_and_decides_as_without_the_break():
    whole, part = sampler("learnability", every=48, seed=3), sampler("learnability", every=48, seed=3)

    def played(one: PrimeTaskSampler, rounds: range) -> list[str]:
        found = []
        for number in rounds:
            task = next(one)
            found.append(task.key)
            one.observe(
                group(task, *(float((number * 7 + at) % 5 < (3 if task.data.slice == "3" else 1)) for at in range(8)))
            )
        return found

    expected = played(whole, range(60))
    begun = played(part, range(25))
    state = json.loads(json.dumps(part.state_dict()))
    after = sampler("learnability", every=48, seed=99)
    after.load_state_dict(state)
    assert begun + played(after, range(25, 60)) == expected
    assert after.state_dict() == whole.state_dict()
    assert whole.curriculum.version >= 3
    assert [next(after).key for _ in range(1_000)] == [next(whole).key for _ in range(1_000)]


def test_other_edits_than_shares_are_refused():
    class Holes(Small):
        def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal[Any]:
            four = current.slices[4].model_copy(update={"hole_ratio": 0.5})
            return Proposal(config=current.model_copy(update={"slices": dict(current.slices) | {4: four}}))

    one = sampler(Holes(), every=4)
    one.observe(group(next(one), 1.0, 1.0, 0.0, 0.0))
    assert one.curriculum.config == CONFIG
    [incident] = one.curriculum.incidents
    assert (
        "slices.4.hole_ratio differs, and the tasks are those of the first config: turn shares alone"
        in incident.message
    )


def test_slices_that_have_other_names_now_are_mapped():
    before = sampler("learnability", every=12)
    before.observe(group(next(before), 1.0, 0.0, 1.0, 0.0))
    named = mfl.LakeConfig(slices={3: {}, 5: {}}, num_agents=2)
    after = PrimeTaskSampler(EngineerCurriculum("learnability", named, target=named, every=12), tasks(3, 5))
    after.load_state_dict(before.state_dict(), renamed={"4": "5"})
    [row] = after.curriculum.report.training_results
    assert (row.name in "35", row.episodes) == (True, 4)


def test_tasks_that_cannot_be_sampled_are_refused():
    curriculum = EngineerCurriculum(Small(), CONFIG)
    for given, said in (
        (iter(tasks(3)), "needs a finite taskset"),
        ([], "needs a finite taskset"),
        (tasks(3) * 2, "two tasks have one key"),
        (tasks(3, 6), "slice '6', and the config has 3, 4"),
    ):
        with pytest.raises(SpecError, match=said):
            PrimeTaskSampler(curriculum, given)
