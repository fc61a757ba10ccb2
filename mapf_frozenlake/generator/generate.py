"""``generate``: instances that meet their config exactly, the same in any process and with any number of threads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import GenerationError, LakeError
from mapf_frozenlake.generator import first_boards, kernel
from mapf_frozenlake.generator.explain import why_not
from mapf_frozenlake.generator.strata import Stratum, displacements, strata_of
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import CERTIFICATES, InstanceSet
from mapf_frozenlake.solvers.certify import NO_SEARCH, address_of_search
from mapf_frozenlake.threads import in_threads, thread_count
from mapf_frozenlake.types import Certificate

Exclude = InstanceSet | Iterable[InstanceSet] | NDArray[np.uint64] | None  # an array: keys of `canonical_keys`
LAST = 1_000_000_000  # instances of a seed
_CHUNK = 32  # instances that a thread takes at once


@dataclass(frozen=True)
class Limits:
    """When to give up. These are counts and not times, so results are the same on any machine."""

    draws: int = 100_000  # per instance
    decisions: int = 20_000  # boards per instance for the exact solver
    expansions: int = 20_000  # expansions of the exact solver per board; a board that needs more is replaced
    joint_steps: int = 20_000  # joint steps per board in the search for any plan


DEFAULT_LIMITS = Limits()


def generate(
    config: LakeConfig,
    n: int,
    seed: int = 0,
    *,
    certify: Certificate | None = None,
    exclude: Exclude = None,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
    num_threads: int | None = None,
) -> InstanceSet:
    """Instances ``first`` to ``first + n − 1`` of the endless sequence of ``(config, seed)``; uses all cores or ``num_threads``.

    - Instance j depends on (config, seed, j), ``certify``, ``exclude`` and ``limits``. It does not depend on n, first,
      num_threads, process or machine.
    - In every prefix each size has its share within 1, each size's wait ratio is met within 1, and each agent count has
      its weight within 1 (``apportion`` says how).
    - Random boards are uniform among all boards of the size, the count, the number of holes (rounded half up), the least
      distance and the wait label. On a maze, rooms or a warehouse, starts and goals are uniform on the map's ice.
    - ``certify="exact"`` (the default up to 10×10 and 5 agents, and wherever a wait ratio is asked for): jointly
      solvable, with the least makespan and whether it needs a wait known exactly. ``"solvable"`` (the default beyond):
      a joint plan was found. ``"reachable"``: each agent alone can reach its goal.
    - No instance equals one of ``exclude``, even after rotation, reflection or renumbering of its agents.

    A board that the solver cannot decide within ``limits.expansions`` is replaced. This was measured for 6 boards in 1,000
    of the hardest kind (5 agents on 5×5, half of it holes), and for at most 1 in 1,000 with up to 4 agents. An instance that
    needs more than ``limits`` raises a ``GenerationError`` that says what is reachable.
    """
    for name, count in (("n", n), ("first", first)):
        if not isinstance(count, int | np.integer) or count < 0:
            raise LakeError(f"{name}={count!r}: give a whole number, 0 or more")
    if first + n > LAST:
        raise LakeError(
            f"first={first}, n={n}: only the first {LAST:,} instances of a seed are drawn: take another seed"
        )
    strata = strata_of(config, certify)
    room = InstanceSet.empty(n, config.max_size, config.max_size, config.max_agents)
    drawer = Drawer(strata.kinds, seed, excluded_keys(exclude), limits)
    drawer.fill(room, strata.sequence(first + n)[first:], np.arange(first, first + n), np.arange(n), num_threads)
    return replace(room, config=config, seed=int(seed))


def check_config(
    config: LakeConfig, *, certify: Certificate | None = None, exclude: Exclude = None, probes: int = 4
) -> None:
    """Raise the ``GenerationError`` that ``generate`` would raise, after a tenth of its draws; takes a few seconds at most.

    If this raises nothing, ``generate`` succeeds, except for a chance of one in many thousands per instance.
    """
    strata = strata_of(config, certify)
    limits = Limits(draws=DEFAULT_LIMITS.draws // 10, decisions=DEFAULT_LIMITS.decisions // 10)
    drawer = Drawer(strata.kinds, 0, excluded_keys(exclude), limits)
    room = InstanceSet.empty(probes, config.max_size, config.max_size, config.max_agents)
    rows = np.arange(probes)
    for kind in strata.wanted():
        drawer.fill(room, np.full(probes, kind), rows, rows)


@dataclass
class Drawer:
    """Draws instances of given kinds. Safe to share between threads."""

    strata: Sequence[Stratum]
    seed: int
    excluded: NDArray[np.uint64]  # sorted keys
    limits: Limits = DEFAULT_LIMITS
    _displacements: dict[tuple[int, int, int, int], NDArray[np.int64]] = field(default_factory=dict)
    _search: int = NO_SEARCH  # until a board needs the search, because compiling it takes seconds

    def fill(
        self,
        room: InstanceSet,
        kinds: NDArray[np.int64],
        indices: NDArray[np.int64],
        rows: NDArray[np.int64],
        num_threads: int | None = None,
    ) -> NDArray[np.int64]:
        """Write instance ``indices[i]`` of stratum ``kinds[i]`` to row ``rows[i]`` of ``room``; on all cores by default.

        Returns the number of draws by outcome: int64[NUM_FATES], see ``kernel``.
        """
        jobs = []
        for kind in np.unique(kinds).tolist():
            mine = np.flatnonzero(kinds == kind)
            for chunk in np.split(mine, range(_CHUNK, mine.size, _CHUNK)):
                jobs.append((self.strata[kind], indices[chunk], rows[chunk]))
        tallies, failed = np.zeros((len(jobs), kernel.NUM_FATES), np.int64), dict[int, GenerationError]()

        def work(begin: int, end: int) -> None:
            for job in range(begin, end):
                if failed and min(failed) < job:
                    return  # only earlier jobs continue, so that the first job's error is raised on any number of threads
                try:
                    tallies[job] = self._draw(room, *jobs[job])
                except GenerationError as error:
                    failed[job] = error

        in_threads(work, len(jobs), min(thread_count(num_threads), max(1, len(jobs))))
        if failed:
            raise failed[min(failed)]
        return tallies.sum(axis=0)

    def _draw(
        self, room: InstanceSet, kind: Stratum, indices: NDArray[np.int64], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        tally = np.zeros((indices.size, kernel.NUM_FATES), np.int64)
        wanted = (
            seed_key(self.seed), indices, rows, np.array(kind.layout), kind.height, kind.width, kind.num_agents, kind.num_holes,
            kind.min_distance, self._displacements_of(kind), self.excluded,
        )  # fmt: skip
        written = (room.holes, room.starts, room.goals, tally)
        common = (*wanted, self.limits.draws, *written)
        if kind.certificate == "reachable":
            filled = kernel.fill_reachable(*common)
        elif kind.certificate == "solvable":
            filled = kernel.fill_solvable(*common, self.limits.joint_steps)
        else:
            decided = (kind.label, self.limits.decisions, self.limits.expansions)
            certified = (room.makespan, room.needs_wait)
            few_draws = (*wanted, min(self.limits.draws, first_boards.MOST_DRAWS), *written)
            if first_boards.fill_first(indices.size, (*few_draws, *decided, NO_SEARCH, *certified)):
                filled = indices.size
            else:
                tally[:] = 0
                filled = kernel.fill_exact(*common, *decided, self._search, *certified)
            if filled == kernel.AWAITS_SEARCH:
                self._search = address_of_search()
                tally[:] = 0
                filled = kernel.fill_exact(*common, *decided, self._search, *certified)
        if filled < indices.size:
            raise GenerationError(why_not(kind, tally[filled]))
        room.heights[rows], room.widths[rows] = kind.height, kind.width
        room.num_agents[rows] = kind.num_agents
        room.certificates[rows] = CERTIFICATES.index(kind.certificate)
        return tally.sum(axis=0)

    def _displacements_of(self, kind: Stratum) -> NDArray[np.int64]:
        # Pairs are for boards of which every cell may be ice.
        least = kind.min_distance if kind.family == "random" else 1
        key = (kind.height, kind.width, kind.num_agents, least)
        if key not in self._displacements:
            self._displacements[key] = displacements(*key)
        return self._displacements[key]


def excluded_keys(exclude: Exclude) -> NDArray[np.uint64]:
    """The sorted keys of all boards that must not be drawn."""
    if isinstance(exclude, np.ndarray):
        return np.unique(exclude)
    sets = [exclude] if isinstance(exclude, InstanceSet) else exclude or ()
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise LakeError(f"exclude={exclude!r}: give an InstanceSet or several; load_suite(name) gives a suite's")
    sets = list(sets)
    if strange := [one for one in sets if not isinstance(one, InstanceSet)]:
        raise LakeError(f"exclude holds an object of type {type(strange[0]).__name__}: give InstanceSets")
    return np.unique(np.concatenate([np.empty(0, np.uint64), *(canonical_keys(one) for one in sets)]))


def seed_key(seed: int) -> np.uint64:
    """64 bits of any integer."""
    return np.uint64(int.from_bytes(hashlib.sha256(str(int(seed)).encode()).digest()[:8], "little"))
