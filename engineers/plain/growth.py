"""Estimates how success on a slice grows with its data, from prior hypotheses that a run's own counts weigh.

A slice has *learning*, counted in parts of a run under even draws: a stage in which it gets its even share adds ``1 / stages``. Success is 0
up to a wait and then rises to a ceiling in an S. Without data, learning fades. The five numbers of a slice are unknown beforehand. A
``Prior`` is a list of candidates with weights, and the binomial counts of each stage update the weights. All slices of the run
together give the numbers of slices that can never be learnt, wait, end low or forget. There are no random numbers: the same counts give
the same beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CANDIDATES = 900
LEAST, MOST = 1e-3, 1 - 2e-3  # bounds of success in a likelihood, so that no single count refutes a candidate
TRUSTED = 80.0  # this many cases count half, because the curves are only like those of a trainee
IMPOSSIBLE = -1e3  # log-likelihood
OWN_SLICES = 6.0  # the prior's parts weigh as much as this many of the run's slices
ROUNDS = 3  # of estimating the parts from the slices, and the slices by the parts
HOPELESS, MASTERED = 0.08, 0.33  # fractions of the slices
WAITS, ENDS_LOW, BEGUN = 0.5, 0.25, 0.15  # fractions of the slices that are neither hopeless nor mastered
FORGETS = 0.4


@dataclass(frozen=True)
class Part:
    """Some of the candidates, out of those that might be among them."""

    inside: Mask
    of: Mask


@dataclass(frozen=True)
class Prior:
    """Candidates, [candidates], and the parts whose sizes a run may change."""

    start: Array  # learning before the first stage
    wait: Array  # learning before anything succeeds
    time: Array  # learning after the wait until .63 of the ceiling
    ceiling: Array
    forgetting: Array  # a stage without data leaves exp(-forgetting) of the learning
    weight: Array  # sums to 1
    parts: tuple[Part, ...]

    def success(self, learning: Array) -> Array:
        beyond = np.maximum(learning - self.wait, 0.0) / self.time
        return self.ceiling * -np.expm1(-beyond * beyond)

    def kept(self, doses: Array) -> Array:
        """The part of the learning that a stage leaves, for doses [..., 1] in even shares."""
        return np.exp(-self.forgetting * np.maximum(1.0 - doses, 0.0))


@cache
def prior() -> Prior:
    """The candidate curves: a third are mastered, two thirds can be learnt, and one more is hopeless."""
    known, new = _lattice(CANDIDATES // 3, 4), _lattice(CANDIDATES - CANDIDATES // 3, 5)
    count = CANDIDATES + 1
    mastered, hopeless = np.arange(count) < len(known), np.arange(count) == CANDIDATES
    waits, low, begun = new[:, 0] < WAITS, new[:, 2] < ENDS_LOW, new[:, 3] < BEGUN
    known_time, new_time = _between(known[:, 0], 0.15, 3.0), _between(new[:, 1], 0.12, 3.0)
    wait = np.where(waits, _between(new[:, 0] / WAITS, 0.15, 1.6), 0.0)
    fades = np.concatenate([known[:, 3], new[:, 4]])
    sizes = np.full(len(known), MASTERED / len(known)), np.full(len(new), (1 - MASTERED - HOPELESS) / len(new))
    learnable = ~hopeless & ~mastered
    return Prior(
        start=_all(
            known_time * (1.2 + 1.3 * known[:, 2]),
            np.where(begun, wait + new_time * (0.05 + new[:, 3] / BEGUN), 0.0),
            0.0,
        ),
        wait=_all(np.zeros(len(known)), wait, 0.0),
        time=_all(known_time, new_time, 1.0),
        ceiling=_all(
            np.where(known[:, 1] < 0.6, 1.0, 0.3 + 0.7 * (known[:, 1] - 0.6) / 0.4),
            np.where(low, 0.1 + 0.6 * new[:, 2] / ENDS_LOW, 1.0),
            0.0,
        ),
        forgetting=_all(np.where(fades < FORGETS, _between(fades / FORGETS, 0.02, 0.5), 0.0), np.zeros(0), 0.0),
        weight=_all(*sizes, HOPELESS),
        parts=(
            Part(hopeless, np.ones(count, bool)),
            Part(np.append(fades < FORGETS, False), ~hopeless),
            Part(_marked(mastered, low), learnable),
            Part(_marked(mastered, waits), learnable),
        ),
    )


@dataclass(frozen=True)
class Evidence:
    """A run's stages so far, [stages, slices]. Doses are in even shares; if nothing was played, both counts are 0.

    ``begun``, [slices], marks those whose score shows that they can be learnt, whether or not anything has succeeded.
    """

    doses: Array
    succeeded: Array
    played: Array
    begun: Mask | None = None


@dataclass(frozen=True)
class Belief:
    """The candidates' weights for each slice, [slices, candidates], and their learning so far."""

    prior: Prior
    weight: Array
    learning: Array
    stages: int  # of the whole run

    def now(self) -> Array:
        """Expected success, [slices]."""
        return (self.weight * self.prior.success(self.learning)).sum(1)

    def hopeless(self) -> Array:
        """The probability that a slice is never learnt, [slices]."""
        return self.weight[:, -1]

    def ends(self, doses: Array, left: int) -> Array:
        """Expected success after this many stages that each give a slice this dose, [slices, doses]."""
        kept = self.prior.kept(doses[:, None])  # [doses, candidates]
        all_kept = kept**left
        fading = kept < 1 - 1e-9
        lasting = np.where(fading, (1 - all_kept) / np.where(fading, 1 - kept, 1.0), float(left))
        gained = doses[:, None] / self.stages * lasting
        found = np.empty((len(self.weight), len(doses)))
        for row, (weight, learning) in enumerate(zip(self.weight, self.learning, strict=True)):
            found[row] = self.prior.success(learning * all_kept + gained) @ weight
        return found


def believed(evidence: Evidence, stages: int) -> Belief:
    """The beliefs about slices from a run's counts; ``stages`` is the run's total number."""
    known = prior()
    learning = np.repeat(known.start[None], evidence.doses.shape[1], axis=0)
    fit = np.zeros_like(learning)
    for doses, succeeded, played in zip(evidence.doses, evidence.succeeded, evidence.played, strict=True):
        learning = learning * known.kept(doses[:, None]) + doses[:, None] / stages
        rate = np.clip(known.success(learning), LEAST, MOST)
        counted = (succeeded[:, None] * np.log(rate) + (played - succeeded)[:, None] * np.log1p(-rate)) / (
            1 + played[:, None] / TRUSTED
        )
        fit += counted
    if evidence.begun is not None:
        fit[evidence.begun, -1] = IMPOSSIBLE
    weight = _normalised(np.log(known.weight) + fit)
    for _ in range(ROUNDS):
        weight = _normalised(np.log(known.weight) + _moved(known, weight) + fit)
    return Belief(known, weight, learning, stages)


def _moved(known: Prior, weight: Array) -> Array:
    """How the candidates' log-weights change when each part has the size that it has in this run."""
    moved = np.zeros(len(known.weight))
    for part in known.parts:
        before = known.weight[part.inside].sum() / known.weight[part.of].sum()
        inside, of = weight[:, part.inside].sum(), weight[:, part.of].sum()
        now = float(np.clip((inside + OWN_SLICES * before) / (of + OWN_SLICES), 1e-6, 1 - 1e-6))
        change = np.where(part.inside, np.log(now / before), np.log((1 - now) / (1 - before)))
        moved += np.where(part.of, change, 0.0)
    return moved


def _normalised(log_weight: Array) -> Array:
    weight = np.exp(log_weight - log_weight.max(1, keepdims=True))
    return weight / weight.sum(1, keepdims=True)


def _lattice(points: int, dimensions: int) -> Array:
    """Points that fill the unit cube evenly: the additive recurrence of the generalised golden ratio."""
    ratio = 2.0
    for _ in range(50):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    return (0.5 + np.outer(np.arange(1, points + 1), steps)) % 1.0


def _between(part: Array, low: float, high: float) -> Array:
    """Evenly on a logarithmic scale."""
    return low * (high / low) ** np.clip(part, 0.0, 1.0)


def _all(mastered: Array, new: Array, hopeless: float) -> Array:
    return np.concatenate([mastered, new, [hopeless]])


def _marked(mastered: Mask, new: Mask) -> Mask:
    """A trait that only the learnable candidates have."""
    return np.concatenate([np.zeros(mastered.sum(), bool), new, [False]])
