"""A number moves from its start to the config's own value in ten equal parts of the fade."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from engineers.knobs import KnobError
from envtuning.runs.fading import faded, raise_unless_fades, until_next_part
from envtuning.runs.spec import Fade


class Config(BaseModel):
    hint: float = 0.0
    holes: int = 2
    shown: bool = True
    name: str = "x"


@pytest.mark.parametrize(
    ("over", "progress", "hint", "holes"),
    [
        (1.0, 0.0, 1.0, 12),
        (1.0, 0.0999, 1.0, 12),
        (1.0, 0.1, 0.9, 11),
        (1.0, 0.55, 0.5, 7),
        (1.0, 1.0, 0.0, 2),
        (0.5, 0.25, 0.5, 7),
        (0.5, 0.5, 0.0, 2),
        (0.5, 0.9, 0.0, 2),  # there it stays
    ],
)
def test_a_number_fades_in_tenths_and_a_whole_one_stays_whole(over, progress, hint, holes):
    config = Config()
    assert faded(config, Fade(knob="hint", start=1.0, over=over), progress).hint == pytest.approx(hint)
    found = faded(config, Fade(knob="holes", start=12.0, over=over), progress).holes
    assert (found, type(found)) == (holes, int)
    assert faded(config, None, progress) is config


@pytest.mark.parametrize("over", [0.1, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("budget", [1000, 3333, 7967, 8000, 8001, 8009, 9999, 100_001])
def test_every_part_is_trained_once_whatever_the_budget(over, budget):
    fade, config = Fade(knob="hint", start=1.0, over=over), Config()
    hints, spent = [], 0
    while spent / budget < over:
        hints.append(faded(config, fade, spent / budget).hint)
        spent += until_next_part(fade, budget)
    assert hints == pytest.approx([1 - part / 10 for part in range(10)])
    assert over * budget <= spent < over * budget + 10
    assert faded(config, fade, min(1.0, spent / budget)).hint == 0.0


def test_a_whole_number_is_rounded_on_its_way():
    fade = Fade(knob="holes", start=4.0, over=1.0)
    assert [faded(Config(), fade, tenth / 10).holes for tenth in range(11)] == [4, 4, 4, 3, 3, 3, 3, 3, 2, 2, 2]


@pytest.mark.parametrize(
    ("knob", "may"), [("hint", True), ("holes", True), ("shown", False), ("name", False), ("z", False)]
)
def test_only_a_number_fades(knob, may):
    fade = Fade(knob=knob, start=0.75)
    if may:
        raise_unless_fades(fade, Config())  # a whole one from .75, rounded to 1
        return
    with pytest.raises(KnobError, match=f"fade.knob='{knob}' is not a number of Config: name one by its dotted path"):
        raise_unless_fades(fade, Config())


def test_a_number_may_not_fade_from_where_it_may_not_be():
    from tests.envtuning.counting_world import CountConfig

    with pytest.raises(KnobError, match="less than or equal to 1"):
        raise_unless_fades(Fade(knob="hint", start=1.25), CountConfig())
    raise_unless_fades(None, CountConfig())
