"""What to install where something is missing: one sentence, in one place."""

from __future__ import annotations


def needs(what: str, error: ImportError) -> ModuleNotFoundError:
    """The error to raise where an import failed for want of the extra that the loop, its trainee and its callback share."""
    missing = (error.name or str(error)).partition(".")[0]
    return ModuleNotFoundError(f"{what} needs {missing}: pip install 'mapf-frozenlake[rllib]'", name=error.name)
