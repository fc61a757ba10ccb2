"""The kinds of maps beside random holes: their names, and how many cells of ice each has at least."""

from __future__ import annotations

from typing import Literal

MapFamily = Literal["random", "maze", "rooms", "warehouse"]
MAP_FAMILIES: tuple[MapFamily, ...] = ("random", "maze", "rooms", "warehouse")  # by code
SHELF_DEPTH = 2  # rows of a shelf


def lines_between(side: int, room: int) -> int:
    """The number of walls that divide a side of this length into rooms: one after each ``room`` cells, none at the end."""
    return (side - 1) // (room + 1)


def shelves_along(side: int, shelf: int, aisle: int) -> int:
    """The number of shelves of this length on a side of this length, each with an aisle before and behind it."""
    return max(0, (side - aisle) // (shelf + aisle))


def least_ice(
    family: MapFamily, height: int, width: int, room_size: int, shelf_length: int, aisle: int
) -> tuple[int, str]:
    """The fewest cells of ice that a map of this family has; and what is wrong with it if it does not fit, else ""."""
    if family == "warehouse":
        shelves = shelves_along(height, SHELF_DEPTH, aisle) * shelves_along(width, shelf_length, aisle)
        wrong = (
            ""
            if shelves
            else f"shelf_length={shelf_length} and aisle={aisle}: a warehouse on {height}×{width} has no room for a shelf; it takes "
            f"{SHELF_DEPTH + 2 * aisle} rows and {shelf_length + 2 * aisle} columns, so lower them or use a larger size"
        )
        return height * width - shelves * SHELF_DEPTH * shelf_length, wrong
    room = 1 if family == "maze" else room_size
    rows, columns = lines_between(height, room), lines_between(width, room)
    wrong = ""
    if rows + columns == 0:
        wrong = (
            f"size={height}: a maze takes at least 3 rows or columns"
            if family == "maze"
            else f"room_size={room}: rooms on {height}×{width} would be a single room; give at most {max(height, width) - 2}, or a "
            f"size of at least {room + 2}"
        )
    return (height - rows) * (width - columns) + (rows + 1) * (columns + 1) - 1, wrong
