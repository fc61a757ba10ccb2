"""All other providers, through ``litellm``: ``litellm/anthropic/…``, ``litellm/mistral/…``, ``litellm/bedrock/…``."""

from __future__ import annotations

import os
import re
import sys
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache, wraps
from typing import Any, ClassVar

from engineers.backends.making import engineer_on
from engineers.backends.network import FROM_FILE, NetworkChat, error_for_status, limit_body, question_for
from engineers.backends.openai import read_chat_completion, strict_format
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.model.chat import AuthFailed, ChatError, Completion, Message, Timeout, TooLong
from engineers.shared import own
from engineers.shared.extras import require

PLAIN_NAME = re.compile(r"(?!http)\w[\w.+@-]*(:[\w.-]+)?(/(?!http)\w[\w.+@-]*(:[\w.-]+)?)*", re.ASCII | re.IGNORECASE)
# Providers that a file may name, each with the one key that goes to it; None: credentials of a cloud, which its SDK keeps to its own
# hosts. For many other providers litellm falls back to OPENAI_API_KEY.
OWN_KEYS: dict[str, str | None] = {
    "anthropic": "ANTHROPIC_API_KEY",
    "bedrock": None,
    "deepseek": "DEEPSEEK_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "vertex_ai": None,
    "xai": "XAI_API_KEY",
}
# The headers that a host outside of litellm's table gets; litellm adds others from environment variables.
HEADERS = {"host", "accept", "accept-encoding", "content-type", "content-length", "anthropic-version"}
KEY_HEADERS = {"authorization", "x-api-key", "api-key", "x-goog-api-key"}
_asking: ContextVar[LiteLLMChat | None] = ContextVar("who asks; None: another caller of litellm", default=None)


REQUEST: Allowed = dict.fromkeys(("frequency_penalty", "presence_penalty", "reasoning_effort", "stop", "top_p"), PLAIN)


@dataclass
class LiteLLMChat(NetworkChat):
    """A model at any provider that litellm knows; it finds the provider's key in the environment by itself."""

    provider: ClassVar[str] = "litellm"

    def _load(self) -> None:
        _litellm()

    def raise_unless_key_may_go(self) -> None:
        """Some providers of litellm take an address, or a part of one, for a model: ``huggingface/https://…``."""
        super().raise_unless_key_may_go()
        if own.is_trusted_option("engineer.name", self.model):
            return
        if not PLAIN_NAME.fullmatch(self.model_id):
            raise AuthFailed(
                f"{self.model!r:.200} is named only in a file, and may contain an address that would receive a key: "
                "write PROVIDER/MODEL, or name it on the command line"
            )
        if self._named_provider not in OWN_KEYS:
            raise AuthFailed(
                f"{self.model!r:.200} is named only in a file, and may receive another provider's key: "
                f"a file may name {', '.join(OWN_KEYS)}; name others on the command line"
            )

    @property
    def _named_provider(self) -> str:
        return self.model_id.partition("/")[0]

    def _ask(self, messages: list[Message], schema: dict[str, Any] | None, max_tokens: int) -> Completion:
        litellm = _litellm()
        _asking.set(self)  # in this question's own thread
        own_fields = {
            "model": self.model_id,
            "messages": list(messages),
            "response_format": strict_format(schema),
            "max_tokens": max_tokens,
            "temperature": self.temperature,
            "seed": self.seed,
            "api_key": self.required_key(),
            "base_url": self.base_url,
            "timeout": self.timeout,
            "max_retries": 0,
            "num_retries": 0,
            "drop_params": True,  # arguments that a provider does not take; the schema is checked here anyway
        }
        reply = litellm.completion(**question_for(litellm.completion, own_fields, self.request))
        completion = read_chat_completion(reply)
        if len(completion.text.encode()) > self.max_bytes:
            raise TooLong(f"the reply has more than {self.max_bytes} bytes: answer with the JSON alone", completion)
        return replace(completion, cost=_cost(reply))

    def required_key(self) -> str | None:
        """The key given here; None if litellm finds the credentials itself. ``AuthFailed`` if it needs a key and finds none."""
        if self.key is not None:
            return super().required_key()
        if not own.is_trusted_option("engineer.name", self.model) and (name := OWN_KEYS.get(self._named_provider)):
            if found := os.environ.get(name, "").strip():
                return found
            raise AuthFailed(f"no key for {self.model}: set {name}, or pass api_key=")
        missing = [] if self.base_url else _litellm().validate_environment(self.model_id)["missing_keys"]
        if missing and all(name.endswith("_API_KEY") for name in missing):
            raise AuthFailed(f"no key for {self.model}: set {' and '.join(missing)}, or pass api_key=")
        return None

    def _status_error(self, error: Exception) -> ChatError | None:
        import openai  # litellm's errors are its subclasses

        if isinstance(error, openai.APITimeoutError):
            return Timeout(f"no reply within {self.timeout:g} s: raise timeout, or think and write less")
        if not isinstance(error, openai.APIStatusError):
            return None
        headers = getattr(error, "litellm_response_headers", None)
        if headers is None and error.status_code == 500:
            return None  # litellm's own: it could not read the reply
        return error_for_status(error.status_code, error.message, headers)


def _litellm() -> Any:
    """litellm with its bundled price table (else it asks the network for one), and without its banners."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    for name in ("httpx", "httpx2"):
        if name in sys.modules:
            _bound(sys.modules[name].Client)
    return litellm


@cache
def _bound(client_type: Any) -> None:
    """Our questions follow no redirect, send no stray header and read a limited reply, with every client that litellm makes.

    We cannot pass hooks to these clients, so we wrap the one method through which they all send. Other callers of this
    method are not affected.
    """
    send = client_type.send

    @wraps(send)
    def bounded(client: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        chat = _asking.get()
        if chat is None:
            return send(client, request, stream=stream, **options)
        headers = request.headers.copy()
        if chat.base_url is not None:
            _only_what_it_needs(request, chat.key)
        try:
            response = send(client, request, stream=True, **options | {"follow_redirects": False})
        finally:
            request.headers = headers  # openai's client reads notes to itself there
        try:
            if response.is_redirect:
                raise error_for_status(response.status_code, "a redirect")
            limit_body(chat.max_bytes)(response)
            if not stream:
                response.read()
        except BaseException:
            response.close()
            raise
        return response

    client_type.send = bounded


def _only_what_it_needs(request: Any, key: str | None) -> None:
    kept = {name: value for name, value in request.headers.items() if name in HEADERS | KEY_HEADERS}
    for name in kept.keys() & KEY_HEADERS if key else ():
        kept[name] = f"Bearer {key}" if name == "authorization" else key
    request.headers.clear()
    request.headers.update({**kept, "user-agent": "engineers"})


def _cost(reply: Any) -> float | None:
    """US dollars by litellm's offline table; None for a model it has no price for."""
    cost = (getattr(reply, "_hidden_params", None) or {}).get("response_cost")
    return None if cost is None else float(cost)


@reads({**FROM_FILE, "request": REQUEST}, rest=True)
def make(model: str, **options: Any) -> Engineer:
    """An engineer at any provider of litellm: ``provider/model``. Keys come from the environment or ``api_key``."""
    require("litellm", extra="litellm")
    return engineer_on(LiteLLMChat, model, options)
