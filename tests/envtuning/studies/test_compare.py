"""The comparison is fair: one first stage per seed, equal budgets, pairs by seed, intervals that are what they say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from envtuning.loop import ask
from envtuning.loop.observer import Observer
from envtuning.runs.log import RunLog
from envtuning.runs.spec import EngineerSpec, RunSpec, SuiteSpec, load_spec
from envtuning.studies.compare import compare, comparison_of, tables, write
from envtuning.studies.intervals import t_mean
from envtuning.studies.outcomes import outcome_of
from envtuning.studies.preregistered import BASELINES, StudySpec
from envtuning.studies.table import Known, rows

NAMES, SEEDS = ["fixed", "uniform", "rules"], [0, 1]


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    small = SuiteSpec(validation_per_slice=6, test_per_slice=10, probe_per_slice=3, failure_cases=1)
    scripted = load_spec("scripted").with_rounds(3)
    stages = [stage.model_copy(update={"advance_when": None}) for stage in scripted.stages]
    stages[0] = stages[0].model_copy(update={"redraw": True})
    return scripted.model_copy(update={"suites": small, "stages": tuple(stages)})


@pytest.fixture(scope="module")
def done(spec, tmp_path_factory):
    out = tmp_path_factory.mktemp("compare")
    return compare(spec, NAMES, SEEDS, out), out


def folders(out: Path) -> dict[tuple[str, int], RunLog]:
    return {(name, seed): RunLog.open(out / name / f"seed{seed}") for name in NAMES for seed in SEEDS}


def test_the_first_stage_is_shared_within_a_seed_and_drawn_anew_for_the_next(done):
    _, out = done
    runs = folders(out)
    for seed in SEEDS:
        (begun,) = out.glob(f"first-stage-*/seed{seed}")
        shared = RunLog.open(begun).state.stages[0]
        for name in NAMES:
            own = runs[name, seed].state.stages[0]
            for file in ("config.json", "episodes.json", "metrics.jsonl", "checkpoint/skill.json"):
                assert (own.path / file).read_bytes() == (shared.path / file).read_bytes()
    assert runs["fixed", 0].state.stages[0].chosen != runs["fixed", 1].state.stages[0].chosen


def test_every_engineer_has_spent_the_same_budget_to_within_an_iteration(done, spec):
    result, _ = done
    for one in result.runs:
        assert abs(one.spent["env_steps"] - spec.budget) < 500


def test_all_are_judged_on_the_same_boards_and_start_from_the_same_rate(done):
    result, out = done
    suites = {(run.path / "test.cases").read_bytes() for run in folders(out).values()}
    assert len(suites) == 1
    for seed in SEEDS:
        assert len({one.first for one in result.runs if one.seed == seed}) == 1


def test_the_rows_are_means_and_paired_differences_of_the_runs(done):
    result, _ = done
    valid = {(one.arm, one.seed): one.success for one in result.runs}
    by_name = {row.arm: row for row in result.rows}
    assert list(by_name) == NAMES
    rules = by_name["rules"]
    assert rules.success.mean == pytest.approx(np.mean([valid["rules", seed] for seed in SEEDS]))
    for base in ("fixed", "uniform"):
        differences = [valid["rules", seed] - valid[base, seed] for seed in SEEDS]
        assert rules.against[base].mean == pytest.approx(np.mean(differences))
    assert set(by_name["fixed"].against) == {"uniform"}
    console = Console(width=200, record=True)
    console.print(*tables(result))
    said = console.export_text()
    assert f"{100 * rules.success.mean:.1f}" in said
    assert "±" not in said  # two seeds


def test_a_comparison_that_is_repeated_trains_nothing_and_one_more_engineer_only_its_own(done, spec):
    result, out = done
    trained: list[str] = []

    class Watch(Observer):
        def stage_began(self, stage, allowance):
            trained.append(stage.path.parent.parent.parent.name)

    assert compare(spec, NAMES, SEEDS, out, Watch()) == result
    assert trained == []
    compare(spec, [*NAMES, "random"], SEEDS, out, Watch())
    assert trained == ["random"] * 4  # two seeds, two stages after the shared one


def test_the_figures_are_stored_beside_the_runs(done):
    result, out = done
    stored = json.loads(write(result, out).read_text())
    assert [row["arm"] for row in stored["rows"]] == NAMES
    assert len(stored["runs"]) == len(NAMES) * len(SEEDS)
    assert stored["table"]["headings"][0] == "arm"
    assert [row[0] for row in stored["table"]["rows"]] == NAMES
    assert {len(row) for row in stored["table"]["rows"]} == {len(stored["table"]["headings"])}


@pytest.mark.parametrize("jobs", [1, 2])
def test_only_runs_are_counted_while_they_end_and_the_shared_first_stage_is_none(spec, tmp_path, jobs):
    told: list[tuple[bool, str]] = []
    compare(
        spec,
        ["fixed", "rules"],
        [0],
        tmp_path,
        jobs=jobs,
        ended=lambda job, pace: told.append((job.is_first_stage, str(pace))),
    )
    assert [first for first, _ in told] == [True, False, False]
    assert [said.partition(",")[0] for _, said in told] == ["0 of 2 runs", "1 of 2 runs", "2 of 2 runs"]


def test_an_engineer_that_always_fails_ends_like_fixed_and_the_table_tells_them_apart(spec, tmp_path, monkeypatch):
    made = ask.make_engineer

    class Broken:
        def propose(self, report, current, editable=None):
            raise RuntimeError("no network")

    monkeypatch.setattr(
        ask,
        "make_engineer",
        lambda run, stage: Broken() if run.plan.spec.engineer.name == "random" else made(run, stage),
    )
    result = compare(spec, ["fixed", "random"], [0], tmp_path)
    fixed, broken = result.rows
    assert broken.success == fixed.success
    assert (fixed.incidents, fixed.fallbacks) == (0, 0)
    assert (broken.incidents, broken.fallbacks) == (2, 2)  # one for each of the two rounds
    console = Console(width=200, record=True)
    console.print(*tables(result))
    said = console.export_text()
    assert "2 in random/seed0" in " ".join(said.split())  # which run it was
    lines = said.splitlines()
    shown = {name: line.split() for line in lines for name in ("arm", "random") if name in line.split()[:1]}
    assert shown["arm"][-2:] == ["incidents", "fallbacks"]
    assert shown["random"][-2:] == ["2", "2"]


def test_a_comparison_of_which_nothing_is_finished_has_an_empty_table(spec, tmp_path):
    assert tables(comparison_of(StudySpec.of(spec, ["fixed", "rules"], [3]), tmp_path))[0].table.row_count == 0


def test_students_interval_is_the_textbooks():
    found = t_mean([1.0, 2.0, 3.0, 4.0, 5.0])  # mean 3, s = 1.5811, t = 2.776: ± 1.963
    assert found.mean == 3.0
    assert (found.low, found.high) == (pytest.approx(1.037, abs=1e-3), pytest.approx(4.963, abs=1e-3))
    assert t_mean([0.5]).low is None


def test_two_seeds_have_no_interval_whether_they_agree_or_not():
    """Student's t of two that happen to agree would be ± 0.0, of any others far wider than what they say."""
    assert t_mean([0.983, 0.983]).percent() == "98.3"
    assert t_mean([0.1, 0.9]).percent(signed=True) == "+50.0"
    assert t_mean([0.40, 0.42, 0.41]).percent(signed=True) == "+41.0 ± 2.5"


def test_a_comparison_lets_engineers_drop_working_slices_and_an_unknown_cost_stays_unknown(done):
    """The guard's ``max_drop`` would refuse baselines that draw everything anew."""
    result, out = done
    assert all(run.plan.spec.guard.max_drop is None for run in folders(out).values())
    assert all(run.plan.spec.guard.check_feasible for run in folders(out).values())
    run = folders(out)["rules", 0]
    answer = run.state.stages[1].chosen
    usage = answer.proposal.usage.model_copy(update={"cost": None, "prompt_tokens": 7, "completion_tokens": 2})
    proposal = answer.proposal.model_copy(update={"usage": usage})
    second = replace(run.state.stages[1], chosen=answer.model_copy(update={"proposal": proposal}))
    run.state = replace(run.state, stages=(run.state.stages[0], second, *run.state.stages[2:]))
    found = outcome_of(run, "rules")
    assert (found.cost, found.tokens) == (None, 9)
    console = Console(width=200, record=True)
    shown = replace(
        result, runs=[found], rows=rows([found], {"rules": Known.of(EngineerSpec(name="rules"))}, BASELINES)
    )
    console.print(*tables(shown))
    assert "unknown" in console.export_text()


def test_the_figures_of_a_run_are_its_files(done):
    result, out = done
    for one in result.runs:
        run = folders(out)[one.arm, one.seed]
        assert one.success == pytest.approx(np.mean([row.metrics["valid_rate"] for row in run.state.test.last]))
        assert one.first == pytest.approx(np.mean([row.metrics["valid_rate"] for row in run.state.test.first]))
        assert one.others == {
            "optimal_rate": pytest.approx(np.mean([row.metrics["optimal_rate"] for row in run.state.test.last]))
        }
        assert one.spent["env_steps"] == sum(stage.done.spent["env_steps"] for stage in run.state.stages)
        assert (one.tokens, one.cost, one.incidents) == (0, 0.0, len(run.state.incidents()))
