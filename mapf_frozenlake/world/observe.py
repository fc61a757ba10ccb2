"""What agents see, written into ``out[env, agent, …]``; ``layout`` says what lies where. One function per kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mapf_frozenlake.world.jit import inlined, part
from mapf_frozenlake.world.lanes import expect_writes, ground8, mark1, mark4, mark8
from mapf_frozenlake.world.move import HOLE, ICE, OFF
from mapf_frozenlake.world.state import FAR

_NUM_PLANES = 4
_FEW, _WIDE = 16, 8  # so few agents in a window so wide are written one by one: that is faster than reading every cell


class Sight(NamedTuple):
    """How "ego" is seen: fixed for a batch. Kernels take it as int64[3] and two values of the observation's type."""

    window: int
    hints: bool
    max_size: int
    one: Any  # 1.0 in the observation's type
    half: Any  # 0.5 in it


@inlined
def open_sight(sight, ink):
    return Sight(sight[0], sight[1] != 0, sight[2], ink[0], ink[1])


@inlined
def see_compact(state, e, out):
    """Per agent (row, col, goal row, goal col), -1 in empty slots: out int16[n, A, 4]."""
    count = state.episode[e].num_agents
    for i in range(out.shape[1]):
        if i < count:
            here, goal = state.cells[e, i], state.goals[e, i]
            out[e, i, 0], out[e, i, 1] = state.place[here, 0], state.place[here, 1]
            out[e, i, 2], out[e, i, 3] = state.place[goal, 0], state.place[goal, 1]
        else:
            out[e, i, :] = -1


@inlined
def see_grid(state, e, one, out):
    """Per agent the board in six planes (``layout.GRID_PLANES``): out [n, A, 6, max_size, max_size]."""
    place = state.place
    count = state.episode[e].num_agents
    side = out.shape[3]
    for i in range(out.shape[1]):
        planes = out[e, i]
        planes[:] = 0
        if i >= count:
            continue
        for r in range(side):
            base = (r + state.pad) * state.stride + state.pad
            for c in range(side):
                kind = state.terrain[e, base + c]
                planes[0, r, c] = one if kind == HOLE else 0
                planes[1, r, c] = one if kind == OFF else 0
        for j in range(count):
            here, goal = state.cells[e, j], state.goals[e, j]
            planes[2 if j == i else 4, place[here, 0], place[here, 1]] = one
            planes[3 if j == i else 5, place[goal, 0], place[goal, 1]] = one


@inlined
def see_ego(state, e, sight, out):
    """Per agent the window around it and its features (``layout.EgoLayout``): out [n, A, size]."""
    count = state.episode[e].num_agents
    for i in range(out.shape[1]):
        seen = out[e, i]
        expect_writes(seen, len(seen), 2 * len(seen))  # the next agent's, meanwhile
        if i < count:
            if count <= _FEW and sight.window >= _WIDE:
                _see_few(state, e, i, count, sight.window, sight.one, sight.half, seen)
            else:
                _see_window(state, e, i, sight.window, sight.one, sight.half, seen)
            at = _NUM_PLANES * sight.window * sight.window
            if sight.hints:
                _see_way(state, e, i, sight.window, sight.one, seen[at:])
                at += sight.window * sight.window
            _see_features(state, e, i, at, sight, seen)
        else:
            seen[:] = 0


@part
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


@part
def _spot(state, cell, top, left, window, plane):
    """Index of ``cell`` in the window's ``plane``. Out of sight, it is that of the first feature, which is written later."""
    row, col = np.int64(state.place[cell, 0]) - top, np.int64(state.place[cell, 1]) - left
    in_sight = (row >= 0) & (row < window) & (col >= 0) & (col < window)
    return plane + row * window + col if in_sight else _NUM_PLANES * window * window


@part
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


@part
def _see_way(state, e, i, window, one, out):
    """Hint: how much nearer to the goal each cell of the window is, over the radius, scaled by the hints' strength."""
    radius = window // 2
    strength = np.float32(state.episode[e].hint * one / np.float32(radius))
    distance = state.distance[e, i]
    own = np.int32(distance[state.cells[e, i]])
    corner = state.cells[e, i] - radius * (state.stride + 1)
    for r in range(window):
        for c in range(window):
            there = np.int32(distance[corner + r * state.stride + c])
            nearer = max(-radius, min(radius, own - there))
            out[r * window + c] = strength * np.float32(nearer if own != FAR else -radius)


@part
def _see_features(state, e, i, at, sight, out):
    stride, place = state.stride, state.place
    episode = state.episode[e]
    terrain = state.terrain[e]
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
    at += 6
    for action, there in enumerate((here - 1, here + stride, here + 1, here - stride, here)):
        out[at + action] = one if terrain[there] != OFF else np.float32(0)
        if sight.hints:
            out[at + 5 + action] = one * episode.hint if terrain[there] == ICE else np.float32(0)


@part
def see_masks(state, e, out):
    """Per agent and action whether it stays on the board: out bool[n, A, 5]. An empty slot can only wait."""
    stride = state.stride
    count = state.episode[e].num_agents
    for i in range(out.shape[1]):
        here = np.int64(state.cells[e, i])
        out[e, i, 4] = True
        for action, there in enumerate((here - 1, here + stride, here + 1, here - stride)):
            out[e, i, action] = i < count and state.terrain[e, max(0, there)] != OFF
