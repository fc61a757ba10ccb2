"""Pictures of one instance and of many, for a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from mapf_frozenlake.render.svg import svg
from mapf_frozenlake.world.snapshot import Snapshot

if TYPE_CHECKING:
    from mapf_frozenlake.types import Instance


def picture(instance: Instance) -> str:
    """An SVG document: the board with all agents on their starts."""
    starts, goals = instance.starts, instance.goals
    return svg(Snapshot(holes=instance.holes, positions=starts, goals=goals, starts=starts))


def gallery(instances: Iterable[Instance], title: str, side: int = 180) -> str:
    """Pictures in rows under a title, as HTML; ``side`` is the largest side of one in pixels."""
    frame = f"display:inline-block;width:{side}px;margin:4px;vertical-align:top;font-size:12px"
    shown = "".join(f'<div style="{frame}">{_fitting(picture(one))}{escape(_caption(one))}</div>' for one in instances)
    return f"<div>{escape(title)}</div>{shown}"


def _fitting(picture: str) -> str:
    return picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def _caption(instance: Instance) -> str:
    facts = [instance.sample_id or ""]
    if instance.makespan is not None:
        facts.append(f"makespan {instance.makespan}")
    if instance.needs_wait:
        facts.append("needs a wait")
    return ", ".join(fact for fact in facts if fact)
