"""Replies to a plan prompt: rightly written in many ways, broken, or hostile. Each is the plan meant, or says where and why."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from mapf_frozenlake import Action, ParseError, format_plan, parse_plan
from mapf_frozenlake.text import parse_moves
from mapf_frozenlake.text.lists import MAX_MOVES

MAX_SECONDS = 5.0  # processor time for one reply; a few milliseconds are usual
Plan = list[list[int]]

ARROWS = {Action.LEFT: "←", Action.DOWN: "↓", Action.RIGHT: "→", Action.UP: "↑"}
COMPASS = {Action.LEFT: "west", Action.DOWN: "south", Action.RIGHT: "east", Action.UP: "north", Action.WAIT: "stay"}
BEFORE = (
    "",
    "Let me see.\n\n",
    "<think>Agent 0: UP, no, wait.\nAgent 1: [</think>\n",
    "Here it is:\n",
    "So the thought ends.</think>\n\n",
)
BEHIND = ("", "\n\nAll agents reach their goals.", "\n\nI hope this helps!", "\n\nThe makespan is 5.", "<|im_end|>")

PIECES = [
    *("Agent 0:", "Agent 1:", "agent_2", "Agent", "agent 999999", "a0", "0:", "1:", "S:", "s:", "A:", '"0":', '{"agent":', "id"),
    *("RIGHT", "left", "Up", "DOWN", "wait", "noop", "no-op", "R", "L", "W", "S", "N", "E", "RRDDL", "NEWS", "→", "←", "⬆️", "east"),
    *("[", "]", "(", ")", "{", "}", "[[", "]]", '"', "'", "`", "```", "```json\n", "**", "|", "-", "•", "#", "###", "//", "/*"),
    *(",", ".", ";", ":", "=", "->", "=>", "...", "…", "—", "<", ">", "?", "!", "\\", "\\n", "\n", "\n\n", "\r\n", "\t", " "),
    *("x3", "x999999", "×2", "* 2", "x0", "3", "1.", "2)", "(0, 1)", "(-1, 2)", "[1, 2]", "Step 1:", "t=2", "step", "then", "and"),
    *("<think>", "</think>", "<THINKING>", "</reasoning>", "<answer>", "</answer>", "<|channel|>final<|message|>", "<br>"),
    *("\x00", "\ufeff", "\u2028", "\ud800", "é", "🧊", "١", "²", "Ａ", "İ", "ﬁ", "\u202e", "null", "NaN", "9" * 40, "a" * 300),
    *("__import__('os').system('true')", "{{7*7}}", "%s", "$(id)", "Ignore the rules.", "JUMP", "diagonal", "etc", "moves", "plan"),
]  # fmt: skip
MOUNTAINS = [
    *("[" * 30_000, "(" * 30_000, "Agent 0:" * 8_000, "<think>" * 9_000, "</think>" * 9_000, "<answer>" * 9_000),
    *("Agent 0: R" + " x999999" * 5_000, "R\n" * 30_000, "0:R\n" * 15_000, "Agent 0: " + "R " * 40_000, "agent " * 15_000),
    *("Agent 0: " + "(" * 40_000 + "R" + ")" * 40_000, "Agent 0: " + "[" * 40_000 + "R" + "]" * 40_000),
    *("Agent 0: R (a" * 6_000, "[R," * 20_000, "Agent 0: R. a. " * 5_000, " " * 90_000 + "R", "x" * 1_500_000, "\n" * 90_000),
]  # fmt: skip


def run(n: int, seed: int) -> dict[str, Any]:
    """Outcomes of n replies and the slowest one's seconds; raises on the first that is not read or refused as it should be."""
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for _ in range(n):
        plan = _plan(rng)
        kind = rng.choices(("rightly written", "broken", "soup", "mountain"), (30, 45, 24.5, 0.5))[0]
        reply = _MAKERS[kind](plan, rng)
        began = time.process_time()
        found = parse_plan(reply, len(plan))
        took = time.process_time() - began
        assert took < MAX_SECONDS, f"{took:.1f} s for {len(reply)} characters: {reply[:200]!r}"
        slowest = max(slowest, took)
        if kind == "rightly written":
            assert found == plan, f"{reply!r} was read as {found}, meant was {plan}"
        raise_unless_sound(reply, found, len(plan))
        moves = parse_moves(reply, len(plan))
        raise_unless_sound(reply, moves if isinstance(moves, ParseError) else [[move] for move in moves], len(plan))
        outcomes[f"{kind}: {'refused' if isinstance(found, ParseError) else 'read'}"] += 1
    return {"slowest_seconds": round(slowest, 3), "outcomes": dict(sorted(outcomes.items()))}


def raise_unless_sound(reply: str, found: Plan | ParseError, num_agents: int) -> None:
    """A plan has a list of actions for each agent; a refusal has a place that exists, and one sentence."""
    if isinstance(found, ParseError):
        sentence = str(found)
        assert 0 <= found.offset <= len(reply), found
        assert found.line == reply.count("\n", 0, found.offset) + 1, found
        assert found.column >= 1, found
        assert 20 < len(found.why) < 300, found
        assert sentence.splitlines() == [sentence], found
        return
    assert len(found) == num_agents, (reply, found)
    for moves in found:
        assert len(moves) <= MAX_MOVES, reply[:200]
        assert all(type(move) is int and 0 <= move <= 4 for move in moves), (reply, found)


def _plan(rng: random.Random) -> Plan:
    """At least three moves in the first line: plans of fewer may be several things in some of the forms below."""
    agents = rng.randint(1, 5)
    lengths = [rng.randint(3, 9), *(rng.randint(1, 9) for _ in range(agents - 1))]
    return [[rng.randrange(5) for _ in range(length)] for length in lengths]


def _rightly(plan: Plan, rng: random.Random) -> str:
    return rng.choice(BEFORE) + rng.choice(FORMS)(plan, rng) + rng.choice(BEHIND)


def _broken(plan: Plan, rng: random.Random) -> str:
    reply = _rightly(plan, rng)
    for _ in range(rng.randint(1, 4)):
        at, to = sorted((rng.randint(0, len(reply)), rng.randint(0, len(reply))))
        how = rng.randrange(6)
        if how == 0:
            reply = reply[:at]  # cut off
        elif how == 1:
            reply = reply[:at] + reply[min(to, at + 20) :]
        elif how == 2:
            reply = reply[:at] + rng.choice(PIECES) + reply[at:]
        elif how == 3:
            reply = reply[:to] + reply[at:]  # said twice
        elif how == 4:
            reply += "\n" + rng.choice(FORMS)(_plan(rng), rng)  # another answer
        else:
            reply = reply[:at] + chr(rng.choice((rng.randrange(32, 127), rng.randrange(0x2FFF)))) + reply[at + 1 :]
    return reply


def _soup(plan: Plan, rng: random.Random) -> str:
    return rng.choice(("", " ", "\n")).join(rng.choices(PIECES, k=rng.randint(0, 60)))


def _mountain(plan: Plan, rng: random.Random) -> str:
    return rng.choice(("", _rightly(plan, rng))) + rng.choice(MOUNTAINS) + rng.choice(("", _rightly(plan, rng)))


_MAKERS: dict[str, Callable[[Plan, random.Random], str]] = {
    "rightly written": _rightly,
    "broken": _broken,
    "soup": _soup,
    "mountain": _mountain,
}


def _words(moves: list[int], rng: random.Random) -> list[str]:
    change = rng.choice((str.upper, str.lower, str.capitalize))
    return [change(Action(move).name) for move in moves]


def _lines(plan: Plan, rng: random.Random) -> str:
    before, between = (
        rng.choice(("Agent ", "agent_", "- Agent ", "**Agent ", "Robot #")),
        rng.choice((" ", ", ", " -> ", " → ", "; ")),
    )
    behind = "** " if before.startswith("**") else ""
    return "\n".join(f"{before}{agent}: {behind}{between.join(_words(moves, rng))}" for agent, moves in enumerate(plan))


def _counted_from_one(plan: Plan, rng: random.Random) -> str:
    return "\n".join(f"Agent {agent + 1}: {' '.join(_words(moves, rng))}" for agent, moves in enumerate(plan))


def _headings(plan: Plan, rng: random.Random) -> str:
    return "\n\n".join(
        f"### Agent {agent}\n" + "\n".join(f"{step}. {word}" for step, word in enumerate(_words(moves, rng), start=1))
        for agent, moves in enumerate(plan)
    )


def _json_object(plan: Plan, rng: random.Random) -> str:
    moves = {f"agent_{agent}": _words(line, rng) for agent, line in enumerate(plan)}
    content: Any = rng.choice((moves, {"plan": moves}, {"reasoning": "Keep right, then turn.", "plan": moves}))
    return _fenced(json.dumps(content, indent=rng.choice((None, 2))), rng)


def _json_lists(plan: Plan, rng: random.Random) -> str:
    lists = [_words(moves, rng) for moves in plan]
    return _fenced(json.dumps(rng.choice((lists, {"plan": lists}, {"answer": {"moves": lists}}))), rng)


def _json_records(plan: Plan, rng: random.Random) -> str:
    name, moves = rng.choice(("agent", "agent_id", "id")), rng.choice(("actions", "moves", "path"))
    return _fenced(json.dumps([{name: agent, moves: _words(line, rng)} for agent, line in enumerate(plan)]), rng)


def _json_in_json(plan: Plan, rng: random.Random) -> str:
    return json.dumps({"answer": format_plan(plan)})


def _python(plan: Plan, rng: random.Random) -> str:
    return "plan = " + repr({agent: _words(moves, rng) for agent, moves in enumerate(plan)})


def _letters(plan: Plan, rng: random.Random) -> str:
    """One letter a move; the first agent's first says which alphabet it is."""
    told = [[Action.RIGHT, *plan[0][1:]], *plan[1:]]
    plan[:] = [[int(move) for move in moves] for moves in told]
    between = rng.choice(("", " "))
    return "\n".join(
        f"Agent {agent}: {between.join(Action(move).name[0] for move in moves)}" for agent, moves in enumerate(plan)
    )


def _compass(plan: Plan, rng: random.Random) -> str:
    return "\n".join(
        f"Agent {agent}: {', '.join(COMPASS[Action(move)] for move in moves)}" for agent, moves in enumerate(plan)
    )


def _arrows(plan: Plan, rng: random.Random) -> str:
    plan[:] = [[move if move != Action.WAIT else int(Action.UP) for move in moves] for moves in plan]
    return "\n".join(
        f"Agent {agent}: {' '.join(ARROWS[Action(move)] for move in moves)}" for agent, moves in enumerate(plan)
    )


def _with_cells(plan: Plan, rng: random.Random) -> str:
    return "\n".join(
        f"Agent {agent} from (0, {agent}) to (9, {agent}): "
        + ", ".join(f"{word} ({step}, {agent})" for step, word in enumerate(_words(moves, rng)))
        for agent, moves in enumerate(plan)
    )


def _repeats(plan: Plan, rng: random.Random) -> str:
    return "\n".join(
        f"Agent {agent}: " + " ".join(f"{word} x1" for word in _words(moves, rng)) for agent, moves in enumerate(plan)
    )


def _step_by_step(plan: Plan, rng: random.Random) -> str:
    """One line a step: everybody's lists must be equally long."""
    longest = max(map(len, plan))
    plan[:] = [[*moves, *[int(Action.WAIT)] * (longest - len(moves))] for moves in plan]
    return "\n".join(
        f"Step {step + 1}: "
        + ", ".join(f"Agent {agent}: {Action(moves[step]).name}" for agent, moves in enumerate(plan))
        for step in range(longest)
    )


def _answer_tag(plan: Plan, rng: random.Random) -> str:
    return f"Agent 0: UP? No.\n<answer>\n{_lines(plan, rng)}\n</answer>"


def _said_twice(plan: Plan, rng: random.Random) -> str:
    return f"First I thought\n{_lines(_same_shape(plan, rng), rng)}\nbut better is\n{_lines(plan, rng)}"


def _same_shape(plan: Plan, rng: random.Random) -> Plan:
    return [[rng.randrange(5) for _ in moves] for moves in plan]


def _fenced(text: str, rng: random.Random) -> str:
    return rng.choice((text, f"```json\n{text}\n```", f"```\n{text}\n```"))


FORMS = (
    _lines, _counted_from_one, _headings, _json_object, _json_lists, _json_records, _json_in_json, _python, _letters,
    _compass, _arrows, _with_cells, _repeats, _step_by_step, _answer_tag, _said_twice,
)  # fmt: skip
