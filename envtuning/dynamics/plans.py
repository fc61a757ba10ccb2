"""The best shares for a learner that is known, and for one that is known only by its validations.

``informed`` knows the learner; ``attainable`` knows its family and reads the counts of every validation. Both search for the best
shares of all remaining stages: the result is the best found and not a proven optimum. ``best_on_menu`` is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from envtuning.dynamics.families import Sizes, draw
from envtuning.dynamics.learners import KINDS, Array, Counts, Learners, mastery, step, success, validate, value

PARTICLES = 400  # learners that a reader of validations draws from the family
SCENARIOS = 8  # of those that fit, for which it plans
CANDIDATES = 24  # plans that are tried at once
Seed = int | Sequence[int]


def informed(learner: Learners, seed: Seed, rounds: int = 120) -> float:
    """The best end found for a known learner; its first stage has even draws, as in every run."""
    practice, focus = step(learner, learner.start, learner.even()), focus_on_causes(learner.cause)
    left = int(learner.stages[0]) - 1
    plan = best_plan(learner, practice, focus, left, rounds, np.random.default_rng(seed))
    return float(ends(learner, practice, plan[None], focus)[0])


def attainable(family: str, learner: Learners, seed: Seed, rounds: int = 12, *, outside: bool = False) -> float:
    """The end of a run under an engineer that knows the family and reads the counts of every validation."""
    rng = np.random.default_rng(seed)
    belief = Belief(family, learner, rng, outside)
    practice, shares, focus = learner.start, learner.even(), learner.unfocused()
    for left in range(int(learner.stages[0]) - 1, -1, -1):
        practice = step(learner, practice, shares, focus)
        if left:
            belief.seen.append((shares, focus, validate(learner, practice, rng)))
            likely, theirs = belief.scenarios()
            focus = focus_on_causes(likely.cause.mean(0, keepdims=True))
            shares = best_plan(likely, theirs, focus, left, rounds, rng)[:1]
    return float(value(learner, practice)[0])


def best_on_menu(learner: Learners, menu: Array) -> float:
    """The best end over all ways through a menu of shares, [entries, slices], after a first stage of even draws."""
    ways = np.array(list(product(range(len(menu)), repeat=int(learner.stages[0]) - 1)))
    practice = step(learner, learner.start, learner.even())
    return float(ends(learner, practice, menu[ways], learner.unfocused()).max())


def ends(learners: Learners, practice: Array, plans: Array, focus: Array) -> Array:
    """Mean success on the target over these learners after each of several plans, [plans, stages, slices]."""
    several, reached = learners[:, None], np.repeat(practice[:, None], len(plans), axis=1)
    for stage in range(plans.shape[1]):
        reached = step(several, reached, plans[None, :, stage], focus)
    return value(several, reached).mean(0)


def best_plan(
    learners: Learners, practice: Array, focus: Array, left: int, rounds: int, rng: np.random.Generator
) -> Array:
    """Shares for each stage that is left, [stages, slices]: the best found for learners that are equally likely."""
    plans = np.repeat(_first_guesses(learners, practice, left)[:, None], left, axis=1)
    best, most = plans[0], -1.0
    for _ in range(rounds + 1):
        found = ends(learners, practice, plans, focus)
        if found.max() > most:
            best, most = plans[found.argmax()], found.max()
        plans = _changed(best, rng)
    return best


def _first_guesses(learners: Learners, practice: Array, left: int) -> Array:
    """Even shares, the target's, and what gains most for its dose, as much of it as the stages left can teach."""
    dose = (np.maximum(learners.plateau + 1.5 - practice, 0.2) / learners.rate).mean(0)
    gained = (learners.weight * learners.ceiling * (1 - mastery(learners, practice))).mean(0)
    order = np.argsort(-gained / dose)
    guesses = [learners.even()[0], learners.weight[0]]
    for part in (0.4, 0.7, 1.0, 1.4):
        enough = order[: 1 + np.searchsorted(np.cumsum(dose[order]), part * left * len(dose))]
        taken = np.where(np.isin(np.arange(len(dose)), enough), dose, 0.0)
        guesses += [taken / taken.sum(), 0.8 * taken / taken.sum() + 0.2 * guesses[0]]
    return np.stack(guesses)


def _changed(plan: Array, rng: np.random.Generator) -> Array:
    """Plans that differ from this one in a few slices, over some stages in a row: by a factor, or by new shares."""
    left, slices = plan.shape
    some, stages = (CANDIDATES, 1, slices), np.arange(left)[:, None]
    first, last = np.sort(rng.integers(0, left, (2, CANDIDATES, 1, 1)), axis=0)
    where = (rng.random(some) < 2.0 / slices) & (stages >= first) & (stages <= last)
    scaled = plan * np.exp(rng.normal(0.0, 1.0, some))
    anew = rng.random(some) * rng.choice([0.0, 2.0 / slices, 0.5], some)
    changed = np.where(where, np.where(rng.random(some) < 0.5, scaled, anew), plan)
    total = changed.sum(-1, keepdims=True)
    return np.where(total > 0, changed / np.maximum(total, 1e-12), plan)


def focus_on_causes(cause: Array) -> Array:
    """Each slice's data against the kind of failure that is likeliest; against all alike where none stands out."""
    likeliest = np.eye(len(KINDS))[cause.argmax(-1)]
    return np.where(cause.max(-1, keepdims=True) > 1.1 / len(KINDS), likeliest, 1.0 / len(KINDS))


class Belief:
    """Learners of a family, weighted by how well they explain what was seen.

    Slices are weighted one by one and put together anew, so that a learner that fits in one slice is not lost for another. Where
    slices depend on each other this is done twice: the second time among learners whose other slices fit already.
    """

    def __init__(self, family: str, learner: Learners, rng: np.random.Generator, outside: bool) -> None:
        known = (learner.weight.shape[1], int(learner.stages[0]), int(learner.cases[0]))
        sizes = Sizes(*((size, size) for size in known))
        drawn = draw(family, PARTICLES, int(rng.integers(2**31)), sizes=sizes, outside=outside)
        self.prior = replace(drawn, weight=np.repeat(learner.weight, PARTICLES, axis=0))  # the target is told
        self.rng, self.seen = rng, list[tuple[Array, Array, Counts]]()  # shares, focus and what they led to

    def scenarios(self) -> tuple[Learners, Array]:
        """Some learners that explain what was seen, each as likely as the others, and their practice now."""
        likelihood, _ = self._explained(self.prior)
        rows, learners = self._sampled(likelihood), self.prior
        if self.prior.needs.any() or self.prior.transfer.any():
            learners = _composed(self.prior, rows)
            again, _ = self._explained(learners)
            rows = self._sampled(again - np.take_along_axis(likelihood, rows, axis=0))
        fitting = _composed(learners, rows[:SCENARIOS])
        return fitting, self._explained(fitting)[1]

    def _explained(self, learners: Learners) -> tuple[Array, Array]:
        """The log-likelihood of each slice's counts, [learners, slices], and the practice that they lead to."""
        practice, total = learners.start, np.zeros(learners.start.shape)
        for shares, focus, counts in self.seen:
            practice = step(learners, practice, shares, focus)
            right = np.clip(success(learners, practice), 1e-6, 1 - 1e-6)
            total += counts.succeeded * np.log(right) + counts.failed.sum(-1) * np.log1p(-right)
            total += (counts.failed * np.log(learners.cause)).sum(-1)
        return total, practice

    def _sampled(self, likelihood: Array) -> NDArray[np.int64]:
        """For each slice as many learners, drawn by their likelihood."""
        parts = np.exp(likelihood - likelihood.max(0))
        reached = np.cumsum(parts, axis=0) / parts.sum(0)
        drawn = [np.searchsorted(column, self.rng.random(len(column))) for column in reached.T]
        return np.minimum(np.stack(drawn, axis=1), len(likelihood) - 1)


def _composed(learners: Learners, rows: NDArray[np.int64]) -> Learners:
    """Learners whose slice i is slice i of learner ``rows[:, i]``, with what it needs and what helps it."""
    places = {"needs": rows[:, None], "transfer": rows[:, None], "cause": rows[..., None]}
    traits = ("start", "rate", "plateau", "ceiling", "forgetting", *places)
    taken = {name: np.take_along_axis(getattr(learners, name), places.get(name, rows), axis=0) for name in traits}
    return replace(learners[: len(rows)], **taken)
