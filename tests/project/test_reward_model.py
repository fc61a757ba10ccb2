"""A language model as the engineer of training by reward: its configs are trained on, and its table is on the page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.lazily import needed

needed("torch", extra="exam")

from benchmarks import reward_model, reward_study  # noqa: E402
from benchmarks._points import in_points  # noqa: E402
from benchmarks._record import RESULTS  # noqa: E402
from benchmarks.reward_model import (  # noqa: E402
    ASKED,
    MODEL,
    YOKED,
    as_chosen,
    configs_of,
    folder_of,
    followed,
    lines,
    table,
)
from benchmarks.reward_study import LAST, RISING, Arm, Run, played  # noqa: E402
from engineers.knobs import leaves  # noqa: E402
from engineers.model.transcript import read_transcript  # noqa: E402
from envtuning.exam.families import LACKING, MASTERED  # noqa: E402
from envtuning.exam.session import Start  # noqa: E402

KIND = np.array([MASTERED, LACKING])


def ends_at(success: list[float]) -> Run:
    points = [{"updates": 720, "replies": LAST, "trained": 0, "drawn": [0, 0], "success": success}]
    return Run(points, KIND)


def test_the_table_has_the_model_s_difference_to_every_arm():
    ends = {MODEL: ([1.0, 0.8], [1.0, 0.6], [1.0, 0.7]), RISING: ([1.0, 0.4], [0.9, 0.5], [1.0, 0.4])}
    runs = {arm: [[ends_at(success)] for success in of] for arm, of in ends.items()}
    rows = table(runs, LAST)
    assert rows[MODEL]["all"] == pytest.approx(0.85)
    assert rows[MODEL]["lacking"] == pytest.approx(0.7)
    assert rows[RISING]["model_minus"]["mean"] == pytest.approx(0.15)
    model, rising = lines(rows)
    assert model == f"| {MODEL} | 85.0 | 70.0 | 70.0 |  |"
    assert rising.startswith("| rising | 70.0 | 43.3 | 43.3 | +15.0 ")


def test_every_training_has_the_model_s_eleven_answers():
    for root, yoked in [*((root, False) for root in ASKED), *((root, True) for root in YOKED)]:
        assert [one.stage for one in read_transcript(folder_of(root, yoked=yoked))] == list(range(11))


def test_the_page_has_what_is_stored():
    text = (RESULTS.parents[1] / "docs" / "reward.md").read_text(encoding="utf-8")
    page = " ".join(text.split())
    figures = json.loads((RESULTS / "reward_model.json").read_text(encoding="utf-8"))["figures"]
    tables, control = figures["tables"], figures["yoked"]["tables"]["92160 replies"]
    half, end = tables["92160 replies"], tables["184320 replies"]
    assert "\n".join(lines(half)) in text
    gains = {arm: in_points(row["model_minus"]) for arm, row in half.items() if row["model_minus"]}
    assert f"{gains['even draws']} points above even draws, and {gains['oracle']} from the oracle" in page
    assert f"From `rising` it is {gains['rising']}" in page
    ends = [in_points(end[arm]["model_minus"]) for arm in ("even draws", "rising", "rising, KL")]
    assert "it is {} from even draws and {} from `rising`. From `rising` with a KL term it is {}".format(*ends) in page
    for arm in (MODEL, "even draws", "rising", "oracle"):
        assert any(line.startswith(f"| {arm} |") and line in text for line in lines(control))
    assert control["even draws"]["model_minus"]["low"] < 0  # "gains nothing"
    assert control[MODEL]["model_minus"]["high"] < 0
    again = json.loads((RESULTS / "reward_model_again.json").read_text(encoding="utf-8"))["figures"]["tables"]
    then, last = (
        {arm: in_points(row["model_minus"]) for arm, row in again[at].items() if row["model_minus"]} for at in again
    )
    assert f"they end {then['even draws']} points above even draws and {then['rising']} above `rising`" in page
    assert f"at the higher rate they end only {then['even draws, higher rate']}." in page
    assert f"At the end it is {last['even draws']} from even draws and {last['rising']} from `rising`." in page
    assert (
        again["92160 replies"]["rising"]["model_minus"]["low"]
        > 0
        > again["184320 replies"]["even draws"]["model_minus"]["low"]
    )
    readme = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"A large language model ends {ends[0]} points above uniform draws, without that term" in readme


@pytest.fixture
def soon_over(monkeypatch):
    """Runs of two stages."""
    monkeypatch.setattr(reward_study, "LAST", 2 * reward_study.STAGE)
    monkeypatch.setattr(reward_study, "TESTED", (90,))


@pytest.mark.slow
@pytest.mark.usefixtures("exam_roots", "soon_over")
def test_an_engineer_is_followed_as_in_the_study():
    points, refused = followed("rising", ASKED[0])
    assert (points, refused) == (played((Arm("rising"), Start(ASKED[0]))), [])


@pytest.mark.parametrize("yoked", [False, True])
def test_the_configs_are_those_of_the_answers(yoked):
    """A share that an answer names is the next config's, unless it is out of bounds; all others stay."""
    for root in YOKED if yoked else ASKED:
        shares = dict.fromkeys((f"tasks.task-{number}.share" for number in range(24)), 1.0)
        chosen = configs_of(root, yoked=yoked)
        for one in read_transcript(folder_of(root, yoked=yoked)):
            shares |= {change["path"]: change["value"] for change in json.loads(one.reply)["changes"]}
            assert leaves(chosen[one.stage]) == shares


@pytest.mark.slow
@pytest.mark.usefixtures("exam_roots", "soon_over")
def test_the_chosen_configs_are_trained_on(monkeypatch):
    alone = {"tasks": {f"task-{number}": {"share": float(number == 3)} for number in range(24)}}
    monkeypatch.setattr(reward_model, "configs_of", lambda root, *, yoked: {0: alone, 1: alone})
    last = as_chosen(ASKED[0]).points[-1]
    later = last["replies"] - reward_study.STAGE  # in the stage after the first answer, which draws this task alone
    assert 0 < later <= last["drawn"][3] < 2 * later
    assert max(last["drawn"][:3] + last["drawn"][4:]) < later / 2
