"""The slices of a curriculum's config, and a saved state whose slices are no longer the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from engineers.knobs import find_knobs, get_or_none, leaves
from engineers.roles import WHOLE, find_slices, shares_of
from envtuning.errors import SpecError
from envtuning.own_code import warn

ROWS = ("results", "training_results", "own_config_results")  # of a report's stage
OF_INFO = "let the last info's `slice` name one of these, or pass slice_of=lambda info: …"


class Slices:
    """The slices that a config shares its data among; ``WHOLE`` alone for a config without shares."""

    def __init__(self, config: BaseModel) -> None:
        self._pieces = [piece for piece in find_slices(find_knobs(config, ("*",))) if piece.share is not None]
        self.places = {piece.name: piece.share.group for piece in self._pieces if piece.share is not None}
        self.names = [*self.places] or [WHOLE]

    def raise_unless_known(self, names: Iterable[str], remedy: str = OF_INFO) -> None:
        strangers = sorted(set(names) - set(self.names))
        if not strangers:
            return
        found = "without a slice" if strangers[0] == WHOLE else f"of the slice {strangers[0]!r}"
        if not self.places:
            raise SpecError(
                f"an episode {found}, and the config has no slices: a slice is a group with a number `share`, so give it one, or name no slice"
            )
        raise SpecError(f"an episode {found}, and the config has {', '.join(self.names)}: {remedy}")

    def drawn_alike(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Whether the same is drawn by two configs, as JSON: only the ratios of shares count, so 1 and 1 are as ½ and ½."""
        shares = {".".join(piece.share.path) for piece in self._pieces if piece.share is not None}
        rest = [{path: value for path, value in leaves(data).items() if path not in shares} for data in (before, after)]
        parts = [shares_of(data, self._pieces) for data in (before, after)]
        return rest[0] == rest[1] and all(math.isclose(parts[0][name], parts[1][name]) for name in parts[0])


def adapted(state: Mapping[str, Any], config: BaseModel, renamed: Mapping[Any, Any]) -> dict[str, Any]:
    """A saved state for this config: slices that are new to it stay as the config has them, and those that are gone are dropped.

    ``renamed`` maps old names to new ones; lakes' may be numbers. Warns of what is dropped.
    """
    here, saved = Slices(config), state["slices"]
    if not isinstance(saved, list) or not all(isinstance(name, str) for name in saved):
        raise TypeError("slices is no list of names")
    told = {str(old): str(new) for old, new in renamed.items()}
    known = {old: told.get(old, old) for old in map(str, saved)}
    _raise_unless_mapped(told, known, here)
    gone = [old for old, new in known.items() if new not in here.names]
    if gone:
        warn(f"the saved state's slices {', '.join(gone)!r:.200} are not in the config: dropped")
    if all(old == new for old, new in known.items()) and set(known) == set(here.names):
        return dict(state)
    return _Change(config.model_dump(mode="json"), here, known).of(state)


def _raise_unless_mapped(renamed: Mapping[str, str], known: Mapping[str, str], here: Slices) -> None:
    """``renamed`` maps saved slices, each onto a slice of the config that no other one has."""
    if renamed and not here.places:
        raise SpecError(f"renamed={dict(renamed)}, and the config has no slices: leave `renamed` out")
    for old, new in renamed.items():
        if old not in known:
            raise SpecError(f"renamed has {old!r}, and the saved slices are {', '.join(known)}")
        if new not in here.names:
            raise SpecError(
                f"renamed maps {old!r} onto {new!r}, and the config has {', '.join(here.names)}: give one of these"
            )
        if len(both := [name for name, onto in known.items() if onto == new]) > 1:
            raise SpecError(
                f"the saved slices {' and '.join(both)} would both be {new!r}: give each a slice of its own"
            )


class _Change:
    """From the saved names to those of ``config``, in every part of a state that names slices."""

    def __init__(self, config: dict[str, Any], here: Slices, known: Mapping[str, str]) -> None:
        self.fresh, self.here = config, here
        self.kept = {old: new for old, new in known.items() if new in here.names}

    def of(self, state: Mapping[str, Any]) -> dict[str, Any]:
        changed = dict(state) | {"config": self.config(state["config"]), "slices": self.here.names}
        if "halves" in state:
            changed["halves"] = [self.tally(half) for half in state["halves"]]
        if "tally" in state:
            changed["tally"] = self.tally(state["tally"])
        for name in ("history", "proposals"):
            if name in state:
                changed[name] = [self.stage(one) for one in state[name]]
        if state.get("open") is not None:
            changed["open"] = self.stage(state["open"])
            changed["open"]["history"] = [self.stage(one) for one in state["open"].get("history", [])]
        for name in ("rates", "won", "lost"):  # a number for each slice
            if name in state:
                old = dict(zip(state["slices"], state[name], strict=True))
                found = {new: old[name] for name, new in self.kept.items()}
                changed[name] = [found.get(new, 0.5 if name == "rates" else 0.0) for new in self.here.names]
        return changed

    def stage(self, told: Mapping[str, Any]) -> dict[str, Any]:
        rows = {name: self.rows(told[name]) for name in ROWS if name in told}
        return dict(told) | rows | {"config": self.config(told["config"])}

    def rows(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"name": self.kept[row["name"]]} for row in rows if row["name"] in self.kept]

    def tally(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {
            part: {self.kept[name]: counts for name, counts in by_slice.items() if name in self.kept}
            for part, by_slice in told.items()
        }

    def config(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """The saved values of slices that are still there, in the config as it is now; and its other values."""
        found = self._others(saved, self.fresh, ())
        for old, new in self.kept.items():
            place = self.here.places[new]
            value = get_or_none(saved, (*place[:-1], old))
            if value is not None:
                found = _with(found, place, value)
        return found

    def _others(self, saved: Mapping[str, Any], fresh: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
        """The saved values, with the slices of the config as it is now in their place."""
        places = self.here.places.values()
        found = {name: saved[name] for name in fresh if name in saved}
        for name, value in fresh.items():
            here = (*path, name)
            if here in places:
                found[name] = value
            elif any(place[: len(here)] == here for place in places):
                found[name] = self._others(saved.get(name, {}), value, here)
        return found


def _with(tree: Mapping[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = path
    return dict(tree) | {first: _with(tree[first], tuple(rest), value) if rest else value}
