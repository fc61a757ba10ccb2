"""How actionable are a tool's messages? Measures, without a model, how well they locate a fault in a known plan.

A scripted reader executes a task's ground truth with one fault of a known type in it, and gets one kind of messages. It may look up any
single thing again (an argument, a tool's name, a call that it left out), but only the messages tell it where to look. So the faults that
it recovers from are those that the messages locate. This does not measure how well a language model reads.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.bfcl.faults import VARIANTS, NotHere, Place
from benchmarks.bfcl.readers import RETRIES, Desk, Reader, complains
from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.episode import Conversation, HintPlace, Unlisted
from envtuning.worlds.bfcl.events import CallAugmenter
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.reply_format import ReplyFormat, write_answer, write_calls
from envtuning.worlds.bfcl.scripted import DONE, named_plan
from envtuning.worlds.bfcl.tasks import Task

LONG_TURN = 12  # calls; a longer turn is one reply without faults, because retries would reach the limit of steps

Messages = Callable[[str], str]


def as_they_are(message: str) -> str:
    return message


@dataclass(frozen=True)
class Fault:
    """One thing that the reader gets wrong."""

    variant: str  # "wrong_id/off_by_one"
    tool: str  # of the call that has the fault
    turn: int
    index: int
    wrong: Call | None  # what is called instead; None: the call is left out

    @property
    def kind(self) -> str:
        return self.variant.split("/")[0]


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


def places(package: Package, task: Task) -> list[Place]:
    """Every call of the plan whose tool is offered in its turn."""
    found = []
    for turn, calls in enumerate(named_plan(package, task)):
        offered = {document["name"]: document for document in task.tools(package, turn)}
        for index, call in enumerate(calls):
            if call.name in offered:
                found.append(Place(turn, index, call, offered[call.name]))
    return found


def draw(package: Package, task: Task, variant: str, generator: random.Random) -> Fault | None:
    """A fault of this variant at a random place of the task; None if it fits nowhere."""
    candidates = places(package, task)
    generator.shuffle(candidates)
    for place in candidates:
        try:
            wrong = VARIANTS[variant](place, task.tools(package, place.turn), generator)
        except NotHere:
            continue
        if wrong != place.call:
            return Fault(variant, place.call.name, place.turn, place.index, wrong)
    return None


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
            say(talk, *calls)
            calls = ()
        for index, meant in enumerate(calls):
            written = meant
            if fault is not None and (turn, index) == (fault.turn, fault.index):
                if fault.wrong is None:
                    left_out.append(meant)
                    continue
                written = fault.wrong
            message = say(talk, written)
            complained += complains(message)
            for _ in range(RETRIES):
                if condition.reader is None or not complains(message) or talk.over:
                    break
                desk = Desk(written, meant, tuple(left_out), offered(talk), read_only(talk))
                repair = condition.reader(condition.messages(message), desk, generator)
                if repair is None:
                    break
                if repair.asks:
                    asked = True
                    break
                retries += 1
                if repair.first:
                    say(talk, *repair.first)
                left_out = [call for call in left_out if call not in repair.first]
                assert repair.again is not None
                written = repair.again
                message = say(talk, written)
            if asked:
                break
        if talk.over:
            break
        complaints.append(complained)
        end_turn(talk)
        if asked:
            break  # the user would answer; this turn's plan was not carried out
    while not talk.over:
        end_turn(talk)
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


def say(talk: Conversation, *calls: Call) -> str:
    """Make the calls in one reply; returns their messages, or an empty text after the limit of steps."""
    if talk.over:
        return ""
    talk.act(write_calls(calls, talk.reply_format))
    return talk.said


def end_turn(talk: Conversation) -> None:
    """Answer without a call."""
    talk.act(write_answer(DONE, talk.reply_format))


def offered(talk: Conversation) -> frozenset[str]:
    """The names of the tools that the turn offers."""
    return frozenset(tool["name"] for tool in talk.tools)


def read_only(talk: Conversation) -> tuple[str, ...]:
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
