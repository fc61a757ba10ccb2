"""Arms that read nothing: what each trains on, stage by stage."""

from __future__ import annotations

import pytest

from engineers.tiers import Tier
from envtuning.runs.plan import Plan
from envtuning.runs.spec import EngineerSpec, SpecError, load_spec
from envtuning.studies.compare import arms_of
from envtuning.studies.open_loop import ARMS
from envtuning.studies.preregistered import ArmSpec, arm_of


@pytest.fixture(scope="module")
def spec():
    return load_spec("small-corridors")


def shares(config):
    total = sum(piece.share for piece in config.slices.values())
    return {size: piece.share / total for size, piece in config.slices.items() if piece.share}


def test_no_arm_asks_an_engineer_but_near_uniform_which_reads_nothing(spec):
    for name, arm in ARMS.items():
        made = arm.arm(spec)
        assert made.asks_an_engineer == (name == "near-uniform")
        assert made.budget == spec.budget
        assert made.target == spec.target
        assert arm.tier == Tier.TARGET
        assert not arm.tier.reads


def test_target_only(spec):
    assert [stage.config for stage in ARMS["target-only"].arm(spec).stages] == [spec.target] * len(spec.stages)


def test_warm_target_keeps_the_first_stage(spec):
    made = ARMS["warm-target"].arm(spec)
    assert made.stages[0] == spec.stages[0]
    assert all(stage.config == spec.target for stage in made.stages[1:])


def test_a_mixture_is_half_easy_and_half_the_target_from_the_beginning(spec):
    plan = Plan.of(spec)
    for config in Plan.of(ARMS["mixture"].arm(spec)).configs:
        assert shares(config) == {3: 0.5, 4: 0.25, 5: 0.25}
        assert config.slices[3].hole_ratio == plan.configs[0].slices[3].hole_ratio
        for size in (4, 5):
            assert config.slices[size].model_copy(update={"share": 1.0}) == plan.target.slices[size]


def test_a_mixture_takes_the_rules_of_the_target(spec):
    other = spec.model_copy(update={"target": spec.target | {"num_agents": 3}})
    assert Plan.of(ARMS["mixture"].arm(other)).configs[0].num_agents == 3


def test_a_mixture_without_an_easy_slice_is_refused():
    with pytest.raises(SpecError, match="3, 4, 5, 6"):
        ARMS["mixture"].arm(load_spec("engineer"))


def test_near_uniform_closes_the_slices_beyond_the_target(spec):
    made = ARMS["near-uniform"].arm(spec)
    assert made.engineer.name == "uniform"
    assert set(shares(Plan.of(made).configs[0])) == {3, 4, 5}
    assert {name.split(".")[1] for name in made.editable} == {"3", "4", "5"}
    assert made.engineer.options["space"] == spec.engineer.options["space"]


@pytest.mark.parametrize("name", ARMS)
def test_a_comparison_and_a_study_take_every_arm_by_its_name(spec, name):
    study = arm_of(spec, ArmSpec(engineer=EngineerSpec(name=name)))
    assert arms_of(spec, [name])[name] == study == ARMS[name].arm(spec)


def test_where_no_stage_asks_an_engineer_uniform_draws_are_no_arm():
    with pytest.raises(SpecError):
        arms_of(load_spec("ladder"), ["fixed", "near-uniform"])
    assert list(arms_of(load_spec("ladder"), ["fixed", "target-only", "warm-target"]))


def test_a_mixture_leaves_open_what_the_target_leaves_open(spec):
    slices = {size: piece | {"wait_ratio": None} for size, piece in spec.target["slices"].items()}
    other = spec.model_copy(update={"target": spec.target | {"slices": slices}})
    mixed = Plan.of(ARMS["mixture"].arm(other)).configs[0]
    assert {mixed.slices[size].wait_ratio for size in (4, 5)} == {None}
