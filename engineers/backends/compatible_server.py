"""Any OpenAI-compatible server: ``server/http://host:port/v1#model`` (vLLM, llama.cpp, Ollama, ``transformers serve``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from engineers.backends.making import engineer_on
from engineers.backends.network import FROM_FILE
from engineers.backends.openai import REQUEST as OPENAI
from engineers.backends.openai import OpenAIChat
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.shared.extras import require

REQUEST: Allowed = {
    **OPENAI,
    "extra_body": {
        **dict.fromkeys(("min_p", "repetition_penalty", "top_k"), PLAIN),
        "chat_template_kwargs": {"enable_thinking": PLAIN},
    },
}


@dataclass
class ServerChat(OpenAIChat):
    """A model at your own server; ``model_id`` is its address, # and the model. OpenAI's key is never sent there."""

    provider: ClassVar[str] = "server"
    key_variables: ClassVar[tuple[str, ...]] = ("ENGINEERS_SERVER_API_KEY",)
    hosts: ClassVar[tuple[str, ...]] = ()
    limit_field: ClassVar[str] = "max_tokens"  # the one that all of them understand

    def __post_init__(self) -> None:
        super().__post_init__()
        address, _, model = self.model_id.partition("#")
        if not address.startswith(("http://", "https://")) or not model:
            raise ValueError(f"{self.provider}/{self.model_id}: write it as server/http://host:port/v1#model")
        self.base_url, self.model_id = address, model

    @property
    def model(self) -> str:
        return f"server/{self.base_url}#{self.model_id}"

    def raise_unless_key_may_go(self) -> None:
        if self.key is not None:  # without a key, there is no secret to protect
            super().raise_unless_key_may_go()

    def required_key(self) -> str:
        return self.key or "none"  # the SDK wants one; most such servers do not


@reads({**FROM_FILE, "request": REQUEST}, rest=True)
def make(model: str, **options: Any) -> Engineer:
    """An engineer at an OpenAI-compatible server, ``http://host:port/v1#model``."""
    require("openai", extra="openai")
    return engineer_on(ServerChat, model, options)
