"""What the agent reads first, when tools appear, and when the user speaks again, in each style."""

import json

import pytest

from envtuning.worlds.bfcl.prompts import INSTRUCTIONS, added_tools, first_message, next_message

MV = {"name": "mv", "parameters": {"properties": {"source": {}, "deep": {}}, "required": ["source"]}}
LS = {"name": "ls", "parameters": {"properties": {"all": {}}}}
READABLE = INSTRUCTIONS["readable"]
DOCUMENTS, SIGNATURES = f"{json.dumps(MV)}\n{json.dumps(LS)}", "mv(source, deep?)\nls(all?)"


@pytest.mark.parametrize(
    ("style", "first", "added", "later"),
    [
        ("none", "Move it.", "What about now?", "Now list."),
        ("menu", "User: Move it.", "User: What about now?", "User: Now list."),
        ("json", f"{READABLE}\n\nTools:\n{DOCUMENTS}\n\nUser: Move it.", f"{DOCUMENTS}\nWhat about now?", "Now list."),
        ("short", f"{READABLE}\n\nTools:\n{SIGNATURES}\n\nUser: Move it.", f"{SIGNATURES}\nWhat about now?", "Now list."),
    ],
)  # fmt: skip
def test_each_style_s_messages(style, first, added, later):
    assert first_message([MV, LS], "Move it.", style) == first
    assert added_tools([MV, LS], "What about now?", style) == added
    assert next_message("Now list.", style) == later


def test_each_reply_format_has_instructions_of_its_own_where_there_are_any():
    for style in ("json", "short"):
        assert first_message([MV], "Move it.", style, "xml").startswith(f"{INSTRUCTIONS['xml']}\n\nTools:")
    assert first_message([MV], "Move it.", "none", "xml") == "Move it."
