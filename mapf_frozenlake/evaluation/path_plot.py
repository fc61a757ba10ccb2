"""Draws one measure over the number of agents, with a panel for each map, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

COLOURS = ("#1f6fb4", "#d1495b", "#2e933c", "#8e5ba6", "#b8860b", "#555555")
WIDTH, HEIGHT, LEFT, TOP, GAP = 180, 120, 46, 40, 56  # of a panel; margins; between panels
Points = Mapping[tuple[str, int], float | None]  # by map and number of agents


def panels(title: str, lines: Mapping[str, Points]) -> str:
    """A standalone SVG document. All panels share their scale, which begins at 0."""
    keys = [key for points in lines.values() for key in points]
    maps, agents = list(dict.fromkeys(name for name, _ in keys)), sorted({count for _, count in keys})
    known = [value for points in lines.values() for value in points.values() if value is not None]
    top = max(known, default=1.0) or 1.0
    width, height = LEFT + len(maps) * (WIDTH + GAP), TOP + HEIGHT + 66
    parts = [_text(LEFT, 16, title, "start", 13)]
    for number, name in enumerate(maps):
        parts += _panel(LEFT + number * (WIDTH + GAP), name, agents, top, lines)
    parts.append(_text(LEFT, TOP + HEIGHT + 34, "agents", "start"))
    for place, (colour, who) in enumerate(zip(COLOURS * len(lines), lines)):
        x, y = LEFT + 120 * place, TOP + HEIGHT + 50
        parts.append(
            f'<rect x="{x}" y="{y - 8}" width="10" height="10" fill="{colour}"/>{_text(x + 15, y + 1, who, "start")}'
        )
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    ground = f'<rect width="{width}" height="{height}" fill="white"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="sans-serif">{ground}{"".join(parts)}</svg>\n'


def _panel(left: int, name: str, agents: Sequence[int], top: float, lines: Mapping[str, Points]) -> list[str]:
    """The frame of one map, its scales, and a line with a dot for each known point."""
    parts = [f'<rect x="{left}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>']
    parts.append(_text(left + WIDTH / 2, TOP - 6, name))
    parts += [_text(left - 4, TOP + HEIGHT * (1 - part) + 4, f"{top * part:.3g}", "end") for part in (0, 0.5, 1)]
    across = {count: left + WIDTH * (place + 0.5) / len(agents) for place, count in enumerate(agents)}
    parts += [_text(x, TOP + HEIGHT + 14, str(count)) for count, x in across.items()]
    for colour, points in zip(COLOURS * len(lines), lines.values()):
        known = {count: value for count in agents if (value := points.get((name, count))) is not None}
        places = [(across[count], TOP + HEIGHT * (1 - value / top)) for count, value in known.items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return parts


def _text(x: float, y: float, words: str, anchor: str = "middle", size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="#333">{escape(words)}</text>'
