"""Fading: during the stage, a number of the config moves in equal steps from a start value to its own value."""

from __future__ import annotations

import math

from pydantic import BaseModel

from engineers.knobs import KnobError, dump, get, get_or_none, with_values
from envtuning.runs.spec import Fade

FADE_PARTS = 10
CLOSE = 1e-12  # relative: the rounding error of equal numbers


def until_next_part(fade: Fade, budget: int) -> int:
    """The amount to train until the next step. It is rounded up, because rounding down would train the step before twice."""
    return max(1, math.ceil(fade.over / FADE_PARTS * budget * (1 - CLOSE)))


def faded(config: BaseModel, fade: Fade | None, progress: float) -> BaseModel:
    """The config with the fading knob's value at this progress of the stage, 0 to 1."""
    if fade is None:
        return config
    path = tuple(fade.knob.split("."))
    own = get(dump(config), path)
    passed = math.floor(min(1.0, progress / fade.over) * FADE_PARTS * (1 + CLOSE)) / FADE_PARTS
    value = fade.start + passed * (own - fade.start)
    return with_values(config, {path: round(value) if isinstance(own, int) else value})


def raise_unless_fades(fade: Fade | None, config: BaseModel) -> None:
    """Raises ``KnobError`` if the fading knob is not a number of the config, or if the config does not allow its first value."""
    if fade is None:
        return
    own = get_or_none(dump(config), fade.knob.split("."))
    if isinstance(own, bool) or not isinstance(own, int | float):
        raise KnobError(
            f"fade.knob={fade.knob!r} is not a number of {type(config).__name__}: name one by its dotted path"
        )
    faded(config, fade, 0.0)
