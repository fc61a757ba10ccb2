"""Local weights, through transformers: ``local/Qwen/Qwen3-4B``, or a folder with a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from engineers.backends.live import ONE_AT_A_TIME, LiveChat
from engineers.backends.making import engineer_on
from engineers.backends.precision import warn_if_emulated
from engineers.backends.weights import WEIGHTS, raise_unless_data
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, Allowed, reads
from engineers.model.chat import Completion, Message, Rejected
from engineers.model.engineer import FROM_FILE as ENGINEER
from engineers.shared.extras import require

FROM_FILE: Allowed = {
    **ENGINEER,
    **dict.fromkeys(("constrained", "device", "dtype", "longest_string", "temperature", "thinking", "timeout"), PLAIN),
    "arguments": dict.fromkeys(("device_map", "revision"), PLAIN),
}


@dataclass
class LocalChat:
    """A model from the hub or a folder, loaded when it is first asked; then it answers as ``LiveChat`` does."""

    model_id: str  # a name on the hub, or a folder
    device: str = "auto"  # "auto": a GPU if there is one; else as torch names it
    dtype: str = "auto"  # "auto": as the weights were saved; else as torch names it
    temperature: float = 0.7
    seed: int = 0
    thinking: int = 0  # tokens; see LiveChat
    constrained: bool = True
    longest_string: int = 300  # characters; see LiveChat
    timeout: float | None = 600.0  # seconds for all replies to one question; loading the weights is not among them
    arguments: Mapping[str, Any] = field(default_factory=dict)  # further arguments of from_pretrained
    _question: list[Message] = field(default_factory=list, init=False, repr=False)  # the beginning of the last one
    _until: float = field(default=0.0, init=False, repr=False)

    @property
    def model(self) -> str:
        return f"local/{self.model_id}"

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        """One reply of at most ``max_tokens``. Raises only ``ChatError``."""
        self.load_now()
        self._live.seed = self.seed  # another one may have been set: the weights are loaded once
        if self.timeout is None:
            return self._live.complete(messages, schema, max_tokens=max_tokens)
        if len(messages) <= 2 or self._question != messages[:2]:  # else it is asked again, with its faults
            self._question, self._until = list(messages[:2]), time.monotonic() + self.timeout
        left = self._until - time.monotonic()
        if left <= 0:
            raise self._too_slow()
        self._live.time_limit = left
        try:
            return self._live.complete(messages, schema, max_tokens=max_tokens)
        except Rejected as error:
            if time.monotonic() < self._until:
                raise
            raise self._too_slow(error.spent) from error

    def _too_slow(self, spent: Completion | None = None) -> Rejected:
        return Rejected(
            f"no whole reply within timeout={self.timeout:g} s: allow more time, or ask for less (max_tokens)", spent
        )

    def raise_unless_askable(self) -> None:
        """Raises ``Rejected`` for a folder that only a file names and that holds more than data. Loads nothing."""
        self._raise_unless_data()

    def _raise_unless_data(self, revision: str | None = None) -> None:
        try:
            raise_unless_data(self.model_id, "engineer.name", written=self.model, revision=revision)
        except ValueError as error:
            raise Rejected(str(error)) from error

    def load_now(self) -> None:
        """Load the weights before the first question. Raises ``Rejected`` if this fails."""
        with ONE_AT_A_TIME:  # or two threads would load it twice
            self._live  # noqa: B018

    @cached_property
    def _live(self) -> LiveChat:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        arguments = {**WEIGHTS, **self.arguments}
        revision = arguments.get("revision", "main")
        self._raise_unless_data(revision)
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                self.model_id,
                trust_remote_code=arguments["trust_remote_code"],
                revision=revision,
            )
            model: Any = AutoModelForCausalLM.from_pretrained(self.model_id, dtype=self.dtype, **arguments)
            model = model.to(self._device())
        except Exception as error:  # each file format raises its own errors for a broken checkpoint
            cause = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise Rejected(f"{self.model_id} cannot be loaded, device={self.device} ({cause})") from error
        warn_if_emulated(model, "the engineer's option dtype=float32")
        return LiveChat(
            model,
            tokenizer,
            model=self.model,
            temperature=self.temperature,
            seed=self.seed,
            thinking=self.thinking,
            constrained=self.constrained,
            longest_string=self.longest_string,
        )

    def _device(self) -> str:
        import torch

        if self.device != "auto":
            return self.device
        return "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"


@reads(FROM_FILE, rest=True)
def make(model: str, **options: Any) -> Engineer:
    """An engineer on local weights: a name on the hub or a folder."""
    require("torch", "transformers", "llguidance", extra="local")
    return engineer_on(LocalChat, model, options)
