"""``replay/FILE``: replays a recorded engineer (a model or a person), byte for byte, without keys or a network.

The file is a transcript, or a folder with ``transcript*.jsonl`` below it, of one run or of many. A reply answers only the
question of its recording. A question that has changed is refused, so that the current config stays. Replies are parsed and
checked by the guard again. A transcript of the replay equals the original.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engineers.from_file import reads
from engineers.guard import NO_GUARD, Guard
from engineers.model.chat import ChatError, Completion, Message
from engineers.model.engineer import ModelEngineer
from engineers.model.prompt import PROMPT_VERSION
from engineers.model.transcript import Exchange, TranscriptError, read_transcript
from engineers.space import Space


class ReplayEngineer(ModelEngineer):
    """Answers with the recording of (stage, number, question); of two recordings, with the later one."""

    def __init__(self, path: Path, **options: Any) -> None:
        recorded = read_transcript(path)
        if not recorded:
            raise TranscriptError(f"{path} contains no exchange: give a transcript that has one")
        self.path = path
        self.exchanges = {_key(one.stage, one.number, one.messages): one for one in recorded}
        last = recorded[-1]
        options = {
            "context": last.context,
            "max_attempts": last.max_attempts,
            "name": last.engineer,
            **options,
        }
        super().__init__(_Recorded(last.model), **options)

    def exchange(
        self, stage: int, number: int, kind: str, messages: list[Message], schema: dict[str, Any] | None
    ) -> Exchange:
        recorded = self.exchanges.get(_key(stage, number, messages))
        if recorded is None:
            raise ChatError(self._why_not(stage, number))
        return recorded

    def _why_not(self, stage: int, number: int) -> str:
        """The recordings that exist instead of this question's."""
        there = [one for one in self.exchanges.values() if (one.stage, one.number) == (stage, number)]
        if not there:
            stages = sorted({one.stage for one in self.exchanges.values()})
            return f"{self.path.name} has no question {number} of stage {stage}; it has stages {stages}"
        if all(_asks_for_a_config(one) for one in there):
            return f"question {number} of stage {stage} in {self.path.name} asked for a whole config; an answer is a list of changes now"
        versions = sorted({one.prompt_version for one in there})
        by = (
            f": it was asked by version {', '.join(map(str, versions))} of the prompt"
            if versions != [PROMPT_VERSION]
            else ""
        )
        return f"question {number} of stage {stage} differs from what was recorded in {self.path.name}{by}; it is version {PROMPT_VERSION} now"


def _asks_for_a_config(exchange: Exchange) -> bool:
    """Whether the answer was to be the whole next config, as in prompts before version 4 and the first ones of it."""
    return exchange.json_schema is not None and "config" in exchange.json_schema.get("properties", {})


def _key(stage: int, number: int, messages: Sequence[Any]) -> tuple[int, int, str]:
    return stage, number, json.dumps([dict(message) for message in messages], sort_keys=True)


@dataclass
class _Recorded:
    """Takes the place of a chat, because a replay asks no model."""

    model: str

    def complete(self, messages: list[Message], schema: dict[str, Any] | None, *, max_tokens: int) -> Completion:
        raise ChatError("a replay answers from its transcript and asks no model")


@reads({}, rest=True)
def make(
    model: str,
    *,
    transcript: str | Path | None = None,
    guard: Guard = NO_GUARD,
    space: Space | None = None,
) -> ReplayEngineer:
    """Replays recorded answers, without keys or a network."""
    return ReplayEngineer(Path(model), transcript=transcript, guard=guard, space=space)
