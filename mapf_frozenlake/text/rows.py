"""Complete answers without agents' names: lists in a list, and rows that hold only moves."""

from __future__ import annotations

from dataclasses import dataclass, field

from mapf_frozenlake.text.errors import Refused
from mapf_frozenlake.text.labelled import Candidate
from mapf_frozenlake.text.lists import read_list
from mapf_frozenlake.text.moves import Move, moves_in, separated
from mapf_frozenlake.text.tokens import END, Token

_LIST_MARKS = frozenset(",;|\"'`“”‘’")


def bracket_groups(tokens: list[Token]) -> list[Candidate]:
    """Every list of lists of moves, as in [["RIGHT", "DOWN"], ["UP"]]; a list alone counts as a group of one."""
    groups: list[Candidate] = []
    frames: list[_Frame] = []
    for index, (token, following) in enumerate(zip(tokens, [*tokens[1:], END])):
        if token.text == "[":
            frames.append(_Frame(index))
        elif not frames:
            continue
        elif token.text == "]":
            frame = frames.pop()
            outer = frames[-1] if frames else _Frame(index)
            if frame.clean and any(frame.lists) and not frame.moves:
                groups.append(Candidate(frame.lists, frame.start, index + 1))
                outer.clean = False
            elif frame.clean and not frame.lists:
                outer.lists.append(frame.moves)
                if frame.moves:
                    groups.append(Candidate([frame.moves], frame.start, index + 1))
            else:
                outer.clean = False
        elif moves := moves_in(token):
            frames[-1].moves += moves
        elif token.kind not in ("newline", "to"):
            move_missing = token.text == following.text == ","
            empty_string = token.text == following.text in ('"', "'") and tokens[index - 1].text in (",", "[")
            frames[-1].clean &= token.text in _LIST_MARKS and not (move_missing or empty_string)
    return groups


@dataclass
class _Frame:
    """An open square bracket."""

    start: int
    lists: list[list[Move]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    clean: bool = True  # holds only moves, or only lists


def bare_rows(tokens: list[Token], num_agents: int) -> list[Candidate]:
    blocks = bare_blocks(tokens)
    if not blocks:
        return []
    rows = blocks[-1].lists
    if num_agents == 1 and len(rows) > 1 and all(len(row) == 1 for row in rows):
        rows = [[row[0] for row in rows]]  # one move a line
    if len(rows) != num_agents:
        raise Refused(
            tokens[blocks[-1].start].start,
            f"rows of moves: {len(rows)}, agents: {num_agents}; write one row for each, with 'Agent 0:' before the first",
        )
    return [Candidate(rows, blocks[-1].start, blocks[-1].end)]


def bare_blocks(tokens: list[Token]) -> list[Candidate]:
    """Neighbouring lines that hold only moves."""
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
        blocks[-1].lists.append(separated(row.moves))
        blocks[-1].end = end
    return blocks
