"""``Chat``: all that a language-model backend does. Messages and a JSON Schema go in; text and what it took come out.

Everything that can go wrong at a provider is named here, once. A backend raises nothing else from ``complete``: what its
SDK raises is translated at the boundary, with the keys taken out, so that nothing above needs to know an SDK.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable


class Message(TypedDict):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Completion:
    """One reply, and what it took."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0  # thinking included, where the provider counts it
    cost: float | None = None  # US dollars; None where the backend knows no price


class ChatError(RuntimeError):
    """A question to a model got no usable reply. ``spent`` is what the provider counted for it, if anything came back."""

    ask_again: ClassVar[bool] = False  # whether the same conversation may fare better if it is put again

    def __init__(self, message: str, spent: Completion | None = None) -> None:
        super().__init__(message)
        self.spent = spent


class Timeout(ChatError):
    """No reply within the time limit, or the connection could not be made or was cut, retries included."""


class RateLimited(ChatError):
    """The provider still asked to wait, or reported an exhausted quota, after the last retry."""


class ServerFailed(ChatError):
    """The provider failed (5xx), or answered with something that is not its own wire format."""


class AuthFailed(ChatError):
    """The provider refused the key, or there is none."""


class Rejected(ChatError):
    """The provider would not take the request (unknown model, unsupported schema): it must be changed first."""


class Refused(ChatError):
    """The model, or the provider's filter, declined to answer."""

    ask_again = True


class TooLong(ChatError):
    """The prompt does not fit the model, or the reply was cut at its token or byte limit."""

    ask_again = True


@runtime_checkable
class Chat(Protocol):
    """A model that can be asked."""

    name: str  # as ``engineers.make`` takes it: "openai/gpt-…"
    max_tokens: int  # a reply never has more, so a meter can refuse beforehand what it could not pay

    def complete(self, messages: Sequence[Message], schema: dict[str, Any]) -> Completion:
        """One reply that should match ``schema`` (strict JSON Schema), not yet validated. Raises only ``ChatError``."""
        ...
