"""The distance between two configs, by the cases that they draw and not by their knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envtuning.worlds.world import World

DRAWN = 240  # cases of each config
BINS = 20  # of each feature's range
SEED = 0

Histogram = tuple[NDArray[np.float64], NDArray[np.float64]]  # cells [n, features] and their weights [n], which sum to 1


class Distances:
    """The energy distance between the joint histograms of what two configs draw: 0 for equal draws, and a metric."""

    def __init__(self, world: World[Any]) -> None:
        self.world = world
        self._known: dict[str, Histogram] = {}
        self._spreads: dict[str, float] = {}

    def histogram(self, config: Any) -> Histogram:
        """Over the world's features of a case, each in 0…1; a function of the config alone."""
        key = config.model_dump_json()
        if key not in self._known:
            per_slice = math.ceil(DRAWN / len(self.world.slices(config)))
            cases = self.world.draw(config, per_slice, seed=SEED, purpose="probe", exclude=())
            binned = np.round(self.world.features(cases) * BINS) / BINS
            cells, counts = np.unique(binned, axis=0, return_counts=True)
            self._known[key] = cells, counts / counts.sum()
        return self._known[key]

    def between(self, one: Any, other: Any) -> float:
        gap = _mean_gap(self.histogram(one), self.histogram(other))
        return math.sqrt(max(2 * gap - self.spread(one) - self.spread(other), 0.0))

    def spread(self, config: Any) -> float:
        """The mean gap between two draws of the same config."""
        key = config.model_dump_json()
        if key not in self._spreads:
            drawn = self.histogram(config)
            self._spreads[key] = _mean_gap(drawn, drawn)
        return self._spreads[key]

    def nearest(self, config: Any, entries: Mapping[str, Any]) -> tuple[str, float]:
        """The entry with the most similar draws, and its distance."""
        far = {name: self.between(config, entry) for name, entry in entries.items()}
        name = min(far, key=lambda name: far[name])
        return name, far[name]

    def spacing(self, entries: Mapping[str, Any]) -> float:
        """The mean distance of an entry from its nearest neighbour."""
        nearest = [
            min(self.between(one, other) for name, other in entries.items() if name != own)
            for own, one in entries.items()
        ]
        return float(np.mean(nearest))


def _mean_gap(one: Histogram, other: Histogram) -> float:
    """The mean distance between pairs of cases, over features."""
    gaps = np.abs(one[0][:, None, :] - other[0][None, :, :]).mean(axis=2)
    return float(one[1] @ gaps @ other[1])
