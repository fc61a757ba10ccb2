"""``Chat``: the one method that a language-model backend provides. ``ModelEngineer`` does the rest.

This module defines every error that a provider can cause. A backend translates what its SDK raises, and removes keys from
the message, so that no other code depends on an SDK.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable

from engineers.redaction import redact
from engineers.shared.errors import UserError


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    """A reply: its raw text, thoughts and fences included, and the provider's token counts."""

    text: str
    prompt_tokens: int = 0  # 0: the provider did not count, so the meter estimates
    completion_tokens: int = 0  # thoughts included
    cost: float | None = None  # US dollars; None if the backend knows no price


class ChatError(UserError, RuntimeError):
    """A question to a model got no usable reply. ``spent`` has the provider's counts, if any came back."""

    transient: ClassVar[bool] = False  # the same request may pass later
    may_be_billed: ClassVar[bool] = False  # so the backend leaves it to the meter whether to ask once more
    ask_again: ClassVar[bool] = False  # the model may do better if it sees the error

    def __init__(self, message: str, spent: Completion | None = None, retry_after: float | None = None) -> None:
        super().__init__(redact(message))
        self.spent = spent
        self.retry_after = retry_after  # seconds that the provider asks us to wait, if it does


class Timeout(ChatError):
    """No whole reply within the time limit."""

    transient = may_be_billed = True


class ConnectionCut(ChatError):
    """The connection broke before the reply was whole."""

    transient = may_be_billed = True


class RateLimited(ChatError):
    """The provider asks to wait, or the quota is used up."""

    transient = True


class ServerFailed(ChatError):
    """The provider could not be reached or failed (5xx)."""

    transient = True


class WireBroken(ChatError):
    """The reply is not in the provider's own wire format."""

    may_be_billed = True


class AuthFailed(ChatError):
    """The provider refused the key, or the key is missing."""


class Rejected(ChatError):
    """The provider would not take the request (unknown model, unsupported schema): change it first."""


class Refused(ChatError):
    """The provider says that the model, or its filter, declined. (A refusal in plain words is a reply like any other.)"""

    may_be_billed = ask_again = True


class TooLong(ChatError):
    """The prompt does not fit the model, or the reply was cut at its token or byte limit."""

    may_be_billed = ask_again = True


@runtime_checkable
class Chat(Protocol):
    """Asks one model. It limits its own time, by timeouts and by retries that honour Retry-After."""

    @property
    def model(self) -> str:
        """The name for ``make``, "openai/gpt-5-mini"; prices and transcripts use it."""
        ...

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        """One answer of at most ``max_tokens``, not yet validated; with a schema, in the provider's structured output.

        Raises only ``ChatError``, whatever goes wrong.
        """
        ...
