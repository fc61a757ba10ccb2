"""Colours: ice, water, and one for each agent, told apart by hue first and by lightness from the ninth on."""

from __future__ import annotations

import colorsys
from functools import cache

ICE = "#e8f4fb"
ICE_SHADE = "#dcedf7"
CRACK = "#c3dfee"
SHORE = "#b4d6e8"
WATER = "#1f5c85"
DEEP_WATER = "#123f63"
FRAME = "#8fb8cf"
INK = "#17324a"
PAPER = "#ffffff"
ALARM = "#d81e2c"
CAUTION = "#f08c00"

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its black and its pale yellow.
_FIRST = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#6a3d9a", "#56b4e9", "#8c564b")
_GOLDEN_ANGLE = 0.381966


@cache
def agent_colour(agent: int) -> str:
    """The same colour for the same number, always."""
    if agent < len(_FIRST):
        return _FIRST[agent]
    hue = (agent * _GOLDEN_ANGLE) % 1.0
    lightness = (0.42, 0.58, 0.32)[agent % 3]
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.65)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of a colour as ``#rrggbb``."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def text_on(colour: str) -> str:
    """Dark ink or white paper, whichever reads better on the colour."""
    red, green, blue = rgb(colour)
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.6 * 255 else PAPER
