"""Draws a maze, rooms or a warehouse. All their ice is connected: rooms by a tree of doors, a warehouse by the aisles around its shelves."""

from __future__ import annotations

from mapf_frozenlake.generator.draw import below
from mapf_frozenlake.map_families import MAP_FAMILIES, SHELF_DEPTH
from mapf_frozenlake.solvers.bits import kernel

RANDOM, MAZE, ROOMS, WAREHOUSE = range(len(MAP_FAMILIES))
_FINE = 1 << 30  # parts of a probability


@kernel
def draw_map(stream, layout, height, width, cells, seen, stack, holes):
    """Fill holes[:height, :width] by ``layout`` float64[5]: family, loops, room size, shelf length, aisle.

    Returns the number of ice cells, which come first in ``cells``. Scratch: ``seen`` int16[height, width], and ``stack``.
    """
    holes[:height, :width] = False
    if layout[0] == WAREHOUSE:
        _put_shelves(height, width, int(layout[3]), int(layout[4]), holes)
    else:
        room = int(layout[2]) if layout[0] == ROOMS else 1
        _build_walls(stream, height, width, room, int(layout[1] * _FINE), seen, stack, holes)
    count = 0
    for row in range(height):
        for col in range(width):
            if not holes[row, col]:
                cells[count] = row << 8 | col
                count += 1
    return count


@kernel
def _put_shelves(height, width, length, aisle, holes):
    for top in range(aisle, height - SHELF_DEPTH - aisle + 1, SHELF_DEPTH + aisle):
        for left in range(aisle, width - length - aisle + 1, length + aisle):
            holes[top : top + SHELF_DEPTH, left : left + length] = True


@kernel
def _build_walls(stream, height, width, room, loops, seen, stack, holes):
    """Rooms in a grid. A random depth-first walk through all rooms opens a door wherever it enters a new one; each other wall gets a
    door with chance ``loops`` / _FINE."""
    pitch = room + 1
    down, across = (height - 1) // pitch + 1, (width - 1) // pitch + 1
    for row in range(1, down):
        holes[row * pitch - 1, :width] = True
    for col in range(1, across):
        holes[:height, col * pitch - 1] = True
    seen[:down, :across] = 0
    stack[0] = below(stream, down * across)
    seen[stack[0] // across, stack[0] % across] = 1
    depth = 1
    while depth > 0:
        row, col = stack[depth - 1] // across, stack[depth - 1] % across
        choices, next_row, next_col = 0, row, col
        for r, c in ((row, col - 1), (row + 1, col), (row, col + 1), (row - 1, col)):
            if 0 <= r < down and 0 <= c < across and seen[r, c] == 0:
                choices += 1
                if below(stream, choices) == 0:
                    next_row, next_col = r, c
        if choices == 0:
            depth -= 1
            continue
        _open_door(stream, height, width, pitch, min(row, next_row), min(col, next_col), next_row != row, holes)
        seen[next_row, next_col] = 1
        stack[depth] = next_row * across + next_col
        depth += 1
    for row in range(down):
        for col in range(across):
            for below_it in range(2):
                exists = row + 1 < down if below_it else col + 1 < across
                if exists and below(stream, _FINE) < loops:
                    _open_door(stream, height, width, pitch, row, col, below_it, holes)


@kernel
def _open_door(stream, height, width, pitch, row, col, below_it, holes):
    """Open one random cell of the wall below a room, or to its right; a wall that has a door keeps that one."""
    top, left = row * pitch, col * pitch
    bottom = top + pitch - 1 if top + pitch < height else height
    right = left + pitch - 1 if left + pitch < width else width
    if below_it:
        wall = bottom
        for c in range(left, right):
            if not holes[wall, c]:
                return
        holes[wall, left + below(stream, right - left)] = False
    else:
        wall = right
        for r in range(top, bottom):
            if not holes[r, wall]:
                return
        holes[top + below(stream, bottom - top), wall] = False
