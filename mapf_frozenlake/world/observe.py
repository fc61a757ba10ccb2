"""One agent's observation: a kernel for each entry of ``layers.LAYERS`` writes the entry's numbers from ``out[at]`` on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mapf_frozenlake.world.jit import inlined, subkernel
from mapf_frozenlake.world.lanes import expect_writes, ground8, mark1, mark4, mark8
from mapf_frozenlake.world.move import HOLE, ICE, OFF
from mapf_frozenlake.world.state import FAR, NEXT, NOWHERE

_NUM_PLANES = 4  # planes that see_surroundings writes
# With few agents and a wide window, agents are written one by one, which is faster than reading every cell.
_FEW, _WIDE = 16, 8


class Sight(NamedTuple):
    """Settings of observations, fixed for a batch. Kernels take them as int64[4]."""

    window: Any
    hints: Any  # bool
    max_size: Any
    one: Any  # 1.0 in the observation's type
    half: Any  # 0.5 in it


@inlined
def open_sight(sight, out):
    kind = out.dtype.type
    return Sight(sight[0], sight[1] != 0, sight[2], kind(sight[3]), kind(sight[3] / 2))


@subkernel
def see_cells(state, e, i, sight, out, at):
    here, goal = state.cells[e, i], state.goals[e, i]
    out[at], out[at + 1] = state.place[here, 0], state.place[here, 1]
    out[at + 2], out[at + 3] = state.place[goal, 0], state.place[goal, 1]


@subkernel
def see_board(state, e, i, sight, out, at):
    place = state.place
    side, one = sight.max_size, sight.one
    area = side * side
    out[at : at + 6 * area] = 0
    hole, off = out[at : at + area], out[at + area : at + 2 * area]
    for r in range(side):
        base, to = (r + state.pad) * state.stride + state.pad, r * side
        for c in range(side):
            kind = state.terrain[e, base + c]
            hole[to + c] = one if kind == HOLE else 0
            off[to + c] = one if kind == OFF else 0
    for j in range(state.episode[e].num_agents):
        here, goal = state.cells[e, j], state.goals[e, j]
        if here == NOWHERE:
            continue
        out[at + (2 if j == i else 4) * area + place[here, 0] * side + place[here, 1]] = one
        out[at + (3 if j == i else 5) * area + place[goal, 0] * side + place[goal, 1]] = one


@subkernel
def see_as_pogema(state, e, i, sight, out, at):
    """Obstacles, agents and the own goal. Beyond the row or column next to the board there are no obstacles."""
    episode, window, one = state.episode[e], sight.window, sight.one
    area, radius = window * window, window // 2
    here, goal = state.cells[e, i], state.goals[e, i]
    row, col = np.int64(state.place[here, 0]), np.int64(state.place[here, 1])
    top, left = max(0, radius - row - 1), max(0, radius - col - 1)
    bottom, right = min(window, episode.height + radius - row + 1), min(window, episode.width + radius - col + 1)
    terrain, occupant, corner = state.terrain[e], state.occupant[e], here - radius * (state.stride + 1)
    expect_writes(out, len(out), 2 * len(out))  # prefetched for the next agent
    for r in range(window):
        base, to = corner + r * state.stride, at + r * window
        if window >= 8:
            for shift in range(0, window - 8, 8):
                ground8(terrain, base + shift, out, to + shift, one)
                ground8(occupant, base + shift, out, to + area + shift, one)
            ground8(terrain, base + window - 8, out, to + window - 8, one)
            ground8(occupant, base + window - 8, out, to + area + window - 8, one)
        else:
            for c in range(window):
                out[to + c] = one if terrain[base + c] != ICE else 0
                out[to + area + c] = one if occupant[base + c] != 0 else 0
        if r < top or r >= bottom:
            out[to : to + window] = 0
        elif left > 0 or right < window:
            out[to : to + left] = 0
            out[to + right : to + window] = 0
    out[at + 2 * area : at + 3 * area] = 0
    down = max(-radius, min(radius, state.place[goal, 0] - row))
    across = max(-radius, min(radius, state.place[goal, 1] - col))
    out[at + 2 * area + (radius + down) * window + radius + across] = one


@subkernel
def see_surroundings(state, e, i, sight, out, at):
    """Terrain, agents and goals: the four planes at once, and at the front of the vector (``at`` is 0)."""
    expect_writes(out, len(out), 2 * len(out))  # prefetched for the next agent
    count = state.episode[e].num_agents
    if count <= _FEW and sight.window >= _WIDE:
        _see_few(state, e, i, count, sight.window, sight.one, sight.half, out)
    else:
        _see_window(state, e, i, sight.window, sight.one, sight.half, out)
        if state.episode[e].on_goal == NEXT:  # the goal may be another agent's, too
            _mark_own_goal(state, e, i, sight.window, sight.one, out)


@subkernel
def _mark_own_goal(state, e, i, window, one, out):
    place, here, radius = state.place, state.cells[e, i], window // 2
    top, left = np.int64(place[here, 0]) - radius, np.int64(place[here, 1]) - radius
    out[_spot(state, state.goals[e, i], top, left, window, 2 * window * window)] = one


@subkernel
def _see_few(state, e, i, count, window, one, half, out):
    """The four planes of few agents: the terrain a row at a time, zeros, and a mark for each agent and goal in sight."""
    area, radius = window * window, window // 2
    here = state.cells[e, i]
    at, to = here - radius * (state.stride + 1), 0
    for _ in range(window):
        for shift in range(0, window - 8, 8):
            ground8(state.terrain[e], at + shift, out, to + shift, one)
        ground8(state.terrain[e], at + window - 8, out, to + window - 8, one)
        at += state.stride
        to += window
    out[area : _NUM_PLANES * area] = 0
    top, left = np.int64(state.place[here, 0]) - radius, np.int64(state.place[here, 1]) - radius
    for j in range(count):
        goals = 2 * area if j == i else 3 * area
        out[_spot(state, state.goals[e, j], top, left, window, goals)] = one
        if j != i:
            out[_spot(state, state.cells[e, j], top, left, window, area)] = one if j < i else half


@subkernel
def _spot(state, cell, top, left, window, plane):
    """Index of ``cell`` in the window's ``plane``; outside the window, the index of the first feature, which is written later."""
    row, col = np.int64(state.place[cell, 0]) - top, np.int64(state.place[cell, 1]) - left
    in_sight = (row >= 0) & (row < window) & (col >= 0) & (col < window)
    return plane + row * window + col if in_sight else _NUM_PLANES * window * window


@subkernel
def _see_window(state, e, i, window, one, half, out):
    """The four planes, a row at a time; the last lanes of a row overlap the ones before."""
    terrain, occupant, owner = state.terrain[e], state.occupant[e], state.owner[e]
    area = window * window
    me = i + 1
    at = state.cells[e, i] - (window // 2) * (state.stride + 1)
    to = 0
    for _ in range(window):
        if window >= 8:
            for shift in range(0, window - 8, 8):
                mark8(terrain, occupant, owner, at + shift, out, to + shift, area, me, one, half)
            last = window - 8
            mark8(terrain, occupant, owner, at + last, out, to + last, area, me, one, half)
        elif window >= 4:
            mark4(terrain, occupant, owner, at, out, to, area, me, one, half)
            last = window - 4
            mark4(terrain, occupant, owner, at + last, out, to + last, area, me, one, half)
        else:
            for shift in range(window):
                mark1(terrain, occupant, owner, at + shift, out, to + shift, area, me, one, half)
        at += state.stride
        to += window


@subkernel
def see_way(state, e, i, sight, out, at):
    window, radius = sight.window, sight.window // 2
    strength = np.float32(state.episode[e].hint * sight.one / np.float32(radius))
    distance = state.distance[e, i]
    own = np.int32(distance[state.cells[e, i]])
    corner = state.cells[e, i] - radius * (state.stride + 1)
    for r in range(window):
        for c in range(window):
            there = np.int32(distance[corner + r * state.stride + c])
            nearer = max(-radius, min(radius, own - there))
            out[at + r * window + c] = strength * np.float32(nearer if own != FAR else -radius)


@subkernel
def see_facts(state, e, i, sight, out, at):
    place, episode = state.place, state.episode[e]
    one = np.float32(sight.one)
    slots = np.float32(state.cells.shape[1])
    here, goal = np.int64(state.cells[e, i]), np.int64(state.goals[e, i])
    scale = one / np.float32(sight.max_size - 1)
    out[at] = np.float32(place[goal, 0] - place[here, 0]) * scale
    out[at + 1] = np.float32(place[goal, 1] - place[here, 1]) * scale
    out[at + 2] = one if here == goal else np.float32(0)
    out[at + 3] = one * np.float32(i + 1) / slots
    out[at + 4] = one * np.float32(episode.num_agents) / slots
    out[at + 5] = one * np.float32(episode.step) / np.float32(episode.horizon)


@subkernel
def see_mask(state, e, i, sight, out, at):
    for action, there in enumerate(_reached(state, e, i)):
        out[at + action] = sight.one if state.terrain[e, there] != OFF else 0


@subkernel
def see_legal(state, e, i, sight, out, at):
    hint = np.float32(sight.one) * state.episode[e].hint
    for action, there in enumerate(_reached(state, e, i)):
        out[at + action] = hint if state.terrain[e, there] == ICE else np.float32(0)


@subkernel
def _reached(state, e, i):
    """The cells to which the five actions lead."""
    here = np.int64(state.cells[e, i])
    return here - 1, here + state.stride, here + 1, here - state.stride, here


@subkernel
def see_masks(state, e, out):
    """Whether each action of each agent stays on the board: out bool[n, A, 5]. An empty slot, or an agent that has left, can only wait."""
    stride = state.stride
    for i in range(out.shape[1]):
        here = np.int64(state.cells[e, i])
        out[e, i, 4] = True
        for action, there in enumerate((here - 1, here + stride, here + 1, here - stride)):
            out[e, i, action] = here != NOWHERE and state.terrain[e, max(0, there)] != OFF
