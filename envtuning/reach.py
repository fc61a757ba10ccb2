"""What of a target no stage can train on: a slice that no given config has, or a value that the engineer cannot turn a knob to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from engineers.engineer import Engineer
from engineers.knobs import Knob, dump, find_knobs, get_or_none, with_values
from engineers.plain.base import PlainEngineer
from engineers.report import SliceResult, StageReport
from engineers.roles import WHOLE, role_of, shares_in, split_by_role


def out_of_reach(
    engineer: Engineer, configs: Sequence[BaseModel], target: BaseModel, editable: Sequence[str] | None
) -> str | None:
    """A sentence that names a part of the target that no stage can train on, or None.

    Without it, such a run gives no sign.

    ``configs`` are those that are given, the first one first; the engineer writes all others. A model or a human can turn all that is
    editable, and nobody adds a slice.
    """
    return _lacking(configs, target) or _stuck(engineer, configs, target, editable)


def _lacking(configs: Sequence[BaseModel], target: BaseModel) -> str | None:
    there = dict.fromkeys(name for config in configs for name in shares_in(config))
    lacking = [name for name, part in shares_in(target).items() if part > 0 and name not in there]
    if not lacking or lacking == [WHOLE]:
        return None
    return (
        f"the target has the slice {lacking[0]!r}, and the config has {', '.join(there):.200}: no engineer adds a slice, so begin with "
        "all of the target's (a share of 0 will do)"
    )


def _stuck(
    engineer: Engineer, configs: Sequence[BaseModel], target: BaseModel, editable: Sequence[str] | None
) -> str | None:
    first, aim, given = configs[0], dump(target), [dump(config) for config in configs]
    shares, others = split_by_role(find_knobs(first, editable))
    turned = {knob.path for knob in (*shares, *(knob for knob in others if engineer.can_turn([knob])))}
    stuck: dict[str, str] = {}
    for knob in find_knobs(first, ("*",)):
        goal: Any = get_or_none(aim, knob.path)
        if goal is not None and knob.path not in turned and all(get_or_none(one, knob.path) != goal for one in given):
            stuck.setdefault(knob.pattern, f"{knob.name} is {knob.value!r:.60} at first and {goal!r:.60} in the target")
    if not stuck:
        return None
    one, *more = stuck.values()
    also = f" (nor {', '.join([*stuck][1:]):.200})" if more else ""
    return (
        f"{one}, and engineer {engineer.name!r} cannot turn it{also}, so no stage trains on the target's value; begin with that value, or "
        "let an engineer turn it (`editable`, or another engineer: `rules` and `steady` turn all numbers with a range)"
    )


def waits_for_a_target(engineer: Engineer, config: BaseModel, editable: Sequence[str] | None) -> str | None:
    """A sentence if the engineer turns difficulties of this config where it knows a target, and none where it does not; else None.

    Found by asking it what it would do if everything succeeded. That is free for an engineer that is a function of its report, so others
    are not asked.
    """
    if not isinstance(engineer, PlainEngineer):
        return None
    knobs = find_knobs(config, editable)
    dials = [knob for knob in knobs if role_of(knob) == "difficulty" and engineer.can_turn([knob])]
    ends = {knob.path: knob.fit(end) for knob in dials if (end := _other_end(knob, engineer)) is not None}
    if not ends:
        return None

    def turns(target: Mapping[str, Any]) -> bool:
        rows = [SliceResult(name=name, episodes=20, metrics={"success_rate": 1.0}) for name in shares_in(config)]
        report = StageReport(
            stage=0, objective="success_rate", config=dump(config), target=target, rounds_left=1, training_results=rows,
            training={"round": 0, "rounds": 2},
        )  # fmt: skip
        values = engineer.design(report, config, knobs).values
        return any(values.get(knob.path, knob.value) != knob.value for knob in dials)

    try:
        if turns({}) or not turns(dump(with_values(config, ends))):
            return None
    except Exception:  # of a user's own engineer or config, which training will show
        return None
    named = ", ".join(dict.fromkeys(knob.pattern for knob in dials))
    return f"without a target, {engineer.name} turns no difficulty ({named:.200}): give target=…, the config of the tasks that count in the end"


def _other_end(knob: Knob, engineer: PlainEngineer) -> float | None:
    """The end of a knob's range that is farther from its value."""
    if (bounds := engineer.range_of(knob)) is None:
        return None
    return max(bounds, key=lambda end: abs(end - (knob.value or 0)))
