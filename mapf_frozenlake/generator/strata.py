"""The strata (kinds of instances) of a config, and the stratum of instance j."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig, Slice
from mapf_frozenlake.errors import GenerationError, LakeError
from mapf_frozenlake.generator.apportion import ANY, NO_WAIT, WAIT, apportion, normalised
from mapf_frozenlake.map_families import MAP_FAMILIES, MapFamily
from mapf_frozenlake.types import Certificate

EXACT_UP_TO_SIZE, EXACT_UP_TO_AGENTS = 10, 5  # certify=None decides boards up to this exactly
LABELS = (ANY, NO_WAIT, WAIT)


@dataclass(frozen=True)
class Stratum:
    """One kind of instance: uniform among the boards that fit this description."""

    height: int
    width: int
    num_agents: int
    hole_ratio: float
    num_holes: int
    min_distance: int
    wait_ratio: float | None
    label: int  # ANY, NO_WAIT or WAIT
    certificate: Certificate
    family: MapFamily = "random"
    layout: tuple[float, ...] = (0.0,) * 5  # see families.draw_map

    def is_wanted(self) -> bool:
        if self.wait_ratio is None:
            return self.label == ANY
        return (self.label == WAIT and self.wait_ratio > 0) or (self.label == NO_WAIT and self.wait_ratio < 1)

    def __str__(self) -> str:
        agents = f"{self.num_agents} agent{'s' if self.num_agents > 1 else ''}"
        if self.family != "random":
            return f"{self.family} of {self.height}×{self.width} with {agents}"
        return f"{self.height}×{self.width} with {agents}, hole_ratio={self.hole_ratio:g} ({self.num_holes} holes)"


class Strata(NamedTuple):
    """All strata of a config and the order in which they come."""

    kinds: list[Stratum]  # indexed by (slice · labels + label) · counts + count
    shares: NDArray[np.float64]  # [slices]
    wait_ratios: NDArray[np.float64]  # [slices]; NaN for any
    weights: NDArray[np.float64]  # [counts]

    def sequence(self, n: int) -> NDArray[np.int64]:
        """The stratum of each of the first n instances. A shorter sequence is a prefix of a longer one."""
        wanted = self.wanted()
        if len(wanted) == 1:
            return np.full(n, wanted[0])
        slices, labels, counts = apportion(self.shares, self.wait_ratios, self.weights, n)
        return (slices.astype(np.int64) * len(LABELS) + labels + 1) * len(self.weights) + counts

    def wanted(self) -> list[int]:
        """The strata that will occur: without labels if the config asks for none, and without slices of share 0."""
        return [number for number, kind in enumerate(self.kinds) if kind.is_wanted()]


def strata_of(config: LakeConfig, certify: Certificate | None = None) -> Strata:
    """The strata that ``config`` draws from; raises ``GenerationError`` for a config that no draw could meet."""
    if not isinstance(config, LakeConfig):
        raise LakeError(f"a {type(config).__name__} for a config: give a LakeConfig; LakeConfig(**fields) makes one")
    if certify not in (None, *get_args(Certificate)):
        raise LakeError(f"certify={certify!r}: give one of {', '.join(map(repr, get_args(Certificate)))}, or None")
    slices = {size: slice_ for size, slice_ in sorted(config.slices.items()) if slice_.share > 0}
    weights = {count: weight for count, weight in config.agent_weights.items() if weight > 0}
    kinds = []
    for size, slice_ in slices.items():
        width = slice_.width or size
        for label in LABELS:
            for count in weights:
                kinds.append(
                    Stratum(
                        height=size,
                        width=width,
                        num_agents=count,
                        hole_ratio=slice_.hole_ratio,
                        num_holes=hole_count(size, width, count, slice_.hole_ratio),
                        min_distance=slice_.min_distance,
                        wait_ratio=slice_.wait_ratio,
                        label=label,
                        certificate=_certificate(size, width, count, slice_.wait_ratio, certify),
                        family=slice_.map_family,
                        layout=_layout(slice_),
                    )
                )
        if slice_.wait_ratio and 1 in weights:
            raise GenerationError(
                f"wait_ratio={slice_.wait_ratio:g} on {size}×{width} with 1 agent: an agent alone never needs to wait; "
                "set wait_ratio to 0 or null, or leave out the 1 in num_agents"
            )
    return Strata(
        kinds,
        normalised([slice_.share for slice_ in slices.values()]),
        np.array([math.nan if slice_.wait_ratio is None else slice_.wait_ratio for slice_ in slices.values()]),
        normalised(list(weights.values())),
    )


def what_is_drawn(config: LakeConfig) -> str:
    """Equal for configs that draw the same boards; rules, rewards and hints may differ."""
    return config.model_dump_json(include={"slices", "num_agents"})


def hole_count(height: int, width: int, num_agents: int, hole_ratio: float) -> int:
    """The number of holes: their share of the cells that are neither start nor goal, rounded half up."""
    return math.floor(hole_ratio * (height * width - 2 * num_agents) + 0.5 + 1e-9)


def _layout(slice_: Slice) -> tuple[float, ...]:
    code = float(MAP_FAMILIES.index(slice_.map_family))
    return code, slice_.loops, float(slice_.room_size), float(slice_.shelf_length), float(slice_.aisle)


def _certificate(
    height: int, width: int, agents: int, wait_ratio: float | None, certify: Certificate | None
) -> Certificate:
    if certify is None:
        small = max(height, width) <= EXACT_UP_TO_SIZE and agents <= EXACT_UP_TO_AGENTS
        return "exact" if small or wait_ratio is not None else "solvable"
    if certify != "exact" and wait_ratio is not None:
        raise GenerationError(
            f"wait_ratio={wait_ratio:g} on {height}×{width} with certify={certify!r}: whether an instance needs a wait is "
            'known only with certify="exact"; use that, or set wait_ratio to null'
        )
    return certify


def displacements(height: int, width: int, num_agents: int, min_distance: int) -> NDArray[np.int64]:
    """How ``place`` draws pairs of cells at least ``min_distance`` apart: int64[k, 3], or empty to draw cell by cell.

    Both ways are exactly uniform; this picks the one that is expected to discard fewer draws.
    """
    if min_distance == 1:
        return np.empty((0, 3), np.int64)
    downs, rights = range(1 - height, height), range(1 - width, width)
    offsets = [(down, right) for down in downs for right in rights if abs(down) + abs(right) >= min_distance]
    pairs = np.cumsum([(height - abs(down)) * (width - abs(right)) for down, right in offsets])
    cells = height * width
    far_enough = num_agents * math.log(pairs[-1] / (cells * (cells - 1)))
    no_overlap = sum(math.log(1 - used / cells) for used in range(2 * num_agents))
    if far_enough >= no_overlap:
        return np.empty((0, 3), np.int64)
    return np.column_stack([np.array(offsets), pairs]).astype(np.int64)
