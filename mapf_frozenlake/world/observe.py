"""What agents see, written into ``out[env, agent, …]``; ``layout`` says what lies where. One function per kind."""

from __future__ import annotations

import numpy as np
from numba import njit

from mapf_frozenlake.world.move import HOLE, ICE, OFF
from mapf_frozenlake.world.state import FAR

_NUM_PLANES = 4


@njit(cache=True, nogil=True)
def see_compact(state, e, out):
    """Per agent (row, col, goal row, goal col), -1 in empty slots: out int16[n, A, 4]."""
    stride, pad = state.stride, state.pad
    count = state.episode[e].num_agents
    for i in range(out.shape[1]):
        if i < count:
            here, goal = state.cells[e, i], state.goals[e, i]
            out[e, i, 0] = here // stride - pad
            out[e, i, 1] = here % stride - pad
            out[e, i, 2] = goal // stride - pad
            out[e, i, 3] = goal % stride - pad
        else:
            out[e, i, :] = -1


@njit(cache=True, nogil=True)
def see_grid(state, e, one, out):
    """Per agent the board in six planes (``layout.GRID_PLANES``): out [n, A, 6, max_size, max_size]."""
    stride, pad = state.stride, state.pad
    count = state.episode[e].num_agents
    side = out.shape[3]
    terrain = state.terrain[e]
    for i in range(out.shape[1]):
        planes = out[e, i]
        planes[:] = 0
        if i >= count:
            continue
        for r in range(side):
            for c in range(side):
                kind = terrain[(r + pad) * stride + c + pad]
                if kind == HOLE:
                    planes[0, r, c] = one
                elif kind == OFF:
                    planes[1, r, c] = one
        for j in range(count):
            here, goal = state.cells[e, j], state.goals[e, j]
            planes[2 if j == i else 4, here // stride - pad, here % stride - pad] = one
            planes[3 if j == i else 5, goal // stride - pad, goal % stride - pad] = one


@njit(cache=True, nogil=True)
def see_ego(state, e, window, hints, max_size, one, out):
    """Per agent the window around it and its features (``layout.EgoLayout``): out [n, A, size]."""
    count = state.episode[e].num_agents
    for i in range(out.shape[1]):
        if i < count:
            _see_window(state, e, i, window, hints, one, out[e, i])
            _see_features(state, e, i, window, hints, max_size, one, out[e, i])
        else:
            out[e, i, :] = 0


@njit(cache=True, nogil=True)
def _see_window(state, e, i, window, hints, one, out):
    stride = state.stride
    radius = window // 2
    area = window * window
    terrain = state.terrain[e]
    here = state.cells[e, i]
    corner = here - radius * stride - radius
    for r in range(window):
        for c in range(window):
            out[r * window + c] = one if terrain[corner + r * stride + c] != ICE else 0
    out[area : 4 * area] = 0
    row, col = here // stride, here % stride
    for j in range(state.episode[e].num_agents):
        there, goal = state.cells[e, j], state.goals[e, j]
        r, c = there // stride - row + radius, there % stride - col + radius
        if 0 <= r < window and 0 <= c < window and j != i:
            out[area + r * window + c] = one if j < i else one * 0.5
        r, c = goal // stride - row + radius, goal % stride - col + radius
        if 0 <= r < window and 0 <= c < window:
            out[(2 if j == i else 3) * area + r * window + c] = one
    if hints:
        _see_way(state, e, i, window, one, out[4 * area : 5 * area])


@njit(cache=True, nogil=True)
def _see_way(state, e, i, window, one, out):
    """Hint: how much nearer to the goal each cell of the window is, over the radius, scaled by the hints' strength."""
    stride = state.stride
    radius = window // 2
    strength = state.episode[e].hint * one
    distance = state.distance[e, i]
    here = state.cells[e, i]
    own = distance[here]
    corner = here - radius * stride - radius
    for r in range(window):
        for c in range(window):
            there = distance[corner + r * stride + c]
            nearer = -1.0
            if there != FAR and own != FAR:
                nearer = min(1.0, max(-1.0, (int(own) - int(there)) / radius))
            out[r * window + c] = strength * nearer


@njit(cache=True, nogil=True)
def _see_features(state, e, i, window, hints, max_size, one, out):
    stride = state.stride
    episode = state.episode[e]
    terrain = state.terrain[e]
    slots = state.cells.shape[1]
    here, goal = np.int64(state.cells[e, i]), np.int64(state.goals[e, i])
    at = (_NUM_PLANES + hints) * window * window
    scale = one / (max_size - 1)
    out[at] = (goal // stride - here // stride) * scale
    out[at + 1] = (goal % stride - here % stride) * scale
    out[at + 2] = one if here == goal else 0
    out[at + 3] = one * (i + 1) / slots
    out[at + 4] = one * episode.num_agents / slots
    out[at + 5] = one * episode.step / episode.horizon
    at += 6
    for action, there in enumerate((here - 1, here + stride, here + 1, here - stride, here)):
        out[at + action] = one if terrain[there] != OFF else 0
        if hints:
            out[at + 5 + action] = one * episode.hint if terrain[there] == ICE else 0


@njit(cache=True, nogil=True)
def see_masks(state, out):
    """Per agent and action whether it stays on the board: out bool[n, A, 5]. An empty slot can only wait."""
    stride = state.stride
    for e in range(out.shape[0]):
        terrain, count = state.terrain[e], state.episode[e].num_agents
        for i in range(out.shape[1]):
            here = np.int64(state.cells[e, i])
            out[e, i, 4] = True
            for action, there in enumerate((here - 1, here + stride, here + 1, here - stride)):
                out[e, i, action] = i < count and terrain[max(0, there)] != OFF
