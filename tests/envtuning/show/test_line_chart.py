"""Line charts: round ticks that span what is drawn, points where they belong, words that a reader can trust."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envtuning.show.page.line_chart import (
    BOTTOM,
    COLOURS,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Chart,
    Series,
    _number,
    _ticks,
    colour,
    draw,
)

NUMBERS = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@pytest.mark.parametrize("losses", [[1e17], [-1e30, -1e30], [0.0, 5e-324], [-1e38, 1e38]])
def test_large_and_tiny_numbers_are_drawn(losses):
    """A loss may grow without end before training has diverged, and the page must show it."""
    drawn = draw(Chart([Series("loss", range(len(losses)), losses)], "env steps", "loss"))
    assert drawn.count("<circle") == len(losses)
    assert "nan" not in drawn


@settings(max_examples=60)
@given(NUMBERS, NUMBERS, st.booleans())
def test_ticks_span_the_range_evenly_and_are_few_and_round(one, other, whole):
    low, high = sorted((one, other))
    ticks = _ticks(low, high, whole=whole)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    steps = [b - a for a, b in pairwise(ticks)]
    assert steps == pytest.approx([steps[0]] * len(steps), rel=1e-6)
    assert 2 <= len(ticks) <= 8
    if high > low:
        assert ticks[0] > low - steps[0] - slack  # none outside of the range but the ends
        assert ticks[-1] < high + steps[0] + slack
    leading = f"{steps[0]:.6e}"
    assert whole or leading[:3] in ("1.0", "2.0", "2.5", "5.0")
    if whole:
        assert all(tick == round(tick) for tick in ticks)


def test_ticks_of_one_value_stand_around_it():
    assert _ticks(2.0, 2.0)[0] < 2.0 < _ticks(2.0, 2.0)[-1]
    assert _ticks(0.0, 1.0) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert _ticks(3, 3, whole=True)[:2] == [3, 4]
    assert _ticks(0, 2, whole=True) == [0, 1, 2]


@pytest.mark.parametrize(
    ("value", "percent", "said"),
    [
        (0.5, True, "50 %"), (0.125, True, "12.5 %"), (1.0, True, "100 %"), (0.50049, True, "50 %"), (0.501, True, "50.1 %"),
        (999, False, "999"), (1000, False, "1k"), (-2500, False, "-2.5k"), (1e6, False, "1M"), (2.5e6, False, "2.5M"),
        (0.12345, False, "0.1235"),
    ],
)  # fmt: skip
def test_numbers_are_short(value, percent, said):
    assert _number(value, percent) == said


def points(svg):
    return [tuple(map(float, point.split(","))) for point in re.search(r'<polyline points="([^"]*)"', svg)[1].split()]


def test_the_first_and_last_values_reach_the_frame_and_those_that_are_not_finite_are_left_out():
    svg = draw(Chart([Series("a", [0, 5, 10, 3], [0.0, 0.5, 1.0, float("nan")])], "steps", "rate"))
    middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    assert points(svg) == [(LEFT, HEIGHT - BOTTOM), middle, (WIDTH - RIGHT, TOP)]
    assert draw(Chart([Series("a", [0], [float("inf")])], "x", "y")) == '<p class="empty">nothing measured yet</p>'


def test_what_is_drawn_beside_the_line_is_what_was_asked_for():
    line = Series("a<b", [0, 10], [0.25, 0.5], low=[0.2, 0.4], high=[0.3, 0.6], dashed=True, colour="#123456")
    svg = draw(Chart([line], "steps & more", "rate", y_range=(0, 1), percent=True, borders=(5,)))
    assert svg.count("<circle") == 2
    assert "<title>a&lt;b: 25 % at steps &amp; more 0</title>" in svg
    assert "stroke-dasharray" in svg
    assert svg.count("<polygon") == 1
    band = [tuple(map(float, point.split(","))) for point in re.search(r'<polygon points="([^"]*)"', svg)[1].split()]
    assert [x for x, _ in band] == [LEFT, WIDTH - RIGHT, WIDTH - RIGHT, LEFT]

    def y(value):
        return HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM)

    assert [found for _, found in band] == pytest.approx([y(0.3), y(0.6), y(0.4), y(0.2)], abs=0.06)
    assert f'<path class="border" d="M{(LEFT + WIDTH - RIGHT) / 2:.1f},{TOP}V{HEIGHT - BOTTOM}"/>' in svg
    plain = draw(Chart([Series("a", [0, 1], [0, 1], marks=False)], "x", "y"))
    assert "<circle" not in plain
    assert "dasharray" not in plain
    assert "<polygon" not in plain
    assert "border" not in plain


def test_colours_come_round_again():
    assert [colour(number) for number in range(len(COLOURS))] == list(COLOURS)
    assert colour(len(COLOURS) + 1) == COLOURS[1]


CHART = """\
<svg class="chart" viewBox="0 0 560 240" role="img" aria-label="rate over steps &amp; more">
<path class="grid" d="M48.0,206.0H542.0"/>
<text class="tick" x="42.0" y="206.0" text-anchor="end" dy=".32em">0 %</text>
<path class="grid" d="M48.0,167.2H542.0"/>
<text class="tick" x="42.0" y="167.2" text-anchor="end" dy=".32em">20 %</text>
<path class="grid" d="M48.0,128.4H542.0"/>
<text class="tick" x="42.0" y="128.4" text-anchor="end" dy=".32em">40 %</text>
<path class="grid" d="M48.0,89.6H542.0"/>
<text class="tick" x="42.0" y="89.6" text-anchor="end" dy=".32em">60 %</text>
<path class="grid" d="M48.0,50.8H542.0"/>
<text class="tick" x="42.0" y="50.8" text-anchor="end" dy=".32em">80 %</text>
<path class="grid" d="M48.0,12.0H542.0"/>
<text class="tick" x="42.0" y="12.0" text-anchor="end" dy=".32em">100 %</text>
<text class="tick" x="48.0" y="220.0" text-anchor="middle">0</text>
<text class="tick" x="146.8" y="220.0" text-anchor="middle">2</text>
<text class="tick" x="245.6" y="220.0" text-anchor="middle">4</text>
<text class="tick" x="344.4" y="220.0" text-anchor="middle">6</text>
<text class="tick" x="443.2" y="220.0" text-anchor="middle">8</text>
<text class="tick" x="542.0" y="220.0" text-anchor="middle">10</text>
<text class="label" x="295" y="236.0" text-anchor="middle">steps &amp; more</text>
<path class="border" d="M295.0,12.0V206.0"/>
<polygon points="48.0,147.8 542.0,89.6 542.0,128.4 48.0,167.2" fill="#0072b2" opacity="0.13"/>
<polyline points="48.0,157.5 542.0,109.0" fill="none" stroke="#0072b2" stroke-width="2" stroke-dasharray="5 4"/>
<circle cx="48.0" cy="157.5" r="3.5" fill="#0072b2">
<title>a&lt;b: 25 % at steps &amp; more 0</title>
</circle>
<circle cx="542.0" cy="109.0" r="3.5" fill="#0072b2">
<title>a&lt;b: 50 % at steps &amp; more 10</title>
</circle>
<polyline points="48.0,206.0 295.0,12.0 542.0,109.0" fill="none" stroke="#d55e00" stroke-width="2"/>
</svg>
"""


def test_a_chart_to_the_pixel():
    """A band, dashes and dots where they are asked for; a plain line in the next colour; the axes around both."""
    lines = [
        Series("a<b", [0, 10], [0.25, 0.5], low=[0.2, 0.4], high=[0.3, 0.6], dashed=True),
        Series("b", [0, 5, 10], [0.0, 1.0, 0.5], marks=False, colour=colour(1)),
    ]
    drawn = draw(Chart(lines, "steps & more", "rate", y_range=(0, 1), percent=True, borders=(5,)))
    assert drawn.replace("><", ">\n<") + "\n" == CHART


def test_without_a_range_or_a_spread_there_is_still_a_chart():
    svg = draw(Chart([Series("a", [3], [7.0])], "stage", "loss", whole_x=True))
    ((x, y),) = points(svg)
    assert (x, y) == (LEFT, TOP + (HEIGHT - TOP - BOTTOM) / 2)  # 3 of 3 to 4; 7 in the middle of what is around it
    assert '<path class="border"' not in svg
    assert "<polygon" not in draw(
        Chart([Series("a", [3], [7.0], [6.0], [8.0])], "stage", "loss")
    )  # a point has no band
    low = draw(Chart([Series("a", [0, 1], [0, 1], low=[0, 0])], "x", "y"))
    assert "<polygon" not in low


def test_what_is_left_out_of_a_line_is_left_out_of_its_band():
    nan = float("nan")
    svg = draw(Chart([Series("a", [0, 5, 10, nan], [0.0, nan, 1.0, 0.5], [0, 9, 1, 9], [0, 9, 1, 9])], "x", "y"))
    band = re.search(r'<polygon points="([^"]*)"', svg)[1].split()
    assert band[:2] == band[:1:-1] == [f"{LEFT},{HEIGHT - BOTTOM}", f"{WIDTH - RIGHT},{TOP}"]


@pytest.mark.parametrize(
    ("low", "high", "whole", "ticks"),
    [
        (0, 1, False, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 12, False, [0, 2.5, 5, 7.5, 10, 12.5]),
        (0, 25, False, [0, 5, 10, 15, 20, 25]),
        (0, 45, False, [0, 10, 20, 30, 40, 50]),
        (-1, 1, False, [-1, -0.5, 0, 0.5, 1]),
        (3, 3, False, [2.4, 2.6, 2.8, 3.0, 3.2, 3.4, 3.6]),
        (0.13, 0.87, False, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (1000, 5000, False, [1000, 2000, 3000, 4000, 5000]),
        (3, 3, True, [3, 4]),
        (0, 2, True, [0, 1, 2]),
        (0, 7, True, [0, 2, 4, 6, 8]),
        (1, 30, True, [0, 10, 20, 30]),
    ],
)
def test_ticks_are_steps_of_1_2_25_or_5(low, high, whole, ticks):
    assert _ticks(low, high, whole=whole) == pytest.approx(ticks)
