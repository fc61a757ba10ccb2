"""The same promise with RLlib: SIGKILL in the middle of a stage, and the run ends the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envtuning.runs.log import RunLog
from envtuning.runs.tasks import next_task
from tests.lazily import needed

needed("ray", "torch", extra="rllib")

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(600)]

SPEC = """
name: small
seed: 5
target: {num_agents: 2, collisions: end, slices: {3: {hole_ratio: 0.1}, 4: {hole_ratio: 0.1}}}
trainee:
  kind: rllib
  options: {num_envs: 16, rollout: 16, minibatch: 128, hidden: [32], torch_threads: 1, pool_size: 256}
engineer: {name: rules}
suites: {validation_per_slice: 8, test_per_slice: 8, probe_per_slice: 4, failure_cases: 1}
stages:
  - budget: 3000
    config: {num_agents: 2, collisions: end, reward: shaped, slices: {3: {hole_ratio: 0.1}, 4: {share: 0.2}}}
  - {budget: 3000}
  - {budget: 3000}
"""


def command(*words: str) -> subprocess.Popen:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.Popen(
        [sys.executable, "-m", "envtuning", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(process: subprocess.Popen) -> None:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output[-3000:]


def killed_when(process: subprocess.Popen, moment: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not moment():
        assert process.poll() is None, "the run ended before its moment came"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def outcome(folder: Path) -> dict[str, object]:
    run = RunLog.open(folder)
    assert next_task(run.plan, run.state) is None
    found: dict[str, object] = {"test": run.state.test}
    for stage in run.state.stages:
        found[f"config {stage.number}"] = stage.chosen
        found[f"results {stage.number}"] = stage.report.results
        found[f"episodes {stage.number}"] = stage.episodes()
        found[f"steps {stage.number}"] = stage.done.spent["env_steps"]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The run's file and, beside it, the run that nobody killed."""
    file = tmp_path_factory.mktemp("rllib") / "small.yaml"
    file.write_text(SPEC)
    finished(command("run", str(file), "--out", str(file.parent / "run")))
    return file


# `make test` kills runs of the closed-form learner, and asks of a trainee on RLlib that a stage started again ends the same.
@pytest.mark.prove
@pytest.mark.parametrize("kills", ["01", "00 01 02"])
def test_a_run_on_rllib_killed_in_a_stage_ends_in_the_same_configs_and_the_same_validation_table(
    whole, kills, tmp_path
):
    folder = tmp_path / "run"
    words = ["run", str(whole), "--out", str(folder)]
    for stage in kills.split():
        path = folder / "stages" / stage
        killed_when(command(*words), lambda path=path: _lines(path / "metrics.jsonl") >= 2)
        assert not (path / "done.json").exists()
        words = ["resume", str(folder)]
    finished(command(*words))
    assert outcome(folder) == outcome(whole.parent / "run")


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
