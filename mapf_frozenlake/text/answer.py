"""Finds the answer in a reply: blanks out thoughts, and takes an ``<answer>`` block if there is one."""

from __future__ import annotations

import re

from mapf_frozenlake.text.errors import ParseError

MAX_REPLY = 1_000_000  # characters; beyond it a reply is refused unread
MAX_ANSWER = 100_000  # characters outside thoughts

_NAMES = "think|thinking|thought|thoughts|reasoning|reflection|scratchpad"
_OPENS = rf"<(?:{_NAMES})>|<\|channel\|>analysis"
_CLOSES = rf"</(?:{_NAMES})>|<\|channel\|>final<\|message\|>"
_THOUGHT_MARKS = re.compile(rf"(?P<open>{_OPENS})|(?P<close>{_CLOSES})", re.IGNORECASE)
_ANSWER_MARKS = re.compile(r"(?P<open><answer>)|(?P<close></answer>)", re.IGNORECASE)
_NOT_NEWLINE = re.compile(r"[^\n]")


def answer_of(reply: str) -> str | ParseError:
    """The reply with all text but its answer blanked, so that offsets stay; or the reason why there is no answer."""
    if len(reply) > MAX_REPLY:
        return ParseError.at(reply, MAX_REPLY, f"the reply has {len(reply)} characters, at most {MAX_REPLY} are read")
    if not reply.strip():
        return ParseError.at(reply, 0, "the reply is empty: write one line of moves per agent")
    spoken, open_thought = _without_thoughts(reply)
    answer = _answer_block(spoken)
    if not answer.strip():
        if open_thought is not None:
            return ParseError.at(
                reply, open_thought, "the thought that begins here never ends, and no answer follows it"
            )
        return ParseError.at(reply, len(reply), "the reply holds no answer outside its thoughts")
    length = len(answer.strip())
    if length > MAX_ANSWER:
        start = len(answer) - len(answer.lstrip())
        return ParseError.at(
            reply,
            start + MAX_ANSWER,
            f"the answer has {length} characters outside thoughts, at most {MAX_ANSWER} are read",
        )
    return answer.replace("\\n", " \n")  # a line break inside a JSON string


def open_thought(text: str) -> str:
    """The text from the beginning of an unclosed thought; empty if every thought is closed."""
    opened_at = _without_thoughts(text)[1]
    return "" if opened_at is None else text[opened_at:]


def _without_thoughts(reply: str) -> tuple[str, int | None]:
    """Blank every thought; a closing tag without an opening tag ends a thought that began with the reply."""
    thoughts: list[tuple[int, int]] = []
    opened_at: int | None = None
    for mark in _THOUGHT_MARKS.finditer(reply):
        if mark.lastgroup == "open":
            opened_at = mark.start() if opened_at is None else opened_at
        elif opened_at is None:  # its opening tag was in the prompt
            thoughts = [(0, mark.end())]
        else:
            thoughts.append((opened_at, mark.end()))
            opened_at = None
    if opened_at is not None:
        thoughts.append((opened_at, len(reply)))
    pieces, spoken_from = [], 0
    for start, end in thoughts:
        pieces += [reply[spoken_from:start], _blank(reply[start:end])]
        spoken_from = end
    return "".join(pieces) + reply[spoken_from:], opened_at


def _answer_block(spoken: str) -> str:
    """Only the last ``<answer>`` block, if there is one; an unclosed block ends with the reply."""
    marks = list(_ANSWER_MARKS.finditer(spoken))
    opens = [mark for mark in marks if mark.lastgroup == "open"]
    if not opens:
        return spoken
    last = opens[-1]
    close = next(
        (mark.start() for mark in marks if mark.lastgroup == "close" and mark.start() > last.end()), len(spoken)
    )
    return _blank(spoken[: last.end()]) + spoken[last.end() : close]


def _blank(text: str) -> str:
    return _NOT_NEWLINE.sub(" ", text)
