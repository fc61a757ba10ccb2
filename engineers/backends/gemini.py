"""Gemini, through the ``google-genai`` SDK."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import ValidationError

from engineers.backends.making import engineer_on
from engineers.backends.network import (
    FROM_FILE,
    THINKING_ROOM,
    NetworkChat,
    bounded_client,
    error_for_status,
    not_taken,
    only_with,
)
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.model.chat import ChatError, Completion, Message, Refused, TooLong, WireBroken
from engineers.shared.extras import require
from engineers.shared.sentences import in_sentences

REFUSALS = {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"}
ROLES = {"user": "user", "assistant": "model"}


REQUEST: Allowed = {
    **dict.fromkeys(("frequency_penalty", "presence_penalty", "stop_sequences", "top_k", "top_p"), PLAIN),
    "thinking_config": dict.fromkeys(("include_thoughts", "thinking_budget", "thinking_level"), PLAIN),
}


@dataclass
class GeminiChat(NetworkChat):
    """A Gemini model, answering in JSON of the given schema."""

    provider: ClassVar[str] = "gemini"
    key_variables: ClassVar[tuple[str, ...]] = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    hosts: ClassVar[tuple[str, ...]] = ("generativelanguage.googleapis.com",)

    def _load(self) -> None:
        from google import genai  # noqa: F401

    def _ask(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> Completion:
        from google import genai

        key = self.required_key() or ""
        options = genai.types.HttpOptions(
            api_version="v1beta",  # else the SDK takes it from the environment
            base_url=self.base_url,
            timeout=int(self.timeout * 1000),  # the SDK counts milliseconds
            client_args=bounded_client(self.max_bytes, only_with(x_goog_api_key=key) if self.is_foreign else None),
        )
        client = genai.Client(vertexai=False, api_key=key, http_options=options)
        try:
            ask: Any = client.models.generate_content
            config = self._config(messages, schema, max_tokens)
            try:
                genai.types.GenerateContentConfig.model_validate(config)
            except ValidationError as error:
                raise not_taken(in_sentences(error)) from None
            return read_reply(ask(model=self.model_id, contents=_contents(messages), config=config))
        finally:
            client.close()

    def _config(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> dict[str, Any]:
        system = [message["content"] for message in messages if message["role"] == "system"]
        config = {
            "system_instruction": "\n\n".join(system) or None,
            "max_output_tokens": max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "response_mime_type": None if schema is None else "application/json",
            "response_json_schema": schema,
        }
        return {**config, **self.request}

    def _status_error(self, error: Exception) -> ChatError | None:
        from google.genai import errors

        if not isinstance(error, errors.APIError):
            return None
        headers = getattr(error.response, "headers", None)
        return error_for_status(error.code, f"{error.status}: {error.message}", headers)


def read_reply(reply: Any) -> Completion:
    """The reply's text without thoughts, and its token counts. Raises ``Refused`` or ``TooLong`` if there is no text."""
    usage = reply.usage_metadata
    thought = getattr(usage, "thoughts_token_count", 0) or 0
    prompt, written = getattr(usage, "prompt_token_count", 0) or 0, getattr(usage, "candidates_token_count", 0) or 0
    blocked = getattr(reply.prompt_feedback, "block_reason", None)
    if blocked:
        raise Refused(f"the prompt was blocked: {getattr(blocked, 'value', blocked)}", Completion("", prompt, 0))
    if not reply.candidates:
        raise WireBroken("the reply has no candidates")
    candidate = reply.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    text = "".join(part.text or "" for part in parts if not part.thought)
    completion = Completion(text, prompt, written + thought)
    reason = getattr(candidate.finish_reason, "value", candidate.finish_reason)
    if reason in REFUSALS:
        raise Refused(f"the model refused: {reason} {candidate.finish_message or ''}".strip(), completion)
    if reason == "MAX_TOKENS":
        raise TooLong(
            f"the reply was cut after {written + thought} tokens: think and write less, or raise max_tokens", completion
        )
    return completion


def _contents(messages: list[Message]) -> list[dict[str, Any]]:
    return [
        {"role": ROLES[message["role"]], "parts": [{"text": message["content"]}]}
        for message in messages
        if message["role"] != "system"
    ]


@reads({**FROM_FILE, "request": REQUEST}, rest=True)
def make(model: str, **options: Any) -> Engineer:
    """An engineer at Gemini; the key comes from GEMINI_API_KEY, GOOGLE_API_KEY or ``api_key``."""
    require("google.genai", extra="gemini")
    return engineer_on(GeminiChat, model, {"max_tokens": THINKING_ROOM, **options})
