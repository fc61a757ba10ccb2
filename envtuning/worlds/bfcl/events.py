"""``CallEvent``: one call, as an augmenter gets it. It holds what the agent could see, and no ground truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.tools import Result


@dataclass(frozen=True)
class CallEvent:
    action: str  # the call, in the benchmark's syntax
    result: str  # the tool's answer
    error: bool  # whether the answer says that it went wrong
    call: Call
    document: dict[str, Any] | None  # of the tool; None if it is not offered
    tools: Sequence[dict[str, Any]]  # the documents of all tools that are offered
    earlier: Sequence[tuple[Call, Result]]  # the episode's calls before this one


CallAugmenter = Callable[[CallEvent], str | None]
"""A sentence with advice for the next action, or None; it changes nothing else. The lakes' text environment takes such functions, too."""
