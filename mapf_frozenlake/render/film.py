"""A plan as the frames of a film, played by the world's own rules."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.types import Action, Event, Instance, Plan
from mapf_frozenlake.world.move import joint_move
from mapf_frozenlake.world.snapshot import Snapshot


def plan_frames(instance: Instance, plan: Plan) -> list[Snapshot]:
    """The start and every step after it. Conflicts block and the film goes on; a fall ends it, as the judge has it."""
    steps = max((len(line) for line in plan), default=0)
    way = [instance.starts]
    frames = [_frame(instance, way, None, None)]
    for step in range(steps):
        actions = np.array([line[step] if step < len(line) else Action.WAIT for line in plan], dtype=np.int64)
        positions, events = joint_move(instance.holes, way[-1], actions)
        way.append(positions)
        frames.append(_frame(instance, way, actions.astype(np.int8), events))
        if (events == Event.HOLE).any():
            break
    return frames


def _frame(instance: Instance, way: list, actions: np.ndarray | None, events: np.ndarray | None) -> Snapshot:
    return Snapshot(
        holes=instance.holes,
        positions=way[-1],
        goals=instance.goals,
        starts=instance.starts,
        actions=actions,
        events=events,
        trails=np.stack(way),
        step=len(way) - 1,
    )
