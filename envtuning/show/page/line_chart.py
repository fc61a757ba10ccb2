"""Line charts as inline SVG: no script, no library, hover texts by the browser."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#6a3d9a", "#56b4e9", "#8c564b")
WIDTH, HEIGHT = 560.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 18.0, 12.0, 34.0  # right: half of the last number


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


@dataclass(frozen=True)
class Series:
    """One line. ``low`` and ``high`` make the band of an interval around it."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False
    colour: str = COLOURS[0]
    marks: bool = True
    width: float = 2.0


@dataclass(frozen=True)
class Chart:
    series: Sequence[Series]
    x_label: str
    y_label: str
    y_range: tuple[float, float] | None = None
    percent: bool = False
    whole_x: bool = False
    borders: Sequence[float] = field(default_factory=tuple)  # x of vertical lines, e.g. where a stage begins


def draw(chart: Chart) -> str:
    """The chart as one ``<svg>`` element; points that are not finite are left out."""
    lines = [_finite(series) for series in chart.series]
    points = [(x, y) for line in lines for x, y in zip(line.x, line.y)]
    if not points:
        return '<p class="empty">nothing measured yet</p>'
    x_ticks = _ticks(min(x for x, _ in points), max(x for x, _ in points), whole=chart.whole_x)
    low, high = chart.y_range or (min(y for _, y in points), max(y for _, y in points))
    y_ticks = _ticks(low, high)
    frame = _Frame(x_ticks[0], x_ticks[-1], min(low, y_ticks[0]), max(high, y_ticks[-1]))
    parts = [_axes(chart, frame, x_ticks, y_ticks)]
    parts += [f'<path class="border" d="M{frame.x(x):.1f},{TOP}V{HEIGHT - BOTTOM}"/>' for x in chart.borders]
    parts += [_band(line, frame) for line in lines]
    parts += [_line(line, frame, chart) for line in lines]
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" '
        f'aria-label="{escape(chart.y_label)} over {escape(chart.x_label)}">{"".join(parts)}</svg>'
    )


@dataclass(frozen=True)
class _Frame:
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def x(self, value: float) -> float:
        return LEFT + (value - self.x_low) / ((self.x_high - self.x_low) or 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y_low) / ((self.y_high - self.y_low) or 1.0) * (HEIGHT - TOP - BOTTOM)


def _finite(series: Series) -> Series:
    keep = [i for i, (x, y) in enumerate(zip(series.x, series.y)) if math.isfinite(x) and math.isfinite(y)]

    def pick(values: Sequence[float]) -> list[float]:
        return [values[i] for i in keep]

    low, high = (None if edge is None else pick(edge) for edge in (series.low, series.high))
    return replace(series, x=pick(series.x), y=pick(series.y), low=low, high=high)


def _ticks(low: float, high: float, *, whole: bool = False) -> list[float]:
    """About five round numbers that span the range."""
    size = max(abs(low), abs(high))
    if high - low <= 1e-12 * max(size, 1e-300):  # as floats, ticks between them would be equal
        around = max(0.5, 1e-6 * size)
        low, high = (low, low + 1) if whole else (low - around, low + around)
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw)
    if whole:
        step = max(1.0, round(step))
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def _axes(chart: Chart, frame: _Frame, x_ticks: list[float], y_ticks: list[float]) -> str:
    parts = []
    for tick in y_ticks:
        if frame.y_low <= tick <= frame.y_high:
            y = frame.y(tick)
            parts.append(f'<path class="grid" d="M{LEFT},{y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(
                f'<text class="tick" x="{LEFT - 6}" y="{y:.1f}" text-anchor="end" dy=".32em">{_number(tick, chart.percent)}</text>'
            )
    for tick in x_ticks:
        x = frame.x(tick)
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 14}" text-anchor="middle">{_number(tick)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text class="label" x="{middle:.0f}" y="{HEIGHT - 4}" text-anchor="middle">{escape(chart.x_label)}</text>'
    )
    return "".join(parts)


def _band(series: Series, frame: _Frame) -> str:
    if series.low is None or series.high is None or len(series.x) < 2:
        return ""
    there = [f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in zip(series.x, series.high)]
    back = [f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in zip(series.x, series.low)]
    return f'<polygon points="{" ".join([*there, *reversed(back)])}" fill="{series.colour}" opacity="0.13"/>'


def _line(series: Series, frame: _Frame, chart: Chart) -> str:
    spots = [(frame.x(x), frame.y(y)) for x, y in zip(series.x, series.y)]
    dashes = ' stroke-dasharray="5 4"' if series.dashed else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    drawn = f'<polyline points="{path}" fill="none" stroke="{series.colour}" stroke-width="{series.width:g}"{dashes}/>'
    if not series.marks:
        return drawn
    for (x, y), x_value, y_value in zip(spots, series.x, series.y):
        said = f"{series.name}: {_number(y_value, chart.percent)} at {chart.x_label} {_number(x_value)}"
        drawn += (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{series.colour}"><title>{escape(said)}</title></circle>'
        )
    return drawn


def _number(value: float, percent: bool = False) -> str:
    if percent:
        return f"{100 * value:.0f} %" if abs(100 * value - round(100 * value)) < 0.05 else f"{100 * value:.1f} %"
    if abs(value) >= 1e6:
        return f"{value / 1e6:g}M"
    if abs(value) >= 1e3:
        return f"{value / 1e3:g}k"
    return f"{value:.4g}"
