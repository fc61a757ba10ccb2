"""The sentence that says which extra to install when an import fails."""

from __future__ import annotations

from engineers.shared.extras import how_to_install


def needs(what: str, error: ImportError, extra: str = "rllib") -> ModuleNotFoundError:
    """The error for an import that failed because an extra is missing; by default the extra of loop and RLlib."""
    missing = (error.name or str(error)).partition(".")[0]
    return ModuleNotFoundError(f"{what} needs {missing}: {how_to_install(extra)}", name=error.name)
