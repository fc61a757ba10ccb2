"""POGEMA 1.4.0's joint moves, transcribed agent by agent from its ``envs.py`` and ``grid.py``."""

from __future__ import annotations

DELTAS = ((0, -1), (1, 0), (0, 1), (-1, 0), (0, 0))  # this project's actions: left, down, right, up, wait


def step(holes, cells, actions, system):
    """Cells after the step. ``cells``: agent -> (row, col), of the agents that are on the board."""
    cells, actions = dict(cells), dict(enumerate(actions))
    return {"priority": _priority, "block_both": _block_both, "soft": _soft}[system](holes, cells, actions)


def window(holes, cells, goals, agent, radius):
    """The three channels as lists of rows: obstacles, agents, target."""
    height, width = holes.shape
    (row, col), (goal_row, goal_col) = cells[agent], goals[agent]
    occupied = set(cells.values())
    seen = [[[0.0] * (2 * radius + 1) for _ in range(2 * radius + 1)] for _ in range(3)]
    for r in range(2 * radius + 1):
        for c in range(2 * radius + 1):
            there = (row - radius + r, col - radius + c)
            if 0 <= there[0] < height and 0 <= there[1] < width:
                seen[0][r][c] = float(holes[there])
            elif -1 <= there[0] <= height and -1 <= there[1] <= width:
                seen[0][r][c] = (
                    1.0  # the border, one cell wide; beyond it POGEMA's ``empty_outside`` says nothing is there
                )
            seen[1][r][c] = float(there in occupied)
    down, across = (max(-radius, min(radius, d)) for d in (goal_row - row, goal_col - col))
    seen[2][radius + down][radius + across] = 1.0
    return seen


def _target(cells, actions, agent):
    return cells[agent][0] + DELTAS[actions[agent]][0], cells[agent][1] + DELTAS[actions[agent]][1]


def _wall(holes, cell):
    return not (0 <= cell[0] < holes.shape[0] and 0 <= cell[1] < holes.shape[1]) or bool(holes[cell])


def _priority(holes, cells, actions):
    for agent in sorted(cells):
        there = _target(cells, actions, agent)
        if not _wall(holes, there) and there not in cells.values():
            cells[agent] = there
    return cells


def _block_both(holes, cells, actions):
    used = {}
    for agent, cell in sorted(cells.items()):
        there = _target(cells, actions, agent)
        used[there] = "blocked" if there in used else "visited"
        used[cell] = "blocked"
    for agent in sorted(cells):
        there = _target(cells, actions, agent)
        if used[there] != "blocked" and not _wall(holes, there):
            cells[agent] = there
    return cells


def _soft(holes, cells, actions):
    used, edges = {}, {}
    for agent, cell in sorted(cells.items()):
        there = _target(cells, actions, agent)
        used.setdefault(there, []).append(agent)
        edges[cell, there] = [agent]
        if cell != there:
            edges.setdefault((there, cell), []).append(agent)
    for agent, cell in sorted(cells.items()):
        there = _target(cells, actions, agent)
        if len(edges[cell, there]) > 1:
            used[there].remove(agent)
            used.setdefault(cell, []).append(agent)
            actions[agent] = 4
    for agent in sorted(cells, reverse=True):
        there = _target(cells, actions, agent)
        if len(used[there]) > 1 or _wall(holes, there):
            _revert(agent, cells, used, there, actions)
    return {agent: _target(cells, actions, agent) for agent in cells}


def _revert(agent, cells, used, there, actions):
    actions[agent] = 4
    used[there].remove(agent)
    crowd = used.setdefault(cells[agent], [])
    crowd.append(agent)
    if len(crowd) > 1:
        _revert(crowd[0], cells, used, cells[agent], actions)
