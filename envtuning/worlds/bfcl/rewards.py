"""The reward of an episode: ``progress``, ``syntax`` or ``binary``, each from 0 to 1, each 0 for a policy that says nothing.

Every turn with ground truth has the same weight, reached or not, so an episode that stops early gets nothing for the rest. In a
turn without ground truth the agent should ask; such a turn has weight 0, because nothing is checked in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from envtuning.worlds.bfcl.check import TurnCheck

Reward = Literal["progress", "syntax", "binary"]
REWARDS: tuple[Reward, ...] = get_args(Reward)


@dataclass(frozen=True)
class TurnRecord:
    """What an agent did in one turn, and how it was judged."""

    steps: tuple[tuple[str, ...], ...]  # the calls of each step that had calls
    replies: int  # all replies, including unreadable ones and the answer that ended the turn
    unreadable: int
    failed_calls: int
    check: TurnCheck | None  # None: the turn has no ground truth
    ended: bool = True  # False: the limit of steps ended it

    @property
    def passed(self) -> bool:
        """Whether it was ended, and is right if it has ground truth."""
        return self.ended and (self.check is None or self.check.right)

    @property
    def calls(self) -> int:
        return sum(len(step) for step in self.steps)


def progress(turns: Sequence[TurnRecord], checked_turns: int) -> float:
    """The paper's ``(1/T) Σ r_state(t) · r_exec(t)``, over the T turns that have ground truth; the paper's T is all turns."""
    return sum(turn_progress(turn) for turn in turns) / checked_turns


def syntax(turns: Sequence[TurnRecord], checked_turns: int) -> float:
    """The reward of the first stage. Per turn: calls made × (replies that can be read + calls that ran without error) / 2."""
    return sum(turn_syntax(turn) for turn in turns) / checked_turns


def turn_progress(turn: TurnRecord) -> float:
    return float(turn.check is not None and turn.passed)


def turn_syntax(turn: TurnRecord) -> float:
    if turn.check is None or turn.calls == 0:
        return 0.0
    readable = 1 - turn.unreadable / turn.replies
    executed = 1 - turn.failed_calls / turn.calls
    return (readable + executed) / 2


def success(turns: Sequence[TurnRecord], all_turns: int) -> bool:
    """The official checker's rule: every turn was ended, and every turn with ground truth is right."""
    return len(turns) == all_turns and all(turn.passed for turn in turns)
