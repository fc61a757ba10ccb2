"""Errors that a user of this package can correct. The command line prints each as a sentence, without a traceback."""

from __future__ import annotations

from engineers.shared.errors import UserError


class SpecError(UserError, ValueError):
    """The request cannot be run: an unknown name, a config or an option that does not fit, an engineer that cannot be asked."""


class RunError(UserError, RuntimeError):
    """A run or its folder cannot continue as it is, or does not fit the command."""
