"""The loop: choose a config, train on it, validate, report, ask the engineer, and repeat.

Read in this order: ``run`` (the loop itself), ``session`` (what it holds), ``stage`` (one stage), ``attempt`` (one try at it),
``validation``, ``report``, ``ask``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envtuning.loop.run import continue_run, create, resume, start

__all__ = ["continue_run", "create", "resume", "start"]


def __getattr__(name: str) -> Any:
    """Import at first use: a module with an observer must not load the whole loop."""
    if name not in __all__:
        raise AttributeError(f"module 'envtuning.loop' has no attribute {name!r}")
    from envtuning.loop import run

    return getattr(run, name)
