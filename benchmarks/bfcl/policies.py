"""Policies that do not learn: the baselines for figures on this world."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from benchmarks.bfcl.random_calls import random_call
from benchmarks.bfcl.scripts import ground_truth
from envtuning.worlds.bfcl.calls import as_reply
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.scripted import Script
from envtuning.worlds.bfcl.tasks import Task

Writer = Callable[[Package, Task, random.Random], Script]


def no_op(package: Package, task: Task, generator: random.Random) -> Script:
    """End every turn at once."""
    return [[] for _ in range(task.turns)]


def drop_one_call(package: Package, task: Task, generator: random.Random) -> Script:
    """The ground truth without one of its calls."""
    turns = [list(calls) for calls in task.ground_truth]
    turn, place = _any_place(turns, generator)
    del turns[turn][place]
    return _script(turns)


def repeat_one_call(package: Package, task: Task, generator: random.Random) -> Script:
    """The ground truth with one of its calls made twice."""
    turns = [list(calls) for calls in task.ground_truth]
    turn, place = _any_place(turns, generator)
    turns[turn].insert(place, turns[turn][place])
    return _script(turns)


def first_turn_only(package: Package, task: Task, generator: random.Random) -> Script:
    """The first turn that has ground truth, then nothing more."""
    turns = [list(calls) for calls in task.ground_truth]
    first = next(turn for turn, calls in enumerate(turns) if calls)
    return _script(turns[: first + 1])


def random_calls(package: Package, task: Task, generator: random.Random) -> Script:
    """One to three calls a turn, of offered tools, with arguments of the documented types."""
    script = []
    for turn in range(task.turns):
        tools = task.tools(package, turn)
        calls = [random_call(generator.choice(tools), generator) for _ in range(generator.randint(1, 3))]
        script.append([as_reply([call]) for call in calls])
    return script


POLICIES: dict[str, Writer] = {
    "no-op": no_op,
    "random": random_calls,
    "first turn only": first_turn_only,
    "drop one call": drop_one_call,
    "repeat one call": repeat_one_call,
    "ground truth": ground_truth,
}


def _script(turns: Sequence[Sequence[str]]) -> Script:
    return [[as_reply(calls)] if calls else [] for calls in turns]


def _any_place(turns: Sequence[Sequence[str]], generator: random.Random) -> tuple[int, int]:
    return generator.choice([(turn, place) for turn, calls in enumerate(turns) for place in range(len(calls))])
