"""Converts shapes to SVG, still or moving. An animation plays by itself (SMIL), without scripts or requests."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape

from mapf_frozenlake.constants import Event
from mapf_frozenlake.render.scene import (
    LARGEST_IMAGE,
    MARGIN,
    Box,
    Disc,
    Label,
    Line,
    Polygon,
    Shape,
    alarm,
    figure,
    goal_flag,
    ground,
    scene,
    trail,
)
from mapf_frozenlake.world.snapshot import Snapshot

CELL_PIXELS = 56
REST_STEPS = 2  # pause on the last picture before the film starts again


def svg(snapshot: Snapshot) -> str:
    """One moment as a standalone SVG document."""
    return _document(snapshot.holes.shape, "".join(_element(shape) for shape in scene(snapshot)))


def animated_svg(frames: Sequence[Snapshot], seconds_per_step: float = 0.6) -> str:
    """A film of the frames as one SVG document: agents glide, trails grow, violations flash in their step."""
    first = frames[0]
    clock = _Clock(len(frames), seconds_per_step)
    parts = [_element(shape) for shape in ground(first)]
    agents = range(len(first.positions))
    parts += [_flags(frames, agent, clock) for agent in agents]
    parts += [_moving_trail(frames, agent, clock) for agent in agents]
    parts += [_moving_figure(frames, agent, clock) for agent in agents]
    parts += [_flash(frame, number, clock) for number, frame in enumerate(frames)]
    return _document(first.holes.shape, "".join(parts))


class _Clock:
    """Step numbers to SMIL key times."""

    def __init__(self, frames: int, seconds_per_step: float) -> None:
        self.steps = frames - 1 + REST_STEPS
        self.attributes = f'dur="{self.steps * seconds_per_step:.2f}s" repeatCount="indefinite"'

    def times(self, frames: int) -> str:
        return ";".join([f"{number / self.steps:.4f}" for number in range(frames)] + ["1"])


def _flags(frames: Sequence[Snapshot], agent: int, clock: _Clock) -> str:
    """The agent's goals, each as long as it has it."""
    parts = []
    number = 0
    for (row, col), group in itertools.groupby(tuple(frame.goals[agent].tolist()) for frame in frames):
        begin, number = number, number + len(list(group))
        if row < 0:
            continue
        flag = "".join(_element(shape) for shape in goal_flag(agent, col + 0.5, row + 0.5))
        if number - begin < len(frames):
            end = 1.0 if number == len(frames) else number / clock.steps
            shown = _opacity("0;1;0", f"0;{begin / clock.steps:.4f};{end:.4f}", clock)
            flag = f'<g opacity="0">{flag}{shown}</g>'
        parts.append(flag)
    return "".join(parts)


def _stops(frames: Sequence[Snapshot], agent: int) -> list[tuple[float, float]]:
    """The agent's cell in every frame. An agent that has left the board stays on the goal at which it left."""
    stops: list[tuple[float, float]] = []
    for number, frame in enumerate(frames):
        row, col = frame.positions[agent].tolist()
        if row < 0:
            row, col = frames[number - 1].goals[agent].tolist()
        stops.append((col + 0.5, row + 0.5) if row >= 0 else stops[-1])
    return stops


def _moving_figure(frames: Sequence[Snapshot], agent: int, clock: _Clock) -> str:
    stops = _stops(frames, agent)
    path = ";".join(f"{x:g},{y:g}" for x, y in [*stops, stops[-1]])
    glide = (
        f'<animateTransform attributeName="transform" type="translate" values="{path}" '
        f'keyTimes="{clock.times(len(frames))}" {clock.attributes}/>'
    )
    fallen = next((n for n, f in enumerate(frames) if f.events is not None and f.events[agent] == Event.HOLE), None)
    left = next((n for n, frame in enumerate(frames) if frame.positions[agent, 0] < 0), None)
    dry = "".join(_element(shape) for shape in figure(agent, 0, 0, sunk=False))
    body = f"<g>{dry}{_shown_until(left if fallen is None else fallen, clock)}</g>"
    if fallen is not None:
        wet = "".join(_element(shape) for shape in figure(agent, 0, 0, sunk=True))
        body += f'<g opacity="0">{wet}{_shown_from(fallen, clock)}</g>'
    x, y = stops[0]
    return f'<g transform="translate({x:g},{y:g})">{body}{glide}</g>'


def _shown_until(number: int | None, clock: _Clock) -> str:
    return "" if number is None else _opacity("1;0", f"0;{number / clock.steps:.4f}", clock)


def _shown_from(number: int, clock: _Clock) -> str:
    return _opacity("0;1", f"0;{number / clock.steps:.4f}", clock)


def _opacity(values: str, times: str, clock: _Clock) -> str:
    return f'<animate attributeName="opacity" calcMode="discrete" values="{values}" keyTimes="{times}" {clock.attributes}/>'


def _moving_trail(frames: Sequence[Snapshot], agent: int, clock: _Clock) -> str:
    """The whole path, revealed as the agent moves along it."""
    stops = _stops(frames, agent)
    line = trail(agent, stops)
    travelled = [0.0]
    for (x0, y0), (x1, y1) in itertools.pairwise(stops):
        travelled.append(travelled[-1] + abs(x1 - x0) + abs(y1 - y0))
    length = travelled[-1]
    if length == 0:
        return ""
    offsets = ";".join(f"{length - way:g}" for way in [*travelled, length])
    grow = (
        f'<animate attributeName="stroke-dashoffset" values="{offsets}" '
        f'keyTimes="{clock.times(len(frames))}" {clock.attributes}/>'
    )
    return _polyline(line, f' stroke-dasharray="{length:g}" stroke-dashoffset="0"', grow)


def _flash(frame: Snapshot, number: int, clock: _Clock) -> str:
    """The alarms of one step, visible during the step."""
    if frame.events is None or not frame.events.any():
        return ""
    shapes: list[Shape] = []
    for agent, (row, col) in enumerate(frame.positions.tolist()):
        action = None if frame.actions is None else int(frame.actions[agent])
        shapes += alarm(Event(int(frame.events[agent])), col + 0.5, row + 0.5, action)
    begin, end = (number - 0.35) / clock.steps, min(1.0, (number + 0.65) / clock.steps)
    drawn = "".join(_element(shape) for shape in shapes)
    return f'<g opacity="0">{drawn}{_opacity("0;1;0", f"0;{max(0.0, begin):.4f};{end:.4f}", clock)}</g>'


def _document(shape: tuple[int, ...], body: str) -> str:
    height, width = shape[0] + 2 * MARGIN, shape[1] + 2 * MARGIN
    cell = min(CELL_PIXELS, LARGEST_IMAGE / max(height, width))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-MARGIN} {-MARGIN} {width:g} {height:g}" '
        f'width="{width * cell:.0f}" height="{height * cell:.0f}" font-family="system-ui, sans-serif">{body}</svg>'
    )


def _element(shape: Shape) -> str:
    match shape:
        case Box(x, y, width, height, fill, radius):
            return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" fill="{fill}"/>'
        case Disc(x, y, radius, fill, stroke, stroke_width, opacity):
            edge = f' stroke="{stroke}" stroke-width="{stroke_width:g}"' if stroke else ""
            see_through = f' opacity="{opacity:g}"' if opacity < 1 else ""
            return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill or "none"}"{edge}{see_through}/>'
        case Line():
            return _polyline(shape)
        case Polygon(points, fill, opacity):
            return f'<polygon points="{_points(points)}" fill="{fill}" opacity="{opacity:g}"/>'
        case Label(x, y, text, size, fill, bold):
            weight = ' font-weight="700"' if bold else ""
            return (
                f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}" text-anchor="middle" '
                f'dominant-baseline="central"{weight}>{escape(text)}</text>'
            )


def _polyline(line: Line, attributes: str = "", inside: str = "") -> str:
    return (
        f'<polyline points="{_points(line.points)}" fill="none" stroke="{line.stroke}" stroke-width="{line.width:g}" '
        f'stroke-linecap="round" stroke-linejoin="round" opacity="{line.opacity:g}"{attributes}>{inside}</polyline>'
    )


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)
