"""Instances as tuples of arrays for the kernels, and the checks that a given instance fits a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.types import Instance
from mapf_frozenlake.world.board_hash import UNHASHED
from mapf_frozenlake.world.jit import allocating


class Boards(NamedTuple):
    """The columns of an ``InstanceSet`` that an episode needs."""

    holes: NDArray[np.bool_]  # [m, H, W]
    heights: NDArray[np.int16]  # [m]
    widths: NDArray[np.int16]  # [m]
    num_agents: NDArray[np.int16]  # [m]
    starts: NDArray[np.int16]  # [m, A, 2]
    goals: NDArray[np.int16]  # [m, A, 2]
    makespan: NDArray[np.int32]  # [m]
    slices: NDArray[np.int16]  # [m]: key of the config's slice from which the board was drawn; -1 if it was given
    hashes: NDArray[np.uint64]  # [m]: ``hash_of_board`` of the rows that an episode was played on, else UNHASHED


def boards_of(instances: InstanceSet, *, drawn: bool = False) -> Boards:
    """The same arrays; copies only those whose memory layout differs from the kernels'. ``drawn``: from the env's config."""
    own = ("slices", "hashes")  # columns that the instances do not have
    columns = [np.ascontiguousarray(getattr(instances, name)) for name in Boards._fields if name not in own]
    slices = np.ascontiguousarray(instances.heights) if drawn else np.full(len(instances), -1, np.int16)
    hashes = np.full(len(instances), UNHASHED)
    return Boards(*[*columns, slices, hashes])  # a slice's key is its boards' height


def given_boards(
    given: Instance | InstanceSet | Sequence[Instance], count: int, max_size: int, max_agents: int
) -> Boards:
    """The boards of one instance for all ``count`` envs, or of one for each; every agent has a path to its goal."""
    if not isinstance(given, InstanceSet):
        instances = [given] if isinstance(given, Instance) else list(given)
        for one in instances:
            if not isinstance(one, Instance):
                raise LakeError(
                    f"instance of type {type(one).__name__}: give an Instance, a sequence of them or an InstanceSet"
                )
        given = InstanceSet.from_instances(instances)
    if len(given) not in (1, count):
        raise LakeError(f"{len(given)} instances for {count} envs: give one for all, or one for each")
    _raise_on_unfit(given, max_size, max_agents)
    _raise_on_unreachable(given)
    return boards_of(given)


def _raise_on_unfit(instances: InstanceSet, max_size: int, max_agents: int) -> None:
    """Raise ``LakeError`` for an instance larger than the spaces; the error names the argument to change."""
    side = max(int(instances.heights.max()), int(instances.widths.max()))
    if side > max_size:
        raise LakeError(
            f"an instance with {side} cells a side is beyond max_size={max_size}: make the env with max_size={side}"
        )
    agents = int(instances.num_agents.max())
    if agents > max_agents:
        raise LakeError(
            f"an instance of {agents} agents is beyond max_agents={max_agents}: make the env with max_agents={agents}"
        )


def _raise_on_unreachable(instances: InstanceSet) -> None:
    """Raise ``LakeError`` unless every agent has a path to its goal when the other agents are ignored."""
    bad, agent = _first_unreachable(boards_of(instances))
    if bad >= 0:
        raise LakeError(
            f"instance {bad}: agent {agent} has no way from {tuple(instances.starts[bad, agent].tolist())} to its goal "
            f"{tuple(instances.goals[bad, agent].tolist())}; remove holes between them"
        )


@allocating
def _first_unreachable(boards):
    """(instance, agent) of the first agent without a path to its goal; (-1, -1) if all agents have one."""
    for row in range(len(boards.heights)):
        height, width = boards.heights[row], boards.widths[row]
        for i in range(boards.num_agents[row]):
            seen = np.zeros((height, width), np.bool_)
            stack = [(np.int64(boards.starts[row, i, 0]), np.int64(boards.starts[row, i, 1]))]
            seen[stack[0]] = True
            while len(stack) > 0:
                r, c = stack.pop()
                for nr, nc in ((r, c - 1), (r + 1, c), (r, c + 1), (r - 1, c)):
                    inside = 0 <= nr < height and 0 <= nc < width
                    if inside and not boards.holes[row, nr, nc] and not seen[nr, nc]:
                        seen[nr, nc] = True
                        stack.append((nr, nc))
            if not seen[boards.goals[row, i, 0], boards.goals[row, i, 1]]:
                return row, i
    return -1, -1
