"""A trainee whose environments are in processes of their own: one of them is killed in the middle of a stage."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec
from tests.envtuning.loop.test_runs_kill import KillableRuns
from tests.envtuning.loop.test_worlds_kill import gym_run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def spec_with(kill_once: str) -> RunSpec:
    described = gym_run({"kind": "gym_worlds:AsyncWalkerTrainee", "options": {"kill_once": kill_once}}, 200)
    described["suites"]["validate"] = "stages"
    return RunSpec.model_validate(described)


@pytest.mark.timeout(120)
def test_a_killed_worker_of_an_async_vector_env_costs_an_attempt_and_changes_nothing_else(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1]))  # the world by the name that the runs' files have
    runs = KillableRuns("gym_worlds")  # processes without this one's threads
    for name, kill_once in (("whole", ""), ("killed", str(tmp_path / "it was"))):
        (tmp_path / name).mkdir()
        assert runs.run(tmp_path / name / "run", spec_with(kill_once))["code"] == 0
    runs.close()
    whole, killed = RunLog.open(tmp_path / "whole" / "run"), RunLog.open(tmp_path / "killed" / "run")
    assert not whole.state.incidents()
    told = {incident.kind: incident.message for incident in killed.state.incidents()}
    assert told.keys() == {"trainee_failed"}
    assert any("close had not ended after 1 s" in incident.message for incident in killed.state.incidents())
    assert [stage.done.attempts for stage in killed.state.stages] == [1, 2, 1]
    for one, other in zip(whole.state.stages, killed.state.stages, strict=True):
        assert one.chosen == other.chosen
        assert one.episodes() == other.episodes()
        assert one.done.spent == other.done.spent  # the lost attempt is not charged
        assert (one.checkpoint / "walker.json").read_bytes() == (other.checkpoint / "walker.json").read_bytes()
    assert killed.state.test == whole.state.test
