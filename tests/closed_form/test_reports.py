"""Learners in closed form, told to engineers as a run tells them."""

from __future__ import annotations

import numpy as np
import pytest

import engineers
from benchmarks.closed_form.families import FAMILIES, Sizes, draw
from benchmarks.closed_form.learners import KINDS, step, value
from benchmarks.closed_form.reports import SkillsConfig, as_arrays, play
from engineers import StageReport

SMALL = Sizes((4, 6), (3, 5), (20, 40))


@pytest.fixture
def runs():
    return play(engineers.make("half-success"), draw("transfer+causes", 4, 0, sizes=SMALL), 1)


def test_a_run_has_a_report_for_each_stage_that_reads_back(runs):
    for run in runs:
        assert [report.stage for report in run.reports] == list(range(run.stages))
        assert [report.rounds_left for report in run.reports] == list(range(run.stages))[::-1]
        last = run.reports[-1]
        assert StageReport.model_validate_json(last.model_dump_json()) == last
        assert [record.results for record in last.records()] == [report.results for report in run.reports]
        assert SkillsConfig.model_validate(last.config) == run.config


def test_every_case_is_a_success_or_a_failure_of_a_kind(runs):
    for run in runs:
        for row in run.reports[-1].results + run.reports[-1].own_config_results:
            successes = row.metrics["success_rate"] * row.episodes
            assert row.episodes == run.learner.cases[0]
            assert round(successes) + sum(row.failures.values()) == row.episodes
            assert row.failures.keys() <= set(KINDS)


def test_the_report_names_no_family_and_no_hidden_number(runs):
    text = runs[0].reports[-1].model_dump_json()
    assert not [name for name in FAMILIES if f'"{name}"' in text]
    hidden = runs[0].learner
    for trait in (hidden.rate, hidden.plateau, hidden.start):
        assert not [number for number in trait[0] if number and str(number) in text]


def test_the_target_has_the_runs_weights(runs):
    for run in runs:
        shares = np.array([slice_["share"] for slice_ in run.reports[0].target["slices"].values()])
        assert shares / shares.sum() == pytest.approx(run.learner.weight[0, : len(shares)], abs=1e-3)


def test_the_first_stage_is_even_and_its_end_is_that_of_the_dynamics():
    learners = draw("forgetting", 5, 0, sizes=SMALL)
    practice = learners.start
    ends = [run.success for run in play(engineers.make("fixed"), learners, 0)]
    for stage in range(5):
        practice = np.where((stage < learners.stages)[:, None], step(learners, practice, learners.even()), practice)
    assert ends == pytest.approx(value(learners, practice).tolist())


def test_a_config_is_shares_and_focus_and_without_data_it_is_even():
    learner = draw("causes", 1, 0, sizes=Sizes((4, 4)))
    names = [f"skill-{i}" for i in range(4)]
    told = {name: {"share": share} for name, share in zip(names, (0.1, 0.0, 1.0, 0.5), strict=True)}
    told["skill-3"]["focus"] = "second"
    shares, focus = as_arrays(SkillsConfig.model_validate({"slices": told}), names, learner)
    assert shares.tolist() == [[0.1, 0.0, 1.0, 0.5]]
    assert focus[0, 3].tolist() == [0.0, 1.0, 0.0]
    assert focus[0, :3] == pytest.approx(1 / 3)
    off = SkillsConfig.model_validate({"slices": {name: {"share": 0.0} for name in names}})
    assert as_arrays(off, names, learner)[0] == pytest.approx(0.25)


@pytest.mark.parametrize("name", ["rules", "half-success", "progress-share", "uniform", "random"])
def test_engineers_are_asked_unchanged_and_runs_repeat_one_by_one(name):
    learners = draw("rates", 3, 7, sizes=SMALL)
    ends = [run.success for run in play(engineers.make(name), learners, 2)]
    assert ends == [run.success for run in play(engineers.make(name), learners, 2)]
    assert ends[:2] == [run.success for run in play(engineers.make(name), learners[:2], 2)]
    assert (ends != [run.success for run in play(engineers.make("fixed"), learners, 2)]) is (name != "uniform")
