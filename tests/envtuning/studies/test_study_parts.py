"""The parts of studies and comparisons by hand-made figures: intervals, outcomes, tables, sentences, what a study's file may be."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from envtuning.runs.plan import Plan
from envtuning.runs.spec import EngineerSpec, SpecError, load_spec
from envtuning.studies import beyond
from envtuning.studies.intervals import Interval, half_width
from envtuning.studies.outcomes import curve_of, fallbacks, ignition
from envtuning.studies.preregistered import ArmSpec, StudySpec, arm_of
from envtuning.studies.study import FIRST_STAGE, Job, beginning, folder_name, raise_unless_comparable


def arms_of(spec, engineers):
    return StudySpec.of(spec, engineers, [0]).specs()


@pytest.mark.parametrize(("n", "factor"), [(2, 12.7062), (3, 4.30265), (31, 2.04227), (32, 2.03951), (1000, 1.96234)])
def test_an_interval_is_as_wide_as_its_degrees_of_freedom_say(n, factor):
    assert half_width(0.3, n) == pytest.approx(factor * 0.3 / n**0.5, rel=1e-5)


@pytest.mark.parametrize(
    ("found", "plain", "signed"),
    [
        (Interval(0.5, None, None), "50.0", "+50.0"),
        (Interval(0.5, 0.4, 0.6), "50.0 ± 10.0", "+50.0 ± 10.0"),
        (Interval(-0.5, -1.5, 0.5), "-50.0 ± 100.0", "-50.0 ± 100.0"),
        (Interval(0.5, -0.502, 1.502), "50.0 ± >100", "+50.0 ± >100"),
        (Interval(0.0005, -0.0005, 0.0015), "0.05 ± 0.1", "+0.1 ± 0.1"),
        (Interval(0.0, 0.0, 0.0), "0.0 ± 0.0", "+0.0 ± 0.0"),
    ],
)
def test_an_interval_in_percent(found, plain, signed):
    assert (found.percent(), found.percent(signed=True)) == (plain, signed)
    assert (Interval(0.5, None, 0.6).percent(), Interval(0.5, 0.4, None).percent()) == ("50.0", "50.0")


def stage(answer="none", lines=(), spent=None):
    proposal = {"none": None, "failed": SimpleNamespace(proposal=None)}
    said = proposal.get(answer, SimpleNamespace(proposal=answer))
    if said is not None:
        said.incidents = [] if answer == "good" else [answer]
    spent_by = {} if spent is None else {"env_steps": spent, "episodes": 1}
    said = said or SimpleNamespace(proposal=None, incidents=[])
    return SimpleNamespace(chosen=said, metrics=lambda: lines, spent=lambda unit: spent_by.get(unit, 0))


def test_answers_of_no_use_are_those_that_failed_or_fell_back_or_were_refused():
    answers = ("none", "failed", "fallback", "good", "refused", "failed")
    assert fallbacks(SimpleNamespace(stages=[stage(answer) for answer in answers])) == 4


def test_a_run_ignites_at_the_first_validation_of_a_tenth_and_counts_what_was_spent_before():
    def line(spent, rate, kind="validation"):
        return {"kind": kind, "spent": spent, "valid_rate": rate}

    def ignited(*stages):
        return ignition(curve_of(SimpleNamespace(done=stages), "env_steps", "valid_rate"))

    first = stage(lines=[line(10, 0.9, "training"), line(20, 0.099)], spent=100)
    assert ignited(first, stage(lines=[line(30, 0.1), line(40, 0.5)], spent=50)) == 130
    assert ignited(first, stage(lines=[{"kind": "validation", "spent": 5}], spent=50)) is None
    assert ignited(stage(), stage(lines=[line(30, 1.0)])) == 30


def test_what_cannot_be_compared_is_told_before_anything_is_run():
    spec = load_spec("scripted")
    for names in ([], ["rules", "rules"]):
        with pytest.raises(SpecError, match=f"engineers {', '.join(names) or 'none'}: give at least one, none twice"):
            arms_of(spec, names)
    blind = spec.model_copy(update={"suites": spec.suites.model_copy(update={"test_per_slice": 0})})
    with pytest.raises(SpecError, match=r"suites\.test_per_slice is 0"):
        raise_unless_comparable(arms_of(blind, ["rules"]))
    with pytest.raises(SpecError, match="arms 'a b' and 'a_b' would share the folder a_b: rename one of them"):
        raise_unless_comparable({"a b": spec, "a_b": spec})
    assert arms_of(spec, ["fixed", "progress-share"])["progress-share"].engineer.name == "progress-share"


def test_engineers_that_no_stage_asks_are_not_compared():
    ladder = load_spec("ladder")
    with pytest.raises(SpecError, match="rules would write nothing: no stage of ladder has config: engineer"):
        arms_of(ladder, ["fixed", "rules"])


@pytest.mark.parametrize("preset", ["scripted", "engineer", "environment-tuning"])
def test_target_only_trains_on_the_target_in_every_stage_whatever_the_preset_does_there(preset):
    spec = load_spec(preset)
    alone = Plan.of(arms_of(spec, ["fixed", "target-only"])["target-only"]).spec
    assert alone.engineer.name == "target-only"
    assert [(stage.config, stage.redraw, stage.fade) for stage in alone.stages] == [(alone.target, False, None)] * len(
        spec.stages
    )
    assert [stage.budget for stage in alone.stages] == [stage.budget for stage in spec.stages]
    assert (alone.suites, alone.trainee, alone.target) == (spec.suites, spec.trainee, Plan.of(spec).spec.target)
    assert alone.stages != spec.stages


def test_an_arm_that_starts_on_the_target_does_not_redraw_it():
    base = load_spec("engineer")
    assert base.stages[0].redraw
    started = arm_of(base, ArmSpec(engineer=EngineerSpec(name="rules"), start="target"))
    assert (started.stages[0].config, started.stages[0].redraw) == (base.target, False)
    assert started.stages[1:] == base.stages[1:]


STUDY = {
    "name": "two",
    "question": "which",
    "preset": "scripted",
    "seeds": [3],
    "arms": {"rules": {"engineer": {"name": "rules"}}},
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"seeds": []}, {"arms": {}}, {"name": "a b"}, {"name": ""}, {"beyond_per_slice": 0}, {"test_seed": -1},
        {"test_seed": 2**63}, {"seeds": [-1]}, {"seeds": [2**63]}, {"seeds": [1, 2, 1]}, {"arms": {"first-stage-only": {"engineer": {"name": "rules"}}}}, {"remarks": ""}, {"trivial": ["fixed"]}, {"searched": ["fixed"]}, {"added_later": {"fixed": ""}},
        {"arms": {"rules": {"engineer": {"name": "rules"}, "start": "anywhere"}}},
        {"arms": {"rules": {"engineer": {"name": "rules"}, "remarks": ""}}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_study_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) if "arms" not in wrong else "arms|start|remarks"):
        StudySpec.model_validate(STUDY | wrong)


def test_an_arm_that_a_study_lacks_is_named_beside_those_that_it_has():
    with pytest.raises(ValueError, match=r"fixed.*rules"):
        StudySpec.model_validate(STUDY | {"trivial": ["fixed"]})


def test_a_study_says_as_little_as_it_must():
    study = StudySpec.model_validate(
        STUDY | {"added_later": {"beyond": "no set was drawn", "rules": "no run was made"}}
    )
    assert (study.metric, study.test_seed, study.pilot, study.trivial) == (None, None, "", ())
    assert (study.beyond, study.beyond_per_slice) == ({}, 200)
    assert study.arms["rules"].start == "preset"
    assert StudySpec.model_validate(STUDY | {"beyond_per_slice": 1, "test_seed": 0}).test_seed == 0


def test_a_study_compares_the_objective_of_its_world():
    assert StudySpec.model_validate(STUDY | {"preset": "scripted"}).base
    for other in ("optimal_rate", "luck"):
        study = StudySpec.model_validate(STUDY | {"preset": "scripted", "metric": other})
        with pytest.raises(
            SpecError, match=f"metric='{other}': a study compares the objective of its world, valid_rate"
        ):
            _ = study.base


def test_a_further_set_that_no_network_of_the_runs_could_play_is_told_before_them(tmp_path):
    pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")
    preset = tmp_path / "it.yaml"
    preset.write_text("target: &all {slices: {4: {}}}\ntrainee: {kind: ppo}\nstages: [{budget: 9, config: *all}]\n")
    larger = {"one more size": {"slices": {5: {"share": 1.0}}}, "one more agent": {"num_agents": 3}}
    arms = {
        "sees enough": {"engineer": {"name": "fixed"}},
        "sees all": {"engineer": {"name": "fixed"}, "trainee": {"window": None}},
    }
    study = StudySpec.model_validate(STUDY | {"preset": str(preset), "beyond": larger, "arms": arms})
    with pytest.raises(
        SpecError, match=r"beyond\.one more size: .* of arm sees all would train with window 7 and play with window 9"
    ):
        beyond.raise_unless_playable(study, {name: Plan.of(spec) for name, spec in study.specs().items()})
    for change in (
        {"beyond": {"one more agent": larger["one more agent"]}},
        {"arms": study.arms | {"sees all": study.arms["sees enough"]}},
    ):
        changed = study.model_copy(update=change)
        beyond.raise_unless_playable(changed, {name: Plan.of(spec) for name, spec in changed.specs().items()})


def test_an_arm_starts_where_it_says_and_changes_its_own_options_alone():
    base = load_spec("scripted")
    arm = arm_of(base, ArmSpec(engineer=EngineerSpec(name="fixed"), trainee={"speed": 0.9}, start="target"))
    assert arm.stages[0].config == base.target
    assert arm.stages[1:] == base.stages[1:]
    assert arm.trainee.options == base.trainee.options | {"speed": 0.9}
    random = arm_of(base, ArmSpec(engineer=EngineerSpec(name="fixed"), start="random"))
    assert (random.stages[0].redraw, random.stages[0].config) == (True, base.stages[0].config)
    plain = arm_of(base, ArmSpec(engineer=EngineerSpec(name="fixed")))
    assert plain.stages == base.stages


def test_beginnings_are_alike_where_the_first_stages_work_is(tmp_path):
    base = load_spec("scripted")

    def begun(**changes):
        return beginning(Plan.of(base.model_copy(update=changes)))

    same = {"name": "x", "description": "y", "engineer": EngineerSpec(name="fixed"), "seed": 9}
    assert begun() == begun(**same)
    assert len(begun()) == 8
    faster = base.trainee.model_copy(update={"options": base.trainee.options | {"speed": 0.9}})
    first = base.stages[0].model_copy(update={"budget": 7})
    others = [{"trainee": faster}, {"stages": (first, *base.stages[1:])}, {"stages": base.stages[:-1]}]
    assert len({begun(), *(begun(**other) for other in others)}) == 4
    spaces = [{}, {"space": {"slices.*.hole_ratio": [0.0, 0.05]}}, {"space": {"slices.*.hole_ratio": [0.3, 0.4]}}]
    engineers = [EngineerSpec(name="uniform", options=options) for options in spaces]
    drawn = (base.stages[0].model_copy(update={"redraw": True}), *base.stages[1:])
    assert len({begun(engineer=one, stages=drawn) for one in engineers}) == 3
    assert {begun(engineer=one) for one in engineers} == {begun()}
    job = Job("server/http://a:1/v1#m", base.model_copy(update={"seed": 3}), tmp_path, f"{FIRST_STAGE}-ab")
    assert job.folder == tmp_path / "server_http___a_1_v1_m" / "seed3"
    assert (job.begun_with, job.is_first_stage) == (tmp_path / "first-stage-ab" / "seed3", False)
    assert replace(job, shared=None).begun_with is None
    assert replace(job, arm="first-stage-ab").is_first_stage
    assert folder_name("a-b.C 1/ö") == "a-b.C_1_ö"
