"""Makes the suites from fixed seeds: every instance is decided exactly, and no two are equal up to symmetry."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.generator.apportion import NO_WAIT, WAIT
from mapf_frozenlake.generator.generate import Drawer, Limits, excluded_keys
from mapf_frozenlake.generator.kernel import UNDECIDED
from mapf_frozenlake.generator.strata import Stratum, hole_count
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import InstanceSet

CELLS = [(agents, size) for agents in (3, 4, 5) for size in range(agents, 11)]  # (agents, size): 21
HOLE_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5)
WAIT_SUBSETS = (0.25, 0.50, 0.75)
PER_GROUP = {"mapf-frozenlake-3150": 50, "quick": 2}  # instances of a cell in a wait subset
SEEDS = {"mapf-frozenlake-3150": 3150, "quick": 126}

# High enough to decide every board, so that a suite does not depend on the solver's speed.
_LIMITS = Limits(draws=1_000_000, decisions=100_000, expansions=100_000_000)


def make_suite(name: str) -> InstanceSet:
    """Draw the suite of that name again; the result is the same on any machine."""
    if name == "quick":
        return _drawn(name, excluded_keys(make_suite("mapf-frozenlake-3150")))
    return _drawn(name, np.empty(0, np.uint64))


def _drawn(name: str, taken: NDArray[np.uint64]) -> InstanceSet:
    strata, labels, ids = _what(PER_GROUP[name])
    n = len(strata)
    room = InstanceSet.empty(n, 10, 10, 5)
    missing, attempt = np.arange(n), 0
    while missing.size:
        drawer = Drawer(strata, SEEDS[name], taken, _LIMITS)
        fates = drawer.fill(room, missing, missing + attempt * n, missing)
        if fates[UNDECIDED]:
            raise RuntimeError(f"{fates[UNDECIDED]} boards were left undecided: raise the suites' limit of expansions")
        missing = _repeated(canonical_keys(room))
        taken = np.union1d(taken, canonical_keys(room))
        attempt += 1
    return replace(room, sample_ids=tuple(ids), labels=labels, seed=SEEDS[name])


def _repeated(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The rows that equal an earlier row up to symmetry."""
    first = np.unique(keys, return_index=True)[1]
    return np.setdiff1d(np.arange(keys.size), first)


def _what(per_group: int) -> tuple[list[Stratum], dict[str, NDArray], list[str]]:
    """For each instance: its stratum, the columns to group by, its id.

    Hole ratios take turns. A wait subset's labels are apportioned along the whole subset, so that every group of 50, and
    the subset as a whole, is within 1 of its ratio.
    """
    strata, ids, columns = [], [], []
    seen: dict[str, int] = {}
    for cell, (agents, size) in enumerate(CELLS):
        for wait_subset in WAIT_SUBSETS:
            for k in range(cell * per_group, (cell + 1) * per_group):
                ratio = HOLE_RATIOS[(k + WAIT_SUBSETS.index(wait_subset)) % len(HOLE_RATIOS)]
                waits = math.floor(wait_subset * (k + 1) + 0.5) > math.floor(wait_subset * k + 0.5)
                strata.append(
                    Stratum(
                        height=size,
                        width=size,
                        num_agents=agents,
                        hole_ratio=ratio,
                        num_holes=hole_count(size, size, agents, ratio),
                        min_distance=1,
                        wait_ratio=wait_subset,
                        label=WAIT if waits else NO_WAIT,
                        certificate="exact",
                    )
                )
                columns.append((agents, size, ratio, wait_subset))
                kind = f"{agents}ag_{size}x{size}_hr{ratio}"
                ids.append(f"{kind}_{seen.setdefault(kind, 0):03d}")
                seen[kind] += 1
    num_agents, sizes, ratios, subsets = (np.array(column) for column in zip(*columns, strict=True))
    labels = {"agents": num_agents, "size": sizes, "hole_ratio": ratios, "wait_subset": subsets}
    return strata, labels, ids
