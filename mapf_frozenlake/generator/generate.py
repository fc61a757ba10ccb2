"""``generate``: instances that meet their config exactly, the same in any process and with any number of threads."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import GenerationError, LakeError
from mapf_frozenlake.generator import kernel
from mapf_frozenlake.generator.strata import Strata, Stratum, displacements, strata_of
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import CERTIFICATES, InstanceSet
from mapf_frozenlake.types import Certificate

MAX_DRAWS = 100_000  # per instance, unless told otherwise
_CHUNK = 64  # instances a thread takes at a time

Exclude = InstanceSet | Iterable[InstanceSet] | None


def generate(
    config: LakeConfig,
    n: int,
    seed: int = 0,
    *,
    certify: Certificate | None = None,
    exclude: Exclude = None,
    first: int = 0,
    max_draws: int = MAX_DRAWS,
    threads: int | None = None,
) -> InstanceSet:
    """Instances ``first`` to ``first + n − 1`` of the endless sequence that ``(config, seed)`` names."""
    if n < 0 or first < 0:
        raise LakeError(f"n={n}, first={first}: both must be 0 or more")
    strata = strata_of(config, certify)
    drawer = Drawer(strata, seed, exclude=exclude, max_draws=max_draws)
    room = InstanceSet.empty(n, config.max_size, config.max_size, config.max_agents)
    drawer.fill(room, strata.sequence(first + n), np.arange(first, first + n), np.arange(n), threads)
    return replace(room, config=config, seed=seed)


class Drawer:
    """Fills rows of an InstanceSet with the instances of given indices. Thread safe: it keeps no state between calls."""

    def __init__(self, strata: Strata, seed: int, *, exclude: Exclude = None, max_draws: int = MAX_DRAWS) -> None:
        self.strata = strata
        self.max_draws = max_draws
        self.excluded = excluded_keys(exclude)
        self._seed_key = seed_key(seed)
        self._displacements: dict[tuple[int, int, int], NDArray[np.int64]] = {}

    def fill(
        self,
        room: InstanceSet,
        sequence: NDArray[np.int64],
        indices: NDArray[np.int64],
        rows: NDArray[np.int64],
        threads: int | None = None,
    ) -> None:
        """Instance ``indices[i]``, of stratum ``sequence[indices[i]]``, into ``room``'s row ``rows[i]``."""
        kinds = sequence[indices]
        jobs = []
        for kind in np.unique(kinds).tolist():
            mine = np.flatnonzero(kinds == kind)
            for chunk in range(0, mine.size, _CHUNK):
                part = mine[chunk : chunk + _CHUNK]
                jobs.append((self.strata.kinds[kind], indices[part], rows[part]))
        workers_wanted = min(threads or usable_cores(), len(jobs))
        if workers_wanted <= 1:
            for job in jobs:
                self._draw(room, *job)
            return
        with ThreadPoolExecutor(workers_wanted) as workers:
            for done in [workers.submit(self._draw, room, *job) for job in jobs]:
                done.result()

    def _draw(self, room: InstanceSet, kind: Stratum, indices: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        tally = np.zeros((indices.size, kernel.NUM_FATES), np.int64)
        kernel.fill_reachable(
            self._seed_key, indices, rows, kind.size, kind.num_agents, kind.num_holes, kind.min_distance,
            self._pairs(kind), self.excluded, self.max_draws, room.holes, room.starts, room.goals, tally,
        )  # fmt: skip
        failed = np.flatnonzero(tally[:, kernel.ACCEPTED] == 0)
        if failed.size:
            raise GenerationError(f"{kind}: not reachable")
        room.heights[rows] = room.widths[rows] = kind.size
        room.num_agents[rows] = kind.num_agents
        room.certificates[rows] = CERTIFICATES.index("reachable")

    def _pairs(self, kind: Stratum) -> NDArray[np.int64]:
        key = (kind.size, kind.num_agents, kind.min_distance)
        if key not in self._displacements:
            self._displacements[key] = displacements(*key)
        return self._displacements[key]


def excluded_keys(exclude: Exclude) -> NDArray[np.uint64]:
    """The sorted keys of everything that must not be drawn."""
    if exclude is None:
        return np.empty(0, np.uint64)
    sets = [exclude] if isinstance(exclude, InstanceSet) else list(exclude)
    return np.unique(np.concatenate([np.empty(0, np.uint64), *(canonical_keys(one) for one in sets)]))


def seed_key(seed: int) -> np.uint64:
    """64 bits of any integer seed."""
    return np.uint64(int.from_bytes(hashlib.sha256(str(int(seed)).encode()).digest()[:8], "little"))


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
