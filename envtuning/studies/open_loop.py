"""Arms that read nothing: every config is fixed before training begins. An engineer's value is its gain over the best of them.

Each makes the arm's spec from a run's spec, with its first stage and its target. Comparisons and studies accept their names as
well as engineers' names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engineers.knobs import KnobError, dump, find_knobs, leaves, with_values
from engineers.registry import tier_named
from engineers.roles import SliceKnobs, find_slices, share_of, shares_of
from engineers.tiers import Tier
from envtuning.runs.plan import Plan
from envtuning.runs.sections import EngineerSpec, StageSpec
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.studies.table import Known
from envtuning.trainees.language.live_engineers import KNOW_THE_WEIGHTS


@dataclass(frozen=True)
class OpenLoop:
    """One schedule that needs no report."""

    says: str
    tier: Tier
    arm: Callable[[RunSpec], RunSpec]
    warms_up: bool = False  # whether an easier stage comes before the target


def arm_of(spec: RunSpec, engineer: EngineerSpec) -> RunSpec:
    """The spec of an arm: with this engineer, or with the open-loop schedule of that name."""
    if engineer.name in ARMS:
        return ARMS[engineer.name].arm(spec)
    return spec.model_copy(update={"engineer": engineer})


def known(engineer: EngineerSpec, tuning_runs: int = 0) -> Known:
    """What is known of an arm before its runs: of this engineer, or of the open-loop schedule of that name."""
    name = engineer.name
    if name in ARMS:
        return Known(ARMS[name].tier, tuning_runs, warms_up=ARMS[name].warms_up)
    tier = Tier.WEIGHTS if name in KNOW_THE_WEIGHTS else tier_named(name, **engineer.options)
    return Known(tier, tuning_runs, warms_up=tier == Tier.FAMILY)


def on_target(stage: StageSpec, target: Any) -> StageSpec:
    """The stage with the target as its config."""
    return stage.model_copy(update={"config": target, "redraw": False, "fade": None})


def target_only(spec: RunSpec) -> RunSpec:
    return _with_configs(spec, [spec.target] * len(spec.stages))


def warm_target(spec: RunSpec) -> RunSpec:
    first = spec.stages[0]
    return _with_configs(spec, [first.config, *[spec.target] * (len(spec.stages) - 1)], first)


def mixture(spec: RunSpec) -> RunSpec:
    return _with_configs(spec, [half_easy(spec)] * len(spec.stages))


def near_uniform(spec: RunSpec) -> RunSpec:
    """Uniform draws, but no slice that is harder than the target's hardest one."""
    if not spec.asks_an_engineer:
        raise SpecError(f"near-uniform would draw nothing: no stage of {spec.name} has config: engineer")
    plan = Plan.of(spec)
    first = plan.first
    slices, beyond = _slices(first), _beyond_target(plan)
    shares = {piece.share.path: share_of(piece.share, 0.0) for piece in slices if piece.share and piece.name in beyond}
    closed = with_values(first, shares)
    engineer = spec.engineer.model_copy(update={"name": "uniform", "options": spec.engineer.common_options})
    open_knobs = [knob.name for knob in find_knobs(first, spec.editable)]
    groups = [".".join(piece.share.group) + "." for piece in slices if piece.share and piece.name in beyond]
    editable = tuple(name for name in open_knobs if not name.startswith(tuple(groups)))
    stages = (spec.stages[0].model_copy(update={"config": dump(closed)}), *spec.stages[1:])
    return spec.model_copy(update={"engineer": engineer, "editable": editable, "stages": stages})


ARMS: dict[str, OpenLoop] = {
    "target-only": OpenLoop("every stage trains on the target", Tier.TARGET, target_only),
    "warm-target": OpenLoop("the first stage as it is, then the target", Tier.TARGET, warm_target, warms_up=True),
    "mixture": OpenLoop(
        "half of the data as in the first stage on slices that the target lacks, half the target",
        Tier.TARGET,
        mixture,
        warms_up=True,
    ),
    "near-uniform": OpenLoop("uniform draws over the slices up to the target's hardest", Tier.TARGET, near_uniform),
}


def half_easy(spec: RunSpec) -> dict[str, Any]:
    """Half of the data on the first stage's slices that the target lacks, at their settings there; half on the target.

    Raises ``SpecError`` if the first stage has no such slice, or lacks one of the target's.
    """
    plan = Plan.of(spec)
    first, target = plan.first, plan.target
    ours, theirs = _weights(first), _weights(target)
    easy = {name: share for name, share in ours.items() if share > 0 and theirs.get(name, 0.0) == 0}
    wanted = {name: share for name, share in theirs.items() if share > 0}
    if not easy or wanted.keys() - ours.keys():
        raise SpecError(
            f"mixture needs a first stage with all slices of the target and others besides: {spec.name}'s first stage "
            f"has {', '.join(name for name, share in ours.items() if share > 0)}, its target {', '.join(wanted)}"
        )
    values: dict[tuple[str, ...], Any] = {}
    there = leaves(dump(target))
    slices = _slices(first)
    of_easy = {knob for piece in slices if piece.name not in wanted for knob in _paths(piece)}
    for knob in find_knobs(first, ("*",)):
        if knob.path not in of_easy:
            values[knob.path] = there.get(knob.name, knob.value)
    for piece in slices:
        if piece.share is not None:
            part = easy.get(piece.name, 0.0) / sum(easy.values()) + wanted.get(piece.name, 0.0) / sum(wanted.values())
            values[piece.share.path] = share_of(piece.share, part / 2)
    try:
        return dump(with_values(first, values))
    except KnobError as error:
        raise SpecError(f"mixture: the target's values do not fit the first stage's config: {error}") from error


def _with_configs(spec: RunSpec, configs: Sequence[Any], first: StageSpec | None = None) -> RunSpec:
    """The run with these configs in its stages. With a first stage given, that one stays unchanged."""
    stages = [on_target(stage, config) for stage, config in zip(spec.stages, configs, strict=True)]
    if first is not None:
        stages[0] = first
    return spec.model_copy(update={"engineer": spec.engineer.replaced_by("fixed"), "stages": tuple(stages)})


def _slices(config: Any) -> tuple[SliceKnobs, ...]:
    return find_slices(find_knobs(config, ("*",)))


def _weights(config: Any) -> dict[str, float]:
    return shares_of(dump(config), _slices(config))


def _beyond_target(plan: Plan) -> set[str]:
    """The first stage's slices after the last one that the target uses, in their natural order."""
    names = [piece.name for piece in _slices(plan.first)]
    used = [place for place, name in enumerate(names) if _weights(plan.target).get(name, 0.0) > 0]
    if not used:
        raise SpecError(f"near-uniform: the first stage of {plan.spec.name} has none of the target's slices")
    return set(names[used[-1] + 1 :])


def _paths(piece: SliceKnobs) -> set[tuple[str, ...]]:
    return {knob.path for knob in piece.difficulties} | ({piece.share.path} if piece.share else set())
