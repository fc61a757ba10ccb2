"""What the agent reads first, and when tools appear, in each style."""

import json

import pytest

from envtuning.worlds.bfcl.prompts import INSTRUCTIONS, added_tools, first_message

MV = {"name": "mv", "parameters": {"properties": {"source": {}, "deep": {}}, "required": ["source"]}}
LS = {"name": "ls", "parameters": {"properties": {"all": {}}}}
READABLE = INSTRUCTIONS["readable"]
DOCUMENTS, SIGNATURES = f"{json.dumps(MV)}\n{json.dumps(LS)}", "mv(source, deep?)\nls(all?)"


@pytest.mark.parametrize(
    ("style", "first", "added"),
    [
        ("none", "Move it.", "What about now?"),
        ("json", f"{READABLE}\n\nTools:\n{DOCUMENTS}\n\nUser: Move it.", f"{DOCUMENTS}\nWhat about now?"),
        ("short", f"{READABLE}\n\nTools:\n{SIGNATURES}\n\nUser: Move it.", f"{SIGNATURES}\nWhat about now?"),
    ],
)  # fmt: skip
def test_each_style_s_messages(style, first, added):
    assert first_message([MV, LS], "Move it.", style) == first
    assert added_tools([MV, LS], "What about now?", style) == added


def test_each_reply_format_has_instructions_of_its_own_where_there_are_any():
    for style in ("json", "short"):
        assert first_message([MV], "Move it.", style, "xml").startswith(f"{INSTRUCTIONS['xml']}\n\nTools:")
    assert first_message([MV], "Move it.", "none", "xml") == "Move it."
