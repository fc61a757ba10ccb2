"""Engineers read a report of what a trainee did and propose the next environment config."""

from __future__ import annotations

TYPE_CHECKING = False  # without typing, because its import takes longer than this whole module
if TYPE_CHECKING:
    from typing import Any

    from engineers.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import at first use: a command answers before slow imports."""
    from importlib.util import find_spec

    if find_spec(f"engineers.{name}"):  # `from engineers import report` asks here before it imports the module
        raise AttributeError(f"module 'engineers.{name}' is not imported yet")
    from engineers import public

    if name == "__all__":
        return [found for found in dir(public) if not found.startswith("_")]
    return getattr(public, name)


def __dir__() -> list[str]:
    """For completion."""
    return sorted({*globals(), *__getattr__("__all__")})
