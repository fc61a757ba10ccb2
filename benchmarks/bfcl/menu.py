"""``MenuWorld``: tool use with a short menu of possible next replies, the right one among decoys, below every message.

It is for policies that cannot write calls. The menu turns the benchmark into a much easier task: a multiple choice that includes the
right call. This suffices to show that training, stages and reports work. Its figures are not results on the benchmark.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.bfcl.faults import VARIANTS, NotHere, Place
from benchmarks.bfcl.random_calls import random_call
from engineers.from_file import PLAIN, reads
from envtuning.worlds.bfcl.calls import Call, as_reply
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.env import BFCLMultiTurnEnv
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.prompts import USER
from envtuning.worlds.bfcl.scripted import named_plan
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.bfcl.tools import Result
from envtuning.worlds.bfcl.world import BFCLWorld, TrainingEnv, settings_of
from envtuning.worlds.world import fingerprints_of

DONE = "That is all I can do here."
HEADING = "You can say:"
WRONG = 2  # decoys that are the right call with a fault in it
OTHERS = 1  # decoys that are other calls


class MenuEnv(BFCLMultiTurnEnv):
    """Shows the menu below what the agent reads, and marks what the user says. Its configs have ``tool_style: none``."""

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        said, info = super().reset(seed=seed, options=options)
        self.spoken = 0  # replies of the whole episode
        self.turn_began = 0  # its first call, counted over the episode
        return self._with_menu(f"{USER}{said}"), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        talk = self.conversation
        assert talk is not None, "no conversation is running"
        turn = talk.turn
        said, *rest = super().step(action)
        self.spoken += 1
        if talk.turn != turn:
            self.turn_began = len(talk.earlier)
            said = f"{USER}{said}"
        return (said if talk.over else self._with_menu(said), *rest)

    def _with_menu(self, said: str) -> str:
        talk = self.conversation
        assert talk is not None, "it was reset"
        made = talk.earlier[self.turn_began :]
        return f"{said}\n{shown(choices(talk.package, talk.task, talk.turn, made, self.spoken))}"


class MenuTrainingEnv(TrainingEnv, MenuEnv):
    """Menus on training tasks."""


@reads(dict.fromkeys(("cut", "held_out", "version"), PLAIN))
class MenuWorld(BFCLWorld):
    """The world ``tools`` with menus."""

    def make_env(
        self, config: BFCLConfig, *, exclude: Sequence[Any] = (), capacity: Any = None, seed: int = 0
    ) -> TrainingEnv:
        return MenuTrainingEnv(self, config, fingerprints_of(exclude), seed)

    def play_env(self, config: BFCLConfig) -> BFCLMultiTurnEnv:
        return MenuEnv(version=self.version, path=self.path, **settings_of(config))


def choices(
    package: Package, task: Task, turn: int, made: Sequence[tuple[Call, Result]], spoken: int, seed: int = 0
) -> list[str]:
    """The menu for the next reply, in random order: the next call of the turn's ground truth (if there is one left), the same
    call with faults, other calls, and the end of the turn.

    ``made`` are the turn's calls so far; ``spoken`` is the number of replies in the episode. A pure function of its arguments.
    """
    generator = random.Random(f"{seed} {task.id} {turn} {spoken}")
    plan = named_plan(package, task)
    right = _next_call(plan[turn], made)
    tools = task.tools(package, turn)
    documents = {tool["name"]: tool for tool in tools}
    offered = [right] if right is not None else []
    near = right or next((call for calls in plan[turn:] for call in calls if call.name in documents), None)
    if near is not None and near.name in documents:
        offered += _with_faults(Place(turn, 0, near, documents[near.name]), tools, generator)
    later = [call for calls in plan for call in calls if call != right]
    offered += generator.sample(later, min(1, len(later)))
    while len(offered) < 1 + WRONG + OTHERS:
        offered.append(random_call(generator.choice(tools), generator))
    menu = [*dict.fromkeys(as_reply([call]) for call in offered), DONE]
    generator.shuffle(menu)
    return menu


def shown(menu: Sequence[str]) -> str:
    return "\n".join([HEADING, *(f"- {choice}" for choice in menu)])


def read_menu(message: str) -> list[str]:
    """The menu at the end of a message; empty if there is none."""
    _, heading, lines = message.rpartition(f"\n{HEADING}\n")
    return [line.removeprefix("- ") for line in lines.split("\n")] if heading else []


def _next_call(plan: Sequence[Call], made: Sequence[tuple[Call, Result]]) -> Call | None:
    """The first call of the turn's plan that has not been made."""
    done = [call for call, _ in made]
    for call in plan:
        if call in done:
            done.remove(call)
        else:
            return call
    return None


def _with_faults(place: Place, tools: Sequence[dict[str, Any]], generator: random.Random) -> list[Call]:
    found: list[Call] = []
    for variant in generator.sample(sorted(VARIANTS), len(VARIANTS)):
        if len(found) == WRONG:
            break
        try:
            wrong = VARIANTS[variant](place, tools, generator)
        except NotHere:
            continue
        if wrong is not None and wrong != place.call and len(str(wrong)) < 2_000:
            found.append(wrong)
    return found
