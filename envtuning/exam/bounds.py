"""The rows that bound an exam: schedules that read nothing, and an oracle that knows which tasks can be learnt.

Which setting is the best on a family is searched on roots of its own (``python -m benchmarks.exam_ground``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from envtuning.exam.families import DECISIONS, LACKING, MASTERED, Family
from envtuning.exam.session import Session, Start
from envtuning.exam.tasks import Ints
from envtuning.exam.training import Floats

LEARNT = 0.9  # success from which on the oracle takes a task as learnt
SHAKY = 0.8  # success of a learnt task below which the oracle rehearses it three times as much
LOOKS = 50  # cases of a task that the oracle sees before each stage


class View(NamedTuple):
    """What an arm may look at before a stage."""

    order: Ints  # of the tasks, by chance
    stage: int
    stages: int
    kind: Ints  # for the oracle alone
    success: Floats  # of a test now; for the oracle alone


Arm = Callable[[View], Floats]  # gives weights of the tasks in the next stage


@dataclass(frozen=True)
class Even:
    def __call__(self, view: View) -> Floats:
        return np.ones(len(view.order))


@dataclass(frozen=True)
class Shares:
    """Fixed shares that rise or fall along the tasks' names."""

    last_over_first: float

    def __call__(self, view: View) -> Floats:
        n = len(view.order)
        return self.last_over_first ** (np.arange(n) / (n - 1))


@dataclass(frozen=True)
class WarmUp:
    """Half of the tasks first, with a floor for the others, then all."""

    part: float  # of the stages
    floor: float

    def __call__(self, view: View) -> Floats:
        n = len(view.order)
        first = np.isin(np.arange(n), view.order[: n // 2])
        warm = view.stage < round(self.part * view.stages)
        return np.where(first, 1.0, self.floor) if warm else np.ones(n)


@dataclass(frozen=True)
class Blocks:
    """A part of the tasks, and replay of all; the part stays, or moves on."""

    parts: int
    moves: bool
    replay: float

    def __call__(self, view: View) -> Floats:
        n = len(view.order)
        at = (view.stage * self.parts // view.stages) % self.parts if self.moves else 0
        chosen = np.isin(np.arange(n), np.array_split(view.order, self.parts)[at])
        return self.replay / n + (1 - self.replay) * chosen / chosen.sum()


@dataclass(frozen=True)
class Oracle:
    """What is lacking, all at once or a part of it at a time; rehearsal of what is mastered; nothing else."""

    rehearsal: float
    part: float
    nearest: bool = False  # first; else in an order by chance

    def __call__(self, view: View) -> Floats:
        lacking = view.kind == LACKING
        todo = view.order[lacking[view.order] & (view.success[view.order] < LEARNT)]
        done = np.flatnonzero((view.kind == MASTERED) | (lacking & (view.success >= LEARNT)))
        if self.nearest:
            todo = todo[np.argsort(-view.success[todo], kind="stable")]
        todo = todo[: max(1, round(self.part * lacking.sum()))]
        weights = np.zeros(len(view.order))
        if len(done):
            shaky = 1 + 2 * (view.success[done] < SHAKY)
            weights[done] = (self.rehearsal if len(todo) else 1.0) * shaky / shaky.sum()
        weights[todo] = (1 - self.rehearsal) / max(1, len(todo))
        return weights


OPEN_LOOPS: tuple[Arm, ...] = (
    Even(),
    *(Shares(ratio) for ratio in (1 / 9, 1 / 3, 0.6, 1.7, 3.0, 9.0)),
    *(WarmUp(part, floor) for part, floor in product((1 / 6, 1 / 3, 1 / 2, 2 / 3), (0.0, 0.2))),
    *(Blocks(*setting) for setting in product((2, 3, 4), (False, True), (0.0, 0.2, 0.4))),
)
ORACLES: tuple[Arm, ...] = tuple(
    Oracle(*setting) for setting in product((0.05, 0.1, 0.2, 0.3, 0.4, 0.5), (1.0, 0.5, 0.34), (False, True))
    if setting[1:] != (1.0, True)
)  # fmt: skip

FOUND: dict[str, tuple[Arm, Arm]] = {  # of each family, the best open loop and the best oracle
    "codes-slow": (Blocks(2, False, 0.4), Oracle(0.3, 1.0)),
    "algorithms-hopeless": (WarmUp(2 / 3, 0.2), Oracle(0.2, 1.0)),
    "half-right": (Blocks(2, False, 0.4), Oracle(0.3, 1.0)),
    "coins": (Blocks(2, False, 0.4), Oracle(0.5, 1.0)),
    "null": (WarmUp(1 / 2, 0.0), Oracle(0.05, 1.0)),
    "by-reward": (WarmUp(1 / 2, 0.2), Oracle(0.1, 1.0)),
    "reasoning": (Blocks(4, False, 0.2), Oracle(0.05, 1.0)),
    "drawn-1": (WarmUp(1 / 3, 0.2), Oracle(0.4, 1.0)),
    "drawn-2": (WarmUp(1 / 3, 0.2), Oracle(0.5, 0.34)),
    "drawn-3": (Blocks(4, False, 0.4), Oracle(0.3, 0.5, True)),
    "drawn-4": (WarmUp(1 / 6, 0.0), Oracle(0.3, 1.0)),
    "drawn-5": (Shares(3.0), Oracle(0.4, 1.0)),
    "drawn-6": (Blocks(3, False, 0.4), Oracle(0.5, 0.5, True)),
}
EVEN_ENDS = {  # of each family, the mean success of even draws on sixteen roots of the exam, with two trainings each
    "codes-slow": 0.3849, "algorithms-hopeless": 0.3851, "half-right": 0.3704, "coins": 0.5015, "by-reward": 0.5830,
    "reasoning": 0.0942, "null": 0.6248, "drawn-1": 0.3434, "drawn-2": 0.2661, "drawn-3": 0.3029, "drawn-4": 0.3236,
    "drawn-5": 0.4912, "drawn-6": 0.3014,
}  # fmt: skip


def shares_for(arm: Arm, session: Session) -> Floats:
    """The arm's shares in the next stage of a session of one run."""
    tasks, start = session.family.tasks, session.starts[0]
    success = session.test(LOOKS)[0] if isinstance(arm, Oracle) else np.zeros(tasks)
    order = np.random.default_rng([start.root, start.training, 5]).permutation(tasks)
    return arm(View(order, session.stage, session.stages, session.tasks[0].kind, success))


def trained_by(arm: Arm, session: Session) -> list[list[float]]:
    """Train all stages; their shares."""
    shares = list[list[float]]()
    for _ in range(session.stages):
        shares.append(shares_for(arm, session).tolist())
        session.train(np.array(shares[-1:]))
    return shares


def played(family: Family, start: Start, arm: Arm, decisions: int = DECISIONS) -> Floats:
    """Success of each task at the end of a run."""
    session = Session(family, [start], decisions)
    trained_by(arm, session)
    return session.test()[0]
