"""The errors of this package. Each message has the value, the bound and the remedy."""

from __future__ import annotations


class LakeError(ValueError):
    """An argument does not describe a lake, a config, an action or a plan."""


class UnknownArgument(LakeError, TypeError):
    """An unknown argument. It is also a TypeError with Python's words, because some clients try an argument and catch this error."""


class GenerationError(LakeError):
    """The generator reached its limit of draws without meeting the config; the message says what is reachable."""


class SolverBudgetExceeded(RuntimeError):
    """The solver stopped at its budget: neither a plan nor a proof of infeasibility was found."""
