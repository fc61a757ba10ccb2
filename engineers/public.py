"""The names that ``import engineers`` offers: the one list of them."""

from engineers.engineer import Engineer as Engineer
from engineers.guard import Guard as Guard
from engineers.guard import check as check
from engineers.model.answer_format import AnswerFormat as AnswerFormat
from engineers.model.chat import Chat as Chat
from engineers.model.chat import ChatError as ChatError
from engineers.model.chat import Completion as Completion
from engineers.model.chat import Message as Message
from engineers.model.context import CONTEXTS as CONTEXTS
from engineers.model.context import Context as Context
from engineers.model.engineer import ModelEngineer as ModelEngineer
from engineers.model.meter import BudgetExceeded as BudgetExceeded
from engineers.model.meter import Meter as Meter
from engineers.model.meter import Price as Price
from engineers.model.replies import ReplyError as ReplyError
from engineers.proposal import Change as Change
from engineers.proposal import Proposal as Proposal
from engineers.proposal import Usage as Usage
from engineers.registry import UnknownEngineer as UnknownEngineer
from engineers.registry import available as available
from engineers.registry import make as make
from engineers.report import FailureCase as FailureCase
from engineers.report import Incident as Incident
from engineers.report import SliceResult as SliceResult
from engineers.report import StageRecord as StageRecord
from engineers.report import StageReport as StageReport
