"""Statistics of a few paired seeds: intervals by SciPy's bootstrap, over seeds, and over seeds and test cases together.

All take arrays with a row per seed, in the same order for all arms. A seed is resampled with all that belongs to it, so that
differences stay paired.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from envtuning.studies.intervals import Interval

if TYPE_CHECKING:
    Statistic = Callable[..., NDArray[np.float64]]

RESAMPLES = 10_000
CONFIDENCE = 0.95
FEWEST = 5  # seeds; a bootstrap of fewer is far too narrow
SEED = 0  # of the resampling: the same figures for the same runs


def interval(statistic: Statistic, *columns: ArrayLike) -> Interval:
    """The statistic of paired columns, one value per seed each, and its bootstrap interval.

    ``statistic`` takes the columns and ``axis``. Bias-corrected and accelerated; by percentiles where the columns leave that
    undefined; no interval below ``FEWEST`` seeds.
    """
    from scipy.stats import DegenerateDataWarning, bootstrap

    data = [np.asarray(column, float) for column in columns]
    value = float(statistic(*data, axis=-1))
    if len(data[0]) < FEWEST:
        return Interval(value, None, None)
    found = None
    for method in ("BCa", "percentile"):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)  # percentiles follow
            found = bootstrap(
                data,
                statistic,
                paired=True,
                vectorized=True,
                n_resamples=RESAMPLES,
                confidence_level=CONFIDENCE,
                method=method,
                rng=np.random.default_rng(SEED),
            ).confidence_interval
        if np.isfinite([found.low, found.high]).all():
            break
    assert found is not None
    return Interval(value, float(found.low), float(found.high))


def mean(column: NDArray, axis: int = -1) -> NDArray:
    return np.mean(column, axis=axis)


def interquartile_mean(column: NDArray, axis: int = -1) -> NDArray:
    """The mean of the middle half of the seeds: what a typical run does, whatever the odd one did."""
    ordered = np.sort(column, axis=axis)
    cut = ordered.shape[axis] // 4
    return np.mean(np.take(ordered, range(cut, ordered.shape[axis] - cut), axis=axis), axis=axis)


def mean_difference(ours: NDArray, theirs: NDArray, axis: int = -1) -> NDArray:
    return np.mean(ours - theirs, axis=axis)


def improvement(ours: NDArray, theirs: NDArray, axis: int = -1) -> NDArray:
    """The chance that a run of ours beats one of theirs, over all pairs of seeds; ties count half."""
    one, other = np.moveaxis(ours, axis, -1)[..., :, None], np.moveaxis(theirs, axis, -1)[..., None, :]
    return np.mean((one > other) + 0.5 * (one == other), axis=(-2, -1))


def above_the_best(ours: NDArray, *trivial: NDArray, axis: int = -1) -> NDArray:
    """How far our mean is above the best mean of the trivial arms; the best is chosen again in every resample."""
    best = np.max([np.mean(arm, axis=axis) for arm in trivial], axis=0)
    return np.mean(ours, axis=axis) - best


def over_seeds_and_cases(ours: ArrayLike, theirs: ArrayLike, resamples: int = 2000) -> Interval:
    """The mean difference of [seeds, cases] outcomes, seeds and cases resampled alike for both: other seeds, other boards.

    No interval below ``FEWEST`` seeds.
    """
    difference = np.asarray(ours, float) - np.asarray(theirs, float)
    seeds, cases = difference.shape
    if seeds < FEWEST:
        return Interval(float(difference.mean()), None, None)
    rng = np.random.default_rng(SEED)
    drawn = np.empty(resamples)
    for resample in range(resamples):
        by_seed = np.bincount(rng.integers(seeds, size=seeds), minlength=seeds) / seeds
        by_case = np.bincount(rng.integers(cases, size=cases), minlength=cases) / cases
        drawn[resample] = by_seed @ difference @ by_case
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return Interval(float(difference.mean()), float(low), float(high))


def worst_tenth(outcomes: ArrayLike) -> float | None:
    """Success on the tenth of the cases, of [seeds, cases], that the other seeds solve least often; None for one seed.

    Chosen and scored on the same seeds it would be too low. Cases that the others solve equally often count alike.
    """
    solved = np.asarray(outcomes, float)
    if len(solved) < 2:
        return None
    tenth = max(1, solved.shape[1] // 10)
    scores = []
    for own, others in zip(solved, solved.sum(axis=0) - solved, strict=True):
        bound = np.sort(others)[tenth - 1]
        below, tied = others < bound, others == bound
        scores.append((own[below].sum() + (tenth - below.sum()) * own[tied].mean()) / tenth)
    return float(np.mean(scores))


def headroom(success: Mapping[str, ArrayLike], searched: Sequence[str], trivial: Sequence[str]) -> Interval | None:
    """The best searched arm's mean above the best trivial arm's; None unless there is one of each."""
    if not searched or not trivial:
        return None

    def best_above_the_best(*arms: NDArray, axis: int = -1) -> NDArray:
        return np.max([above_the_best(arm, *arms[len(searched) :], axis=axis) for arm in arms[: len(searched)]], axis=0)

    return interval(best_above_the_best, *(success[name] for name in (*searched, *trivial)))
