"""Engineers that read nothing: what each trains on, stage by stage, and that a run has it before it begins."""

from __future__ import annotations

import json

import pytest

from engineers.plain.open_loop import OPEN_LOOP
from engineers.tiers import Tier
from envtuning.cli.arguments import run_name
from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import EngineerSpec, SpecError, SuiteSpec, load_spec
from envtuning.studies.preregistered import ArmSpec, StudySpec, arm_of
from envtuning.studies.table import Known
from tests.envtuning.commands import called


@pytest.fixture(scope="module")
def spec():
    return load_spec("small-corridors")


def by(name, spec):
    return spec.model_copy(update={"engineer": spec.engineer.replaced_by(name)})


def shares(config):
    total = sum(piece.share for piece in config.slices.values())
    return {size: piece.share / total for size, piece in config.slices.items() if piece.share}


def test_no_engineer_is_asked_but_near_uniform_and_none_reads_anything(spec):
    for name in OPEN_LOOP:
        made = Plan.of(by(name, spec)).spec
        assert made.asks_an_engineer == (name == "near-uniform")
        assert made.engineer.name == name
        assert made.budget == spec.budget
        known = Known.of(made.engineer)
        assert known.tier == Tier.TARGET
        assert not known.tier.reads
        assert known.warms_up == (name in ("warm-target", "mixture"))
    assert Known.of(EngineerSpec(name="ladder")) == Known(Tier.FAMILY, warms_up=True)


def test_target_only(spec):
    plan = Plan.of(by("target-only", spec))
    assert plan.configs == (plan.target,) * len(spec.stages)


def test_warm_target_keeps_the_first_stage(spec):
    plan = Plan.of(by("warm-target", spec))
    assert plan.spec.stages[0] == Plan.of(spec).spec.stages[0]
    assert plan.configs[1:] == (plan.target,) * (len(spec.stages) - 1)


def test_the_target_is_neither_redrawn_nor_faded_to():
    spec = load_spec("environment-tuning")
    redrawn = spec.stages[0].model_copy(update={"redraw": True})
    spec = spec.model_copy(update={"stages": (redrawn, *spec.stages[1:])})
    assert any(stage.fade for stage in spec.stages)
    made = Plan.of(by("target-only", spec)).spec
    assert not any(stage.fade or stage.redraw for stage in made.stages)
    assert Plan.of(by("warm-target", spec)).spec.stages[0].redraw


def test_a_mixture_is_half_easy_and_half_the_target_from_the_beginning(spec):
    plan = Plan.of(spec)
    for config in Plan.of(by("mixture", spec)).configs:
        assert shares(config) == {3: 0.5, 4: 0.25, 5: 0.25}
        assert config.slices[3].hole_ratio == plan.configs[0].slices[3].hole_ratio
        for size in (4, 5):
            assert config.slices[size].model_copy(update={"share": 1.0}) == plan.target.slices[size]


def test_a_mixture_takes_the_rules_of_the_target(spec):
    other = spec.model_copy(update={"target": spec.target | {"num_agents": 3}})
    assert Plan.of(by("mixture", other)).configs[0].num_agents == 3


def test_a_mixture_without_an_easy_slice_is_refused():
    with pytest.raises(SpecError, match="3, 4, 5, 6"):
        Plan.of(by("mixture", load_spec("engineer")))


def test_a_mixture_leaves_open_what_the_target_leaves_open(spec):
    slices = {size: piece | {"wait_ratio": None} for size, piece in spec.target["slices"].items()}
    other = spec.model_copy(update={"target": spec.target | {"slices": slices}})
    mixed = Plan.of(by("mixture", other)).configs[0]
    assert {mixed.slices[size].wait_ratio for size in (4, 5)} == {None}


def test_near_uniform_closes_the_slices_beyond_the_target(spec):
    plan = Plan.of(by("near-uniform", spec))
    assert set(shares(plan.configs[0])) == {3, 4, 5}
    assert {name.split(".")[1] for name in plan.spec.editable} == {"3", "4", "5"}
    assert plan.spec.engineer.options["space"] == spec.engineer.options["space"]
    assert Plan.of(plan.spec).spec == plan.spec


@pytest.mark.parametrize("name", OPEN_LOOP)
def test_a_comparison_and_a_study_take_each_by_its_name(spec, name):
    study = arm_of(spec, ArmSpec(engineer=EngineerSpec(name=name)))
    assert (
        Plan.of(StudySpec.of(spec, [name], [0]).specs()[name]).spec
        == Plan.of(study).spec
        == Plan.of(by(name, spec)).spec
    )


def test_where_no_stage_asks_an_engineer_uniform_draws_are_no_arm():
    ladder = load_spec("ladder")
    with pytest.raises(SpecError, match="no stage of ladder"):
        Plan.of(StudySpec.of(ladder, ["fixed", "near-uniform"], [0]).specs()["near-uniform"])
    target = Plan.of(StudySpec.of(ladder, ["fixed", "target-only"], [0]).specs()["target-only"])
    assert target.configs == (target.target,) * 4
    assert run_name(by("target-only", ladder)) == "ladder-target-only"


def test_a_stored_run_has_its_configs_and_does_not_write_them_again(tmp_path, monkeypatch):
    """A mixture of a mixture could be rounded to another one, so the run would no longer be that of its folder."""
    suites = SuiteSpec(validation_per_slice=2, test_per_slice=0, probe_per_slice=0)
    small = load_spec("small-corridors", changes={"trainee": {"kind": "scripted"}}).model_copy(
        update={"suites": suites}
    )
    run = loop.create(tmp_path / "run", by("mixture", small))
    written = json.loads((run.path / "run.json").read_text())["spec"]
    assert written["engineer"]["name"] == "mixture"
    assert len({json.dumps(stage["config"]) for stage in written["stages"]}) == 1
    monkeypatch.setattr(OPEN_LOOP["mixture"], "ahead", None)
    assert RunLog.open(run.path).plan.spec == run.plan.spec


def test_run_takes_one_by_its_name(tmp_path):
    code, out = called(
        "run",
        "scripted",
        "--engineer",
        "warm-target",
        "--stages",
        "2",
        "--set",
        "suites.test_per_slice=0",
        "--out",
        tmp_path / "run",
    )
    assert code == 0, out
    assert "has no effect" not in out
    run = RunLog.open(tmp_path / "run")
    assert run.state.done[1].trained_on == run.plan.target
