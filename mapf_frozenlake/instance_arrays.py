"""The data of an ``InstanceSet``: its arrays, with their types and rules, and what they carry along."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.constants import MAX_SIZE, MIN_SIZE, Certificate
from mapf_frozenlake.errors import LakeError

CERTIFICATES: tuple[Certificate | None, ...] = (None, "reachable", "solvable", "exact")  # by code, weakest first
DTYPES = {
    "holes": np.bool_, "heights": np.int16, "widths": np.int16, "num_agents": np.int16, "starts": np.int16,
    "goals": np.int16, "makespan": np.int32, "needs_wait": np.int8, "certificates": np.int8,
}  # fmt: skip
ARRAYS = tuple(DTYPES)


@dataclass(frozen=True, eq=False)
class InstanceData:
    """Instances padded to one shape, as arrays."""

    holes: NDArray[np.bool_]  # [n, H, W]; True outside height × width
    heights: NDArray[np.int16]  # [n]
    widths: NDArray[np.int16]  # [n]
    num_agents: NDArray[np.int16]  # [n]
    starts: NDArray[np.int16]  # [n, A, 2]: row, col; -1 in empty slots
    goals: NDArray[np.int16]  # [n, A, 2]: row, col; -1 in empty slots
    makespan: NDArray[np.int32]  # [n]: the least possible; -1 unknown
    needs_wait: NDArray[np.int8]  # [n]: 0 no, 1 yes, -1 unknown
    certificates: NDArray[np.int8]  # [n]: index into CERTIFICATES
    sample_ids: tuple[str, ...] | None = None
    labels: Mapping[str, NDArray] = field(default_factory=dict)  # columns to group by: int64[n] or float64[n] each
    config: LakeConfig | None = None  # config of the draw
    seed: int | None = None


def raise_on_broken_arrays(these: InstanceData) -> None:
    """The rules of ``Instance``, for all rows at once; the error names the first row that breaks one."""
    _raise_on_wrong_shapes(these)
    n, height, width = these.holes.shape
    slots = these.starts.shape[1]

    def refuse(broken: Any, why: str) -> None:
        if broken.any():
            raise LakeError(f"instance {int(np.flatnonzero(broken)[0])} of {n}: {why}")

    for name, sides, room in (("heights", these.heights, height), ("widths", these.widths, width)):
        refuse(
            (sides < MIN_SIZE) | (sides > min(MAX_SIZE, room)), f"{name} must be {MIN_SIZE} to {min(MAX_SIZE, room)}"
        )
    refuse((these.num_agents < 1) | (these.num_agents > slots), f"num_agents must be 1 to {slots}")
    refuse((these.needs_wait < -1) | (these.needs_wait > 1), "needs_wait must be -1, 0 or 1")
    refuse(these.makespan < -1, "makespan must be -1 (unknown) or more")
    refuse((these.certificates < 0) | (these.certificates >= len(CERTIFICATES)), "certificates has an unknown code")
    rows, cols = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
    outside = (rows >= these.heights[:, None, None]) | (cols >= these.widths[:, None, None])
    refuse((outside & ~these.holes).any(axis=(1, 2)), "cells outside its board must be holes")

    used = np.arange(slots)[None, :] < these.num_agents[:, None]  # [n, slots]
    cells = np.concatenate([these.starts, these.goals], axis=1).astype(np.int64)
    used = np.concatenate([used, used], axis=1)
    refuse(((cells != -1).any(axis=2) & ~used).any(axis=1), "empty agent slots must hold -1")
    limit = np.stack([these.heights, these.widths], axis=1)[:, None, :]
    refuse((((cells < 0) | (cells >= limit)).any(axis=2) & used).any(axis=1), "a start or goal is off the board")
    flat = np.where(used, cells[..., 0] * width + cells[..., 1], 0)
    on_hole = np.take_along_axis(these.holes.reshape(n, height * width), flat, axis=1) & used
    refuse(on_hole.any(axis=1), "a start or goal is a hole")
    # Empty slots differ from each other and from all cells.
    ordered = np.sort(np.where(used, flat, -1 - np.arange(2 * slots)), axis=1)
    refuse((np.diff(ordered, axis=1) == 0).any(axis=1), "a cell is used by two starts or goals")


def _raise_on_wrong_shapes(these: InstanceData) -> None:
    if these.holes.ndim != 3 or these.starts.ndim != 3:
        raise LakeError(
            f"holes of shape {these.holes.shape} and starts of shape {these.starts.shape}: must be (n, H, W) and (n, A, 2)"
        )
    n, slots = len(these.holes), these.starts.shape[1]
    shapes = dict.fromkeys(DTYPES, (n,)) | {
        "holes": these.holes.shape,
        "starts": (n, slots, 2),
        "goals": (n, slots, 2),
    }
    for name, dtype in DTYPES.items():
        array = getattr(these, name)
        if array.shape != shapes[name] or array.dtype != dtype:
            raise LakeError(
                f"{name} is {array.dtype}{array.shape}: for {n} instances it must be {np.dtype(dtype)}{shapes[name]}"
            )
    for name, column in these.labels.items():
        if column.shape != (n,) or column.dtype not in (np.dtype(np.int64), np.dtype(np.float64)):
            raise LakeError(f"label {name!r} is {column.dtype}{column.shape}: must be int64 or float64 of shape ({n},)")
    if these.sample_ids is not None and len(these.sample_ids) != n:
        raise LakeError(f"{len(these.sample_ids)} sample_ids for {n} instances: give one each")
