"""``InstancePool``: the boards that training envs reset to, drawn at first use or beforehand in the background."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import GenerationError, LakeError
from mapf_frozenlake.generator.generate import DEFAULT_LIMITS, Drawer, Exclude, Limits, excluded_keys
from mapf_frozenlake.generator.strata import strata_of, what_is_drawn
from mapf_frozenlake.instance_set import ARRAYS, InstanceSet
from mapf_frozenlake.threads import thread_count
from mapf_frozenlake.types import Certificate

DEFAULT_SIZE = 16_384  # entries
_AHEAD_CHUNK = 4  # rows the background thread hands over at a time
_MOST_POOLS = 32  # kept per process by `shared`; envs hold on to theirs


class InstancePool:
    """``size`` instances; entry j is instance j of ``generate(config, seed=seed)``, whenever it is drawn.

    ``ensure`` draws entries that are missing. ``prefetch`` makes a background thread draw them beforehand. Safe to use from
    several threads; survives a fork.
    """

    def __init__(
        self,
        config: LakeConfig,
        *,
        size: int = DEFAULT_SIZE,
        seed: int = 0,
        exclude: Exclude = None,
        certify: Certificate | None = None,
        max_size: int | None = None,
        max_agents: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
        num_threads: int | None = None,
    ) -> None:
        thread_count(num_threads)  # raises for a number that is not allowed
        if size < 1:
            raise LakeError(f"pool size {size}: must be at least 1")
        side = max_size if max_size is not None else config.max_size
        agents = max_agents if max_agents is not None else config.max_agents
        if side < config.max_size or agents < config.max_agents:
            raise LakeError(
                f"the config draws up to {config.max_size}×{config.max_size} with {config.max_agents} agents, but "
                f"the pool was made for max_size={side}, max_agents={agents}: raise these two"
            )
        self.config, self.size, self.seed, self.num_threads = config, size, seed, num_threads
        self.arrays = InstanceSet.empty(size, side, side, agents)  # row j is whole once `ensure` was called with j
        self._certify = certify
        strata = strata_of(config, certify)
        self._drawer = Drawer(strata.kinds, seed, excluded_keys(exclude), limits)
        self._sequence = strata.sequence(size)
        self.ready = np.zeros(size, np.bool_)
        self._lock = threading.Lock()
        _POOLS.add(self)

    @classmethod
    def shared(
        cls,
        config: LakeConfig,
        *,
        size: int = DEFAULT_SIZE,
        seed: int = 0,
        exclude: Exclude = None,
        certify: Certificate | None = None,
        max_size: int | None = None,
        max_agents: int | None = None,
    ) -> InstancePool:
        """The process's pool with these arguments, so that envs share boards. Configs that differ only in rules share a pool."""
        excluded = excluded_keys(exclude)
        key = (what_is_drawn(config), size, seed, excluded.tobytes(), certify, max_size, max_agents)
        with _SHARED_LOCK:
            if key not in _SHARED:
                _SHARED[key] = cls(
                    config, size=size, seed=seed, exclude=excluded, certify=certify, max_size=max_size,
                    max_agents=max_agents,
                )  # fmt: skip
                if len(_SHARED) > _MOST_POOLS:
                    _SHARED.popitem(last=False)
            _SHARED.move_to_end(key)
            return _SHARED[key]

    def __len__(self) -> int:
        return self.size

    def is_ready(self, indices: NDArray[np.int64]) -> bool:
        """Whether all these rows are already drawn."""
        return bool(self.ready[indices].all())

    def ensure(self, indices: NDArray[np.int64]) -> None:
        """Fill the rows ``indices`` of ``arrays``: draw the missing ones, on all cores or ``num_threads``."""
        if not self.is_ready(indices):
            self._draw(indices, self.num_threads)

    def _draw(self, indices: NDArray[np.int64], num_threads: int | None) -> None:
        """Draw outside the lock, so that no thread waits for another thread's row."""
        missing = np.unique(np.asarray(indices, np.int64))
        missing = missing[~self.ready[missing]]
        _, height, width = self.arrays.holes.shape
        drawn = InstanceSet.empty(missing.size, height, width, self.arrays.starts.shape[1])
        self._drawer.fill(drawn, self._sequence[missing], missing, np.arange(missing.size), num_threads)
        with self._lock:
            new = ~self.ready[missing]  # a filled row is never written again
            for name in ARRAYS:
                getattr(self.arrays, name)[missing[new]] = getattr(drawn, name)[new]
            self.ready[missing] = True

    def prefetch(self, indices: NDArray[np.int64]) -> None:
        """Start drawing these rows in the background; returns at once. Errors are raised later, by ``ensure``."""
        missing = np.asarray(indices, np.int64)
        missing = missing[~self.ready[missing]]
        if missing.size:
            _AHEAD.draw(self, missing)

    def __reduce__(self) -> tuple:
        """Pickle the arguments without the boards: the other process draws the same boards when it needs them."""
        options = {
            "size": self.size, "seed": self.seed, "exclude": self._drawer.excluded, "certify": self._certify,
            "max_size": self.arrays.holes.shape[1], "max_agents": self.arrays.starts.shape[1], "limits": self._drawer.limits,
            "num_threads": self.num_threads,
        }  # fmt: skip
        return partial(InstancePool, self.config, **options), ()


class _Ahead:
    """The process's background thread that draws what pools were asked to prefetch, in that order."""

    def __init__(self) -> None:
        self._wanted: SimpleQueue[tuple[weakref.ref[InstancePool], NDArray[np.int64]] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def draw(self, pool: InstancePool, rows: NDArray[np.int64]) -> None:
        self._wanted.put((weakref.ref(pool), rows))
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, name="draws boards ahead", daemon=True)
                    self._thread.start()

    def stop(self) -> None:
        """End the thread. If Python kills it at exit inside compiled code, the process crashes."""
        self._stop.set()
        self._wanted.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while (wanted := self._wanted.get()) is not None and not self._stop.is_set():
            pool_ref, rows = wanted
            for at in range(0, rows.size, _AHEAD_CHUNK):
                pool = pool_ref()
                if pool is None or self._stop.is_set():
                    break
                with suppress(GenerationError):  # `ensure` will raise it again, in the caller's thread
                    pool._draw(rows[at : at + _AHEAD_CHUNK], num_threads=1)
                del pool


_SHARED: OrderedDict[tuple, InstancePool] = OrderedDict()
_SHARED_LOCK = threading.Lock()
_POOLS: weakref.WeakSet[InstancePool] = weakref.WeakSet()
_AHEAD = _Ahead()


def _after_fork() -> None:
    """Start anew after a fork, which copies locks (perhaps held) but no threads."""
    global _SHARED_LOCK, _AHEAD
    _SHARED_LOCK, _AHEAD = threading.Lock(), _Ahead()
    for pool in list(_POOLS):
        pool._lock = threading.Lock()


atexit.register(lambda: _AHEAD.stop())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
