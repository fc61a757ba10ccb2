"""Engineers read a report of what a trainee did and propose the next environment config."""

from __future__ import annotations

import sys

if (getattr(sys, "argv", None) or [""])[0] == "-m" or sys.argv[0].endswith(("/envtuning", "envtuning.exe")):
    import _signal  # a command is about to begin: until it can answer (engineers.ending), Ctrl-C ends it as SIGTERM does

    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False  # without typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from engineers.guard import Guard, check
    from engineers.model.chat import Chat, ChatError, Completion, Message
    from engineers.model.context import CONTEXTS, Context
    from engineers.model.engineer import ModelEngineer
    from engineers.model.meter import BudgetExceeded, Meter, Price
    from engineers.model.replies import ReplyError
    from engineers.model.wire import WireForm
    from engineers.proposal import Change, Engineer, Proposal, Usage
    from engineers.registry import UnknownEngineer, available, make
    from engineers.report import FailureCase, Incident, SliceResult, StageRecord, StageReport

_HOMES = {
    "engineers.guard": ("Guard", "check"),
    "engineers.model.chat": ("Chat", "ChatError", "Completion", "Message"),
    "engineers.model.context": ("CONTEXTS", "Context"),
    "engineers.model.engineer": ("ModelEngineer",),
    "engineers.model.meter": ("BudgetExceeded", "Meter", "Price"),
    "engineers.model.replies": ("ReplyError",),
    "engineers.model.wire": ("WireForm",),
    "engineers.proposal": ("Change", "Engineer", "Proposal", "Usage"),
    "engineers.registry": ("UnknownEngineer", "available", "make"),
    "engineers.report": ("FailureCase", "Incident", "SliceResult", "StageRecord", "StageReport"),
}

__all__ = [
    "CONTEXTS",
    "BudgetExceeded",
    "Change",
    "Chat",
    "ChatError",
    "Completion",
    "Context",
    "Engineer",
    "FailureCase",
    "Guard",
    "Incident",
    "Message",
    "Meter",
    "ModelEngineer",
    "Price",
    "Proposal",
    "ReplyError",
    "SliceResult",
    "StageRecord",
    "StageReport",
    "UnknownEngineer",
    "Usage",
    "WireForm",
    "available",
    "check",
    "make",
]


def __getattr__(name: str) -> Any:
    """Imported when asked for, so that a command hears Ctrl-C before anything that takes long is imported."""
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module 'engineers' has no attribute {name!r}")
