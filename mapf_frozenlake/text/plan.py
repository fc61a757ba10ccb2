"""``parse_plan``: from what a language model wrote to a plan, or to the place and reason why it is none."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.text.answer import answer_of
from mapf_frozenlake.text.errors import ParseError
from mapf_frozenlake.text.lists import MAX_MOVES, MoveList, read_list
from mapf_frozenlake.text.moves import Move, actions_of, moves_in, readable
from mapf_frozenlake.text.tokens import Token, tokens_of
from mapf_frozenlake.text.words import NUMBER_WORDS, STEP_WORDS, agent_numbers
from mapf_frozenlake.types import Action, Plan

ParsedPlan = list[list[int]]  # one action list per agent

_NUMBERS = "|".join(NUMBER_WORDS)
_AGENT_LABEL = re.compile(
    rf"""(?<![A-Za-z0-9])
         (?: (?:agent|robot|player|bot) (?:[\s_\#-]{{0,3}}(?:id|number|no\.?|index))? | (?<=["'])id(?=["']) | a(?=\d) )
         ["'’*`]{{0,3}}
         (?: [\s_:=\#-]{{0,3}} ["'*`]{{0,2}} (?P<number>\d{{1,3}}) | [\s_:=\#-]{{1,3}} ["'*`]{{0,2}} (?P<word>{_NUMBERS}|[A-Za-z]) )
         (?:['’]s)? (?![A-Za-z0-9])""",
    re.VERBOSE | re.IGNORECASE,
)
# A number or letter alone, as a row's or a key's first word, and a colon behind it.
_BARE_LABEL = re.compile(
    r"""(?: ^[^\w\n]{0,8} | ["'{] | (?<=\],[ ]) ) (?: (?P<number>\d{1,2}) | (?P<word>[A-Za-z]) ) ["'*`]{0,3} [ ]? (?=[:=])""",
    re.VERBOSE | re.MULTILINE,
)
_LIST_MARKS = frozenset(",;|\"'`“”‘’")


@dataclass
class Section:
    """A label and the list behind it."""

    label: str
    start: int  # offset of the label
    token: int  # index of the label's first token
    list: MoveList


@dataclass
class Candidate:
    """A complete answer: one list of moves for each agent."""

    lists: list[list[Move]]
    start: int  # index of its first token
    end: int  # index of the first token behind it


class _Refused(Exception):
    """Leaves the reader early; becomes the returned ``ParseError``."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(why)
        self.offset, self.why = offset, why


def parse_plan(reply: str, num_agents: int) -> ParsedPlan | ParseError:
    """The plan that a reply holds, one list of actions per agent; or where and why none can be read.

    Reads thinking tags, code fences, JSON or lines, agents' names and synonyms of the moves. Of several complete
    answers the last counts; what could mean two things is an error. Never executes anything, never raises on a reply,
    and takes time linear in its length.
    """
    return _read_with(_plan_in, reply, num_agents)


def format_plan(plan: Plan) -> str:
    """The plan as ``parse_plan`` reads it back: one line per agent, "Agent 0: RIGHT DOWN"."""
    return "\n".join(
        f"Agent {agent}: {' '.join(Action(action).name for action in actions) or '[]'}"
        for agent, actions in enumerate(plan)
    )


def parse_moves(reply: str, num_agents: int) -> list[int] | ParseError:
    """One move for each agent, for one step: labelled ("Agent 0: RIGHT"), or just that many words in the agents' order."""
    plan = _read_with(_step_in, reply, num_agents)
    return plan if isinstance(plan, ParseError) else [moves[0] for moves in plan]


def _read_with(read, reply: str, num_agents: int) -> ParsedPlan | ParseError:
    if num_agents < 1:
        raise LakeError(f"num_agents={num_agents}: a plan is for at least 1 agent")
    answer = answer_of(reply)
    if isinstance(answer, ParseError):
        return answer
    try:
        return read(answer, tokens_of(answer), num_agents)
    except _Refused as refusal:
        return ParseError.at(reply, refusal.offset, refusal.why)


def _plan_in(answer: str, tokens: list[Token], num_agents: int) -> ParsedPlan:
    sections = _sections(answer, tokens, _AGENT_LABEL)
    labelled = _labelled(sections, num_agents)
    groups = _bracket_groups(tokens)
    if labelled:
        groups = [group for group in groups if len(group.lists) > 1]  # beside labelled moves, "[right]" is a remark
    candidates = labelled + [group for group in groups if len(group.lists) == num_agents]
    if not candidates:
        candidates = _bare(answer, tokens, num_agents) if not any(section.list.found for section in sections) else []
    if not candidates:
        raise _no_answer(sections, tokens, num_agents)
    last = max(candidates, key=lambda candidate: candidate.end)
    chosen = _joined_steps(labelled, sections, tokens) if last in labelled else last
    actions = _actions(chosen.lists)
    _refuse_contradiction(chosen, actions, sections, groups, tokens, num_agents)
    return actions


def _step_in(answer: str, tokens: list[Token], num_agents: int) -> ParsedPlan:
    sections = _sections(answer, tokens, _AGENT_LABEL)
    labelled = _labelled(sections, num_agents)
    if labelled:
        lists = labelled[0].lists
    elif any(section.list.found or section.list.broken for section in sections):
        raise _no_answer(sections, tokens, num_agents)
    else:
        rows = [row for block in _bare_blocks(tokens) for row in block.lists]
        if not rows:
            raise _no_answer(sections, tokens, num_agents)
        if len(rows[-1]) != num_agents:
            raise _Refused(rows[-1][0].start, f"{len(rows[-1])} moves for {num_agents} agents: write one move for each")
        lists = [[move] for move in rows[-1]]
    long = next((moves for moves in lists if len(moves) != 1), None)
    if long is not None:
        where = long[1].start if len(long) > 1 else 0
        raise _Refused(where, f"{len(long)} moves for one agent: a turn takes exactly one move for each agent")
    return _actions(lists)


def _sections(answer: str, tokens: list[Token], label: re.Pattern[str]) -> list[Section]:
    """Every label in the answer with the list behind it, found or not."""
    starts = [token.start for token in tokens]
    labels = [(match, bisect_left(starts, match.start())) for match in label.finditer(answer)]
    begins = frozenset(first for _, first in labels)
    return [
        Section(
            match["number"] or match["word"],
            match.start(),
            first,
            read_list(tokens, bisect_left(starts, match.end()), begins),
        )
        for match, first in labels
    ]


def _labelled(sections: list[Section], num_agents: int) -> list[Candidate]:
    """Every run of labelled lists with one for each agent, last first. Where there are more, only runs in the agents'
    order count: else the end of one answer and the beginning of the next would make a third."""
    found = [section for section in sections if section.list.found]
    agent_of = _agents_named(found, num_agents)
    every_agent = list(range(num_agents))
    candidates = []
    end = len(found)
    while end >= num_agents:
        run = found[end - num_agents : end]
        agents = [agent_of[section.label] for section in run]
        if agents == every_agent or (len(found) == num_agents and sorted(agents) == every_agent):
            lists = dict(zip(agents, (_readable(section.list) for section in run)))
            candidates.append(Candidate([lists[agent] for agent in every_agent], run[0].token, run[-1].list.end))
            end -= num_agents
        else:
            end -= 1
    return candidates


def _agents_named(found: list[Section], num_agents: int) -> dict[str, int]:
    labels = {section.label for section in found}
    numbers = agent_numbers(labels, num_agents) if labels else {}
    if numbers is None:
        named = ", ".join(sorted(labels)[:8])
        agents = "agent 0" if num_agents == 1 else f"agents 0 to {num_agents - 1}"
        raise _Refused(found[0].start, f"the answer has moves for agents {named}; there are only {agents}")
    return numbers


def _joined_steps(labelled: list[Candidate], sections: list[Section], tokens: list[Token]) -> Candidate:
    """The last answer; or all of them in a row, where they are the marked steps of one plan."""
    found = [section for section in sections if section.list.found]
    agents = range(len(labelled[0].lists))
    one_move_each = all(len(section.list.moves) == 1 for section in found)
    if not _names_step(_line_before(labelled[0].start, tokens)) and (len(found) == len(agents) or not one_move_each):
        return labelled[0]
    steps = labelled[::-1]
    complete = one_move_each and len(found) == len(steps) * len(agents) and not any(one.list.broken for one in sections)
    gaps = [
        _line_before(steps[0].start, tokens),
        *(tokens[one.end : other.start] for one, other in pairwise(steps)),
    ]
    if not (complete and all(map(_is_step_mark, gaps[1:])) and _counts_up(gaps)):
        raise _Refused(
            tokens[steps[-1].start].start,
            "these may be several plans, or steps of one plan with some missing: write all moves of an agent in one row",
        )
    return Candidate([[step.lists[agent][0] for step in steps] for agent in agents], steps[0].start, steps[-1].end)


def _line_before(index: int, tokens: list[Token]) -> list[Token]:
    """What stands on the line before token ``index``."""
    return list(takewhile(lambda token: token.kind != "newline", reversed(tokens[:index])))[::-1]


def _is_step_mark(gap: list[Token]) -> bool:
    """Between two answers: "Step 2:", or the braces between two objects, and nothing else."""
    brace = any(token.text == "{" for token in gap) and not any(token.kind == "word" for token in gap)
    return _names_step(gap) or brace


def _names_step(gap: list[Token]) -> bool:
    """ "Step 2:" or "t=1", and nothing else."""
    words = [token.text.lower() for token in gap if token.kind == "word"]
    other = any(token.kind not in ("word", "number", "mark", "newline") for token in gap)
    return bool(words) and not other and STEP_WORDS.issuperset(words)


def _counts_up(gaps: list[list[Token]]) -> bool:
    """Steps without numbers, or numbered one after the other from 0 or 1."""
    numbers = [int(token.text[:9]) for gap in gaps for token in gap if token.kind == "number"]
    return not numbers or (numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(gaps))))


def _bracket_groups(tokens: list[Token]) -> list[Candidate]:
    """Every list of lists of moves, as in [["RIGHT", "DOWN"], ["UP"]]; a list alone counts as a group of one."""
    groups: list[Candidate] = []
    frames: list[_Frame] = []
    for index, token in enumerate(tokens):
        if token.text == "[":
            frames.append(_Frame(index))
        elif not frames:
            continue
        elif token.text == "]":
            frame = frames.pop()
            outer = frames[-1] if frames else _Frame(index)
            if frame.clean and frame.lists and not frame.moves:
                groups.append(Candidate(frame.lists, frame.start, index + 1))
                outer.clean = False
            elif frame.clean and not frame.lists:
                outer.lists.append(_separated(frame.moves))
                if frame.moves:
                    groups.append(Candidate([outer.lists[-1]], frame.start, index + 1))
            else:
                outer.clean = False
        elif moves := moves_in(token):
            frames[-1].moves += moves
        elif token.kind not in ("newline", "to"):
            move_missing = token.text == "," == tokens[min(index + 1, len(tokens) - 1)].text and index + 1 < len(tokens)
            frames[-1].clean &= token.text in _LIST_MARKS and not move_missing
    return groups


@dataclass
class _Frame:
    """An open square bracket."""

    start: int
    lists: list[list[Move]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    clean: bool = True  # holds nothing but moves, or nothing but lists


def _bare(answer: str, tokens: list[Token], num_agents: int) -> list[Candidate]:
    """Answers without agents' names: rows behind a bare number or letter, or rows alone, in the agents' order."""
    sections = _sections(answer, tokens, _BARE_LABEL)
    if any(section.list.found for section in sections):
        candidates = _labelled(sections, num_agents)[:1]
    else:
        candidates = _bare_rows(tokens, num_agents)
    for candidate in candidates:
        if num_agents > 1 and all(len(moves) == num_agents for moves in candidate.lists):
            raise _Refused(
                tokens[candidate.start].start,
                f"{num_agents} rows of {num_agents} moves: a row may be an agent or a step; write 'Agent 0:' before "
                "each agent's row",
            )
    return candidates


def _bare_rows(tokens: list[Token], num_agents: int) -> list[Candidate]:
    blocks = _bare_blocks(tokens)
    if not blocks:
        return []
    rows = blocks[-1].lists
    if num_agents == 1 and len(rows) > 1 and all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]  # one move a line
    if len(rows) != num_agents:
        raise _Refused(
            tokens[blocks[-1].start].start,
            f"rows of moves: {len(rows)}, agents: {num_agents}; write one row for each, with 'Agent 0:' before the first",
        )
    return [Candidate(rows, blocks[-1].start, blocks[-1].end)]


def _bare_blocks(tokens: list[Token]) -> list[Candidate]:
    """Neighbouring lines that hold nothing but moves."""
    blocks: list[Candidate] = []
    line_starts = [0, *(index + 1 for index, token in enumerate(tokens) if token.kind == "newline")]
    line_ends = frozenset(start - 1 for start in line_starts[1:])
    for start, following in zip(line_starts, [*line_starts[1:], len(tokens) + 1]):
        end = following - 1
        first = next((index for index in range(start, end) if moves_in(tokens[index])), end)
        lead = tokens[start:first]
        row = read_list(tokens, first, line_ends)
        bare = row.found and row.formal and row.end >= end
        if not bare or any(token.kind not in ("mark", "number", "comment") for token in lead):
            continue
        if not blocks or blocks[-1].end != start - 1:
            blocks.append(Candidate([], start, end))
        blocks[-1].lists.append(_readable(row))
        blocks[-1].end = end
    return blocks


def _refuse_contradiction(
    chosen: Candidate,
    actions: ParsedPlan,
    sections: list[Section],
    groups: list[Candidate],
    tokens: list[Token],
    num_agents: int,
) -> None:
    """Moves that follow the last complete answer and differ from it leave open which of the two is meant."""
    behind = tokens[chosen.end - 1].start
    for group in groups:
        if group.start >= chosen.end and len(group.lists) > 1:
            raise _Refused(
                tokens[group.start].start,
                f"lists of moves behind the complete answer: {len(group.lists)}, agents: {num_agents}; write one answer",
            )
    agent_of = _agents_named([section for section in sections if section.list.found], num_agents)
    for section in sections:
        if section.start < behind or not section.list.formal:
            continue
        if section.list.found:
            agent = agent_of[section.label]
            again = _actions([*chosen.lists, _readable(section.list)])[-1]
            contradicts = again != actions[agent]
        else:
            contradicts = section.list.broken is not None and len(section.list.moves) > 1
        if contradicts:
            raise _Refused(
                section.start,
                f"agent {section.label} has other moves here than in the complete answer before: write one answer",
            )


def _no_answer(sections: list[Section], tokens: list[Token], num_agents: int) -> _Refused:
    """Why there is none: what stands nearest to an answer."""
    found = [section for section in sections if section.list.found]
    named = {section.label for section in found}
    for section in sections:
        if section.list.broken is not None:
            return _Refused(*section.list.broken)
    for section in sections:
        if section.label not in named and section.list.cells:
            return _Refused(section.start, "cells instead of moves: write LEFT, DOWN, RIGHT, UP or WAIT for every step")
        if section.label not in named and section.list.stopped_by_text:
            return _no_move_follows(section)
    if found:
        present = set(_agents_named(found, num_agents).values())
        missing = [str(agent) for agent in range(num_agents) if agent not in present]
        what = (
            f"no moves for agent {', '.join(missing[:8])}"
            if missing
            else "the agents' moves are scattered or out of order"
        )
        return _Refused(found[-1].start, f"{what}: write one row for each agent")
    groups = _bracket_groups(tokens)
    if groups:
        return _Refused(
            tokens[groups[-1].start].start,
            f"lists of moves: {len(groups[-1].lists)}, agents: {num_agents}; write one for each",
        )
    end = tokens[-1].end if tokens else 0
    return _Refused(end, "the reply ends without an answer: write one line for each agent, as in 'Agent 0: RIGHT'")


def _no_move_follows(section: Section) -> _Refused:
    stop = section.list.stopped_by
    assert stop is not None
    return _Refused(
        stop.start, f"no move follows agent {section.label} here: write its moves as LEFT, DOWN, RIGHT, UP, WAIT"
    )


def _readable(found: MoveList) -> list[Move]:
    return _separated(found.moves)


def _separated(written: list[Move]) -> list[Move]:
    moves, why = readable(written)
    if why is not None:
        raise _Refused(*why)
    return moves


def _actions(lists: list[list[Move]]) -> ParsedPlan:
    for moves in lists:
        if len(moves) > MAX_MOVES:
            raise _Refused(moves[MAX_MOVES].start, f"more than {MAX_MOVES} moves for one agent: shorten the plan")
    actions = actions_of(lists)
    if isinstance(actions, tuple):
        raise _Refused(*actions)
    return actions
