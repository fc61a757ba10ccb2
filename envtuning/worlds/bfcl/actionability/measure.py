"""The measure: a reader plays episodes with one fault each, and gets one kind of messages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from envtuning.worlds.bfcl.actionability.faults import VARIANTS, Fault, draw, named_plan
from envtuning.worlds.bfcl.actionability.readers import RETRIES, Desk, Reader, Repair, complains
from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.documents import required
from envtuning.worlds.bfcl.episode import Conversation, HintPlace, Unlisted
from envtuning.worlds.bfcl.events import CallAugmenter
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.reply_format import ReplyFormat, write_answer, write_calls
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.statistics import macro_interval, scenario_interval
from envtuning.worlds.bfcl.tasks import Task

LONG_TURN = 12  # calls; a longer turn is one reply without faults, because retries would reach the limit of steps

Messages = Callable[[str], str]


def as_they_are(message: str) -> str:
    return message


def masked(message: str) -> str:
    return "Error." if complains(message) else "Done."


@dataclass(frozen=True)
class Condition:
    """A reader, and the messages that it gets."""

    name: str
    reader: Reader | None
    augmenter: CallAugmenter | None = None
    messages: Messages = as_they_are
    hint_place: HintPlace = "after"
    reply_format: ReplyFormat = "readable"  # of the reader's replies

    def begin(self, package: Package, task: Task, unlisted: Unlisted = "run") -> Conversation:
        """A conversation in which the reader gets this condition's messages."""
        return Conversation(
            package,
            task,
            augmenter=self.augmenter,
            hint_place=self.hint_place,
            tool_style="none",
            reply_format=self.reply_format,
            unlisted=unlisted,
        )


@dataclass(frozen=True)
class Outcome:
    solved: bool
    complaints: tuple[int, ...]  # per turn, of the calls as first made
    retries: int
    asked: bool


@dataclass(frozen=True)
class Sample:
    """A fault in a task; whether it does harm, and whether it shows, when nobody reads the stock messages."""

    task: Task
    fault: Fault
    visible: bool  # a stock message of its turn complains, and does not complain without the fault


def play_plan(
    package: Package, task: Task, fault: Fault | None, condition: Condition, generator: random.Random
) -> Outcome:
    """The plan with the fault in it, call by call; the condition's reader reads the complaints."""
    talk = condition.begin(package, task)
    left_out: list[Call] = []
    complaints, retries, asked = [], 0, False
    for turn, calls in enumerate(named_plan(package, task)):
        complained = 0
        if len(calls) > LONG_TURN:
            _say(talk, *calls)
            calls = ()
        for index, meant in enumerate(calls):
            written = meant
            if fault is not None and (turn, index) == (fault.turn, fault.index):
                if fault.wrong is None:
                    left_out.append(meant)
                    continue
                written = fault.wrong
            message = _say(talk, written)
            complained += complains(message)
            for _ in range(RETRIES):
                if condition.reader is None or not complains(message) or talk.over:
                    break
                desk = Desk(written, meant, tuple(left_out), _names(talk), _read_only(talk))
                repair = condition.reader(condition.messages(message), desk, generator)
                if repair is None:
                    break
                if repair.asks:
                    asked = True
                    break
                retries += 1
                if repair.first:
                    _say(talk, *repair.first)
                left_out = [call for call in left_out if call not in repair.first]
                assert repair.again is not None
                written = repair.again
                message = _say(talk, written)
            if asked:
                break
        if talk.over:
            break
        complaints.append(complained)
        _end_turn(talk)
        if asked:
            break  # the user would answer; this turn's plan was not carried out
    while not talk.over:
        _end_turn(talk)
    return Outcome(bool(talk.scores()["success"]), tuple(complaints), retries, asked)


def draw_samples(
    package: Package, tasks: Sequence[Task], *, per_task: int, seed: int, variants: Iterable[str] = tuple(VARIANTS)
) -> list[Sample]:
    """Harmful faults: up to ``per_task`` random variants a task, kept if the episode fails when nobody reads the messages."""
    unread = Condition("unread", None)
    samples = []
    for task in tasks:
        generator = random.Random(f"{seed} {task.id}")
        clean = play_plan(package, task, None, unread, generator)
        assert clean.solved, f"{task.id}: the plan solves its task, call by call"
        names = list(variants)
        generator.shuffle(names)
        drawn = 0
        for variant in names:
            fault = draw(package, task, variant, generator)
            if fault is None or len(task.plan[fault.turn]) > LONG_TURN:
                continue
            outcome = play_plan(package, task, fault, unread, generator)
            if not outcome.solved:
                shows = outcome.complaints[fault.turn] > clean.complaints[fault.turn]
                samples.append(Sample(task, fault, shows))
            drawn += 1
            if drawn == per_task:
                break
    return samples


def recovered(package: Package, samples: Sequence[Sample], condition: Condition, seed: int = 0) -> list[bool]:
    """For each sample: whether the task was solved in spite of the fault."""
    return [
        play_plan(package, s.task, s.fault, condition, random.Random(f"{seed} {s.task.id} {s.fault.variant}")).solved
        for s in samples
    ]


def summary(samples: Sequence[Sample], solved: Sequence[bool]) -> dict[str, Any]:
    """Micro: the mean over all samples. Macro: the mean over the faults' variants. Both with an interval over scenarios."""
    if not samples:
        return {"n": 0}
    by_variant: dict[str, list[bool]] = {}
    for sample, value in zip(samples, solved):
        by_variant.setdefault(sample.fault.variant, []).append(value)
    rates = {variant: sum(values) / len(values) for variant, values in sorted(by_variant.items())}
    scenarios = [sample.task.scenario for sample in samples]
    low, high = scenario_interval([float(value) for value in solved], scenarios)
    macro = macro_interval(solved, [sample.fault.variant for sample in samples], scenarios)
    return {
        "n": len(samples),
        "micro": round(sum(solved) / len(samples), 4),
        "interval": [round(low, 4), round(high, 4)],
        "macro": round(sum(rates.values()) / len(rates), 4),
        "macro_interval": [round(bound, 4) for bound in macro],
        "variants": {variant: round(rate, 3) for variant, rate in rates.items()},
    }


# If something is missing, the agent should ask.


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
            _say(talk, *calls)
        _end_turn(talk)
    message = _say(talk, gap.attempt)
    if not complains(message):
        return "went through"
    # Nothing can be looked up: the user has not given the missing value yet.
    desk = Desk(gap.attempt, gap.attempt, (), _names(talk), _read_only(talk))
    repair: Repair | None = None
    if condition.reader is not None:
        repair = condition.reader(condition.messages(message), desk, random.Random(gap.task.id))
    return "asks" if repair is not None and repair.asks else "guesses"


def _say(talk: Conversation, *calls: Call) -> str:
    """Make the calls in one reply; returns their messages, or an empty text after the limit of steps."""
    if talk.over:
        return ""
    talk.act(write_calls(calls, talk.reply_format))
    return talk.said


def _end_turn(talk: Conversation) -> None:
    talk.act(write_answer(DONE, talk.reply_format))


def _names(talk: Conversation) -> frozenset[str]:
    return frozenset(tool["name"] for tool in talk.tools)


def _read_only(talk: Conversation) -> tuple[str, ...]:
    """Tools that need no argument and, judging by their names, only read."""
    reading = (
        "get_",
        "list_",
        "view_",
        "ls",
        "pwd",
        "check_",
        "find_nearest",
        "trading_get",
        "ticket_get",
        "travel_get",
    )
    return tuple(
        tool["name"]
        for tool in talk.tools
        if not tool["parameters"].get("required") and tool["name"].startswith(reading)
    )
