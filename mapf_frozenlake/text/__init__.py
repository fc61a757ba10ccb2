"""Lakes and plans as text, for language models."""

from mapf_frozenlake.text.board import STYLES, TextStyle, from_text, to_text
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.text.plan import format_plan, parse_moves, parse_plan
from mapf_frozenlake.text.prompts import plan_prompt, state_text, turns_prompt

__all__ = [
    "STYLES",
    "ParseError",
    "TextStyle",
    "format_plan",
    "from_text",
    "parse_moves",
    "parse_plan",
    "plan_prompt",
    "state_text",
    "to_text",
    "turns_prompt",
]
