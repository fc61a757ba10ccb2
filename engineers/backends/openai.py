"""OpenAI, through its SDK (2.x and 3.x), and the chat.completions wire format that most other servers speak too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from engineers.backends.making import engineer_on
from engineers.backends.network import (
    FROM_FILE,
    THINKING_ROOM,
    NetworkChat,
    bounded_client,
    error_for_status,
    only_with,
    question_for,
)
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.model.chat import ChatError, Completion, Message, Refused, TooLong, WireBroken
from engineers.shared.extras import require

REQUEST: Allowed = dict.fromkeys(
    ("frequency_penalty", "presence_penalty", "reasoning_effort", "service_tier", "stop", "top_p", "verbosity"), PLAIN
)


@dataclass
class OpenAIChat(NetworkChat):
    """A model at OpenAI, answering in strict structured output."""

    provider: ClassVar[str] = "openai"
    key_variables: ClassVar[tuple[str, ...]] = ("OPENAI_API_KEY",)
    hosts: ClassVar[tuple[str, ...]] = ("api.openai.com",)
    limit_field: ClassVar[str] = "max_completion_tokens"  # the one that reasoning models accept

    def _load(self) -> None:
        import openai  # noqa: F401

    def _ask(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> Completion:
        import openai

        key = self.required_key() or ""
        send = only_with(Authorization=f"Bearer {key}") if self.is_foreign else None
        limited = openai.DefaultHttpxClient(**bounded_client(self.max_bytes, send))
        with openai.OpenAI(
            api_key=key,
            base_url=self.base_url,
            timeout=self.timeout,
            max_retries=0,
            http_client=limited,
        ) as client:
            ask: Any = client.chat.completions.create
            own_fields = {"model": self.model_id, "messages": messages, self.limit_field: max_tokens}
            return read_chat_completion(ask(**question_for(ask, own_fields, self._options(schema))))

    def _options(self, schema: dict[str, Any] | None) -> dict[str, Any]:
        options = {"response_format": strict_format(schema), "temperature": self.temperature, "seed": self.seed}
        return {**{name: value for name, value in options.items() if value is not None}, **self.request}

    def _status_error(self, error: Exception) -> ChatError | None:
        import openai

        if not isinstance(error, openai.APIStatusError):
            return None
        return error_for_status(error.status_code, error.message, error.response.headers)


def strict_format(schema: dict[str, Any] | None) -> dict[str, Any] | None:
    """The ``response_format`` field that asks for exactly this schema."""
    if schema is None:
        return None
    return {"type": "json_schema", "json_schema": {"name": "proposal", "strict": True, "schema": schema}}


def read_chat_completion(reply: Any) -> Completion:
    """The text of a chat.completions reply and its token counts. Raises ``Refused`` or ``TooLong`` if there is no text."""
    if not getattr(reply, "choices", None):
        raise WireBroken(f"the reply has no choices: {str(reply)[:200]}")
    choice, usage = reply.choices[0], reply.usage
    text = choice.message.content or ""
    if not isinstance(text, str):
        raise WireBroken(f"the reply's content is {type(text).__name__}, not text")
    completion = Completion(text, getattr(usage, "prompt_tokens", 0) or 0, getattr(usage, "completion_tokens", 0) or 0)
    more = getattr(choice.message, "provider_specific_fields", None) or {}  # where litellm keeps it
    refusal = getattr(choice.message, "refusal", None) or more.get("refusal")
    if refusal:
        raise Refused(f"the model refused: {refusal}", spent=completion)
    if choice.finish_reason == "content_filter":
        raise Refused("the provider's content filter stopped the reply", spent=completion)
    if choice.finish_reason == "length":
        raise TooLong(
            f"the reply was cut after {completion.completion_tokens} tokens: think and write less, or raise max_tokens",
            spent=completion,
        )
    return completion


@reads({**FROM_FILE, "request": REQUEST}, rest=True)
def make(model: str, **options: Any) -> Engineer:
    """An engineer at OpenAI; the key comes from OPENAI_API_KEY or ``api_key``."""
    require("openai", extra="openai")
    return engineer_on(OpenAIChat, model, {"max_tokens": THINKING_ROOM, **options})
