"""``Transcript``: every exchange with a model, or with a person at a desk, as a line of JSON.

A line says who was asked, when, in which context and by which version of the prompt. Bodies only, never HTTP headers; keys are
blanked before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.model.chat import ChatError
from engineers.model.context import Context
from engineers.redaction import redact
from engineers.shared.errors import UserError
from engineers.shared.lines import append_line
from engineers.shared.sentences import in_sentences

TRANSCRIPT_VERSION: Final = 2


class Exchange(BaseModel):
    """One question and its result: a reply or an error."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    version: Literal[1, 2] = TRANSCRIPT_VERSION
    when: str = ""  # of the question, UTC; none in version 1
    prompt_version: int = Field(1, ge=1)
    engineer: str
    model: str
    context: Context
    max_attempts: int
    stage: int
    number: int  # 0-based within the stage's proposal
    kind: str  # "summary" or "proposal"
    messages: list[Annotated[dict[Literal["role", "content"], str], Field(min_length=2)]]
    json_schema: dict[str, Any] | None
    max_tokens: int
    reply: str | None = None
    error: str | None = None
    error_kind: str = ""  # the ChatError's class: whether to ask again depends on it
    prompt_tokens: int = Field(0, ge=0)
    completion_tokens: int = Field(0, ge=0)
    cost: float | None = Field(None, ge=0)
    seconds: float = 0.0

    def failure(self) -> ChatError | None:
        """The error that this exchange ended in, as it was raised; None if there is a reply."""
        if self.reply is not None:
            return None
        kinds = {kind.__name__: kind for kind in ChatError.__subclasses__()}
        return kinds.get(self.error_kind, ChatError)(self.error or "no reply")


def now() -> str:
    """The time of a question, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class TranscriptError(UserError, ValueError):
    """A transcript that cannot be read or holds no such exchange; the message says which file and line."""


@dataclass
class Transcript:
    """A file that only grows; every line is on the disk before the engineer continues."""

    path: Path

    def append(self, exchange: Exchange) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        append_line(self.path, redact(exchange.model_dump_json()).encode())


def read_transcript(path: Path) -> list[Exchange]:
    """All exchanges of a file, or of every ``transcript*.jsonl`` below a folder. A line cut off at a file's end is skipped."""
    if path.is_dir():
        files = sorted(path.rglob("transcript*.jsonl"))
    elif path.is_file():
        files = [path]
    else:
        files = []
    if not files:
        raise TranscriptError(
            f"there is no transcript at {path}: give a .jsonl file, or a folder with transcript*.jsonl below it"
        )
    return [exchange for file in files for exchange in _read_file(file)]


def _read_file(path: Path) -> Iterator[Exchange]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            yield Exchange.model_validate_json(line)
        except ValidationError as error:
            is_whole = line.rstrip().endswith(b"}")
            if is_whole:  # neither empty nor cut off
                raise TranscriptError(f"{path}, line {number}: {in_sentences(error)}") from None
