"""``over_bounds``: finds arguments with which a whitelisted tool would run for ever or fill the memory, before the call is made.

Each bound is far above anything a task needs. A call that exceeds one is not run, and the episode records it in ``departures``,
because the official executor would have run it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envtuning.worlds.bfcl.calls import Call

MAX_PRECISION = 1_000  # digits, of the maths tool's logarithm and square root
MAX_PLACES = 1_000  # decimal places to round to, either way
MAX_BITS = 100_000  # of a power of whole numbers
MAX_FILES = 5_000  # paths in the file system's tree; a copy shares folders, so the paths can double with every call
MAX_FOLDERS_DEEP = 200


def over_bounds(class_name: str, instance: Any, call: Call) -> str | None:
    """Why this call must not be run, in a sentence; None if it may."""
    bound = _BOUNDS.get((class_name, call.name))
    return bound(instance, call) if bound is not None else None


def _argument(call: Call, name: str, place: int) -> Any:
    return call.named.get(name, call.positional[place] if place < len(call.positional) else None)


def _power(_: Any, call: Call) -> str | None:
    base, exponent = _argument(call, "base", 0), _argument(call, "exponent", 1)
    if not (isinstance(base, int) and isinstance(exponent, int)) or exponent < 0 or abs(base) < 2:
        return None
    if base.bit_length() * exponent <= MAX_BITS:
        return None
    return f"base and exponent give a number of more than {MAX_BITS:,} bits: take smaller ones, or write one as 2.0"


def _precision(place: int) -> Callable[[Any, Call], str | None]:
    def bound(_: Any, call: Call) -> str | None:
        try:
            digits = int(_argument(call, "precision", place))  # as mpmath does, which also takes a text
        except (TypeError, ValueError, OverflowError):
            return None  # mpmath refuses it too
        if abs(digits) <= MAX_PRECISION:
            return None
        return f"precision is more than {MAX_PRECISION:,} digits: take fewer"

    return bound


def _round(_: Any, call: Call) -> str | None:
    places = _argument(call, "decimal_places", 1)
    if not isinstance(places, int) or abs(places) <= MAX_PLACES:
        return None
    return f"decimal_places is beyond {MAX_PLACES:,}: take a number nearer to 0"


def _tree(instance: Any, _: Call) -> str | None:
    # The current folder may have been removed; then the root does not lead to it.
    if tree_is_small(instance.root) and tree_is_small(instance._current_dir):
        return None
    return (
        f"the file system has more than {MAX_FILES:,} paths, or folders more than {MAX_FOLDERS_DEEP} deep: remove some"
    )


def tree_is_small(root: Any) -> bool:
    """Whether a walk over every path of the tree ends soon; copied folders may hold themselves."""
    waiting, seen = [(root, 0)], 0
    while waiting:
        folder, depth = waiting.pop()
        seen += len(folder.contents)
        if seen > MAX_FILES or depth > MAX_FOLDERS_DEEP:
            return False
        waiting += [(item, depth + 1) for item in folder.contents.values() if hasattr(item, "contents")]
    return True


_BOUNDS: dict[tuple[str, str], Callable[[Any, Call], str | None]] = {
    ("MathAPI", "power"): _power,
    ("MathAPI", "logarithm"): _precision(2),
    ("MathAPI", "square_root"): _precision(1),
    ("MathAPI", "round_number"): _round,
    ("GorillaFileSystem", "find"): _tree,
    ("GorillaFileSystem", "du"): _tree,
    ("GorillaFileSystem", "cp"): _tree,
    ("GorillaFileSystem", "mv"): _tree,
}
