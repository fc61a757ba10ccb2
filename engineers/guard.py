"""The guard: the checks of a proposal before a stage is trained on it. Each refusal is a sentence for the engineer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral, Real
from operator import eq
from typing import Any

from pydantic import BaseModel

from engineers.knobs import KnobError, changes, dump, find_knobs, validated
from engineers.proposal import ConfigT, Proposal
from engineers.report import StageRecord, trained_on
from engineers.roles import role_of, shares_of, slices_in

WORKING_RATE = 0.5  # a slice works from this rate of the objective on

Place = tuple[str, ...]  # of a slice in its config
Feasible = Callable[[Any], object]
"""Checks whether a config can be drawn: returns None (or True) if so; a sentence, False or an exception if not."""


@dataclass(frozen=True)
class Guard:
    """The checks that a proposal must pass beyond its schema. An engineer with a guard applies them before it answers."""

    feasible: Feasible | None = None  # None: no check whether the config can be drawn
    # Largest part of a working slice's share that one proposal may remove (0.5: half); None: all.
    max_drop: float | None = None

    def __post_init__(self) -> None:
        if self.max_drop is not None and not 0 <= self.max_drop <= 1:
            raise ValueError(f"max_drop={self.max_drop}: give a fraction from 0 to 1 (0.5: half), or None for no limit")

    def check(
        self,
        proposal: Proposal[Any] | BaseModel,
        current: BaseModel,
        history: Sequence[StageRecord] = (),
        *,
        editable: Sequence[str] | None = None,
        objective: str = "success_rate",
    ) -> list[str]:
        """The reasons to refuse this proposal, one sentence each; empty if it is accepted.

        ``history`` ends with the stage that was just validated (``report.records()``).
        """
        config = proposal.config if isinstance(proposal, Proposal) else proposal
        try:
            config = read_back(config, current)
        except KnobError as error:
            return [str(error)]
        return self.rules(config, current, history, editable=editable, objective=objective)

    def rules(
        self,
        config: BaseModel,
        current: BaseModel,
        history: Sequence[StageRecord] = (),
        *,
        editable: Sequence[str] | None = None,
        objective: str = "success_rate",
    ) -> list[str]:
        """The same for a config that was read back: each proposed config is read once."""
        before, after = _shares(current), _shares(config)
        refusals = _exchanged(before, after) + _locked(config, current, editable, before.keys() ^ after.keys())
        if after and not any(after.values()) and any(before.values()):
            refusals.append("all shares are 0, so nothing would be drawn: give at least one slice a share above 0")
        if self.max_drop is not None:
            refusals += _dropped(config, current, history, self.max_drop, objective)
        if self.feasible is not None and not refusals:
            refusals += _infeasible(config, self.feasible)
        return refusals


def read_back(config: BaseModel, current: ConfigT) -> ConfigT:
    """A proposed config, read from its own JSON, so that none passes which was built past its validators. Raises ``KnobError``."""
    if type(config) is BaseModel:  # what pydantic makes of a dict
        kind = type(current).__name__
        raise KnobError(f"the config is a dict, it must be a {kind}: give {kind}.model_validate(…)")
    if type(config) is not type(current):
        raise KnobError(f"the config is a {type(config).__name__}, it must be a {type(current).__name__}")
    if unknown := list(_unknown_names(config)):  # their values would be lost on the way
        raise KnobError("; ".join(unknown))
    try:
        told = dump(config, warnings=False)  # validation tells more, in a sentence
    except Exception as error:  # built past its validators, it may hold anything
        other = f"the config cannot be written as JSON ({type(error).__name__}: {error})"
        raise KnobError("; ".join(_foreign_numbers(config)) or other) from error
    return validated(type(current), told)


def _unknown_names(part: Any, path: str = "") -> Iterator[str]:
    """A sentence for each name that ``model_copy(update=…)`` has set in the config, or in a model inside it, without such a field."""
    if isinstance(part, BaseModel):
        fields, extra = type(part).model_fields, part.model_extra or {}
        for name in sorted(part.model_fields_set - fields.keys() - extra.keys()):
            place = path or "the config"
            yield f"{place} has no field {name!r}, and model_copy does not check names: give one of {', '.join(fields)}"
    for key, value in _inside(part):
        yield from _unknown_names(value, f"{path}.{key}" if path else str(key))


def _foreign_numbers(part: Any, path: str = "") -> Iterator[str]:
    """A sentence for each number in the config that is not Python's own, such as one of numpy's."""
    if isinstance(part, Real) and not isinstance(part, int | float):
        plain = "int" if isinstance(part, Integral) else "float"
        yield f"{path} is of type {type(part).__name__}, which cannot be written as JSON: give a plain {plain}"
    for key, value in _inside(part):
        yield from _foreign_numbers(value, f"{path}.{key}" if path else str(key))


def _inside(part: Any) -> list[tuple[Any, Any]]:
    """What a model, a mapping or a list holds, with the names; nothing in other values."""
    if isinstance(part, BaseModel):
        fields = type(part).model_fields
        return [(name, value) for name, value in vars(part).items() if name in fields] + [
            *(part.model_extra or {}).items()
        ]
    if isinstance(part, Mapping):
        return [*part.items()]
    return [*enumerate(part)] if isinstance(part, list | tuple) else []


NO_GUARD = Guard()


def check(
    proposal: Proposal[Any] | BaseModel,
    current: BaseModel,
    history: Sequence[StageRecord] = (),
    *,
    editable: Sequence[str] | None = None,
    feasible: Feasible | None = None,
    max_drop: float | None = None,
    objective: str = "success_rate",
) -> list[str]:
    """``Guard(feasible, max_drop).check(…)`` in one call."""
    return Guard(feasible, max_drop).check(proposal, current, history, editable=editable, objective=objective)


def _shares(config: BaseModel) -> dict[Place, float]:
    """The share of each slice, by the slice's place in the config."""
    with suppress(KnobError):  # no knob is left in the config
        knobs = find_knobs(config, ("*",))
        return {knob.group: float(knob.value or 0) for knob in knobs if role_of(knob) == "share" and knob.group}
    return {}


def _exchanged(before: Collection[Place], after: Collection[Place]) -> list[str]:
    """Slices are those of the first config: a new one has no results, and one that is gone could never come back."""
    new = [repr(place[-1]) for place in after if place not in before]
    gone = [repr(place[-1]) for place in before if place not in after]
    told = []
    if new:
        there = ", ".join(place[-1] for place in before) or "none"
        told.append(f"{_slices_are(new)} new: an engineer adds no slice (the config has {there})")
    if gone:
        keep, give = ("keep them", "give each") if gone[1:] else ("keep it", "give it")
        told.append(f"{_slices_are(gone)} gone: {keep}" + (f", and {give} a share of 0" if after else ""))
    return told


def _slices_are(names: Sequence[str]) -> str:
    return f"slices {', '.join(names)} are" if names[1:] else f"slice {names[0]} is"


def _locked(config: BaseModel, current: BaseModel, editable: Sequence[str] | None, besides: Set[Place]) -> list[str]:
    """Changes of what is not editable, but for ``besides``: slices that one of the configs lacks."""
    knobs = find_knobs(current, editable)
    allowed = {knob.path for knob in knobs}
    patterns = dict.fromkeys(knob.pattern for knob in knobs)
    return [
        f"{'.'.join(path)} was changed from {old!r:.40} to {new!r:.40}, but only {', '.join(patterns)} may be"
        for path, old, new in changes(current, config)
        if path not in allowed and not any(all(map(eq, path, place)) for place in besides)
    ]


def _dropped(
    config: BaseModel, current: BaseModel, history: Sequence[StageRecord], max_drop: float, objective: str
) -> list[str]:
    """Working slices that would lose more than ``max_drop`` of their part of the data at once."""
    if not history:
        return []
    table = history[-1].results or trained_on(history[-1])
    rates = {row.name: rate for row in table if (rate := row.rate(objective)) is not None}
    slices = slices_in(current)
    before, after = shares_of(dump(current), slices), shares_of(dump(config), slices)
    refusals = []
    for slice_ in slices:
        old, new = before[slice_.name], after[slice_.name]
        least = old * (1 - max_drop)
        if rates.get(slice_.name, 0.0) >= WORKING_RATE and new < least - 1e-6:
            refusals.append(
                f"slice {slice_.name} works ({objective} {rates[slice_.name]:.2f}) and would fall from {old:.1%} to {new:.1%} "
                f"of the data: keep at least {least:.1%} in one step"
            )
    return refusals


def _infeasible(config: BaseModel, feasible: Feasible) -> list[str]:
    try:
        answer = feasible(config)
    except Exception as error:
        return [f"the config cannot be drawn: {error}"]
    if answer is None or answer is True:
        return []
    return [f"the config cannot be drawn: {answer}" if isinstance(answer, str) else "the config cannot be drawn"]
