"""A language model as the engineer of training by reward: its answers replay, and its table is on the page."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.lazily import needed

needed("torch", extra="exam")

from benchmarks import reward_model, reward_study  # noqa: E402
from benchmarks._points import in_points  # noqa: E402
from benchmarks._record import RESULTS  # noqa: E402
from benchmarks.reward_model import ASKED, MODEL, YOKED, folder_of, followed, lines, replayed, table  # noqa: E402
from benchmarks.reward_study import LAST, RISING, Arm, Run, played  # noqa: E402
from engineers.model.transcript import TranscriptError, read_transcript  # noqa: E402
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


@pytest.mark.slow
@pytest.mark.usefixtures("exam_roots", "soon_over")
@pytest.mark.filterwarnings("ignore:.*gave no usable config")
def test_a_replay_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    there = reward_model.TRANSCRIPTS
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / str(ASKED[0])).symlink_to(there / str(ASKED[1]))  # the answers of another training
    monkeypatch.setattr(reward_model, "TRANSCRIPTS", tmp_path / "elsewhere")
    monkeypatch.setattr(reward_model, "HERE", tmp_path / "benchmarks")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TranscriptError, match=f"root {ASKED[0]} does not replay"):
        replayed(ASKED[0])
