"""The sentence that says which extra to install when an import fails."""

from __future__ import annotations


def needs(what: str, error: ImportError, extra: str = "rllib") -> ModuleNotFoundError:
    """The error to raise where an import failed for want of an extra: by default the one that loop and RLlib share."""
    missing = (error.name or str(error)).partition(".")[0]
    return ModuleNotFoundError(f"{what} needs {missing}: pip install 'mapf-frozenlake[{extra}]'", name=error.name)
