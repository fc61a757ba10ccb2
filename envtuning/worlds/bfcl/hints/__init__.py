"""Actionable feedback on tool calls, as middleware over the stock tools."""

from envtuning.worlds.bfcl.hints.rules import augment
from envtuning.worlds.bfcl.hints.written import WrittenHints

__all__ = ["WrittenHints", "augment"]
