"""The atlas: a tree of stages, trained once and stored, in which any engineer is scored in seconds.

``load`` returns a tree, ``names`` lists the published ones, and ``score`` scores an engineer on them.

Read in this order: ``spec`` (the description of a tree), ``build`` (its training), ``store`` (its files), ``published`` (the trees of
this package), ``menu`` and ``distance`` (the path of an engineer's answers), ``walk`` and ``rows`` (the path's score), ``standing``
(an engineer beside all others), ``result`` (a file that others can check).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envtuning.atlas.published import load, names
    from envtuning.atlas.standing import score

__all__ = ["load", "names", "score"]


def __getattr__(name: str) -> Any:
    """Import at first use, because a run's file needs no part of it."""
    if name in ("load", "names"):
        from envtuning.atlas import published

        return getattr(published, name)
    if name == "score":
        from envtuning.atlas import standing

        return standing.score
    raise AttributeError(f"module 'envtuning.atlas' has no attribute {name!r}")
