"""What training showed: an outcome for every training episode, and its sums by slice.

A first visit to a question shows what the policy can do, and a repeat shows what it remembers. So both are summed apart. Where a
question is answered by several replies, as in training by reward, they resemble each other. So the questions are counted beside the episodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from engineers.report import SliceResult, Split
from engineers.roles import natural_key

SCORE = "score"  # the metric that holds the mean score of a slice
SUCCESS = "success"
MEANS = (SUCCESS, SCORE)
ROUNDING = 1e-6  # relative: a sum of scores may exceed its bound by this


class Outcome(NamedTuple):
    """One training episode."""

    slice: str
    success: bool  # by the world's objective
    score: float  # 0 to 1, by the world's `score_in_words`
    failure: str = ""  # the kind, if the world names kinds
    repeat: bool = False  # whether the policy has been trained on the same question before
    further: bool = False  # whether it is a further reply of a group: one to the same question is counted already


def further_replies(questions: Iterable[Hashable]) -> list[bool]:
    """Of replies that were sampled together: which of them answer a question that one before them answers. None is an unknown question."""
    met, found = set[Hashable](), list[bool]()
    for question in questions:
        found.append(question is not None and question in met)
        met.add(question)
    return found


class Counts(BaseModel):
    """Sums over some episodes of a slice."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    episodes: int = Field(0, ge=0)
    successes: int = Field(0, ge=0)
    score_sum: float = Field(0.0, ge=0)  # of the episodes' scores
    failures: Counter[Annotated[str, Field(max_length=100)]] = Field(default_factory=Counter)  # failed episodes by kind
    further: int = Field(0, ge=0)  # of the episodes: further replies to a question, as in ``Outcome``

    @model_validator(mode="after")
    def _fit_together(self) -> Counts:
        if self.successes > self.episodes:
            raise ValueError(f"{self.successes} successes of {self.episodes} episodes: give at most one an episode")
        if self.further > self.episodes:
            raise ValueError(
                f"further is {self.further} of {self.episodes} episodes: leave out a question's first reply"
            )
        if self.score_sum > self.episodes * (1 + ROUNDING):
            raise ValueError(f"score_sum is {self.score_sum} for {self.episodes} episodes: give at most 1 an episode")
        if min(self.failures.values(), default=0) < 0 or self.failures.total() > self.episodes - self.successes:
            raise ValueError(
                f"failures are {dict(self.failures)} of {self.episodes - self.successes} failed episodes: count each failed one once"
            )
        return self

    def add(self, other: Counts) -> None:
        self.episodes += other.episodes
        self.successes += other.successes
        self.score_sum += other.score_sum
        self.failures.update(other.failures)
        self.further += other.further

    @property
    def questions(self) -> int | None:
        """How many questions were asked, each counted as often as it was asked anew; None if every episode has one of its own."""
        return max(1, self.episodes - self.further) if self.further else None

    def split(self) -> Split | None:
        """These counts in a report; None without episodes."""
        if not self.episodes:
            return None
        return Split(episodes=self.episodes, succeeded=self.successes, score=self.score_sum / self.episodes)


class Tally(BaseModel):
    """Sums by slice. ``model_dump(exclude_defaults=True)`` is exact and small, and ``model_validate`` reads it."""

    model_config = ConfigDict(extra="forbid")

    first: dict[str, Counts] = Field(default_factory=dict)
    repeats: dict[str, Counts] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_slices_alone(cls, given: Any) -> Any:
        """A trainee may give ``{slice: {episodes, successes, score_sum}}``, if it repeats no question."""
        slices = given.values() if isinstance(given, Mapping) else ()
        alone = any(isinstance(one, Mapping) and isinstance(one.get("episodes"), int) for one in slices)
        return {"first": given} if alone else given

    def observe(self, outcome: Outcome) -> None:
        """Count one finished episode. Raises ``ValueError`` for a score outside of 0 to 1."""
        if not 0 <= outcome.score <= 1:  # NaN too
            raise ValueError(f"score={outcome.score}: give the score of an episode as a number from 0 to 1")
        counts = self._counts(outcome.slice, outcome.repeat)
        counts.episodes += 1
        counts.successes += bool(outcome.success)
        counts.score_sum += float(outcome.score)
        counts.further += bool(outcome.further)
        if outcome.failure and not outcome.success:
            counts.failures[outcome.failure] += 1

    def observe_many(
        self,
        slices: Sequence[Any] | NDArray[Any],
        successes: ArrayLike,
        scores: ArrayLike | None = None,
        further: ArrayLike | None = None,
    ) -> None:
        """Count finished episodes, all of them first visits. Without ``scores``, a success scores 1 and a failure 0. Without ``further``,
        every episode has a question of its own.
        """
        won = np.asarray(successes, dtype=float)
        points = won if scores is None else np.asarray(scores, dtype=float)
        again = np.zeros(len(won)) if further is None else np.asarray(further, dtype=float)
        if not len(slices) == len(won) == len(points) == len(again):
            flags = "" if further is None else f", {len(again)} further"
            raise ValueError(
                f"{len(slices)} slices, {len(won)} successes, {len(points)} scores{flags}: give one of each for every episode"
            )
        if not np.all((points >= 0) & (points <= 1)):
            raise ValueError(f"scores are from {points.min()} to {points.max()}: give numbers from 0 to 1")
        names, place = _numbered(slices)
        sums = [np.bincount(place, weights, len(names)).tolist() for weights in (None, won, points, again)]
        for name, episodes, successes_of, score_sum, further_of in zip(names, *sums, strict=True):
            counts = self._counts(name, repeat=False)
            counts.episodes += int(episodes)
            counts.successes += int(successes_of)
            counts.score_sum += score_sum
            counts.further += int(further_of)

    def __add__(self, other: Tally) -> Tally:
        return total((self, other))

    @property
    def episodes(self) -> int:
        """All episodes, repeats too."""
        return sum(counts.episodes for part in (self.first, self.repeats) for counts in part.values())

    def mean(self, what: str) -> float | None:
        """The mean of one of ``MEANS`` over all first visits; None without any."""
        episodes = sum(counts.episodes for counts in self.first.values())
        sums = (counts.successes if what == SUCCESS else counts.score_sum for counts in self.first.values())
        return sum(sums) / episodes if episodes else None

    def dump(self) -> dict[str, Any]:
        return self.model_dump(exclude_defaults=True)

    def _counts(self, name: str, repeat: bool) -> Counts:
        part = self.repeats if repeat else self.first
        if name not in part:
            part[name] = Counts()
        return part[name]


class Arriving:
    """A tally of many episodes, in small arrays: they are kept as they come, and summed when it is read."""

    MOST = 100_000  # episodes that are kept

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = Tally() if tally is None else tally
        self.episodes = self._tally.episodes
        self._kept: list[tuple[Sequence[Any] | NDArray[Any], ArrayLike, ArrayLike | None, ArrayLike | None]] = []
        self._room = self.MOST

    def observe(self, outcome: Outcome) -> None:
        self._tally.observe(outcome)
        self.episodes += 1

    def observe_many(
        self,
        slices: Sequence[Any] | NDArray[Any],
        successes: ArrayLike,
        scores: ArrayLike | None = None,
        further: ArrayLike | None = None,
    ) -> None:
        """As ``Tally.observe_many``; wrong values are found when the tally is read."""
        self._kept.append((slices, successes, scores, further))
        self.episodes += len(slices)
        self._room -= len(slices)
        if self._room <= 0:
            self.read()

    def read(self) -> Tally:
        """The sum of all episodes so far."""
        kept, self._kept, self._room = self._kept, [], self.MOST
        if kept:
            slices = list(chain.from_iterable(_listed(one[0]) for one in kept))
            won = np.concatenate([np.asarray(one[1], dtype=float) for one in kept])
            scores = [np.asarray(one[1] if one[2] is None else one[2], float) for one in kept]
            further = [np.zeros(len(one[0])) if one[3] is None else np.asarray(one[3], float) for one in kept]
            self._tally.observe_many(slices, won, np.concatenate(scores), np.concatenate(further))
        return self._tally


def _listed(column: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _numbered(slices: Sequence[Any] | NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The names of some episodes' slices, sorted, and the place of each episode's among them. Many episodes have few names."""
    given = _listed(slices)
    named = {one: str(one) for one in set(given)}
    names = sorted(set(named.values()))
    places = {name: place for place, name in enumerate(names)}
    place_of = {one: places[name] for one, name in named.items()}
    return names, np.fromiter(map(place_of.__getitem__, given), np.intp, len(given))


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum of all of them, in their order, so that equal tallies in equal order have exactly equal sums."""
    summed = Tally()
    for tally in tallies:
        for repeat, part in ((False, tally.first), (True, tally.repeats)):
            for name, counts in part.items():
                summed._counts(name, repeat).add(counts)
    return summed


def slice_results(iterations: Sequence[Tally], objective: str) -> list[SliceResult]:
    """The rows of a report: one for each slice that was trained on, from the tallies of a stage's iterations.

    A row counts first visits; its ``repeats`` have the others. A slice without first visits, whose questions are all known, has a row
    of its repeats. ``halves`` split the iterations in two, once the stage has ended.
    """
    whole, middle = total(iterations), len(iterations) // 2
    halves = [total(iterations[:middle]), total(iterations[middle:])] if middle else []
    nothing = Counts()

    def shown(tally: Tally, name: str) -> Counts:
        part = tally.first if name in whole.first else tally.repeats
        return part.get(name, nothing)

    return [
        SliceResult(
            name=name,
            episodes=(counts := shown(whole, name)).episodes,
            metrics=_means(counts, objective),
            failures=dict(sorted(counts.failures.items())),
            halves=[shown(half, name).split() for half in halves],
            repeats=whole.repeats.get(name, nothing).split(),
            questions=counts.questions,
        )
        for name in sorted(whole.first.keys() | whole.repeats.keys(), key=natural_key)
    ]


def _means(counts: Counts, objective: str) -> dict[str, float]:
    if not counts.episodes:
        return {}
    return {objective: counts.successes / counts.episodes, SCORE: counts.score_sum / counts.episodes}
