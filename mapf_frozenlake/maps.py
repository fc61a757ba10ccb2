"""Instances from explicit maps: FrozenLake's ``desc``, and MovingAI's ``.map`` and ``.scen`` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.letters import GOAL_LETTERS, HOLE, ICE, MAX_LETTERED_AGENTS, START_LETTERS
from mapf_frozenlake.solvers import distance_fields
from mapf_frozenlake.types import MAX_SIZE, MIN_SIZE, BoolGrid, Cells, Instance

MOVINGAI_ICE = ".GS"
MOVINGAI_HOLES = "@OTW"
MOST_DIGITS = 9  # of a number in a file; Python refuses to read thousands of digits


def from_desc(desc: str | Sequence[str]) -> Instance:
    """The instance that a board of letters describes: ``["SFFF", "FHFg", "FFFH", "HsFG"]``.

    ``F`` ice, ``H`` hole; agent 0 goes from ``S`` to ``G``, agent 1 from ``s`` to ``g``, agent 2 from ``A`` to ``a``, and
    so on. Spaces between the letters are ignored. Every agent's goal is reachable from its start.
    """
    rows = _rows_of(desc)
    where = _letters_of(rows)
    agents = next((i for i, letter in enumerate(START_LETTERS) if letter not in where), MAX_LETTERED_AGENTS)
    expected = {*START_LETTERS[:agents], *GOAL_LETTERS[:agents]}
    if agents == 0 or set(where) != expected:
        unmatched = sorted(set(where) ^ expected) or ["S", "G"]
        raise LakeError(
            f"the map's starts and goals do not pair up ({', '.join(unmatched)}): agents are numbered without a gap, "
            f"starts {' '.join(START_LETTERS[:5])} …, goals {' '.join(GOAL_LETTERS[:5])} …"
        )
    holes = np.array([[letter == HOLE for letter in row] for row in rows])
    starts = [where[letter] for letter in START_LETTERS[:agents]]
    goals = [where[letter] for letter in GOAL_LETTERS[:agents]]
    return require_paths(Instance(holes=holes, starts=np.array(starts), goals=np.array(goals)))


def _letters_of(rows: list[str]) -> dict[str, tuple[int, int]]:
    """The cell of each start's and goal's letter."""
    where: dict[str, tuple[int, int]] = {}
    for r, row in enumerate(rows):
        for c, letter in enumerate(row):
            if letter in (ICE, HOLE):
                continue
            if letter not in START_LETTERS and letter not in GOAL_LETTERS:
                raise LakeError(
                    f"row {r} of the map has {letter!r} in column {c}: write F for ice, H for a hole, "
                    f"{' '.join(START_LETTERS[:5])} … for starts and {' '.join(GOAL_LETTERS[:5])} … for goals"
                )
            if letter in where:
                raise LakeError(
                    f"the map has {letter!r} twice, at {where[letter]} and at {(r, c)}: use each letter once; "
                    f"agent 1 goes from {START_LETTERS[1]!r} to {GOAL_LETTERS[1]!r}"
                )
            where[letter] = (r, c)
    return where


def to_desc(instance: Instance) -> list[str]:
    """The board in letters; ``from_desc`` reads it back."""
    if instance.num_agents > MAX_LETTERED_AGENTS:
        raise LakeError(
            f"{instance.num_agents} agents: a board in letters names at most {MAX_LETTERED_AGENTS}; "
            f"save as MovingAI files or as an InstanceSet"
        )
    return ["".join(row) for row in lettered(instance.holes, instance.starts, instance.goals)]


def lettered(holes: BoolGrid, agents: Cells, goals: Cells) -> NDArray[np.str_]:
    """The letter of each cell. Where an agent stands on a goal, the agent is shown; one that has left the board is not."""
    board = np.where(holes, HOLE, ICE)
    for letters, cells in ((GOAL_LETTERS, goals), (START_LETTERS, agents)):
        for agent, cell in enumerate(cells):
            if cell[0] >= 0:
                board[tuple(cell)] = letters[agent]
    return board


def load_map(path: str | Path) -> BoolGrid:
    """The holes of a MovingAI ``.map`` file: bool[height, width]."""
    lines = _read(path).splitlines()
    header, body = lines[:4], lines[4:]
    facts = dict(line.split(maxsplit=1) for line in header[:3] if len(line.split(maxsplit=1)) == 2)
    if len(header) < 4 or header[3].strip() != "map" or not {"type", "height", "width"} <= set(facts):
        raise LakeError(f"{path}: a .map file begins with the lines 'type …', 'height …', 'width …', 'map'")
    height, width = _count(path, "height", facts["height"]), _count(path, "width", facts["width"])
    if not (MIN_SIZE <= height <= MAX_SIZE and MIN_SIZE <= width <= MAX_SIZE):
        raise LakeError(f"{path}: {height}×{width} is outside {MIN_SIZE}–{MAX_SIZE} a side: crop the map")
    rows = [row for row in body if row]
    if len(rows) != height:
        raise LakeError(f"{path}: height says {height}, the map has {len(rows)} rows: correct one of the two")
    for r, row in enumerate(rows):
        if len(row) != width:
            raise LakeError(
                f"{path}: width says {width}, row {r} (line {r + 5}) has {len(row)} characters: correct one of the two"
            )
        strange = set(row) - set(MOVINGAI_ICE + MOVINGAI_HOLES)
        if strange:
            raise LakeError(
                f"{path}: row {r} (line {r + 5}) has {min(strange)!r}: passable cells are {' '.join(MOVINGAI_ICE)}, "
                f"blocked ones {' '.join(MOVINGAI_HOLES)}"
            )
    return np.array([[cell in MOVINGAI_HOLES for cell in row] for row in rows])


def load_movingai(
    map_path: str | Path, scen_path: str | Path | None = None, num_agents: int = 2, *, seed: int = 0
) -> Instance:
    """The first ``num_agents`` tasks of a MovingAI scenario on its map; without a scenario, tasks drawn by ``seed``.

    Every goal is reachable.
    """
    holes = load_map(map_path)
    if scen_path is None:
        return _with_drawn_tasks(map_path, holes, num_agents, seed)
    starts, goals = _tasks(scen_path, map_path, holes, num_agents)
    return require_paths(Instance(holes=holes, starts=np.array(starts), goals=np.array(goals)))


def _with_drawn_tasks(map_path: str | Path, holes: BoolGrid, num_agents: int, seed: int) -> Instance:
    """Starts and goals in pairs, each pair on one lake of the map; a lake's chance is proportional to its size."""
    rng = np.random.default_rng(seed)
    lakes = [lake for lake in _lakes(holes) if len(lake) > 1]
    most = sum(len(lake) // 2 for lake in lakes)
    if not 1 <= num_agents <= most:
        raise LakeError(f"num_agents={num_agents}: {map_path} has room for {most}; ask for 1 to {most}")
    free = [rng.permutation(lake) for lake in lakes]
    starts, goals = [], []
    for _ in range(num_agents):
        sizes = np.array([len(lake) if len(lake) > 1 else 0 for lake in free], float)
        which = int(rng.choice(len(free), p=sizes / sizes.sum()))
        starts.append(free[which][0])
        goals.append(free[which][1])
        free[which] = free[which][2:]
    return require_paths(Instance(holes=holes, starts=np.array(starts), goals=np.array(goals)))


def _lakes(holes: BoolGrid) -> list[NDArray]:
    """The connected parts of the ice, each as int64[cells, 2]."""
    unseen = {(int(row), int(col)) for row, col in np.argwhere(~holes)}
    lakes = []
    while unseen:
        stack, lake = [unseen.pop()], []
        while stack:
            row, col = stack.pop()
            lake.append((row, col))
            for there in ((row, col - 1), (row + 1, col), (row, col + 1), (row - 1, col)):
                if there in unseen:
                    unseen.remove(there)
                    stack.append(there)
        lakes.append(np.array(sorted(lake)))
    return sorted(lakes, key=lambda lake: tuple(lake[0]))


def _tasks(
    scen_path: str | Path, map_path: str | Path, holes: BoolGrid, num_agents: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Starts and goals of a scenario's first tasks."""
    lines = _read(scen_path).splitlines()
    if not lines or not lines[0].startswith("version"):
        raise LakeError(f"{scen_path}: a .scen file begins with the line 'version 1'")
    tasks = [(number, line.split()) for number, line in enumerate(lines[1:], 2) if line.strip()]
    if not 1 <= num_agents <= len(tasks):
        raise LakeError(f"num_agents={num_agents}: {scen_path} has {len(tasks)} tasks; ask for 1 to {len(tasks)}")
    starts, goals = [], []
    for number, fields in tasks[:num_agents]:
        if len(fields) < 9 or not all(map(_is_count, fields[2:8])):
            raise LakeError(
                f"{scen_path}: line {number} has {len(fields)} fields: expected bucket, map, width, height, start x, start y, "
                f"goal x, goal y, length, with whole numbers from width to goal y"
            )
        width, height, start_col, start_row, goal_col, goal_row = (int(field) for field in fields[2:8])
        if (height, width) != holes.shape:
            raise LakeError(
                f"{scen_path}: line {number} is for a {height}×{width} map, {map_path} is {holes.shape[0]}×{holes.shape[1]}: "
                f"use the scenario's own map"
            )
        starts.append((start_row, start_col))
        goals.append((goal_row, goal_col))
    return starts, goals


def save_movingai(instance: Instance, map_path: str | Path, scen_path: str | Path) -> None:
    """Write an instance as a map and a scenario that ``load_movingai`` and other planners read; every agent needs a path."""
    fields = distance_fields(require_paths(instance))
    rows = ["".join("@" if hole else "." for hole in row) for row in instance.holes]
    header = ["type octile", f"height {instance.height}", f"width {instance.width}", "map"]
    Path(map_path).write_text("\n".join([*header, *rows]) + "\n", encoding="utf-8")
    name = Path(map_path).name
    lines = ["version 1"]
    for agent, (start, goal) in enumerate(zip(instance.starts, instance.goals)):
        length = fields[agent][tuple(start)]
        task = (0, name, instance.width, instance.height, start[1], start[0], goal[1], goal[0], length)
        lines.append("\t".join(map(str, task)))
    Path(scen_path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def require_paths(instance: Instance) -> Instance:
    """The instance itself if every agent alone can reach its goal; else an error that names the agent."""
    fields = distance_fields(instance)
    for agent, (start, goal) in enumerate(zip(instance.starts.tolist(), instance.goals.tolist())):
        if fields[agent, start[0], start[1]] < 0:
            raise LakeError(
                f"agent {agent} has no path from {tuple(start)} to {tuple(goal)}: holes cut the lake; open one of them"
            )
    return instance


def _rows_of(desc: str | Sequence[str]) -> list[str]:
    if not isinstance(desc, str | Sequence | np.ndarray):
        raise LakeError(f"a map of type {type(desc).__name__}: give a list of strings, one for each row")
    lines = desc.strip().splitlines() if isinstance(desc, str) else list(desc)
    rows = ["".join(str(line).split()) for line in lines]
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        short = next((r for r, row in enumerate(rows) if len(row) != len(rows[0])), 0)
        raise LakeError(
            f"row {short} of the map has {len(rows[short]) if rows else 0} cells, row 0 has {len(rows[0]) if rows else 0}: "
            f"make all rows equally long"
        )
    if not (MIN_SIZE <= len(rows) <= MAX_SIZE and MIN_SIZE <= len(rows[0]) <= MAX_SIZE):
        raise LakeError(f"the map is {len(rows)}×{len(rows[0])}: {MIN_SIZE} to {MAX_SIZE} rows and columns")
    return rows


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LakeError(f"{path}: byte {error.start} is not text; MovingAI files are plain text") from None
    except OSError as error:
        raise LakeError(f"{path}: {error.strerror}; give the path of a readable file") from None


def _count(path: str | Path, name: str, text: str) -> int:
    if not _is_count(text.strip()):
        raise LakeError(f"{path}: {name} is {text.strip()!r:.40}: write a whole number of at most {MOST_DIGITS} digits")
    return int(text)


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= MOST_DIGITS
