"""The atlas: a tree of stages, trained once and stored, in which any engineer is scored in seconds.

``load`` gives a tree, ``names`` those that are published, and ``score`` asks an engineer on them.

Read in this order: ``spec`` (what a tree is made of), ``build`` (how it is trained), ``store`` (how it is kept), ``published`` (those in
this package), ``menu`` and ``distance`` (how an engineer's answer becomes a path), ``walk`` and ``rows`` (how good the path is),
``standing`` (an engineer beside all others), ``result`` (as a file that anybody can check).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envtuning.atlas.published import load, names
    from envtuning.atlas.standing import score

__all__ = ["load", "names", "score"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: a run's file needs none of it."""
    if name in ("load", "names"):
        from envtuning.atlas import published

        return getattr(published, name)
    if name == "score":
        from envtuning.atlas import standing

        return standing.score
    raise AttributeError(f"module 'envtuning.atlas' has no attribute {name!r}")
