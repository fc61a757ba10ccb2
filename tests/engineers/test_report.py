"""A report's figures: Wilson's interval by what defines it, and the history with the stage that was just finished."""

from __future__ import annotations

import json
import math

import pytest
from pydantic import ValidationError

from engineers.report import SliceResult, StageRecord, StageReport, wilson


@pytest.mark.parametrize("n", [1, 2, 3, 7, 20, 150])
@pytest.mark.parametrize("z", [1.0, 1.96])
def test_wilsons_bounds_are_the_rates_that_the_score_test_just_does_not_refuse(n, z):
    """A true rate p is refused where the observed one is more than z of p's own standard errors from it."""
    for successes in range(n + 1):
        rate = successes / n
        low, high = wilson(rate, n, z)
        assert 0 <= low <= rate + 1e-12
        assert rate - 1e-12 <= high <= 1
        for p in (low, high):
            assert abs(rate - p) == pytest.approx(z * math.sqrt(p * (1 - p) / n), abs=1e-7)
        assert wilson(1 - rate, n, z) == pytest.approx((1 - high, 1 - low))


def test_wilsons_interval_stays_within_0_and_1_where_rounding_would_leave_them():
    for n in range(1, 500):
        assert wilson(0.0, n)[0] >= 0
        assert wilson(1.0, n)[1] <= 1


def test_nothing_tried_says_nothing():
    assert wilson(0.0, 0) == (0.0, 1.0)


def test_a_slices_interval_is_of_its_metric_over_its_episodes_at_95_percent():
    piece = SliceResult(name="4", episodes=40, metrics={"valid_rate": 0.3, "optimal_rate": 0.1})
    assert piece.interval("valid_rate") == wilson(0.3, 40, 1.96) == wilson(0.3, 40)
    assert piece.interval("optimal_rate", z=1.0) == wilson(0.1, 40, 1.0)


def test_records_end_with_the_stage_just_finished_and_keep_its_numbers_alone():
    first = StageRecord(stage=0, config={"a": 1}, results=[])
    results = [SliceResult(name="4", episodes=2, metrics={"valid_rate": 0.5})]
    report = StageReport(
        objective="valid_rate",
        stage=1, config={"a": 2}, results=results, training_results=results, history=[first],
        training={"steps": 3, "loss": 0.5, "device": "cpu"}, cost={"env_steps": 7.0},
    )  # fmt: skip
    before, this = report.records()
    assert before is first
    assert this.model_dump() == {
        "stage": 1, "config": {"a": 2}, "results": [results[0].model_dump()], "engineer": "",
        "training": {"steps": 3.0, "loss": 0.5}, "training_results": [results[0].model_dump()], "own_config_results": [],
        "cost": {"env_steps": 7.0},
    }  # fmt: skip


def test_a_report_of_version_1_is_read_with_a_note_and_its_training_results_are_a_probes():
    now = StageReport.example()
    now.history[0].training_results = now.training_results[:1]
    record = now.history[0].model_dump(mode="json", exclude={"own_config_results"})
    before = now.model_dump(mode="json", exclude={"own_config_results"}) | {"version": 1, "history": [record]}
    with pytest.warns(UserWarning, match="report of version 1: its training_results are read as own_config_results"):
        read = StageReport.model_validate_json(json.dumps(before | {"probes": []}))
    assert (read.training_results, read.own_config_results) == ([], now.training_results)
    assert (read.history[0].training_results, read.history[0].own_config_results) == ([], now.training_results[:1])
    same = {"training_results", "own_config_results", "history"}
    assert read.model_dump(exclude=same) == now.model_dump(exclude=same)
    with pytest.warns(UserWarning, match="version 1"), pytest.raises(ValidationError, match="probes"):
        StageReport.model_validate(before | {"probes": [{}]})


def test_help_shows_every_field_with_its_description():
    for kind in (StageReport, SliceResult):
        for name, field in kind.model_fields.items():
            assert f"\n    {name}: " in kind.__doc__
            assert (field.description or "") in kind.__doc__

    class Longer(SliceResult):
        more: int = 0

    assert Longer.__doc__ == "Longer\n\n    Fields:\n\n    more: int"
