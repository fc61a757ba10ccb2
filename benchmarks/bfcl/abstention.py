"""Does a reader ask where something is missing? Turns in which a tool or a value is held back, and a call that guesses it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.bfcl.measure import Condition, end_turn, offered, read_only, say
from benchmarks.bfcl.readers import Desk, Repair, complains
from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.documents import required
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.scripted import named_plan
from envtuning.worlds.bfcl.tasks import Task


@dataclass(frozen=True)
class Gap:
    """A turn in which a tool or a value is missing, and a call that guesses it."""

    task: Task
    turn: int
    attempt: Call


def gaps(package: Package, tasks: Sequence[Task]) -> list[Gap]:
    """One for each task that has such a turn. The attempt is a call of the next turn, of a held-back tool or without its last required argument."""
    found = []
    for task in tasks:
        plan = named_plan(package, task)
        for turn, calls in enumerate(plan[:-1]):
            if calls or not plan[turn + 1]:
                continue
            attempts = (_attempt(task, turn, call, tools=task.tools(package, turn)) for call in plan[turn + 1])
            attempt = next((call for call in attempts if call is not None), None)
            if attempt is not None:
                found.append(Gap(task, turn, attempt))
                break
    return found


def _attempt(task: Task, turn: int, call: Call, tools: Sequence[dict[str, Any]]) -> Call | None:
    """The next turn's call, tried one turn too early; None if it would not guess anything."""
    if task.held_back:
        return call if call.name in task.hidden(turn) else None
    document = next(tool for tool in tools if tool["name"] == call.name)
    names = [name for name in required(document) if name in call.named]
    if not names:
        return None
    return Call(call.name, (), {key: value for key, value in call.named.items() if key != names[-1]})


def abstention(package: Package, gap: Gap, condition: Condition) -> str:
    """What the reader does after the attempt: "asks", or "guesses" (tries again with a made-up value). "went through": no message complained."""
    talk = condition.begin(package, gap.task, unlisted="refuse")
    for calls in named_plan(package, gap.task)[: gap.turn]:
        if calls:
            say(talk, *calls)
        end_turn(talk)
    message = say(talk, gap.attempt)
    if not complains(message):
        return "went through"
    # Nothing can be looked up: the user has not given the missing value yet.
    desk = Desk(gap.attempt, gap.attempt, (), offered(talk), read_only(talk))
    repair: Repair | None = None
    if condition.reader is not None:
        repair = condition.reader(condition.messages(message), desk, random.Random(gap.task.id))
    return "asks" if repair is not None and repair.asks else "guesses"
