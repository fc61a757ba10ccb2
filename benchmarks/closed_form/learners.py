"""``Learners``: many learners of several skills each, as arrays, and the effect of a stage of training.

A slice has a *practice*, which grows with the data that it gets and starts at ``start``. Success on it stays at 0 up to the
practice ``plateau`` and then rises to ``ceiling`` in an S, as it does in a small transformer. Data is counted in *doses*: a stage of even draws gives
every slice a dose of 1. Runs are the leading dimension; where they differ in their number of slices, those that a run lacks have
weight 0 and stand last.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KINDS = ("first", "second", "third")  # of failure, each with a focus of the data that works against it


@dataclass(frozen=True)
class Learners:
    """The hidden numbers of several runs. If a family lacks a trait, its array is zero."""

    weight: Array  # [runs, slices] of the target; sums to 1
    start: Array  # [runs, slices] practice before the first stage
    rate: Array  # [runs, slices] practice from a dose of 1
    plateau: Array  # [runs, slices] practice before anything succeeds
    ceiling: Array  # [runs, slices] greatest success
    forgetting: Array  # [runs, slices] a stage without data leaves exp(-forgetting) of the practice
    needs: Array  # [runs, slices, slices] how much learning the second slice needs mastery of the first
    transfer: Array  # [runs, slices, slices] dose of the second slice from a dose of the first, besides its own
    cause: Array  # [runs, slices, kinds] of failure; sums to 1
    stages: NDArray[np.int64]  # [runs]
    cases: NDArray[np.int64]  # [runs] that a report's success of a slice is counted on

    def __len__(self) -> int:
        return len(self.weight)

    def __getitem__(self, which: Any) -> Learners:
        """Some of the runs."""
        return Learners(*(getattr(self, field.name)[which] for field in fields(self)))

    def alone(self, run: int) -> Learners:
        """One of the runs, without the slices that it lacks."""
        one, count = self[run : run + 1], int(self.present[run].sum())
        flat = ("weight", "start", "rate", "plateau", "ceiling", "forgetting", "cause")
        cut = {name: getattr(one, name)[:, :count] for name in flat}
        return replace(one, **cut, **{name: getattr(one, name)[:, :count, :count] for name in ("needs", "transfer")})

    @property
    def present(self) -> NDArray[np.bool_]:
        return self.weight > 0

    def even(self) -> Array:
        """Equal shares."""
        return self.present / self.present.sum(-1, keepdims=True)

    def unfocused(self) -> Array:
        """Data with no focus: as much against each kind of failure."""
        return np.full(self.cause.shape, 1.0 / len(KINDS))


def mastery(learners: Learners, practice: Array) -> Array:
    """The part of its ceiling that each slice has reached."""
    return -np.expm1(-np.square(np.maximum(practice - learners.plateau, 0.0)))


def success(learners: Learners, practice: Array) -> Array:
    """The probability of success on a case of each slice."""
    return learners.ceiling * mastery(learners, practice)


def value(learners: Learners, practice: Array) -> Array:
    """Success on the target."""
    return (learners.weight * success(learners, practice)).sum(-1)


def step(learners: Learners, practice: Array, shares: Array, focus: Array | None = None) -> Array:
    """The practice after a stage with these shares of the data; ``focus``: parts of each slice's data against each kind.

    Without a focus, a dose counts as it is; wholly against the kind that causes all of a slice's failures, three times.
    """
    drawn = shares * learners.present
    dose = learners.present.sum(-1, keepdims=True) * drawn / np.maximum(drawn.sum(-1, keepdims=True), 1e-12)
    useful = dose if focus is None else dose * len(KINDS) * (focus * learners.cause).sum(-1)
    felt = useful + _through(useful, learners.transfer)
    ready = np.clip(1.0 - _through(1.0 - mastery(learners, practice), learners.needs), 0.0, 1.0)
    kept = practice * np.exp(-learners.forgetting * np.maximum(1.0 - dose, 0.0))
    return np.maximum(kept + learners.rate * ready * felt, 0.0)


def _through(values: Array, matrix: Array) -> Array:
    return (values[:, None] @ matrix)[:, 0]


@dataclass(frozen=True)
class Counts:
    """The results of a validation: each slice's successes, and its failures by kind."""

    succeeded: NDArray[np.int64]  # [runs, slices]
    failed: NDArray[np.int64]  # [runs, slices, kinds]


def validate(learners: Learners, practice: Array, rng: np.random.Generator) -> Counts:
    """Fresh cases of every slice."""
    cases = np.broadcast_to(learners.cases[..., None], practice.shape)
    succeeded = rng.binomial(cases, success(learners, practice))
    return Counts(succeeded, rng.multinomial(cases - succeeded, learners.cause))
