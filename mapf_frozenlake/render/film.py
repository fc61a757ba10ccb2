"""A plan as the frames of a film, as the judge plays it."""

from __future__ import annotations

from mapf_frozenlake.judge import play
from mapf_frozenlake.types import Instance, Plan
from mapf_frozenlake.world.snapshot import Snapshot


def plan_frames(instance: Instance, plan: Plan) -> list[Snapshot]:
    """The start and every step after it. Conflicts block and the film continues; a fall ends it."""
    playback = play(instance, plan)
    return [
        Snapshot(
            holes=instance.holes,
            positions=positions,
            goals=instance.goals,
            starts=instance.starts,
            actions=playback.actions[step - 1] if step else None,
            events=playback.events[step - 1] if step else None,
            trails=playback.positions[: step + 1],
            step=step,
        )
        for step, positions in enumerate(playback.positions)
    ]
