"""Whether a config has enough different boards for a held-out set. Boards that are equal up to symmetry count as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from envtuning.worlds.world import TooFewCases
from mapf_frozenlake import GenerationError, LakeConfig
from mapf_frozenlake.generator.apportion import ANY, NO_WAIT, WAIT
from mapf_frozenlake.generator.generate import Drawer, excluded_keys
from mapf_frozenlake.generator.strata import Stratum, strata_of
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import InstanceSet

PATIENCE = 1_000  # a kind counts as exhausted after this many draws in a row without a new board
_AT_ONCE = 100
_REMEDY = "hold out fewer boards, or choose a size or a hole_ratio that has more"
_LABELS = {ANY: "", WAIT: " that need a wait", NO_WAIT: " that need no wait"}

Keys = NDArray[np.uint64]


def raise_unless_enough(
    config: LakeConfig, count: int, drawn: InstanceSet | None, *, seed: int, exclude: Sequence[InstanceSet]
) -> None:
    """Raises ``TooFewCases`` if a set of ``count`` boards must repeat one, or leaves none to train on.

    This is checked for each kind of board: a size, a number of agents, and the wait label if the slice has a wait ratio. A
    set may repeat a board by chance. It is refused only if there are fewer different boards of a kind, beyond those in
    ``exclude``, than it needs. ``drawn`` is the set, or None if drawing it failed.
    """
    strata = strata_of(config)
    kind_of = strata.sequence(count)
    held_out, own = excluded_keys(exclude), np.empty(0, np.uint64) if drawn is None else canonical_keys(drawn)
    now = np.union1d(held_out, own)
    for number in np.unique(kind_of).tolist():
        kind, needed = strata.kinds[number], int((kind_of == number).sum())
        met = () if drawn is None else own[kind_of == number].tolist()
        left = _different(kind, needed, seed=seed, excluded=held_out, met=met)
        if left < needed and (total := _total(kind, left, seed, held_out)):
            taken = f", {total - left:,} of them held out" if total > left else ""
            raise TooFewCases(
                f"{_named(kind)}: a set needs {needed:,} different boards, but there are {total:,}{taken}: {_REMEDY}"
            )
        if drawn is not None and not _different(kind, 1, seed=seed, excluded=now):
            total = _total(kind, 0, seed, now)
            raise TooFewCases(
                f"{_named(kind)}: all {total:,} different boards are held out, so none is left to train on: {_REMEDY}"
            )


def _total(kind: Stratum, left: int, seed: int, held_out: Keys) -> int:
    """The number of different boards of a kind that has ``left`` beyond the held-out ones; 0 if it cannot be drawn."""
    if not held_out.size:
        return left
    return _different(kind, left + held_out.size, seed=seed, excluded=np.empty(0, np.uint64))


def _named(kind: Stratum) -> str:
    return f"{kind}{_LABELS[kind.label]}"


def _different(kind: Stratum, enough: int, *, seed: int, excluded: Keys, met: Iterable[int] = ()) -> int:
    """The number of different boards of this kind that are not excluded, at most ``enough``."""
    drawer, found, first, in_vain = Drawer([kind], seed, excluded), set(met), 0, 0
    while len(found) < enough and in_vain < PATIENCE:
        rows = np.arange(min(_AT_ONCE, enough))
        boards = InstanceSet.empty(rows.size, kind.height, kind.width, kind.num_agents)
        try:
            drawer.fill(boards, np.zeros_like(rows), first + rows, rows)
        except GenerationError:  # no board within the limit of draws for one
            break
        before = len(found)
        found |= set(canonical_keys(boards).tolist())
        first, in_vain = first + rows.size, 0 if len(found) > before else in_vain + rows.size
    return min(len(found), enough)
