"""Complete labelled answers: the agent of every row of moves, and the end of each answer."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise, takewhile

from mapf_frozenlake.text.errors import Refused
from mapf_frozenlake.text.lists import MoveList, read_list
from mapf_frozenlake.text.moves import Move, separated
from mapf_frozenlake.text.tokens import Token
from mapf_frozenlake.text.words import CHOICE_WORDS, CONTINUING_WORDS, NUMBER_WORDS, STEP_WORDS, agent_numbers

MAX_HEADING = 3  # different words, as in "Or, second option:"
_NUMBERS = "|".join(NUMBER_WORDS)
AGENT_LABEL = re.compile(
    rf"""(?<![A-Za-z0-9])
         (?: (?:agent|robot|player|bot) (?:[\s_\#-]{{0,3}}(?:id|number|no\.?|index))? | (?<=["'])id(?=["']) | a(?=\d) )
         ["'’*`]{{0,3}}
         (?: [\s_:=\#-]{{0,3}} ["'*`]{{0,2}} (?P<number>\d{{1,3}}) | [\s_:=\#-]{{1,3}} ["'*`]{{0,2}} (?P<word>{_NUMBERS}|[A-Za-z]) )
         (?:['’]s)? (?![A-Za-z0-9])""",
    re.VERBOSE | re.IGNORECASE,
)
# A number or letter alone, as a row's or a key's first word, and a colon behind it.
BARE_LABEL = re.compile(
    r"""(?: ^[^\w\n]{0,8} | ["'{] | (?<=\],[ ]) ) (?: (?P<number>\d{1,2}) | (?P<word>[A-Za-z]) ) ["'*`]{0,3} [ ]? (?=[:=])""",
    re.VERBOSE | re.MULTILINE,
)


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


def sections_of(answer: str, tokens: list[Token], label: re.Pattern[str]) -> list[Section]:
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


def labelled_answers(sections: list[Section], num_agents: int) -> list[Candidate]:
    """Every run of labelled lists with one list for each agent, last first. If there are more lists, only runs in the agents'
    order count; else the end of one answer and the beginning of the next would make a third."""
    found = [section for section in sections if section.list.found]
    agent_of = agents_named(found, num_agents)
    every_agent = list(range(num_agents))
    candidates = []
    end = len(found)
    while end >= num_agents:
        run = found[end - num_agents : end]
        agents = [agent_of[section.label] for section in run]
        if agents == every_agent or (len(found) == num_agents and sorted(agents) == every_agent):
            lists = dict(zip(agents, (separated(section.list.moves) for section in run)))
            candidates.append(Candidate([lists[agent] for agent in every_agent], run[0].token, run[-1].list.end))
            end -= num_agents
        else:
            end -= 1
    return candidates


def agents_named(found: list[Section], num_agents: int) -> dict[str, int]:
    labels = {section.label for section in found}
    numbers = agent_numbers(labels, num_agents) if labels else {}
    if numbers is None:
        named = ", ".join(sorted(labels)[:8])
        agents = "agent 0" if num_agents == 1 else f"agents 0 to {num_agents - 1}"
        raise Refused(found[0].start, f"the answer has moves for agents {named}; there are only {agents}")
    return numbers


def joined_steps(labelled: list[Candidate], sections: list[Section], tokens: list[Token]) -> Candidate:
    """The last answer, or all answers in a row if they are the marked steps of one plan."""
    found = [section for section in sections if section.list.found]
    agents = range(len(labelled[0].lists))
    one_move_each = all(len(section.list.moves) == 1 for section in found)
    if not _names_step(_line_before(labelled[0].start, tokens)) and (len(found) == len(agents) or not one_move_each):
        _refuse_open_sequel(labelled, tokens)
        return labelled[0]
    steps = labelled[::-1]
    complete = one_move_each and len(found) == len(steps) * len(agents) and not any(one.list.broken for one in sections)
    gaps = [
        _line_before(steps[0].start, tokens),
        *(tokens[one.end : other.start] for one, other in pairwise(steps)),
    ]
    if not (complete and all(map(_is_step_mark, gaps[1:])) and _counts_up(gaps)):
        raise Refused(
            tokens[steps[-1].start].start,
            "these may be several plans, or steps of one plan with some missing: write all moves of an agent in one row",
        )
    return Candidate([[step.lists[agent][0] for step in steps] for agent in agents], steps[0].start, steps[-1].end)


def _refuse_open_sequel(labelled: list[Candidate], tokens: list[Token]) -> None:
    """The last answer replaces the earlier one, unless the text between says that it continues it or offers a choice."""
    for last, previous in pairwise(labelled):
        words = {token.text.lower() for token in tokens[previous.end : last.start] if token.kind == "word"}
        offers_choice = len(words) <= MAX_HEADING and words & CHOICE_WORDS
        if words and (words <= CONTINUING_WORDS or offers_choice):
            raise Refused(
                tokens[last.start].start,
                "the moves here may go on from those before or replace them: write all moves of an agent in one row",
            )


def _line_before(index: int, tokens: list[Token]) -> list[Token]:
    """The text on the line before token ``index``."""
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
