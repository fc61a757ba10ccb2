"""What the agent reads first: the tools and the user's question."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

from envtuning.worlds.bfcl.documents import parameters, required
from envtuning.worlds.bfcl.reply_format import ReplyFormat

ToolStyle = Literal["json", "short", "none"]
TOOL_STYLES: tuple[ToolStyle, ...] = get_args(ToolStyle)

USER = "User: "
INSTRUCTIONS: dict[ReplyFormat, str] = {
    "readable": (
        "You fulfil a user's requests by calling tools. Reply with calls only, as [tool(argument=value), other_tool(argument=value)] "
        'or as JSON, [{"name": "tool", "arguments": {"argument": "value"}}]; you are then shown their results. '
        "When the request is fulfilled, or cannot be because a tool or a value is missing, reply in words: "
        "that ends the turn and the user speaks again."
    ),
    "xml": (
        "You fulfil a user's requests by calling tools. Begin each reply with your thoughts, <think>…</think>. Then either call tools, "
        '<tool_call>[{"name": "tool", "arguments": {"argument": "value"}}]</tool_call>, and you are shown their results; or, when the '
        "request is fulfilled, or cannot be because a tool or a value is missing, say so to the user, <answer>…</answer>: "
        "that ends the turn and the user speaks again. Write nothing outside of these tags."
    ),
}


def first_message(
    tools: Sequence[dict[str, Any]], question: str, style: ToolStyle, reply_format: ReplyFormat = "readable"
) -> str:
    if style == "none":
        return question
    return f"{INSTRUCTIONS[reply_format]}\n\nTools:\n{show_tools(tools, style)}\n\n{USER}{question}"


def added_tools(tools: Sequence[dict[str, Any]], sentence: str, style: ToolStyle) -> str:
    """What the user says when held-back tools appear: the official sentence, below the new tools."""
    return sentence if style == "none" else f"{show_tools(tools, style)}\n{sentence}"


def show_tools(tools: Sequence[dict[str, Any]], style: ToolStyle) -> str:
    """A line for each tool: its document as JSON, or its signature."""
    return "\n".join(_shown(json.dumps(tool), style) for tool in tools)


@lru_cache(maxsize=1024)
def _shown(document: str, style: ToolStyle) -> str:
    if style == "json":
        return document
    tool = json.loads(document)
    arguments = [name if name in required(tool) else f"{name}?" for name in parameters(tool)]
    return f"{tool['name']}({', '.join(arguments)})"
