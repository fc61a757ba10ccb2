"""Scores of training: where nothing succeeds they tell what is being learnt from what is not."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import BaseModel, Field

import engineers
from engineers import SliceResult, StageRecord, StageReport
from engineers.plain.growth import Evidence, believed
from engineers.plain.signals import standings_of
from engineers.report import Split


class Task(BaseModel):
    share: float = Field(1.0, ge=0, le=1, description="Share.")
    length: float = Field(4.0, ge=1, le=9, description="Length.")


class Tasks(BaseModel):
    rises: Task = Task()
    flat: Task = Task()
    works: Task = Task()


BLIND = {"rises": 0.1, "flat": 0.1, "works": 0.1}


def row(name, rate, score, played=400):
    return SliceResult(name=name, episodes=played, metrics={"success_rate": rate, "score": score})


def report_of(stages, current=None, **more):
    data = (current or Tasks()).model_dump()
    *before, last = [
        StageRecord(stage=stage, config=data, results=[], training_results=rows) for stage, rows in enumerate(stages)
    ]
    told = {"stage": last.stage, "config": data, "target": data, "history": before, "blind_scores": BLIND}
    return StageReport(training_results=last.training_results, **{**told, "rounds_left": 3, **more})


def silent(rising):
    """Two tasks of three without any success; the score of one rises."""
    return report_of(
        [
            [
                *(row(name, 0.0, score if name == rising else 0.1, 2000) for name in ("rises", "flat")),
                row("works", 0.5, 0.8),
            ]
            for score in (0.3, 0.5, 0.7)
        ]
    )


def test_a_standing_is_how_far_a_score_surely_is_from_a_blind_guess():
    found = standings_of(
        [row("rises", 0.0, 0.55, 10**6), row("flat", 0.0, 0.11, 50), row("works", 1.0, 1.0, 10**6)], BLIND
    )
    assert found == {"rises": pytest.approx(0.5, abs=0.01), "flat": 0.0, "works": pytest.approx(1.0, abs=0.01)}


@pytest.mark.parametrize(("rising", "other"), [("rises", "flat"), ("flat", "rises")])
def test_reader_gives_data_to_what_rises_in_score_and_not_to_what_does_not(rising, other):
    config = engineers.make("reader", floor=0.0).propose(silent(rising), Tasks()).config
    assert getattr(config, rising).share > 10 * getattr(config, other).share
    assert getattr(config, other).share >= 0.01


def test_by_default_reader_leaves_every_slice_three_tenths_of_an_even_share():
    """However little it expects of one: a default must not lose what can still be learnt."""
    stages = [
        [row("rises", rate, rate, 5000), row("flat", 0.0, 0.1, 5000), row("works", 0.9, 0.95, 5000)]
        for rate in (0.1, 0.3, 0.5)
    ]
    config = engineers.make("reader").propose(report_of(stages), Tasks()).config
    parts = np.array([getattr(config, name).share for name in ("rises", "flat", "works")])
    assert 0.3 / 3 <= min(parts / parts.sum()) < 0.15
    assert max(parts / parts.sum()) > 0.4


def test_a_slice_that_has_begun_is_never_hopeless():
    counts = {"doses": [[1.0, 1.0]] * 3, "succeeded": [[0.0, 0.0]] * 3, "played": [[200.0, 200.0]] * 3}
    arrays = {name: np.array(rows) for name, rows in counts.items()}
    begun, not_begun = believed(Evidence(**arrays, begun=np.array([True, False])), 6).hopeless()
    assert begun == 0
    assert not_begun > 0.3


def test_reader_reads_the_last_half_of_a_stage():
    halves = [Split(episodes=200, succeeded=0, score=0.0), Split(episodes=200, succeeded=180, score=0.9)]
    risen = row("rises", 0.45, 0.45).model_copy(update={"halves": halves})
    others = [row("flat", 0.45, 0.45), row("works", 0.45, 0.45)]
    reasons = engineers.make("reader").propose(report_of([[risen, *others]]), Tasks()).reasons
    told = {
        reason.path: float(reason.reason.split()[2].rstrip(";")) for reason in reasons if reason.path.endswith("share")
    }
    assert told["rises.share"] > told["flat.share"] + 0.2


def test_rules_keeps_a_setting_where_only_the_score_rises_and_eases_it_where_nothing_does():
    current = Tasks()
    silent = [[row(name, 0.0, score) for name, score in (("rises", 0.6), ("flat", 0.1), ("works", 0.1))]]
    config = engineers.make("rules").propose(report_of(silent), current).config
    assert config.rises.length == 4.0
    assert config.flat.length < 4.0


def test_rules_gives_more_of_a_slice_whose_score_says_that_it_is_near():
    stage = [row("rises", 0.0, 0.6), row("flat", 0.0, 0.1), row("works", 0.9, 0.9)]
    config = engineers.make("rules").propose(report_of([stage], rounds_left=1), Tasks()).config
    assert config.rises.share > 2 * config.flat.share


@pytest.mark.parametrize("name", ["rules", "reader", "failure-share", "give-up", "learnability"])
def test_what_engineers_read_of_training_is_its_last_half(name):
    """A stage whose halves differ is read as one that was all the time as its last half."""

    def half(rate):
        return Split(episodes=200, succeeded=round(200 * rate), score=rate)

    rates = {"rises": 0.3, "flat": 0.2, "works": 0.9}
    risen = [
        row(name, late / 2, late / 2).model_copy(update={"halves": [half(0.0), half(late)]})
        for name, late in rates.items()
    ]
    steady = [row(name, late, late, 200) for name, late in rates.items()]
    proposals = [engineers.make(name).propose(report_of([rows]), Tasks()) for rows in (risen, steady)]
    assert proposals[0].config == proposals[1].config != Tasks()
