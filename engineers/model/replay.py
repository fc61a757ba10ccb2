"""``replay/FILE``: a recorded engineer, byte for byte, without keys or a network.

The file is a transcript, or a folder with ``transcript*.jsonl`` below it. Replies are those recorded for the report's
stage; they are parsed and checked by the guard again. A transcript of the replay equals the one that is replayed.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engineers.from_file import reads
from engineers.guard import NO_GUARD, Guard
from engineers.model.chat import ChatError, Completion, Message
from engineers.model.engineer import ModelEngineer
from engineers.model.transcript import Exchange, TranscriptError, read_transcript
from engineers.space import Space


class ReplayEngineer(ModelEngineer):
    """Answers with what was recorded for (stage, question); where a stage was recorded twice, with the later one."""

    def __init__(self, path: Path, **options: Any) -> None:
        recorded = read_transcript(path)
        if not recorded:
            raise TranscriptError(f"{path}: no exchange in it")
        self.path = path
        self.exchanges = {(exchange.stage, exchange.number): exchange for exchange in recorded}
        last = recorded[-1]
        options = {"context": last.context, "max_attempts": last.max_attempts, "name": last.engineer, **options}
        super().__init__(_Recorded(last.model), **options)

    def exchange(
        self, stage: int, number: int, kind: str, messages: list[Message], schema: dict[str, Any] | None
    ) -> Exchange:
        recorded = self.exchanges.get((stage, number))
        if recorded is None:
            stages = sorted({at for at, _ in self.exchanges})
            raise ChatError(f"{self.path.name} has no question {number} of stage {stage}; it has stages {stages}")
        if recorded.messages != messages:
            warnings.warn(
                f"question {number} of stage {stage} differs from the one recorded in {self.path.name}", stacklevel=2
            )
        return recorded


@dataclass
class _Recorded:
    """Stands where a chat would be; a replay asks none."""

    model: str

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        raise ChatError("a replay asks no model")


@reads({}, rest=True)
def make(
    model: str,
    *,
    transcript: str | Path | None = None,
    guard: Guard = NO_GUARD,
    space: Space | None = None,
) -> ReplayEngineer:
    return ReplayEngineer(Path(model), transcript=transcript, guard=guard, space=space)
