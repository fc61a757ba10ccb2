"""Training outcomes: every sampled reply is judged once and counted by slice, for metrics and the engineer's report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engineers.report import SliceResult
from mapf_frozenlake.text.trl import Reply, judged_reply, text_of
from mapf_frozenlake.types import FailureKind

TRUNCATED = "truncated"  # a failure kind: the reply was cut at its limit


@dataclass
class Slice:
    replies: int = 0
    valid: int = 0
    failures: Counter[str] = field(default_factory=Counter)


@dataclass
class Outcomes:
    """Counts since the last ``take``. It is also TRL's reward function, which counts every reply that it rewards."""

    eos: frozenset[int]  # the tokens that end a reply
    pays: Any = None  # a reward function that replaces the config's
    slices: dict[str, Slice] = field(default_factory=dict)
    rewards: list[float] = field(default_factory=list)
    begun: str = ""  # the beginning of a thought at the end of every prompt; see ``begun_thought``
    __name__ = "reward"  # TRL logs a reward function under its name

    def __call__(
        self,
        completions: Sequence[Reply],
        metadata: Sequence[Mapping[str, Any]],
        completion_ids: Sequence[Sequence[int]],
        paid: Sequence[float] | None = None,  # the environment has judged a played conversation
        failure: Sequence[str | None] | None = None,
        **columns: Any,
    ) -> list[float]:
        if paid is None or failure is None:
            judged = [
                judged_reply(self.begun + text_of(reply), row) for reply, row in zip(completions, metadata, strict=True)
            ]
            cut = [not ids or ids[-1] not in self.eos for ids in completion_ids]
            failure = [named(verdict.failure, short) for (_, verdict), short in zip(judged, cut, strict=True)]
            paid = [reward for reward, _ in judged]
        for row, kind in zip(metadata, failure, strict=True):
            self.count(str(row["slice"]), kind)
        if self.pays is not None:
            paid = self.pays(completions=completions, metadata=metadata, completion_ids=completion_ids, **columns)
        self.rewards += paid
        return list(paid)

    def count(self, name: str, failure: str | None) -> None:
        piece = self.slices.setdefault(name, Slice())
        piece.replies += 1
        piece.valid += failure is None
        if failure is not None:
            piece.failures[failure] += 1

    @property
    def replies(self) -> int:
        return sum(piece.replies for piece in self.slices.values())

    def metrics(self) -> dict[str, float]:
        """Rates over all counts; empty if nothing was counted."""
        if not self.replies:
            return {}
        failures = sum((piece.failures for piece in self.slices.values()), Counter())
        return {
            "success_rate": sum(piece.valid for piece in self.slices.values()) / self.replies,
            "parse_error_rate": failures[FailureKind.PARSE_ERROR] / self.replies,
            "truncated_rate": failures[TRUNCATED] / self.replies,
        }

    def results(self) -> list[SliceResult]:
        """One row per slice, in the form of a report."""
        return [
            SliceResult(
                name=name,
                episodes=piece.replies,
                metrics={"valid_rate": piece.valid / piece.replies},
                failures=dict(sorted(piece.failures.items())),
            )
            for name, piece in sorted(self.slices.items())
        ]

    def of_all_processes(self) -> Outcomes:
        """The sum of the counts of all processes of a group; each judged its own replies. All of them must call this."""
        from accelerate.utils import gather_object

        whole = Outcomes(self.eos, self.pays)
        for slices, rewards in gather_object([(self.slices, self.rewards)]):
            whole.rewards += rewards
            for name, piece in slices.items():
                total = whole.slices.setdefault(name, Slice())
                total.replies += piece.replies
                total.valid += piece.valid
                total.failures += piece.failures
        return whole

    def take(self) -> Outcomes:
        """The counts since the last call; counting starts again from 0."""
        taken = Outcomes(self.eos, self.pays, self.slices, self.rewards)
        self.slices, self.rewards = {}, []
        return taken


def named(failure: FailureKind | None, cut: bool) -> str | None:
    """The kind of failure; for a failed reply that was cut at its limit it is "truncated"."""
    if failure is None:
        return None
    return TRUNCATED if cut else str(failure)
