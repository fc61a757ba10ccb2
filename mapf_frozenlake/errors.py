"""Every failure this package promises, by name. Each message gives the value, the bound and the remedy."""

from __future__ import annotations


class LakeError(ValueError):
    """Something the caller gave does not describe a lake, a config, an action or a plan."""


class UnknownArgument(LakeError, TypeError):
    """An argument that nothing here takes. A TypeError as well, in Python's words: some clients try an argument and look."""


class GenerationError(LakeError):
    """The generator reached its limit of draws without meeting the config; the message says what is reachable."""


class SolverBudgetExceeded(RuntimeError):
    """The solver stopped at its budget: neither a plan nor a proof of infeasibility was found."""
