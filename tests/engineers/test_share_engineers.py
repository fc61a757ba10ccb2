"""The engineers that share out data by a rule: on a report they give what the rule gives over arrays."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import Field, create_model

import engineers
from engineers import SliceResult, StageRecord, StageReport
from engineers.plain.base import LEAST_PART
from engineers.plain.share_engineers import rates_by_stage
from engineers.plain.shares import with_least

NAMES = ("give-up", "learning-progress", "learnability")
SLICES = ("x", "y", "z", "w")


def config():
    piece = create_model("Piece", share=(float, Field(1.0, ge=0, le=1, description="Share.")))
    group = create_model("Group", **{name: (piece, piece()) for name in SLICES})
    return create_model("Config", tasks=(group, group()))()


def rows(rates):
    return [
        SliceResult(name=name, episodes=200, metrics={"valid_rate": rate})
        for name, rate in zip(SLICES, rates, strict=True)
        if rate is not None
    ]


def report_of(current, history):
    data = current.model_dump()
    *before, last = [StageRecord(stage=stage, config=data, results=rows(rates)) for stage, rates in enumerate(history)]
    return StageReport(
        stage=last.stage, objective="valid_rate", config=data, target=data, results=last.results, history=before
    )


def shares(proposal):
    return np.array([getattr(proposal.config.tasks, name).share for name in SLICES])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(4))
def test_an_engineer_gives_what_its_rule_gives_over_arrays(name, floor, seed):
    rng = np.random.default_rng(seed)
    rates = [np.round(rng.random(len(SLICES)), 3) * (np.arange(len(SLICES)) > 0) for _ in range(1 + seed)]
    current = config()
    proposal = engineers.make(name, floor=floor).propose(report_of(current, [one.tolist() for one in rates]), current)
    weights = engineers.make(name).weights(rates)
    even = np.full(len(SLICES), 1 / len(SLICES))
    wanted = floor * even + (1 - floor) * weights / weights.sum() if weights.sum() > 0 else even
    wanted = list(with_least(dict(enumerate(wanted.tolist())), LEAST_PART).values())
    assert shares(proposal) == pytest.approx(wanted, abs=1e-4)


def test_a_slice_that_was_not_measured_keeps_its_last_rate():
    found = rates_by_stage(report_of(config(), [[0.2, None, 0.4, 0.6], [0.3, 0.9, None, 0.7]]), SLICES)
    assert [one.tolist() for one in found] == [pytest.approx([0.2, 0.4, 0.4, 0.6]), [0.3, 0.9, 0.4, 0.7]]


def test_what_does_not_move_is_given_up_after_two_stages_alone():
    current = config()
    stuck = [[0.0, 0.5, 0.5, 0.5]] * 3
    given = [shares(engineers.make("give-up", floor=0.0).propose(report_of(current, stuck[:n]), current))[0] for n in (1, 2, 3)]  # fmt: skip
    assert given[0] == given[1] > given[2] == LEAST_PART, "it is still looked at"


def test_a_slice_that_is_given_up_keeps_a_hundredth_of_the_data():
    given = with_least({"x": 0.0, "y": 0.004, "z": 0.0101, "w": 0.9859}, 0.01)
    assert given == {"x": 0.01, "y": 0.01, "z": 0.01, "w": pytest.approx(0.97)}
    even = dict.fromkeys(SLICES, 0.25)
    assert with_least(even, 0.01) == even


def training(rates, score=0.0):
    return [
        row.model_copy(update={"metrics": row.metrics | {"score": max(score, row.metrics["valid_rate"])}})
        for row in rows(rates)
    ]


@pytest.mark.parametrize("name", [*NAMES, "failure-share", "reader"])
def test_outcomes_of_training_are_read_before_validation(name):
    """Validation that says the opposite changes nothing in what a share rule gives, and nothing is needed of it."""
    current, first, last = config(), [0.1, 0.5, 0.3, 0.2], [0.1, 0.9, 0.5, 0.3]
    trained = report_of(current, [first, last])
    earlier = trained.history[0].model_copy(update={"results": [], "training_results": training(first)})
    alone = trained.model_copy(update={"results": [], "training_results": training(last), "history": [earlier]})
    assert len({*shares(engineers.make(name).propose(alone, current)).tolist()}) > 1
    if name in (*NAMES, "failure-share"):
        before = earlier.model_copy(update={"results": rows(first[::-1])})
        contrary = alone.model_copy(update={"results": rows(last[::-1]), "history": [before]})
        assert (
            shares(engineers.make(name).propose(contrary, current)).tolist()
            == shares(engineers.make(name).propose(alone, current)).tolist()
        )


def test_a_slice_without_outcomes_has_its_validation():
    report = report_of(config(), [[0.2, 0.4, 0.6, 0.8]]).model_copy(
        update={"training_results": training([0.5, None, 0.0, None])}
    )
    assert [rates.tolist() for rates in rates_by_stage(report, SLICES)] == [[0.5, 0.4, 0.0, 0.8]]


@pytest.mark.parametrize("name", [*NAMES, "failure-share", "reader"])
@pytest.mark.parametrize("floor", [-0.1, 1.1])
def test_a_floor_is_a_part(name, floor):
    with pytest.raises(ValueError, match="floor="):
        engineers.make(name, floor=floor)


@pytest.mark.parametrize("name", [*NAMES, "failure-share"])
def test_a_reason_names_the_success_that_the_report_shows(name):
    rates = [0.1, 0.9, 0.5, 0.3]
    proposal = engineers.make(name).propose(report_of(config(), [[0.2] * 4, rates]), current=config())
    reasons = {reason.path: reason.reason for reason in proposal.reasons}
    assert reasons
    for path, reason in reasons.items():
        shown = rates[SLICES.index(path.split(".")[1])]
        assert f"success {shown:.2f}" in reason
