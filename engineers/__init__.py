"""Engineers read a report of what a trainee did and propose the next environment config."""

from engineers.chat import Chat, ChatError, Completion, Message
from engineers.context import CONTEXTS, Context
from engineers.guard import check
from engineers.meter import BudgetExceeded, Meter, Price
from engineers.model_engineer import ModelEngineer
from engineers.proposal import Change, Engineer, Proposal, Usage
from engineers.registry import UnknownEngineer, available, make
from engineers.replies import ReplyError
from engineers.report import FailureCase, Incident, SliceResult, StageRecord, StageReport
from engineers.wire import WireForm

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
