"""``ReplyFormat``: how an agent must write its replies, and functions that read and write them.

``readable``: any notation that ``read_action`` reads. ``xml``: only the format of the Environment Tuning paper:

    <think>…</think> <tool_call>[{"name": "cd", "arguments": {"folder": "docs"}}]</tool_call>
    <think>…</think> <answer>…</answer>
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, get_args

from envtuning.worlds.bfcl.calls import (
    Action,
    Call,
    Calls,
    EndOfTurn,
    Unreadable,
    as_reply,
    read_action,
    read_json_calls,
    too_long,
)

ReplyFormat = Literal["readable", "xml"]
REPLY_FORMATS: tuple[ReplyFormat, ...] = get_args(ReplyFormat)

WANTED = (
    'write <think>…</think>, then either <tool_call>[{"name": "tool", "arguments": {…}}]</tool_call> or <answer>…</answer>, '
    "and nothing else"
)


def read_reply(text: str, reply_format: ReplyFormat) -> Action:
    """The agent's action; a reply that is not in the format is unreadable. Never raises."""
    return read_action(text) if reply_format == "readable" else _read_xml(text)


def write_calls(calls: Sequence[Call], reply_format: ReplyFormat) -> str:
    """Calls as an agent writes them; in ``xml`` all arguments must be named."""
    if reply_format == "readable":
        return as_reply(calls)
    entries = [{"name": call.name, "arguments": call.named} for call in calls]
    return f"<think>These calls are next.</think>\n<tool_call>{json.dumps(entries)}</tool_call>"


def write_answer(words: str, reply_format: ReplyFormat) -> str:
    """Words that end the turn."""
    return words if reply_format == "readable" else f"<think>Nothing is left to call.</think>\n<answer>{words}</answer>"


def _read_xml(text: str) -> Action:
    if (refused := too_long(text)) is not None:
        return refused
    thoughts, closed, rest = text.strip().partition("</think>")
    if not closed or not thoughts.startswith("<think>"):
        return Unreadable(f"the reply does not begin with <think>…</think>: {WANTED}")
    rest = rest.strip()
    if (answer := _inside(rest, "answer")) is not None:
        return EndOfTurn(answer)
    calls = _inside(rest, "tool_call")
    if calls is None:
        return Unreadable(f"after </think> there is not exactly one <tool_call> or <answer>: {WANTED}")
    read = read_json_calls(calls) if calls.startswith("[") else Calls(())
    return read if read != Calls(()) else Unreadable(f"<tool_call> does not hold a list of calls: {WANTED}")


def _inside(text: str, tag: str) -> str | None:
    """The content of the tag, if the text consists of this one tag; else None."""
    begin, end = f"<{tag}>", f"</{tag}>"
    if not text.startswith(begin) or not text.endswith(end):
        return None
    body = text.removeprefix(begin).removesuffix(end)
    return None if begin in body or end in body else body.strip()
