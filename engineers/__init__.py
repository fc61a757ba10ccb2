"""Engineers read a report of what a trainee did and propose the next environment config."""

from engineers.guard import Guard, check
from engineers.model.chat import Chat, ChatError, Completion, Message
from engineers.model.context import CONTEXTS, Context
from engineers.model.engineer import ModelEngineer
from engineers.model.meter import BudgetExceeded, Meter, Price
from engineers.model.replies import ReplyError
from engineers.model.wire import WireForm
from engineers.moved import announce
from engineers.proposal import Change, Engineer, Proposal, Usage
from engineers.registry import UnknownEngineer, available, make
from engineers.report import FailureCase, Incident, SliceResult, StageRecord, StageReport

announce({"engineers.chat": "engineers.model.chat", "engineers.prompt": "engineers.model.prompt"})

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
