"""What a run lets its engineers turn, and how far, reaches every engineer by every way of naming one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import engineers
from engineers import StageReport
from envtuning.cli.arguments import adjusted
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import EngineerSpec, SpecError, load_spec
from envtuning.studies.preregistered import ArmSpec, StudySpec, arm_of

BASE = load_spec("corridors")
BASE = BASE.model_copy(
    update={"engineer": EngineerSpec(name="rules", options=BASE.engineer.options | {"thresholds": {}, "context": "V4"})}
)
DOORS = {
    "run --engineer": lambda name: adjusted(BASE, engineer=name),
    "compare": lambda name: StudySpec.of(BASE, [name], [0]).specs()[name],
    "a study": lambda name: arm_of(BASE, ArmSpec(engineer=EngineerSpec(name=name))),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", ["uniform", "progress-share", "human", "server/http://localhost:1/v1#m"])
def test_space_and_what_else_concerns_everybody_come_along_and_the_first_engineers_own_do_not(door, name):
    spec = DOORS[door](name)
    assert spec.engineer.name == name
    assert spec.engineer.options == {"space": BASE.engineer.options["space"], "context": "V4"}
    made = Plan.of(spec).make_engineer()
    assert made.space["slices.*.wait_ratio"] == (0.0, 1.0)
    assert made.space["slices.7.min_distance"] == (1, 7)


@pytest.mark.parametrize("door", DOORS)
def test_uniform_reaches_as_far_as_the_run_allows_and_no_further(door):
    spec = DOORS[door]("uniform")
    plan = Plan.of(spec)
    config = plan.configs[0]
    report = StageReport(stage=0, config=config.model_dump(mode="json"))
    drawn = plan.make_engineer().propose(report, config, spec.editable).config
    assert max(piece.wait_ratio for piece in drawn.slices.values()) > 0.9  # the field's own range ends at .75
    assert all(piece.min_distance <= size for size, piece in drawn.slices.items())


def test_a_slice_that_the_target_lacks_may_be_what_is_editable():
    target = resolve(BASE.model_copy(update={"editable": ("slices.3",)})).target
    assert 3 not in target.slices or target.slices[3].share == 0
    with pytest.raises(SpecError, match=r"editable: 'slices\.99' names no knob"):
        resolve(BASE.model_copy(update={"editable": ("slices.99",)}))


def test_the_same_engineer_keeps_its_own_options_where_only_its_name_is_said_again():
    for spec in (adjusted(BASE, engineer="rules"), StudySpec.of(BASE, ["rules"], [0]).specs()["rules"]):
        assert spec.engineer == BASE.engineer


def test_uniform_in_a_world_of_ones_own_draws_what_is_legal_unless_the_page_s_space_says_less():
    from examples.own_world_mountain_car import HillsConfig

    hills = HillsConfig.model_validate({"hills": {height: {} for height in range(10, 110, 10)}})
    report = StageReport(stage=0, config=hills.model_dump(mode="json"))
    page = (Path(__file__).parents[3] / "docs" / "worlds.md").read_text(encoding="utf-8")
    (said,) = re.findall(r"^```yaml\n(engineer: .*space.*)\n```", page, re.MULTILINE)

    def powers(options):
        drawn = engineers.make("uniform", **options).propose(report, hills).config
        return [hill.power for hill in drawn.hills.values()]

    assert max(powers({})) > 3.5
    assert min(powers({})) < 1
    within = powers(yaml.safe_load(said)["engineer"]["options"])
    assert 1 <= min(within) < 1.2 < 1.8 < max(within) <= 2
