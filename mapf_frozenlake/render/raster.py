"""Converts shapes to pixels with Pillow: drawn at twice the size and halved, so that edges are smooth."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.render.palette import rgb
from mapf_frozenlake.render.scene import LARGEST_IMAGE, MARGIN, Box, Disc, Label, Line, Polygon, Shape, scene
from mapf_frozenlake.world.snapshot import Snapshot

if TYPE_CHECKING:
    from PIL.Image import Image

CELL_PIXELS = 64
OVERSAMPLING = 2


def rgb_array(snapshot: Snapshot) -> NDArray[np.uint8]:
    """The moment as uint8[height, width, 3]; the same snapshot always gives the same pixels."""
    return np.asarray(image(snapshot))


def image(snapshot: Snapshot) -> Image:
    pil = _pillow()
    height, width = snapshot.holes.shape
    cell_pixels = max(12, min(CELL_PIXELS, LARGEST_IMAGE // max(height, width)))
    size = (round((width + 2 * MARGIN) * cell_pixels), round((height + 2 * MARGIN) * cell_pixels))
    canvas = pil.Image.new("RGB", (size[0] * OVERSAMPLING, size[1] * OVERSAMPLING))
    _paint(canvas, scene(snapshot), cell_pixels * OVERSAMPLING)
    return canvas.resize(size, pil.Image.Resampling.BOX)


def _paint(canvas: Image, shapes: Iterable[Shape], scale: int) -> None:
    pil = _pillow()
    pen = pil.ImageDraw.Draw(canvas, "RGBA")

    def at(x: float, y: float) -> tuple[float, float]:
        return (x + MARGIN) * scale, (y + MARGIN) * scale

    def colour(text: str, opacity: float) -> tuple[int, int, int, int]:
        return *rgb(text), round(255 * opacity)

    for shape in shapes:
        match shape:
            case Box(x, y, width, height, fill, radius):
                corners = [at(x, y), at(x + width, y + height)]
                pen.rounded_rectangle(corners, radius * scale, fill=colour(fill, 1.0))
            case Disc(x, y, radius, fill, stroke, stroke_width, opacity):
                reach = radius + stroke_width / 2
                pen.ellipse(
                    [at(x - reach, y - reach), at(x + reach, y + reach)],
                    fill=colour(fill, opacity) if fill else None,
                    outline=colour(stroke, opacity) if stroke else None,
                    width=max(1, round(stroke_width * scale)) if stroke else 0,
                )
            case Line(points, stroke, width, opacity):
                path = [at(x, y) for x, y in points]
                pen.line(path, colour(stroke, opacity), max(1, round(width * scale)), joint="curve")
            case Polygon(points, fill, opacity):
                pen.polygon([at(x, y) for x, y in points], colour(fill, opacity))
            case Label(x, y, text, size, fill, bold):
                # Pillow's own font has one weight: a bold label gets a hairline stroke.
                stroke_width = max(1, round(size * scale / 24)) if bold else 0
                pen.text(
                    at(x, y),
                    text,
                    colour(fill, 1.0),
                    _font(max(6, round(size * scale))),
                    anchor="mm",
                    stroke_width=stroke_width,
                )


@lru_cache(maxsize=32)
def _font(pixels: int) -> Any:
    return _pillow().ImageFont.load_default(size=pixels)


def _pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageFont
    except ImportError as error:
        raise ImportError(
            'drawing pixels needs Pillow: pip install "mapf-frozenlake[render]", or in a checkout pip install -e ".[render]"'
        ) from error
    return PIL
