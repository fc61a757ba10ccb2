"""Files from untrusted sources: read as JSON within bounds, or refused in one sentence.

All records of runs, ledgers and answers are read by this module. Callers check the shape with their own models.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

LARGEST = 1 << 30  # bytes of a file
DEEPEST = 100  # levels of nesting, low enough for recursive code
LAST = sys.float_info.max  # of the finite numbers


class NotReadable(ValueError):
    """The message says what is wrong with the file, to follow its name: "is not a file"."""


def read_bytes(path: Path, largest: int = LARGEST) -> bytes | None:
    """The content of a regular file; None without a file. Raises ``NotReadable``; never waits for a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotReadable(f"cannot be read ({error.strerror})") from error
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise NotReadable("is not a file")
        if found.st_size > largest:
            raise NotReadable(f"has {found.st_size:,} bytes, at most {largest:,} are read")
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise NotReadable(f"cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)


def parsed(text: bytes | str) -> Any:
    """The value of a JSON text. Raises ``NotReadable`` for other text, deep nesting, or a number that is not finite."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise NotReadable(f"is damaged (nested deeper than {DEEPEST} levels)") from None
    except ValueError as error:  # no JSON, no UTF-8, thousands of digits
        raise NotReadable(f"is damaged (no JSON: {error})") from error
    level = [value]
    for _ in range(DEEPEST):
        if any(_is_odd(one) for one in level):
            raise NotReadable("is damaged (a number in it is not finite)")
        groups = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [one for group in groups for one in group]
        if not level:
            return value
    raise NotReadable(f"is damaged (nested deeper than {DEEPEST} levels)")


def _is_odd(value: Any) -> bool:
    """Whether arithmetic would fail on it: NaN, infinity, an integer too large for a float."""
    return isinstance(value, int | float) and not -LAST <= value <= LAST


def parsed_lines(data: bytes) -> list[Any]:
    """Every whole line of a JSON-lines text, oldest first; a last line that was cut off is left out."""
    whole, _, _cut_off = data.rpartition(b"\n")
    return [parsed(line) for line in whole.split(b"\n") if line.strip()]
