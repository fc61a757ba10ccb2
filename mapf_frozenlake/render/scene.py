"""A snapshot as shapes. Both painters, pixels and SVG, draw these shapes and contain no rules of lakes.

Units are cells: x to the right, y down, the board's top left corner at (0, 0). Later shapes lie over earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mapf_frozenlake.constants import BoolGrid, Event
from mapf_frozenlake.render import palette
from mapf_frozenlake.world.snapshot import Snapshot

MARGIN = 0.6  # cells around the board, for the row and column numbers
LARGEST_IMAGE = 1024  # pixels a side to which a big lake is shrunk
AGENT_RADIUS = 0.33


@dataclass(frozen=True)
class Box:
    x: float
    y: float
    width: float
    height: float
    fill: str
    radius: float = 0.0


@dataclass(frozen=True)
class Disc:
    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True)
class Line:
    points: tuple[tuple[float, float], ...]
    stroke: str
    width: float
    opacity: float = 1.0


@dataclass(frozen=True)
class Polygon:
    points: tuple[tuple[float, float], ...]
    fill: str
    opacity: float = 1.0


@dataclass(frozen=True)
class Label:
    x: float  # centre
    y: float  # centre
    text: str
    size: float
    fill: str
    bold: bool = False


Shape = Box | Disc | Line | Polygon | Label


def scene(snapshot: Snapshot) -> Iterator[Shape]:
    """All shapes of one moment, from the ice up."""
    yield from ground(snapshot)
    for agent, (row, col) in enumerate(snapshot.goals.tolist()):
        if row >= 0:
            yield from goal_flag(agent, col + 0.5, row + 0.5)
    if snapshot.trails is not None and len(snapshot.trails) > 1:
        for agent in range(snapshot.trails.shape[1]):
            way = [(col + 0.5, row + 0.5) for row, col in snapshot.trails[:, agent].tolist() if row >= 0]
            if len(way) > 1:
                yield trail(agent, way)
    for agent, (row, col) in enumerate(snapshot.positions.tolist()):
        if row < 0:
            continue
        event = Event.NONE if snapshot.events is None else Event(int(snapshot.events[agent]))
        yield from figure(agent, col + 0.5, row + 0.5, sunk=event is Event.HOLE)
        action = None if snapshot.actions is None else int(snapshot.actions[agent])
        yield from alarm(event, col + 0.5, row + 0.5, action)


def ground(snapshot: Snapshot) -> Iterator[Shape]:
    """The part of a scene that stays the same in a film: the lake, and where the agents began."""
    yield from _lake(snapshot.holes)
    for agent, (row, col) in enumerate(snapshot.starts.tolist()):
        yield Disc(col + 0.5, row + 0.5, 0.4, stroke=palette.agent_colour(agent), stroke_width=0.04, opacity=0.45)


def _lake(holes: BoolGrid) -> Iterator[Shape]:
    """Ice tiles, water where the holes are, numbers along the edges."""
    height, width = holes.shape
    yield Box(-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN, palette.PAPER)
    yield Box(-0.06, -0.06, width + 0.12, height + 0.12, palette.FRAME, radius=0.08)
    for row in range(height):
        for col in range(width):
            shade = palette.ICE if (row + col) % 2 == 0 else palette.ICE_SHADE
            yield Box(col + 0.015, row + 0.015, 0.97, 0.97, shade, radius=0.06)
            if holes[row, col]:
                yield Disc(col + 0.5, row + 0.5, 0.44, fill=palette.SHORE)
                yield Disc(col + 0.5, row + 0.5, 0.37, fill=palette.WATER)
                yield Disc(col + 0.5, row + 0.53, 0.27, fill=palette.DEEP_WATER)
            elif (row * 7 + col * 13) % 5 == 0:  # a few hairline cracks, the same ones every time
                yield Line(
                    ((col + 0.2, row + 0.72), (col + 0.42, row + 0.6), (col + 0.5, row + 0.78)), palette.CRACK, 0.025
                )
    step = 1 if max(height, width) <= 20 else 5
    for row in range(0, height, step):
        yield Label(-0.3, row + 0.5, str(row), 0.3, palette.FRAME)
    for col in range(0, width, step):
        yield Label(col + 0.5, -0.3, str(col), 0.3, palette.FRAME)


def goal_flag(agent: int, x: float, y: float) -> Iterator[Shape]:
    """A pennant in the agent's colour with its number, on a pole in the ice."""
    colour = palette.agent_colour(agent)
    yield Disc(x, y, 0.42, fill=colour, opacity=0.16)
    yield Line(((x - 0.26, y - 0.4), (x - 0.26, y + 0.4)), palette.INK, 0.045)
    yield Polygon(((x - 0.24, y - 0.4), (x + 0.42, y - 0.2), (x - 0.24, y + 0.02)), colour)
    yield Label(x - 0.06, y - 0.19, str(agent), 0.24, palette.text_on(colour), bold=True)


def trail(agent: int, points: list[tuple[float, float]]) -> Line:
    """The agent's trail. Each agent has its own lane in a cell, so that trails do not hide each other."""
    lane = ((agent % 5) - 2) * 0.07
    return Line(tuple((x + lane, y + lane) for x, y in points), palette.agent_colour(agent), 0.07, 0.5)


def figure(agent: int, x: float, y: float, *, sunk: bool) -> Iterator[Shape]:
    colour = palette.agent_colour(agent)
    if sunk:
        yield Disc(x, y, 0.36, stroke=palette.SHORE, stroke_width=0.03)
        yield Disc(x, y, 0.2, fill=colour, stroke=palette.PAPER, stroke_width=0.03, opacity=0.7)
    else:
        yield Disc(x, y + 0.04, AGENT_RADIUS, fill=palette.INK, opacity=0.18)
        yield Disc(x, y, AGENT_RADIUS, fill=colour, stroke=palette.PAPER, stroke_width=0.05)
    yield Label(x, y, str(agent), 0.2 if sunk else 0.34, palette.text_on(colour), bold=True)


def alarm(event: Event, x: float, y: float, action: int | None) -> Iterator[Shape]:
    """The faults: red for the agent's own fault, orange for an agent that is in another's way."""
    if event is Event.NONE:
        return
    colour = palette.CAUTION if event is Event.BLOCKED else palette.ALARM
    yield Disc(x, y, 0.44, stroke=colour, stroke_width=0.07)
    if action is not None and event is not Event.HOLE and action < 4:
        dx, dy = ((-1, 0), (0, 1), (1, 0), (0, -1))[action]
        side = 0.2
        edge_x, edge_y = x + 0.5 * dx, y + 0.5 * dy
        yield Line(((edge_x - side * dy, edge_y - side * dx), (edge_x + side * dy, edge_y + side * dx)), colour, 0.1)
    yield Disc(x + 0.34, y - 0.34, 0.14, fill=colour, stroke=palette.PAPER, stroke_width=0.03)
    yield Label(x + 0.34, y - 0.34, "!", 0.22, palette.PAPER, bold=True)
