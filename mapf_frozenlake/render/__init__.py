"""Pictures of a lake: text, pixels, SVG, a window and films. All of them draw a ``Snapshot`` and need no environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.render.ansi import ansi
from mapf_frozenlake.render.film import plan_frames
from mapf_frozenlake.render.raster import image, rgb_array
from mapf_frozenlake.render.svg import animated_svg, svg
from mapf_frozenlake.render.window import Window
from mapf_frozenlake.world.snapshot import Snapshot

__all__ = ["Snapshot", "Window", "animated_svg", "ansi", "image", "plan_frames", "rgb_array", "save_animation", "svg"]


def save_animation(path: str | Path, frames: Sequence[Snapshot], *, seconds_per_step: float = 0.6) -> Path:
    """Write a film of the frames as ``.gif`` or as a self-playing ``.svg``; returns the path."""
    path = Path(path)
    if not frames:
        raise LakeError("0 frames to show: reset the environment before saving its animation")
    if (form := path.suffix.lower()) == ".svg":
        path.write_text(animated_svg(frames, seconds_per_step), encoding="utf-8")
    elif form == ".gif":
        pictures = [image(frame) for frame in frames]
        milliseconds = round(1000 * seconds_per_step)
        durations = [milliseconds] * (len(pictures) - 1) + [3 * milliseconds]
        pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True)
    else:
        raise LakeError(
            f"{path.name}: an animation is saved as .gif or .svg, not {path.suffix or 'without an ending'!r}"
        )
    return path
