"""Training outcomes: every sampled reply is judged once and counted by slice, for metrics and the engineer's report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from envtuning.outcomes import Counts, Outcome, Tally, further_replies, total
from envtuning.trainees.visited import Visited
from mapf_frozenlake.text.trl import Reply, judged_reply, text_of
from mapf_frozenlake.types import FailureKind

TRUNCATED = "truncated"  # a failure kind: the reply was cut at its limit


@dataclass
class Outcomes:
    """Counts since the last ``take``. It is also TRL's reward function, which counts every reply that it rewards."""

    eos: frozenset[int]  # the tokens that end a reply
    pays: Any = None  # a reward function that replaces the config's
    tally: Tally = field(default_factory=Tally)
    visited: Visited = field(default_factory=Visited)
    # `generated` in replies; `dropped` with their prompts by refill; `trained` on
    tokens: Counter[str] = field(default_factory=Counter)
    begun: str = ""  # the beginning of a thought at the end of every prompt; see ``begun_thought``
    __name__ = "reward"  # TRL logs a reward function under its name

    def __call__(
        self,
        completions: Sequence[Reply],
        metadata: Sequence[Mapping[str, Any]],
        completion_ids: Sequence[Sequence[int]],
        paid: Sequence[float] | None = None,  # the environment has judged a played conversation
        failure: Sequence[str | None] | None = None,
        score: Sequence[float] | None = None,
        **columns: Any,
    ) -> list[float]:
        if paid is None or failure is None or score is None:  # not played here, where it is counted
            judged = [
                judged_reply(self.begun + text_of(reply), row) for reply, row in zip(completions, metadata, strict=True)
            ]
            cut = [not ids or ids[-1] not in self.eos for ids in completion_ids]
            failure = [named(verdict.failure, short) for (_, verdict), short in zip(judged, cut, strict=True)]
            paid = [reward for reward, _ in judged]
            self.observe(metadata, failure, [verdict.score for _, verdict in judged], completion_ids)
        if self.pays is not None:
            paid = self.pays(
                completions=completions, metadata=metadata, completion_ids=completion_ids, paid=paid, **columns
            )
        return list(paid)

    def observe(
        self,
        metadata: Sequence[Mapping[str, Any]],
        failures: Sequence[str | None],
        scores: Sequence[float],
        replies: Sequence[Sequence[int]],
    ) -> None:
        """Count judged replies, each with its row's metadata and its tokens. Those to one question come together."""
        questions = [str(row["case"] if "case" in row else row["text"]) for row in metadata]
        marks = (self.visited.repeats(questions), further_replies(questions))
        for row, kind, score, repeat, further in zip(metadata, failures, scores, *marks, strict=True):
            self.tally.observe(Outcome(str(row["slice"]), kind is None, score, kind or "", repeat, further))
        self.tokens["generated"] += sum(map(len, replies))

    def metrics(self) -> dict[str, float]:
        """Rates over all counts; empty if nothing was counted."""
        whole = Counts()
        for counts in [*self.tally.first.values(), *self.tally.repeats.values()]:
            whole.add(counts)
        if not whole.episodes:
            return {}
        return {
            "success_rate": whole.successes / whole.episodes,
            "parse_error_rate": whole.failures[FailureKind.PARSE_ERROR] / whole.episodes,
            "truncated_rate": whole.failures[TRUNCATED] / whole.episodes,
        }

    def of_all_processes(self) -> Outcomes:
        """The sum of the counts of all processes of a group; each judged its own replies. All of them must call this.

        A question whose replies were judged by two processes counts as two.
        """
        from accelerate.utils import gather_object

        told = gather_object([(self.tally, self.tokens, self.visited.take())])
        for *_, questions in told:
            self.visited.known |= questions
        tokens = sum((some for _, some, _ in told), Counter[str]())
        return Outcomes(self.eos, self.pays, total(tally for tally, *_ in told), self.visited, tokens)

    def take(self) -> Outcomes:
        """The counts since the last call; counting starts again from 0."""
        taken = Outcomes(self.eos, self.pays, self.tally, self.visited, self.tokens)
        self.tally, self.tokens = Tally(), Counter()
        return taken


def named(failure: FailureKind | None, cut: bool) -> str | None:
    """The kind of failure; for a failed reply that was cut at its limit it is "truncated"."""
    if failure is None:
        return None
    return TRUNCATED if cut else str(failure)
