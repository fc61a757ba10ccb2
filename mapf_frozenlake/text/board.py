"""``to_text`` and ``from_text``: an instance in words, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.letters import GOAL_LETTERS, HOLE, ICE, MAX_LETTERED_AGENTS, START_LETTERS
from mapf_frozenlake.maps import to_desc
from mapf_frozenlake.types import MAX_SIZE, MIN_SIZE, BoolGrid, Cells, Instance

TextStyle = Literal["paper", "coordinates", "short"]
STYLES: tuple[TextStyle, ...] = get_args(TextStyle)
MAX_TEXT = 200_000  # characters; a 64×64 board with 64 agents takes a tenth of it

_ROUTE = re.compile(
    r"\bAgent (\d{1,4}) needs to go from \(\s?(-?\d{1,6}),\s?(-?\d{1,6})\) to \(\s?(-?\d{1,6}),\s?(-?\d{1,6})\)"
)
_BOARD_ROW = re.compile(r"^[ \t]*([A-Za-z](?:[ \t]+[A-Za-z])+)[ \t]*$")
_SIDES = re.compile(r"\bThe lake has (\d{1,4}) rows and (\d{1,4}) columns\b")
_HOLES = re.compile(r"^Holes: (.*)$", re.MULTILINE)
_CELL = re.compile(r"\((\d{1,4}), (\d{1,4})\)")
_SHORT = re.compile(r"\bLake (\d{1,4}) (\d{1,4}):((?: [A-Za-z])+);((?: \d{1,4})+)")


def raise_unless_lettered(num_agents: int, style: TextStyle) -> None:
    """Raises ``LakeError`` if the style has too few letters for the agents."""
    if style in ("paper", "short") and num_agents > MAX_LETTERED_AGENTS:
        raise LakeError(
            f"{num_agents} agents: style={style!r} has letters for {MAX_LETTERED_AGENTS}; use style='coordinates'"
        )


def to_text(instance: Instance, style: TextStyle = "paper") -> str:
    """The instance in words; ``from_text`` reads it back, except for certified facts.

    ``"paper"``: a board of letters, then a sentence for each agent, as in "From Trainee to Trainer" (up to 24 agents).
    ``"coordinates"``: sides, holes and the same sentences.
    ``"short"``: one line for small models: sides, the letters row by row, then each agent's start and goal.
    """
    raise_unless_lettered(instance.num_agents, style)
    if style == "short":
        return _short(instance)
    if style == "paper":
        board = [" ".join(row) for row in to_desc(instance)]
    elif style == "coordinates":
        holes = ", ".join(_cell(hole) for hole in np.argwhere(instance.holes))
        board = [f"The lake has {instance.height} rows and {instance.width} columns.", f"Holes: {holes or 'none'}"]
    else:
        raise LakeError(f"style={style!r}: choose one of {', '.join(map(repr, STYLES))}")
    routes = (
        f"Agent {agent} needs to go from {_cell(start)} to {_cell(goal)}."
        for agent, (start, goal) in enumerate(zip(instance.starts, instance.goals))
    )
    return "\n".join([*board, "", *routes])


def from_text(text: str | Mapping[str, Any]) -> Instance:
    """The instance that ``to_text`` wrote, or a row of the public data set (``sample_id``, ``num_agents``, ``text``).

    Text around board and sentences is ignored. A ``LakeError`` names the missing or contradictory part.
    """
    if isinstance(text, Mapping):
        return _from_row(text)
    if not isinstance(text, str):
        raise LakeError(f"from_text reads a string or a row with 'text', not a {type(text).__name__}")
    if len(text) > MAX_TEXT:
        raise LakeError(f"the text has {len(text)} characters, at most {MAX_TEXT} are read")
    if _SHORT.search(text) is not None:
        return _from_short(text)
    starts, goals = _routes(text)
    if (sides := _SIDES.search(text)) is not None:
        return Instance(holes=_holes_from_list(text, int(sides[1]), int(sides[2])), starts=starts, goals=goals)
    return _from_letters(_board(text), starts, goals)


def _from_letters(board: list[list[str]], starts: Cells, goals: Cells) -> Instance:
    holes = np.array([[letter == HOLE for letter in row] for row in board])
    instance = Instance(holes=holes, starts=starts, goals=goals)
    _refuse_other_letters(board, instance)
    return instance


def _short(instance: Instance) -> str:
    letters = " ".join(letter for row in to_desc(instance) for letter in row)
    ends = np.concatenate([instance.starts, instance.goals], axis=1).ravel().tolist()  # start row, col, goal row, col
    return f"Lake {instance.height} {instance.width}: {letters}; {' '.join(map(str, ends))}"


def _from_short(text: str) -> Instance:
    found = list(_SHORT.finditer(text))
    if len(found) > 1 or _ROUTE.search(text) is not None:
        raise LakeError("the text holds more than one lake: write one")
    height, width = int(found[0][1]), int(found[0][2])
    letters, ends = found[0][3].split(), found[0][4].split()
    _refuse_sides(height, width)
    if len(letters) != height * width:
        raise LakeError(f"{len(letters)} letters for {height} rows of {width} columns: write {height * width}")
    if len(ends) % 4:
        raise LakeError(f"{len(ends)} numbers after the board: write four for each agent, start and goal (row, column)")
    board = [letters[begin : begin + width] for begin in range(0, len(letters), width)]
    cells = np.array(ends, dtype=np.int16).reshape(-1, 2, 2)
    return _from_letters(board, cells[:, 0], cells[:, 1])


def _refuse_sides(height: int, width: int) -> None:
    if not (MIN_SIZE <= height <= MAX_SIZE and MIN_SIZE <= width <= MAX_SIZE):
        raise LakeError(f"{height} rows and {width} columns: both must be {MIN_SIZE} to {MAX_SIZE}")


def _from_row(row: Mapping[str, Any]) -> Instance:
    name = row.get("sample_id")
    where = f"row {str(name)[:80]!r}: " if name is not None else ""
    if not isinstance(row.get("text"), str):
        raise LakeError(f"{where}a row needs its board under 'text'")
    try:
        instance = from_text(row["text"])
    except LakeError as error:
        raise LakeError(f"{where}{error}") from error
    claimed = row.get("num_agents", instance.num_agents)
    if str(claimed) != str(instance.num_agents):  # "2" in a row read from CSV
        raise LakeError(
            f"{where}num_agents={str(claimed)[:20]}, but the text has {instance.num_agents}: correct one of them"
        )
    return replace(instance, sample_id=None if name is None else str(name))


def _routes(text: str) -> tuple[Cells, Cells]:
    routes: dict[int, tuple[int, ...]] = {}
    for match in _ROUTE.finditer(text):
        agent, *cells = map(int, match.groups())
        if routes.setdefault(agent, tuple(cells)) != tuple(cells):
            raise LakeError(f"two sentences say where agent {agent} needs to go, and they differ: keep one")
    if not routes:
        raise LakeError("no agent is named: write 'Agent 0 needs to go from (0, 0) to (2, 3).' for each")
    missing = next((agent for agent in range(len(routes)) if agent not in routes), None)
    if missing is not None:
        raise LakeError(
            f"agents {', '.join(map(str, sorted(routes)[:8]))} are named but not agent {missing}: number them from 0"
        )
    ordered = [routes[agent] for agent in range(len(routes))]
    for agent, route in enumerate(ordered):
        if max(map(abs, route)) > MAX_SIZE:
            raise LakeError(f"agent {agent}'s route {route} fits on no lake: use at most {MAX_SIZE} rows and columns")
    endpoints = np.array(ordered, dtype=np.int16).reshape(-1, 2, 2)
    return endpoints[:, 0], endpoints[:, 1]


def _board(text: str) -> list[list[str]]:
    """The one block of letter rows."""
    blocks: list[tuple[int, list[list[str]]]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _BOARD_ROW.match(line)
        if match is None:
            continue
        if blocks and blocks[-1][0] + len(blocks[-1][1]) == number:
            blocks[-1][1].append(match[1].split())
        else:
            blocks.append((number, [match[1].split()]))
    if len(blocks) != 1:
        found = (
            f"boards begin on lines {', '.join(str(first) for first, _ in blocks[:4])}"
            if blocks
            else "no board is there"
        )
        raise LakeError(f"{found}: write one, a row of letters a line, as in 'S F H G'")
    first, rows = blocks[0]
    for number, row in enumerate(rows, start=first):
        if len(row) != len(rows[0]):
            raise LakeError(
                f"line {number} has {len(row)} cells, but the rows above have {len(rows[0])}: make them equally long"
            )
    if not (MIN_SIZE <= len(rows) <= MAX_SIZE and len(rows[0]) <= MAX_SIZE):
        raise LakeError(
            f"line {first}: a board of {len(rows)} rows and {len(rows[0])} columns: "
            f"both must be {MIN_SIZE} to {MAX_SIZE}"
        )
    return rows


def _refuse_other_letters(board: list[list[str]], instance: Instance) -> None:
    """The letters must show the board that the sentences describe."""
    if instance.num_agents > MAX_LETTERED_AGENTS:
        raise LakeError(
            f"{instance.num_agents} agents on a board in letters, which names at most {MAX_LETTERED_AGENTS}"
        )
    expected = to_desc(instance)
    for r, (row, expected_row) in enumerate(zip(board, expected)):
        for c, (letter, wanted) in enumerate(zip(row, expected_row)):
            if letter != wanted:
                raise LakeError(
                    f"cell ({r}, {c}) shows {letter!r}, but by the sentences it is {wanted!r} ({ICE} ice, {HOLE} hole, "
                    f"{' '.join(START_LETTERS[:5])} starts, {' '.join(GOAL_LETTERS[:5])} goals): correct one of them"
                )


def _holes_from_list(text: str, height: int, width: int) -> BoolGrid:
    _refuse_sides(height, width)
    listed = _HOLES.search(text)
    if listed is None:
        raise LakeError(
            "the text gives the sides but has no line 'Holes: (0, 1), …': add it, with 'none' if there are no holes"
        )
    holes = np.zeros((height, width), dtype=np.bool_)
    rest = _CELL.sub("", listed[1]).replace(",", " ").strip()
    if rest not in ("", "none"):
        raise LakeError(
            f"{rest[:40]!r} in the line of holes is not a cell: write '(row, column)' each, separated by ', '"
        )
    for row, col in _CELL.findall(listed[1]):
        if not (int(row) < height and int(col) < width):
            raise LakeError(f"hole ({row}, {col}) is off the board of {height} rows and {width} columns")
        holes[int(row), int(col)] = True
    return holes


def _cell(cell: NDArray) -> str:
    return f"({int(cell[0])}, {int(cell[1])})"
