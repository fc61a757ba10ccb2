"""``PlainEngineer``: engineers without a model. A design is a pure function of (seed, report, current config, knobs)."""

from __future__ import annotations

import inspect
import random
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from engineers.common_options import require_common
from engineers.engineer import Engineer
from engineers.guard import NO_GUARD, Guard
from engineers.knobs import Knob, KnobError, changes, dump, find_knobs, get_or_none, with_values, without_noise
from engineers.plain.shares import with_least
from engineers.proposal import Change, Proposal
from engineers.report import StageReport
from engineers.report_check import raise_unless_about
from engineers.roles import SliceKnobs, role_of, some_share_of
from engineers.space import Space, checked_space, raise_unless_knobs, range_of

ConfigT = TypeVar("ConfigT", bound=BaseModel)

KnobPath = tuple[str, ...]
LEAST_PART = 0.01  # of the data, for a slice that an engineer gives up
LEAST_TOGETHER = 0.25  # of the data: if all slices were given up, each would have an even part of this
HALVINGS = 4  # halvings of a step that the guard refuses, before the current config is kept


@dataclass
class Design:
    """New values of knobs, with reasons; other knobs stay as they are."""

    values: dict[KnobPath, Any] = field(default_factory=dict)
    reasons: dict[KnobPath, str] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)  # of designs that were thought of before this one

    def turn(self, knob: Knob, value: Any, reason: str) -> None:
        self.values[knob.path] = value
        self.reasons[knob.path] = reason

    def kept(self, current: BaseModel) -> dict[str, str]:
        """Why knobs that were thought of stay as they are, by the knob's name."""
        now = dump(current)
        return {
            ".".join(path): reason
            for path, reason in self.reasons.items()
            if reason and path in self.values and self.values[path] == get_or_none(now, path)
        }

    def share_out(self, slices: Iterable[SliceKnobs], parts: Mapping[str, float], reasons: Mapping[str, str]) -> None:
        """Give each of the target's slices its part of the data, and no data to the others; both mappings are by slice name.

        No slice of the target is given up for good: it keeps ``LEAST_PART`` of the data, so that later reports can still tell of it.
        Raises ``KnobError`` if there are shares to turn and no part is above 0.
        """
        shared = {piece.name: piece.share for piece in slices if piece.share is not None}
        if shared and not any(part > 0 for part in parts.values()):
            raise KnobError(
                f"no part is above 0 (parts={dict(parts)}): give each slice its part, from rows that the report has (`results` is empty without "
                "a validation, `training_results` without outcomes of training)"
            )
        given = with_least(parts, min(LEAST_PART, LEAST_TOGETHER / max(len(parts), 1)))
        for name, share in shared.items():
            why = reasons.get(name, "the target does not have it")
            self.turn(share, some_share_of(share, given.get(name, 0.0)), why)


class PlainEngineer(Engineer):
    """Makes a guarded proposal from a design. A step that the guard refuses is halved several times, and then dropped.

    Takes every common option of ``engineers.make``, and ignores those of engineers with a model.
    """

    guard: Guard
    turns = "the shares of two slices or more, and numbers with two bounds"  # used in errors

    def __init__(
        self,
        *,
        seed: int = 0,
        space: Space | None = None,
        guard: Guard = NO_GUARD,
        **unused: Any,
    ) -> None:
        require_common(type(self).__name__, unused)
        self.seed, self.space, self.guard = seed, checked_space(space), guard

    @classmethod
    def named_options(cls) -> set[str]:
        """The options that it uses: its own, and those of the classes to which it passes further ones."""
        found = set[str]()
        for kind in cls.__mro__[:-1]:
            if "__init__" in vars(kind):
                _, *parameters = inspect.signature(vars(kind)["__init__"]).parameters.values()
                found |= {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
                if not any(one.kind is one.VAR_KEYWORD for one in parameters):
                    break
        return found

    @abstractmethod
    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        """The changes to make, as a function of the arguments and the seed alone."""

    def check_able(self, current: BaseModel, editable: Sequence[str] | None = None) -> None:
        raise_unless_knobs(self.space, current)
        knobs = find_knobs(current, editable)
        if not self.can_turn(knobs):
            there = ", ".join(dict.fromkeys(knob.pattern for knob in knobs)) or "nothing"
            raise KnobError(
                f"{self.name} can do nothing with this {type(current).__name__}: it turns {self.turns}, and editable is "
                f"{there:.300}; make other knobs editable, or name an engineer that can turn these "
                f"('fixed' changes nothing){_lacking_bounds(knobs)}"
            )

    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        """The designed config, or the largest step towards it that the guard accepts. Equal arguments give equal proposals.

        Raises ``KnobError`` for a ``space`` or an ``editable`` path that the config does not have, and ``ReportUnclear``.
        """
        raise_unless_about(report, current)
        raise_unless_knobs(self.space, current)
        knobs = find_knobs(current, editable)
        design = self.design(report, current, knobs)
        if not isinstance(design, Design):
            told = "None" if design is None else f"a {type(design).__name__}"
            raise TypeError(
                f"design returned {told}: return the Design with the values that you turned, or Design() for no change"
            )
        config, refusals = self._guarded(design.values, report, current, editable)
        if config is None:
            config, of_parts = self._part_by_part(design, knobs, report, current, editable)
            refusals = of_parts or refusals  # parts have only editable knobs
        refusals = list(dict.fromkeys(design.refusals + refusals))
        stuck = config == current and bool(refusals)
        reasons = [
            Change(path=".".join(path), old=old, new=new, reason=design.reasons.get(path, ""))
            for path, old, new in changes(current, config)
        ]
        return Proposal(
            config=config,
            reasons=reasons,
            kept={} if refusals else design.kept(current),  # what was refused is not kept for the design's reason
            engineer=self.name,
            fallback=stuck,
            refusals=refusals,
        )

    def _part_by_part(
        self,
        design: Design,
        knobs: Sequence[Knob],
        report: StageReport,
        current: ConfigT,
        editable: Sequence[str] | None,
    ) -> tuple[ConfigT, list[str]]:
        """Shares first, then slice by slice: each part's step is halved until the guard accepts it, and finally dropped."""
        parts: dict[tuple[str, ...], list[Knob]] = {}
        for knob in sorted(knobs, key=lambda knob: role_of(knob) != "share"):
            if knob.path in design.values:
                parts.setdefault(("share",) if role_of(knob) == "share" else knob.group, []).append(knob)
        config, refusals = current, list[str]()
        values: dict[KnobPath, Any] = {}
        for part in parts.values():
            for halving in range(HALVINGS + 1):
                step = {
                    knob.path: _some_way(knob, design.values[knob.path], 0.5**halving, self.range_of(knob))
                    for knob in part
                }
                tried, refused = self._guarded(values | step, report, current, editable)
                if tried is not None:
                    config, values = tried, values | step
                    break
                refusals += [sentence for sentence in refused if sentence not in refusals]
        return config, refusals

    def random(self, report: StageReport) -> random.Random:
        """Random numbers of (engineer, seed, stage): the same in any process."""
        return random.Random(f"{self.name}:{self.seed}:{report.stage}")

    def range_of(self, knob: Knob) -> tuple[float, float] | None:
        """The range of a knob's draws: the run's space, the field's own, or else its bounds."""
        return range_of(knob, self.space)

    def _guarded(
        self, values: dict[KnobPath, Any], report: StageReport, current: ConfigT, editable: Sequence[str] | None
    ) -> tuple[ConfigT | None, list[str]]:
        try:
            config = self._taken(values, current)
        except KnobError as error:
            return None, [str(error)]
        refused = self.guard.check(config, current, report.records(), editable=editable, objective=report.objective)
        return (None, refused) if refused else (config, [])

    def _taken(self, values: dict[KnobPath, Any], current: ConfigT) -> ConfigT:
        """The config with these values; if it refuses them, with shares scaled to their present sum.

        Raises ``KnobError`` with the faults of the values themselves.
        """
        try:
            return with_values(current, values)
        except KnobError:
            shares = [knob for knob in find_knobs(current, ("*",)) if role_of(knob) == "share"]
            summed = values | with_the_sum_of_now([(knob, values[knob.path]) for knob in shares if knob.path in values])
            if summed != values:
                with suppress(KnobError):
                    return with_values(current, summed)
            raise


def _lacking_bounds(knobs: Sequence[Knob]) -> str:
    """What to add to numbers that could be turned if they had two bounds."""
    open_ended = [
        knob.name for knob in knobs if knob.types & {"number", "integer"} and knob.bounds is None and not knob.options
    ]
    return f". {', '.join(open_ended[:3])} would be turned with two bounds: Field(…, ge=…, le=…)" if open_ended else ""


def with_the_sum_of_now(asked: Sequence[tuple[Knob, Any]]) -> dict[KnobPath, float | int]:
    """Shares in the given proportions, with their present sum; the largest takes the rounding error.

    Empty if this is impossible: the present sum is 0, a given value is not a number above 0, or a slice would lose its share.
    """
    numbers = [(knob, value) for knob, value in asked if isinstance(value, int | float)]
    now, total = sum(knob.value or 0 for knob, _ in numbers), sum(value for _, value in numbers)
    if now <= 0 or total <= 0:
        return {}
    fitted = {knob.path: knob.fit(value * now / total) for knob, value in numbers}
    if any(value > 0 >= fitted[knob.path] for knob, value in numbers):
        return {}
    largest = max(numbers, key=lambda pair: pair[1])[0]
    rest = without_noise(fitted[largest.path] + now - sum(fitted.values()))
    return fitted | {largest.path: largest.fit(rest, exact=rest)}


def _some_way(knob: Knob, value: Any, fraction: float, within: tuple[float, float] | None = None) -> Any:
    """The value at this fraction of the way from the present one to the designed one; other values than numbers jump."""
    if fraction == 1 or knob.bounds is None or knob.value is None or value is None:
        return value
    return knob.fit(knob.value + fraction * (value - knob.value), within)
