"""What is no message of a chat is refused when a transcript is read, so that no page meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engineers.model.transcript import TranscriptError, read_transcript


@pytest.mark.parametrize("message", [{"role": "user"}, {"content": "x"}, {"role": "user", "content": "x", "more": "y"}])
def test_a_message_has_a_role_and_a_content(tmp_path: Path, message: dict[str, str]) -> None:
    exchange = {
        **{
            "version": 2,
            "engineer": "model",
            "model": "m",
            "context": {},
            "max_attempts": 1,
            "stage": 0,
            "number": 0,
        },
        **{
            "kind": "proposal",
            "messages": [{"role": "user", "content": "x"}],
            "json_schema": None,
            "max_tokens": 9,
            "reply": "y",
        },
    }
    path = tmp_path / "transcript.jsonl"
    path.write_text(json.dumps(exchange) + "\n", encoding="utf-8")
    assert read_transcript(path)[0].reply == "y"
    path.write_text(json.dumps({**exchange, "messages": [message]}) + "\n", encoding="utf-8")
    with pytest.raises(TranscriptError):
        read_transcript(path)
