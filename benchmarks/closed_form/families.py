"""Families of learners: each is a draw of parameters of the one dynamics. ``DEVELOPMENT`` is for tuning, ``HELD_OUT`` for claims.

Times are parts of the run: what waits for 1 takes off when even draws end. The ranges hold nine tenths of what a small transformer
showed (``benchmarks/results/doses.json``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.closed_form.learners import KINDS, Array, Learners


class Sizes(NamedTuple):
    """Least and greatest of each."""

    slices: tuple[int, int] = (4, 32)
    stages: tuple[int, int] = (3, 12)  # the first one of even draws included
    cases: tuple[int, int] = (20, 200)


SIZES = Sizes()
TIME, WAIT, FORGETTING = (0.4, 3.0), (0.2, 1.5), (0.05, 1.0)
MASTERED = 1.75  # practice beyond the plateau of what a learner can do from the start: .95 of the ceiling


class Draw:
    """Learners under construction: independent skills at first, a third of them mastered; a family changes some of their parameters."""

    def __init__(self, rng: np.random.Generator, runs: int, sizes: Sizes) -> None:
        self.rng = rng
        self.count, self.stages, self.cases = (rng.integers(low, high + 1, runs) for low, high in sizes)
        self.present = np.arange(sizes.slices[1]) < self.count[:, None]
        self.known = rng.random(self.shape) < 1 / 3
        self.time = self.between(*TIME)  # to learn 63 %
        self.wait = np.zeros(self.shape)  # before take-off
        self.ceiling = np.ones(self.shape)
        self.forgetting = np.zeros(self.shape)
        self.needs, self.transfer = np.zeros((2, *self.shape, self.shape[1]))
        self.cause = np.full((*self.shape, len(KINDS)), 1 / len(KINDS))
        self.begun = np.zeros(self.shape)  # practice of what is not mastered

    @property
    def shape(self) -> tuple[int, int]:
        return self.present.shape

    def between(self, low: float, high: float, shape: tuple[int, ...] | None = None) -> Array:
        """Evenly on a logarithmic scale."""
        return low * (high / low) ** self.rng.random(shape or self.shape)

    def pairs(self) -> NDArray[np.bool_]:
        """Two different slices of a run."""
        both = self.present[:, :, None] & self.present[:, None, :]
        return both & ~np.eye(self.shape[1], dtype=bool)

    def learners(self) -> Learners:
        """In a random order, without information."""
        rate = 1.0 / (self.time * self.stages[:, None])
        plateau = self.wait / self.time
        weight = self.present * self.rng.gamma(4.0, size=self.shape)
        start = np.where(self.known, plateau + MASTERED, self.begun)
        order = np.argsort(np.where(self.present, self.rng.random(self.shape), 2.0), axis=1)
        rows = np.arange(self.shape[0])[:, None]
        pairs = rows[..., None], order[:, :, None], order[:, None, :]
        return Learners(
            weight=(weight / weight.sum(1, keepdims=True))[rows, order],
            start=start[rows, order],
            rate=rate[rows, order],
            plateau=plateau[rows, order],
            ceiling=self.ceiling[rows, order],
            forgetting=self.forgetting[rows, order],
            needs=self.needs[pairs],
            transfer=self.transfer[pairs],
            cause=self.cause[rows, order],
            stages=self.stages,
            cases=self.cases,
        )


def rates(draw: Draw) -> None:
    """Skills that are learnt independently, at rates of their own."""


def plateaus(draw: Draw) -> None:
    """Nothing succeeds before a dose that even draws may just miss; after it, learning is fast."""
    draw.wait, draw.time = draw.between(*WAIT), draw.between(0.5, 1.7)


def prerequisites(draw: Draw) -> None:
    """Most skills need one other, some of these a third: nothing is learnt before what it needs."""
    runs, slices = draw.shape
    earlier = (draw.rng.random((runs, slices)) * np.arange(slices)).astype(int)
    needs = draw.present & (draw.rng.random((runs, slices)) < 0.75) & (np.arange(slices) > 0)
    run, later = np.nonzero(needs)
    draw.needs[run, earlier[run, later], later] = 1.0
    draw.time = draw.between(0.5, 1.7)


def transfer(draw: Draw) -> None:
    """Data for one skill helps others, or harms them: three others on average, a third of them harmed."""
    linked = draw.pairs() & (draw.rng.random((*draw.shape, draw.shape[1])) < 3 / draw.count[:, None, None])
    size = draw.between(0.1, 0.6, draw.transfer.shape)
    draw.transfer = linked * size * np.where(draw.rng.random(size.shape) < 1 / 3, -1.0, 1.0)


def forgetting(draw: Draw) -> None:
    """What gets no data is lost, at rates of its own; two thirds are mastered."""
    draw.forgetting, draw.known = draw.between(*FORGETTING), draw.rng.random(draw.shape) < 2 / 3


def ceilings(draw: Draw) -> None:
    """Some skills cannot be learnt, others quickly, but only to .3: decoys for engineers that follow progress."""
    ceiling = draw.rng.choice([0.0, 0.3, 1.0], draw.shape, p=[0.35, 0.25, 0.4])
    draw.ceiling = np.where(draw.known, 1.0, ceiling)
    draw.time = np.where(draw.ceiling == 0.3, draw.time / 4, draw.time)


def causes(draw: Draw) -> None:
    """All succeed equally often at first; each slice fails mostly in one way, and a focus against that one teaches it."""
    draw.cause = 0.2 + 0.4 * np.eye(len(KINDS))[draw.rng.integers(0, len(KINDS), draw.shape)]
    draw.known = np.zeros(draw.shape, bool)
    draw.time = draw.between(0.8, 2.0, (draw.shape[0], 1)) * np.ones(draw.shape)
    draw.begun = draw.wait / draw.time + draw.between(0.1, 0.5, (draw.shape[0], 1))


def null(draw: Draw) -> None:
    """One shared skill: whatever is drawn, all learn alike, so that no shares are better than others."""
    both = draw.present[:, :, None] & draw.present[:, None, :]
    draw.transfer = both / draw.count[:, None, None] - np.eye(draw.shape[1])
    draw.time = draw.between(0.4, 2.0, (draw.shape[0], 1)) * np.ones(draw.shape)
    draw.wait, draw.known = draw.between(0.05, 1.0), np.zeros(draw.shape, bool)


Family = Callable[[Draw], None]

FAMILIES: dict[str, tuple[Family, ...]] = {
    "rates": (rates,),
    "plateaus": (plateaus,),
    "prerequisites": (prerequisites,),
    "transfer": (transfer,),
    "forgetting": (forgetting,),
    "ceilings": (ceilings,),
    "causes": (causes,),
    "null": (null,),
    "plateaus+ceilings": (plateaus, ceilings),
    "prerequisites+forgetting": (prerequisites, forgetting),
    "transfer+causes": (transfer, causes),
}
DEVELOPMENT = ("rates", "plateaus", "transfer", "ceilings")
NULL = "null"
HELD_OUT = tuple(name for name in FAMILIES if name not in (*DEVELOPMENT, NULL))


def draw(family: str, runs: int, seed: int | Sequence[int], *, sizes: Sizes = SIZES) -> Learners:
    """Runs of a family of ``FAMILIES``; equal arguments give equal runs."""
    made = Draw(np.random.default_rng(seed), runs, sizes)
    for change in FAMILIES[family]:
        change(made)
    return made.learners()
