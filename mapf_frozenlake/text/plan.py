"""``parse_plan``: reads a plan from a language model's reply, or says where and why it cannot."""

from __future__ import annotations

from collections.abc import Callable

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.text.answer import answer_of
from mapf_frozenlake.text.errors import ParseError, Refused
from mapf_frozenlake.text.labelled import (
    AGENT_LABEL,
    BARE_LABEL,
    Candidate,
    Section,
    agents_named,
    joined_steps,
    labelled_answers,
    sections_of,
)
from mapf_frozenlake.text.lists import MAX_MOVES
from mapf_frozenlake.text.moves import Move, actions_of, separated
from mapf_frozenlake.text.rows import bare_blocks, bare_rows, bracket_groups
from mapf_frozenlake.text.tokens import Token, tokens_of
from mapf_frozenlake.types import Action, Plan

ParsedPlan = list[list[int]]  # one action list per agent
Reader = Callable[[str, list[Token], int], ParsedPlan]


def parse_plan(reply: str, num_agents: int) -> ParsedPlan | ParseError:
    """The plan in a reply, one list of actions per agent, or a ``ParseError`` that says where and why it failed.

    Reads thinking tags, code fences, JSON or lines, agents' names and synonyms of the moves. Of several complete
    answers the last counts; an ambiguous reply is an error. It executes nothing, never raises on a reply,
    and takes time linear in the reply's length.
    """
    return _read_with(_plan_in, reply, num_agents)


def format_plan(plan: Plan) -> str:
    """The plan as text for ``parse_plan``: one line per agent, "Agent 0: RIGHT DOWN"."""
    return "\n".join(
        f"Agent {agent}: {' '.join(Action(action).name for action in actions) or '[]'}"
        for agent, actions in enumerate(plan)
    )


def parse_moves(reply: str, num_agents: int) -> list[int] | ParseError:
    """One move for each agent, for one step: labelled ("Agent 0: RIGHT"), or one word per agent in the agents' order."""
    plan = _read_with(_step_in, reply, num_agents)
    return plan if isinstance(plan, ParseError) else [moves[0] for moves in plan]


def _read_with(read: Reader, reply: str, num_agents: int) -> ParsedPlan | ParseError:
    if num_agents < 1:
        raise LakeError(f"num_agents={num_agents}: a plan is for at least 1 agent")
    answer = answer_of(reply)
    if isinstance(answer, ParseError):
        return answer
    try:
        return read(answer, tokens_of(answer), num_agents)
    except Refused as refusal:
        return ParseError.at(reply, refusal.offset, refusal.why)


def _plan_in(answer: str, tokens: list[Token], num_agents: int) -> ParsedPlan:
    sections = sections_of(answer, tokens, AGENT_LABEL)
    labelled = labelled_answers(sections, num_agents)
    groups = bracket_groups(tokens)
    if labelled:
        groups = [group for group in groups if len(group.lists) > 1]  # beside labelled moves, "[right]" is a remark
    candidates = labelled + [group for group in groups if len(group.lists) == num_agents]
    if not candidates and not any(section.list.found for section in sections):
        candidates = _bare(answer, tokens, num_agents)
    if not candidates:
        raise _no_answer(sections, tokens, num_agents)
    last = max(candidates, key=lambda candidate: candidate.end)
    if _rows_follow(last, tokens):
        (last,) = _rows_alone(tokens, num_agents)
    chosen = joined_steps(labelled, sections, tokens) if last in labelled else last
    actions = _actions(chosen.lists)
    _refuse_contradiction(chosen, actions, sections, groups, tokens, num_agents)
    return actions


def _step_in(answer: str, tokens: list[Token], num_agents: int) -> ParsedPlan:
    sections = sections_of(answer, tokens, AGENT_LABEL)
    labelled = labelled_answers(sections, num_agents)
    if labelled:
        chosen = labelled[0]
    elif any(section.list.found or section.list.broken for section in sections):
        raise _no_answer(sections, tokens, num_agents)
    else:
        chosen = _row_of_step(tokens, num_agents)
    long = next((moves for moves in chosen.lists if len(moves) != 1), None)
    if long is not None:
        where = long[1].start if long else tokens[chosen.start].start
        raise Refused(where, f"{len(long)} moves for one agent: a turn takes exactly one move for each agent")
    actions = _actions(chosen.lists)
    _refuse_contradiction(chosen, actions, sections, [], tokens, num_agents)
    return actions


def _row_of_step(tokens: list[Token], num_agents: int) -> Candidate:
    """The last row of moves alone: one for each agent."""
    rows = bare_blocks(tokens) or [group for group in bracket_groups(tokens) if len(group.lists) == 1]
    if not rows:
        raise _no_answer([], tokens, num_agents)
    row = separated(rows[-1].lists[-1])
    if len(row) != num_agents:
        raise Refused(row[0].start, f"moves: {len(row)}, agents: {num_agents}; write one move for each")
    return Candidate([[move] for move in row], rows[-1].start, rows[-1].end)


def _bare(answer: str, tokens: list[Token], num_agents: int) -> list[Candidate]:
    """Answers without agents' names: rows behind a bare number or letter, or rows alone, in the agents' order."""
    sections = sections_of(answer, tokens, BARE_LABEL)
    if not any(section.list.found for section in sections):
        return _rows_alone(tokens, num_agents)
    return _as_agents(labelled_answers(sections, num_agents)[:1], tokens, num_agents)


def _rows_alone(tokens: list[Token], num_agents: int) -> list[Candidate]:
    """The last rows that hold only moves."""
    return _as_agents(bare_rows(tokens, num_agents), tokens, num_agents)


def _as_agents(candidates: list[Candidate], tokens: list[Token], num_agents: int) -> list[Candidate]:
    """The same; refuses as many moves in every row as there are rows."""
    for candidate in candidates:
        if num_agents > 1 and all(len(moves) == num_agents for moves in candidate.lists):
            raise Refused(
                tokens[candidate.start].start,
                f"{num_agents} rows of {num_agents} moves: a row may be an agent or a step; write 'Agent 0:' before "
                "each agent's row",
            )
    return candidates


def _rows_follow(answer: Candidate, tokens: list[Token]) -> bool:
    """Whether other rows of moves follow the answer; a single word is a remark."""
    blocks = [block for block in bare_blocks(tokens) if block.start >= answer.end]
    rows = [block.lists for block in blocks if len(block.lists) > 1 or len(block.lists[0]) > 1]
    return bool(rows) and actions_of(rows[-1]) != actions_of(list(map(separated, answer.lists)))


def _refuse_contradiction(
    chosen: Candidate,
    actions: ParsedPlan,
    sections: list[Section],
    groups: list[Candidate],
    tokens: list[Token],
    num_agents: int,
) -> None:
    """Refuse moves that follow the last complete answer and differ from it, because they are ambiguous."""
    behind = tokens[chosen.end - 1].start
    for group in groups:
        if group.start >= chosen.end and len(group.lists) > 1:
            raise Refused(
                tokens[group.start].start,
                f"lists of moves behind the complete answer: {len(group.lists)}, agents: {num_agents}; write one answer",
            )
    agent_of = agents_named([section for section in sections if section.list.found], num_agents)
    for section in sections:
        if section.start < behind or not section.list.formal:
            continue
        if section.list.found:
            agent = agent_of[section.label]
            again = _actions([*chosen.lists, separated(section.list.moves)])[-1]
            contradicts = again != actions[agent]
        else:
            contradicts = section.list.broken is not None and len(section.list.moves) > 1
        if contradicts:
            raise Refused(
                section.start,
                f"agent {section.label} has other moves here than in the complete answer before: write one answer",
            )


def _no_answer(sections: list[Section], tokens: list[Token], num_agents: int) -> Refused:
    """The reason why there is no plan: the fault of the text nearest to an answer."""
    found = [section for section in sections if section.list.found]
    named = {section.label for section in found}
    for section in sections:
        if section.list.broken is not None:
            return Refused(*section.list.broken)
    for section in sections:
        if section.label in named:
            continue
        if section.list.cells:
            return Refused(section.start, "cells instead of moves: write LEFT, DOWN, RIGHT, UP or WAIT for every step")
        if section.list.bracketed:
            return Refused(section.start, f"no move stands in agent {section.label}'s list: write [] if it never moves")
        stop = section.list.stopped_by
        if stop is not None and stop.kind not in ("newline", "end"):
            return Refused(
                stop.start,
                f"no move follows agent {section.label} here: write its moves as LEFT, DOWN, RIGHT, UP, WAIT",
            )
    if found:
        present = set(agents_named(found, num_agents).values())
        missing = [str(agent) for agent in range(num_agents) if agent not in present]
        what = (
            f"no moves for agent {', '.join(missing[:8])}"
            if missing
            else "the agents' moves are scattered or out of order"
        )
        return Refused(found[-1].start, f"{what}: write one row for each agent")
    groups = bracket_groups(tokens)
    if groups:
        return Refused(
            tokens[groups[-1].start].start,
            f"lists of moves: {len(groups[-1].lists)}, agents: {num_agents}; write one for each",
        )
    end = tokens[-1].end if tokens else 0
    return Refused(end, "the reply ends without an answer: write one line for each agent, as in 'Agent 0: RIGHT'")


def _actions(lists: list[list[Move]]) -> ParsedPlan:
    for moves in lists:
        if len(moves) > MAX_MOVES:
            raise Refused(moves[MAX_MOVES].start, f"more than {MAX_MOVES} moves for one agent: shorten the plan")
    return actions_of([separated(moves) for moves in lists])
