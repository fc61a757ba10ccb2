"""``suites.validate``: with ``last`` no test is charged before the end, and engineers and rules read training alone."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from engineers import SliceResult
from engineers.knobs import dump
from engineers.report import Split
from envtuning import loop
from envtuning.loop.ask import with_kept_slices
from envtuning.outcomes import Outcome, Tally
from envtuning.runs.log import RunLog
from envtuning.runs.resolve import resolve
from envtuning.runs.sections import SuiteSpec
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.transitions import Converged, History, Reached
from envtuning.show.console import run_table
from envtuning.show.terminal import make_console
from envtuning.studies import outcomes as of_study
from tests.envtuning.counting_runs import TESTED, VALIDATED, spec_of
from tests.envtuning.counting_world import STEPS, CountTrainee

CHARGED = VALIDATED * STEPS


class Telling(CountTrainee):
    """Ten episodes an iteration. The first iteration of a stage has one success, the second two, and so on."""

    def train(self, config, budget, *, seed, on_iteration=None):
        def tell(metrics):
            won = min(self.steps // 100, 10)
            on_iteration(
                metrics | {"outcomes": {"all": {"episodes": 10, "successes": won, "score_sum": (10 + won) / 2}}}
            )

        return super().train(config, budget, seed=seed, on_iteration=tell)


TELLING = {"kind": f"{__name__}:Telling"}


def suites(validate="last", **changes):
    return {"validation_per_slice": VALIDATED, "test_per_slice": TESTED, "validate": validate} | changes


def validations(stage):
    return [line for line in stage.metrics() if line["kind"] == "validation"]


def test_nothing_is_charged_before_the_last_stage(tmp_path):
    stages = [{"budget": 300}] * 3
    run = loop.start(spec_of(*stages, trainee=TELLING, suites=suites()), tmp_path / "run")
    *before, last = run.state.done
    for stage in before:
        assert stage.done.validated == {}
        assert stage.done.spent["env_steps"] == 300
        assert validations(stage) == stage.report.results == stage.report.own_config_results == []
        assert [row.episodes for row in stage.report.training_results] == [30]
    assert last.done.validated["env_steps"] == CHARGED
    assert [row.episodes for row in last.report.results] == [VALIDATED]
    assert run.state.test is not None
    assert of_study.tests_of(run.state, "env_steps") == CHARGED / (900 + CHARGED)


def test_of_a_run_with_a_total_the_stage_that_spends_it_is_the_last(tmp_path):
    spec = spec_of({"budget": 200}, {"budget": 200}, trainee=TELLING, suites=suites(), total=700)
    done = loop.start(spec, tmp_path / "run").state.done
    assert [stage.done.trained["env_steps"] for stage in done] == [200, 200, 200, 100]
    assert [len(validations(stage)) for stage in done] == [0, 0, 0, 1]


@pytest.mark.parametrize(("validate", "counts"), [("stages", [1, 1]), ("every 100", [3, 3])])
def test_otherwise_every_stage_is_validated(validate, counts, tmp_path):
    budget = 300 + counts[0] * CHARGED
    spec = spec_of({"budget": budget}, {"budget": budget}, trainee=TELLING, suites=suites(validate))
    assert [len(validations(stage)) for stage in loop.start(spec, tmp_path / "run").state.done] >= counts


def test_an_engineer_that_would_see_nothing_is_told_of(tmp_path):
    run = loop.start(spec_of({}, {}, suites=suites()), tmp_path / "run")
    (incident,) = run.state.incidents()
    assert "the engineer sees nothing" in incident.message


def test_a_table_shows_training_where_a_stage_is_not_validated(tmp_path, capsys):
    run = loop.start(spec_of({"budget": 300}, {"budget": 300}, trainee=TELLING, suites=suites()), tmp_path / "run")
    make_console().print(run_table(run))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rates = [line[-1] for line in lines if line and line[0] in ("0", "1")]
    assert rates == ["25%*", "10%"], "iterations 2 and 3 have 5 of 20"
    assert ["*", "in", "training"] in lines


# Rules


@pytest.mark.parametrize("validate", ["last", "stages"])
def test_a_rule_that_reads_validation_is_refused_and_one_that_reads_training_is_not(validate, tmp_path):
    def spec(**rule):
        stages = {"budget": 1000, "advance_when": rule}, {"budget": 1000}
        return spec_of(*stages, trainee=TELLING, suites=suites(validate))

    message = f"stages.0.advance_when reads validations inside a stage, but suites.validate is '{validate}'"
    for rule in ({"rule": "reached", "value": 0.5}, {"rule": "any", "rules": [{"rule": "converged"}]}):
        with pytest.raises(SpecError, match=message):
            resolve(spec(**rule))
    run = loop.start(spec(rule="reached", value=0.75, on="training", metric="score"), tmp_path / "run")
    first = run.state.done[0].done
    assert first.reason == "score in training 0.750 is at least 0.75"
    assert first.trained["env_steps"] == 500
    assert len(validations(run.state.done[0])) == (validate == "stages")


def tally(won, score):
    told = Tally()
    for number in range(10):
        told.observe(Outcome("all", number < won, score))
    return told


def test_rules_on_training_look_at_success_or_score_by_iteration():
    history = History(outcomes=[tally(2, 0.3), Tally(), tally(2, 0.6)], validations=[{"success_rate": 1.0}])
    assert Reached(value=0.2, on="training").decide(history) == Reached(
        value=0.2, on="training", metric="success"
    ).decide(history)
    assert not Reached(value=0.21, on="training").decide(history).advance
    assert Reached(value=0.59, on="training", metric="score").decide(history).advance
    assert Converged(on="training", window=1).decide(history).advance, "success did not rise"
    rising = Converged(on="training", window=1, metric="score").decide(history)
    assert (rising.advance, rising.reason) == (False, "score in training still rises: 0.300 to 0.600 over 1 iteration")
    assert Reached(value=0.0, on="training").decide(History()).reason == "success in training: not measured yet"
    with pytest.raises(ValueError, match="training has success and score"):
        Reached(value=0.5, on="training", metric="valid_rate")


# Names


@pytest.mark.parametrize(("old", "new"), [(None, "stages"), (2500, "every 2500")])
def test_the_old_name_is_told_and_still_read_from_stored_runs(old, new, tmp_path):
    with pytest.raises(ValueError, match=f"validate_every is called validate now: write validate: {new}"):
        SuiteSpec.model_validate({"validate_every": old})
    run = loop.create(tmp_path / "run", spec_of({}, suites=suites(new)))
    stored = json.loads((run.path / "run.json").read_text())
    assert stored["spec"]["suites"].pop("validate") == new
    stored["spec"]["suites"]["validate_every"] = old
    with run.files.changing(run.path / "run.json"):
        (run.path / "run.json").write_text(json.dumps(stored))
    assert RunLog.open(run.path).plan.spec == run.plan.spec


def test_a_probe_is_a_test_that_is_charged():
    with pytest.raises(
        ValueError, match=r"validate: last charges no test before the end, and probe_per_slice: 5 would"
    ):
        SuiteSpec(validate="last", probe_per_slice=5)
    assert SuiteSpec(validate="last", probe_per_slice=0).last_alone
    assert SuiteSpec(validate="every 20").every == 20


# Slices that are kept


def kept(shares, validate="last", editable=("tasks.*.share",), trained=1000, least=8, **row):
    names = ("copy", "reverse", "sort", "shift", "double", "scramble")
    tasks = {name: {"share": share} for name, share in zip(names, shares, strict=True)}
    spec = RunSpec.model_validate(
        {
            "world": "examples.six_tasks:world",
            "target": {"tasks": {name: {"share": float(name != "scramble")} for name in names}},
            "stages": [{"budget": 2000, "config": {"tasks": tasks}}, {"budget": 4000}],
            "trainee": {"kind": "lm"},
            "editable": editable,
            "suites": {"validate": validate, "training_per_slice": least},
        }
    )
    plan = resolve(spec)
    report = SimpleNamespace(training_results=[SliceResult(name="copy", **{"episodes": trained} | row)])
    last = SimpleNamespace(number=0, report=report, done=SimpleNamespace(trained={"samples": trained}))
    found = dump(with_kept_slices(plan, last, plan.first))["tasks"]
    return [found[name]["share"] for name in names], plan


def test_a_slice_of_the_target_keeps_eight_questions_of_the_next_stage():
    found, plan = kept([1.0, 0.0, 0.5, 0.5, 0.0001, 0.0])
    assert found[0] == 1.0
    assert found[5] == 0.0, "the target does not have it"
    for number in (1, 4):
        assert 4000 * found[number] / sum(found) == pytest.approx(8, abs=0.05)
    assert sum(plan.world.slices(plan.target).values()) == pytest.approx(1.0)


def test_kept_questions_are_no_replies():
    """Eight replies to each question, a fifth of them to questions that were asked before: a stage of 4,000 replies has 500 questions."""
    again = Split(episodes=200, succeeded=0)
    found, _ = kept([1.0, 0.0, 0.5, 0.5, 0.5, 0.0], episodes=800, questions=100, repeats=again)
    assert 500 * found[1] / sum(found) == pytest.approx(8, abs=0.05)


@pytest.mark.parametrize(
    "more", [{"validate": "stages"}, {"editable": ("tasks.*.length",)}, {"trained": 0}, {"least": 0}]
)
def test_shares_stay_where_slices_are_seen_or_nobody_may_change_them(more):
    shares = [1.0, 0.0, 0.5, 0.5, 0.5, 0.5]
    assert kept(shares, **more)[0] == shares
