"""Folders of run format 2, which an earlier version left: they open as they are, and today's format is written when they continue."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from envtuning import loop
from envtuning.loop.attempt import Attempt
from envtuning.loop.session import Session
from envtuning.runs import format2
from envtuning.runs.checked import Files
from envtuning.runs.log import RunLog
from envtuning.runs.state import FORMAT
from tests.envtuning.commands import called
from tests.envtuning.loop.test_recorded_kills import RECORDED, laid_out

KILLED = RECORDED["killed"]


def content(run: Path) -> dict[str, bytes]:
    return {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("moment", sorted(KILLED))
def test_such_a_folder_is_shown_as_it_is(tmp_path, moment):
    run = laid_out(KILLED[moment], tmp_path / "run")
    before = content(run)
    code, said = called("show", str(run))
    assert code == 0, said
    assert content(run) == before
    code, said = called("report", str(run))
    assert code == 0, said
    assert RunLog.open(run).record.format == format2.FORMAT


def test_it_says_the_same_before_and_after_it_is_rewritten(tmp_path):
    run = RunLog.open(laid_out(KILLED["the second stage trains"], tmp_path / "run"))
    before = run.state
    assert before.stages[1].chosen.proposal is not None
    run.upgrade()
    again = RunLog.open(run.path)
    assert (again.record.format, again.state) == (FORMAT, before)
    assert list(run.path.rglob("proposal.json")) == []
    assert "name" not in json.loads((run.path / "stages" / "01" / "config.json").read_text())
    run.upgrade()  # a second time there is nothing to do
    assert RunLog.open(run.path).state == before


def test_an_answer_whose_config_was_not_chosen_yet_is_not_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: pytest.fail("asked again"))
    run = RunLog.open(laid_out(KILLED["the second config is not chosen yet"], tmp_path / "run"))
    assert not (run.path / "stages" / "01" / "config.json").exists()
    assert run.state.stages[1].chosen.engineer == run.state.stages[1].chosen.proposal.engineer != ""
    loop.resume(run.path)
    ended = RunLog.open(laid_out(RECORDED["ended"], tmp_path / "ended"))
    assert RunLog.open(run.path).state.stages[1].chosen == ended.state.stages[1].chosen


def test_killed_at_any_file_of_the_rewriting_it_is_read_the_same(tmp_path, monkeypatch):
    class Killed(BaseException):
        """The process dies."""

    real, killed = os.replace, 0
    for moment in range(100):
        run = RunLog.open(laid_out(KILLED["the second stage trains"], tmp_path / f"{moment}" / "run"))
        before, left = run.state, moment

        def replace(draft: object, path: object) -> None:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            real(draft, path)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            try:
                run.upgrade()
                break
            except Killed:
                killed += 1
        found = RunLog.open(run.path)
        assert found.state == before
        found.upgrade()
        assert RunLog.open(run.path).state == before
    assert killed > 8


def test_a_missing_answer_is_told(tmp_path):
    run = laid_out(KILLED["the second stage trains"], tmp_path / "run")
    (run / "stages" / "00" / "proposal.json").unlink()
    code, said = called("show", str(run))
    assert code == 1
    assert "proposal.json is missing, and stage 1 depends on it" in " ".join(said.split())


def test_a_checkpoint_inside_a_stage_continues_with_what_it_had(tmp_path):
    run = RunLog.open(laid_out(KILLED["the second stage trains"], tmp_path / "run"))
    stage = run.state.stages[1]
    state = {
        "attempt": 1, "config": stage.chosen.config.model_dump(mode="json"), "incidents": [], "spent": {"env_steps": 900},
        "trained": {"env_steps": 500}, "validated": {"env_steps": 100}, "history_spent": 600, "stretch": 2,
        "iterations": [{"loss": 0.5}], "validations": [{"valid_rate": 0.25}], "said": ["x"], "lines": [{"kind": "end"}],
    }  # fmt: skip
    with run.files.new_folder(stage.path / "inside-2") as draft:
        (draft / "trainee").mkdir()
        (draft / "trainee" / "skill.json").write_text("[]")
        (draft / "state.json").write_text(json.dumps(state))
    run.upgrade()
    Files(run.path).raise_unless_as_written(stage.path / "inside-2")
    attempt = Attempt.restored(Session(run, observer=None), stage.path / "inside-2")
    assert (attempt.number, attempt.stretch, attempt.config) == (1, 2, stage.chosen.config)
    assert (attempt.spent, attempt.cost) == ({"env_steps": 900}, {"env_steps": 600})
    assert (attempt.iterations, attempt.validations, attempt.said, attempt.lines) == (
        state["iterations"], state["validations"], state["said"], state["lines"]
    )  # fmt: skip
