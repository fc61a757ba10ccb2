"""``resolve``: the plan of a run that can begin. Whatever would stop a run later is refused here, before it has a folder."""

from __future__ import annotations

from itertools import pairwise

import engineers
from engineers.knobs import KnobError, find_knobs
from envtuning.reach import out_of_reach
from envtuning.runs.fading import raise_unless_fades
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError


def resolve(spec: RunSpec) -> Plan:
    """The spec's plan. Raises ``SpecError`` or ``InfeasibleConfig``."""
    plan = Plan.of(spec)
    plan.trainee.check(spec.trainee.options, plan.world, plan.target, plan.unit)
    for config in plan.written:
        plan.world.check_form(config, plan.trainee.form)
    _raise_unless_editable(plan)
    raise_unless_askable(plan)
    for number, stage in enumerate(spec.stages):
        _raise_unless_decided(plan, number)
        try:
            written = plan.configs[number]
            raise_unless_fades(stage.fade, plan.target if written is None else written)
        except KnobError as error:
            raise SpecError(f"stages.{number}.{error}") from error
    return plan


def _raise_unless_editable(plan: Plan) -> None:
    """Refuse a path of ``editable`` that is not a knob of every written config."""
    if plan.spec.editable is None:
        return
    try:
        for config in plan.given:
            find_knobs(config, plan.spec.editable)
    except KnobError as error:
        raise SpecError(f"editable: {error}") from error


def raise_unless_askable(plan: Plan) -> None:
    """Raises ``SpecError`` if the engineer cannot be made, or can turn nothing in a config that it will be shown. Asks nothing.

    Continued runs are checked too: since their start, a key, an extra or a model may have been removed.
    """
    spec = plan.spec
    if not spec.asks_an_engineer:
        return
    try:
        if plan.asks_the_trainee:
            plan.trainee.declared.check_asked_by(spec.engineer.name)
        engineer = plan.make_engineer()
        engineer.check_askable()
        for config, after in pairwise(plan.configs):
            if config is not None and after is None:
                engineer.check_able(config, spec.editable)
    except (engineers.ChatError, ValueError, ImportError) as error:
        raise SpecError(str(error)) from error


def _raise_unless_decided(plan: Plan, number: int) -> None:
    """Refuse a rule that can never fire, or that needs a metric nobody reports."""
    spec, place, rule = plan.spec, f"stages.{number}.advance_when", plan.spec.stages[number].advance_when
    if rule is None:
        return
    trained, validated = plan.trainee.declared.reports, plan.world.reports
    if trained is not None and (missing := rule.needs().difference(trained)):
        raise SpecError(
            f"{place} needs {', '.join(sorted(missing))}, and trainee {spec.trainee.kind!r} reports "
            f"only {', '.join(sorted(trained))}: choose another rule"
        )
    if validated is not None and (missing := rule.looks_at().difference(validated)):
        raise SpecError(
            f"{place} looks at {', '.join(sorted(missing))}, but the world {spec.world.name!r} reports only "
            f"{', '.join(sorted(validated))}: choose among these"
        )
    if rule.reads_validation and spec.suites.every is None:
        raise SpecError(
            f"{place} reads validations inside a stage, but suites.validate is {spec.suites.validates!r}: set it to 'every N', let the "
            "rule read training (on: training), or leave the rule out"
        )


def note_of(plan: Plan) -> str | None:
    """A sentence about what of the target no stage of this run can train on, if its engineer is asked; or None."""
    if not plan.spec.asks_an_engineer:
        return None
    return out_of_reach(plan.make_engineer(), plan.given, plan.target, plan.spec.editable)
