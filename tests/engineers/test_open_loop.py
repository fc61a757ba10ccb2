"""Engineers that read nothing, asked after a stage like any others: they write what is editable of the configs that they would give a run."""

from __future__ import annotations

import pytest

import engineers
from engineers import StageReport
from engineers.knobs import KnobError, dump, find_knobs
from engineers.plain.open_loop import OPEN_LOOP
from engineers.roles import find_slices, shares_of
from mapf_frozenlake import LakeConfig

FIRST = LakeConfig.model_validate(
    {"slices": {size: {"share": share, "hole_ratio": 0.1} for size, share in ((3, 1.0), (4, 1.0), (5, 0.0), (6, 1.0))}}
)
TARGET = LakeConfig.model_validate({"slices": {4: {"hole_ratio": 0.3, "wait_ratio": None}, 5: {"hole_ratio": 0.4}}})


def asked(name, current=FIRST, target=TARGET, first=FIRST, **options):
    """The config that the engineer writes after the second stage."""
    report = StageReport(stage=0, config=dump(first), target=dump(target) if target else {})
    if current != first:
        report = StageReport(stage=1, config=dump(current), target=report.target, history=report.records())
    return engineers.make(name, **options).propose(report, current)


def shares(config):
    return {name: share for name, share in shares_of(dump(config), find_slices(find_knobs(config))).items() if share}


@pytest.mark.parametrize("name", ["target-only", "warm-target"])
def test_the_target_is_written_as_far_as_it_is_editable(name):
    config = asked(name).config
    assert shares(config) == {"4": 0.5, "5": 0.5}
    for size in (4, 5):
        assert config.slices[size].hole_ratio == TARGET.slices[size].hole_ratio
        assert config.slices[size].wait_ratio == TARGET.slices[size].wait_ratio
    assert config.slices[3].hole_ratio == 0.1, "a slice that is off stays as it is"
    only_shares = engineers.make(name).propose(
        StageReport(stage=0, config=dump(FIRST), target=dump(TARGET)), FIRST, ["slices.*.share"]
    )
    assert shares(only_shares.config) == {"4": 0.5, "5": 0.5}
    assert only_shares.config.slices[4].hole_ratio == 0.1


def test_a_mixture_is_that_of_the_first_stage_whatever_came_between():
    mixed = asked("mixture").config
    assert shares(mixed) == {"3": 0.25, "6": 0.25, "4": 0.25, "5": 0.25}
    assert (mixed.slices[3].hole_ratio, mixed.slices[4].hole_ratio) == (0.1, 0.3)
    between = asked("target-only").config
    assert asked("mixture", between).config == mixed


def test_a_mixture_without_an_easy_slice_says_so():
    with pytest.raises(KnobError, match="mixture needs a first stage"):
        asked("mixture", target=FIRST)


def test_near_uniform_draws_as_uniform_does_on_fewer_slices():
    near = asked("near-uniform", seed=3).config
    fewer = [knob.name for knob in find_knobs(FIRST) if knob.path[1] != "6"]
    report = StageReport(stage=0, config=dump(FIRST), target=dump(TARGET))
    uniform = engineers.make("uniform", seed=3).propose(report, FIRST, fewer).config
    for size in (3, 4, 5):
        assert near.slices[size] == uniform.slices[size]
    assert near.slices[6].share == 0.0
    assert near.slices[6].hole_ratio == 0.1


@pytest.mark.parametrize("name", OPEN_LOOP)
def test_without_a_target_nothing_is_closed(name):
    config = asked(name, target=None).config
    assert (config == FIRST) is (name != "near-uniform")
    assert config.slices[6].share > 0


def test_a_ladder_is_a_schedule_of_three_rungs():
    assert asked("ladder").config == asked("schedule", parts=[0.4, 0.7]).config != asked("schedule").config
    assert asked("ladder", parts=[0.1]).config == asked("schedule", parts=[0.1]).config
