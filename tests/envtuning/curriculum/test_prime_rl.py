"""prime-rl's sampler interface over a curriculum, driven as its orchestrator does: draw, roll out, observe the group, save, load."""

from __future__ import annotations

import json
from collections import Counter
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mapf_frozenlake as mfl
from engineers import Engineer, Proposal
from envtuning import EngineerCurriculum
from envtuning.curriculum.prime_rl import PrimeTaskSampler
from envtuning.errors import SpecError
from mapf_frozenlake.text.trl import prompt_row

CONFIG = mfl.LakeConfig(slices={3: {}, 4: {}}, num_agents=2)


def tasks(*sizes: int) -> list[Any]:
    return [
        SimpleNamespace(key=f"lake/{size}/{board}", data=SimpleNamespace(slice=str(size)))
        for size in sizes
        for board in range(10)
    ]


def lake_tasks() -> list[Any]:
    """The finite taskset of ``mapf-lake``, or where verifiers is not installed, tasks with its keys."""
    if find_spec("verifiers") is None:
        told = [prompt_row(instance, CONFIG.reward)["metadata"] for instance in mfl.generate(CONFIG, n=20, seed=0)]
        return [
            SimpleNamespace(key=f"digest/{row['slice']}/{board}", data=SimpleNamespace(**row))
            for board, row in enumerate(told)
        ]
    from mapf_lake import LakeTaskset, LakeTasksetConfig

    return list(LakeTaskset(LakeTasksetConfig(lake=CONFIG, tasks=20)).load())


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
    old = next(one)
    one.observe(group(another(one, old), 1.0, 1.0, has_error=True))
    one.observe(group(another(one, old), 1.0, 1.0, agent=SimpleNamespace(trainable=False)))
    one.observe(group(another(one, old), 1.0, 1.0, num_turns=0))
    failed = group(another(one, old), 1.0, 1.0, num_turns=2)
    for episode in failed:
        episode.ok = False
    one.observe(failed)
    assert one.curriculum.report.training_results == []
    one.observe(group(another(one, old), 1.0, 0.0, 1.0, 0.0))
    assert one.curriculum.version == 1
    one.observe(group(old, 1.0, 1.0, 1.0))
    assert one.curriculum.report.training_results == []


def another(one: PrimeTaskSampler, task: Any) -> Any:
    while (drawn := next(one)).key == task.key:
        pass
    return drawn


def swapped_while_out() -> tuple[PrimeTaskSampler, Any]:
    """A sampler, and a task that is out twice: drawn under the first config, and again under the next."""
    one = sampler(Small(), every=4)
    old = next(one)
    one.observe(group(another(one, old), 1.0, 0.0, 1.0, 0.0))
    assert one.curriculum.version == 1
    one.curriculum.every = 1_000
    until(one, old)
    return one, old


def until(one: PrimeTaskSampler, task: Any) -> None:
    """Draw until the task is drawn, and no other is out for long."""
    while (drawn := next(one)).key != task.key:
        one.observe(group(drawn, 0.0, has_error=True))


def counted(one: PrimeTaskSampler) -> int:
    return sum(row.episodes for row in one.curriculum.report.training_results)


def test_a_group_of_an_earlier_config_does_not_count_if_its_task_was_drawn_again_whichever_comes_first():
    one, task = swapped_while_out()
    one.observe(group(task, 1.0, 1.0))
    one.observe(group(task, 0.0, 0.0))
    assert counted(one) == 0
    until(one, task)
    one.observe(group(task, 1.0, 1.0))
    assert counted(one) == 2


def test_a_group_that_never_comes_does_not_stop_its_task_from_counting_for_ever():
    one, task = swapped_while_out()
    for _ in range(3):
        one.observe(group(task, 1.0, 1.0))
        assert counted(one) == 0
        until(one, task)
    one.observe(group(task, 1.0, 1.0))
    assert counted(one) == 2


class Orchestrator:
    """Keeps some groups under way, which end in another order than they began."""

    def __init__(self, under_way: int = 6) -> None:
        self.under_way, self.out, self.rng = under_way, list[Any](), np.random.default_rng(0)

    def play(self, one: PrimeTaskSampler, rounds: int) -> list[str]:
        keys = []
        for _ in range(rounds):
            while len(self.out) < self.under_way:
                self.out.append(next(one))
                keys.append(self.out[-1].key)
            task = self.out.pop(int(self.rng.integers(len(self.out))))
            rate = {"3": 0.8, "4": 0.4}[task.data.slice]
            one.observe(group(task, *(float(self.rng.random() < rate) for _ in range(4))))
        return keys


def of_lakes(engineer: str) -> PrimeTaskSampler:
    start, target = (
        CONFIG.model_copy(update={"slices": {size: part.model_copy(update={"share": share}) for (size, part), share in zip(CONFIG.slices.items(), shares, strict=True)}})
        for shares in ((0.9, 0.1), (0.2, 0.8))
    )  # fmt: skip
    return PrimeTaskSampler(
        EngineerCurriculum(engineer, start, target=target, every=60, editable=["slices.*.share"]), lake_tasks()
    )


@pytest.mark.parametrize("engineer", ["rules", "learnability"])
def test_an_engineer_makes_three_configs_and_goes_on_from_a_checkpoint_as_without_the_break(engineer):
    whole, part = of_lakes(engineer), of_lakes(engineer)
    together, before = Orchestrator(), Orchestrator()
    keys = together.play(whole, 300)
    begun = before.play(part, 137)
    state = json.loads(json.dumps(part.state_dict()))
    del part
    after = of_lakes(engineer)
    after.load_state_dict(state)
    assert begun + before.play(after, 163) == keys
    assert after.state_dict() == whole.state_dict()
    assert len({one.config.model_dump_json() for one in whole.curriculum.proposals}) >= 3
    assert whole.curriculum.incidents == []


def test_after_a_kill_with_groups_under_way_training_goes_on():
    part = of_lakes("rules")
    Orchestrator().play(part, 100)
    after = of_lakes("rules")
    after.load_state_dict(json.loads(json.dumps(part.state_dict())))
    stage = after.curriculum.stage
    Orchestrator().play(after, 200)
    assert after.curriculum.stage > stage + 3


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


@pytest.mark.parametrize("part", ["curriculum", "rng", "drawn", "late"])
def test_a_damaged_state_is_refused_whole(part: str):
    one, before = sampler("learnability", every=12), sampler("learnability", every=12)
    before.observe(group(next(before), 1.0, 0.0, 1.0, 0.0))
    kept = one.state_dict()
    with pytest.raises((AttributeError, KeyError, TypeError, ValueError)):
        one.load_state_dict(before.state_dict() | {part: 7})
    assert one.state_dict() == kept


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
        (iter(tasks(3)), r"and this is a list_iterator: give list\(tasks\), for mapf-lake with tasks=N"),
        ([], "needs a task at least"),
        (tasks(3) * 2, "two tasks have one key"),
        (tasks(3, 6), "slice '6', and the config has 3, 4"),
    ):
        with pytest.raises(SpecError, match=said):
            PrimeTaskSampler(curriculum, given)


def test_what_has_no_shares_is_no_curriculum_here():
    for given, said in (
        (
            lambda success: None,
            "a FunctionCurriculum has no shares by which tasks are drawn: give an EngineerCurriculum",
        ),
        ("rules", "curriculum is a str: give a Ladder, an EngineerCurriculum"),
        (Small(), r"Small is an engineer, not a curriculum: give EngineerCurriculum\(engineer, config\)"),
    ):
        with pytest.raises(SpecError, match=said):
            PrimeTaskSampler(given, tasks(3, 4))


def test_steps_are_not_counted_here():
    curriculum = EngineerCurriculum(Small(), CONFIG, unit="steps")
    with pytest.raises(SpecError, match=r"unit='steps' is not counted here, .* give unit='episodes' or 'iterations'"):
        PrimeTaskSampler(curriculum, tasks(3, 4))
