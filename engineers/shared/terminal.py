"""A console that prints only text: control characters from a model, a file or a server cannot control the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

# All control characters but tab and line break, those that turn the direction of writing, and invisible ones.
_STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with every control character of a terminal written out: ESC as ``\\x1b``, a change of direction as ``\\u202e``."""
    return _STEERS.sub(lambda found: found.group().encode("unicode_escape", "surrogatepass").decode(), text)


class TextConsole(Console):
    """Rich's console: its own colours and cursor movements pass, and no others do."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def render_str(self, text: str, **options: Any) -> Any:
        return super().render_str(visible(text), **options)
