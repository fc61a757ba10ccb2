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
