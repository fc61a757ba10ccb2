"""What training showed: an outcome for every training episode, and its sums by slice.

A first visit to a question shows what the policy can do, and a repeat shows what it remembers. So both are summed apart. Where a
question is answered by several replies, as in training by reward, they resemble each other. So the questions are counted beside the episodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from engineers.report import SliceResult, Split
from engineers.roles import natural_key

SCORE = "score"  # the metric that holds the mean score of a slice
SUCCESS = "success"
MEANS = (SUCCESS, SCORE)
FEW = 16  # objects that name slices, up to which they are told apart by their addresses
LONGEST_KIND = 100  # characters that name a kind of failure
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
    failures: Counter[Annotated[str, Field(max_length=LONGEST_KIND)]] = Field(
        default_factory=Counter
    )  # failed episodes by kind
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

    def count(self, outcome: Outcome) -> None:
        sums = vars(self)  # pydantic's assignment would take half of an episode's time
        sums["episodes"] += 1
        sums["successes"] += bool(outcome.success)
        sums["score_sum"] += float(outcome.score)
        sums["further"] += bool(outcome.further)
        if outcome.failure and not outcome.success:
            self.failures[outcome.failure] += 1

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
        """Count one finished episode. Raises ``ValueError`` for a success that is none, and for a score outside of 0 to 1."""
        if outcome.success not in (0, 1):  # equal to False and True, numpy's too
            raise ValueError(f"success={outcome.success!r} in the slice {outcome.slice!r}: give True or False")
        if not 0 <= outcome.score <= 1:  # NaN too
            raise _no_score(outcome.score, outcome.slice)
        self._counts(outcome.slice, outcome.repeat).count(outcome)

    def observe_many(
        self,
        slices: Sequence[Any] | NDArray[Any],
        successes: ArrayLike,
        scores: ArrayLike | None = None,
        further: ArrayLike | None = None,
        *,
        failures: Sequence[str | None] | NDArray[np.object_] | None = None,
        repeats: ArrayLike | None = None,
    ) -> None:
        """Count finished episodes. Without ``scores``, a success scores 1 and a failure 0. Without ``further``, every episode has a
        question of its own. ``failures`` has each failed episode's kind, if the world names kinds. Without ``repeats``, all of them are
        first visits.
        """
        won = np.asarray(successes, dtype=bool)
        points = np.asarray(won if scores is None else scores, dtype=float)
        marks = np.zeros(len(won), bool) if further is None else np.asarray(further, dtype=bool)
        again = np.zeros(len(won), bool) if repeats is None else np.asarray(repeats, dtype=bool)
        kinds = None if failures is None else _objects(failures)
        given = {"further": further, "failures": failures, "repeats": repeats}
        columns = {"further": marks, "failures": won if kinds is None else kinds, "repeats": again}
        if not all(len(slices) == len(column) for column in (won, points, *columns.values())):
            told = "".join(f", {len(columns[name])} {name}" for name, one in given.items() if one is not None)
            raise ValueError(
                f"{len(slices)} slices, {len(won)} successes, {len(points)} scores{told}: give one of each for every episode"
            )
        if not np.all(fine := (points >= 0) & (points <= 1)):
            first = int(np.argmin(fine))
            raise _no_score(float(points[first]), str(slices[first]))
        names, place = _numbered(slices)
        # Without repeats, nothing is copied.
        parts = {False: ~again, True: again} if again.any() else {False: slice(None)}
        for repeat, chosen in parts.items():
            self._add(repeat, names, place[chosen], won[chosen], points[chosen], marks[chosen])
            if kinds is not None:
                lost = ~won[chosen]
                self._add_failures(repeat, names, place[chosen][lost], kinds[chosen][lost])

    def _add(
        self,
        repeat: bool,
        names: Sequence[str],
        place: NDArray[np.intp],  # of each episode's slice among the names
        won: NDArray[np.bool_],
        points: NDArray[np.float64],
        marks: NDArray[np.bool_],
    ) -> None:
        """Add the sums of some episodes."""
        counted = [np.bincount(place[chosen], minlength=len(names)).tolist() for chosen in (..., won, marks)]
        score_sums = np.bincount(place, points, len(names)).tolist()
        for name, episodes, successes_of, further_of, score_sum in zip(names, *counted, score_sums, strict=True):
            if episodes:
                counts = self._counts(name, repeat)
                counts.episodes += episodes
                counts.successes += successes_of
                counts.score_sum += score_sum
                counts.further += further_of

    def _add_failures(
        self, repeat: bool, names: Sequence[str], place: NDArray[np.intp], kinds: NDArray[np.object_]
    ) -> None:
        """Add the kinds of failed episodes, which are counted already. An empty kind or None is an unknown one."""
        given, number = _distinct(np.ascontiguousarray(kinds))
        cells = np.bincount(place * len(given) + number, minlength=len(names) * len(given))
        for cell in np.flatnonzero(cells).tolist():  # by slice, and within it in the order in which kinds came
            row, column = divmod(cell, len(given))
            if given[column]:
                self._counts(names[row], repeat).failures[str(given[column])] += int(cells[cell])

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

    def as_logged(self) -> dict[str, float]:
        """Success and mean score of each slice on first visits, by the names that logs have for them."""
        found: dict[str, float] = {}
        for name, counts in sorted(self.first.items()):
            if counts.episodes:
                found[f"success/{name}"] = counts.successes / counts.episodes
                found[f"score/{name}"] = counts.score_sum / counts.episodes
        return found

    def dump(self) -> dict[str, Any]:
        return self.model_dump(exclude_defaults=True)

    def _counts(self, name: str, repeat: bool) -> Counts:
        part = self.repeats if repeat else self.first
        if name not in part:
            part[name] = Counts()
        return part[name]


class Arriving:
    """A tally of many episodes, in small arrays: they are kept as they come, and summed when it is read."""

    MOST = 8_192  # episodes that are kept: the sums of more leave a core's cache

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
        """As ``Tally.observe_many``; wrong values in arrays are found when the tally is read, and a wrong score in a sequence now.

        The columns are copied: a caller may fill the same ones again.
        """
        if isinstance(scores, list | tuple):
            for name, score in zip(slices, scores, strict=True):
                if not 0 <= score <= 1:
                    raise _no_score(score, str(name))
        self._kept.append((copy(slices), copy(successes), copy(scores), copy(further)))
        self.episodes += len(slices)
        self._room -= len(slices)
        if self._room <= 0:
            self.read()

    def read(self) -> Tally:
        """The sum of all episodes so far."""
        kept, self._kept, self._room = self._kept, [], self.MOST
        if kept:
            names, won, scores, further = zip(*kept, strict=True)
            points = [one if score is None else score for one, score in zip(won, scores, strict=True)]
            self._tally.observe_many(
                np.concatenate([_objects(one) for one in names]),
                np.concatenate(won, dtype=bool, casting="unsafe"),
                np.concatenate(points, dtype=float, casting="unsafe"),
                _joined_flags(further, won),
            )
        return self._tally


def _joined_flags(given: Sequence[ArrayLike | None], like: Sequence[Any]) -> NDArray[np.bool_] | None:
    """The flags of some groups of episodes, False where a group has none; None if no group has any."""
    if all(flags is None for flags in given):
        return None
    filled = [np.zeros(len(one), bool) if flags is None else flags for flags, one in zip(given, like, strict=True)]
    return np.concatenate(filled, dtype=bool, casting="unsafe")


def _no_score(score: float, slice_: str) -> ValueError:
    return ValueError(
        f"score={score} in the slice {slice_!r}: give the score of an episode as a number from 0 to 1 (of an environment it is the last "
        'info["score"]: scale it, or give points another name)'
    )


def _objects(column: Sequence[Any] | NDArray[Any]) -> NDArray[np.object_]:
    """The values as Python's objects."""
    if isinstance(column, np.ndarray):
        return column if column.dtype == object else column.astype(object)
    return np.fromiter(column, dtype=object, count=len(column))


def _numbered(slices: Sequence[Any] | NDArray[Any]) -> tuple[list[str], NDArray[np.intp]]:
    """The names of some episodes' slices, sorted, and the place of each episode's among them."""
    given, number = _distinct(np.ascontiguousarray(_objects(slices)))
    named = [str(one) for one in given]
    names = sorted(set(named))
    places = {name: place for place, name in enumerate(names)}
    return names, np.array([places[name] for name in named], np.intp).take(number)


def _distinct(values: NDArray[np.object_]) -> tuple[list[Any], NDArray[np.integer]]:
    """The different values, and for every place the number of its value.

    Thousands of episodes mostly have the same few objects for names. To compare the objects' addresses takes less than a fifth of the
    time of looking up their names. ``values`` keeps the objects alive, so that an address stands for one of them.
    """
    if not len(values):
        return [], np.empty(0, np.intp)
    address = np.frombuffer(values, np.intp)
    found, number, seen = list[Any](), np.zeros(len(values), np.int8), np.zeros(len(values), np.bool_)
    while not seen[first := seen.argmin()]:  # the first that is not seen yet
        if len(found) == FEW:
            numbers = {one: place for place, one in enumerate(dict.fromkeys(values.tolist()))}
            return list(numbers), np.fromiter(map(numbers.__getitem__, values), np.intp, len(values))
        same = address == address[first]
        number += same * np.int8(len(found))
        seen |= same
        found.append(values[first])
    return found, number


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
    of its repeats, marked as ``all_repeats``. ``halves`` split the iterations in two, once the stage has ended.
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
            repeats=whole.repeats.get(name, nothing).split() if name in whole.first else None,
            all_repeats=name not in whole.first,
            questions=counts.questions,
        )
        for name in sorted(whole.first.keys() | whole.repeats.keys(), key=natural_key)
    ]


def _means(counts: Counts, objective: str) -> dict[str, float]:
    if not counts.episodes:
        return {}
    return {objective: counts.successes / counts.episodes, SCORE: counts.score_sum / counts.episodes}
