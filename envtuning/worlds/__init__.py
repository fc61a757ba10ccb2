"""The environments that the loop can train on: ``make_world`` gives one by its name.

``world`` is the loop's interface to an environment, ``episodes`` has the records of played cases, and ``text_player`` plays
many conversations at once.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envtuning.worlds.registry import WORLDS, UnknownWorld, make_world

__all__ = ["WORLDS", "UnknownWorld", "make_world"]


def __getattr__(name: str) -> Any:
    """Import at first use, so that a world's own modules and commands start without loading the loop."""
    if name not in __all__:
        raise AttributeError(f"module 'envtuning.worlds' has no attribute {name!r}")
    from envtuning.worlds import registry

    return getattr(registry, name)
