"""Pictures of many instances, for a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from mapf_frozenlake.types import Instance

WIDTH = 180  # pixels of one picture


def gallery(instances: Iterable[Instance], title: str) -> str:
    """Pictures in rows under a title, as HTML."""
    frame = f"display:inline-block;width:{WIDTH}px;margin:4px;vertical-align:top;font-size:12px"
    shown = "".join(
        f'<div style="{frame}">{_fitting(one._repr_svg_())}{escape(_caption(one))}</div>' for one in instances
    )
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
