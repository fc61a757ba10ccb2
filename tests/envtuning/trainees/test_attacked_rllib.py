"""Runs on RLlib under what scripted runs bear: damaged folders, kills at any write of any stage, a full disk. `make prove`."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from engineers.shared.ending import ENDED
from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec
from envtuning.runs.tasks import next_task
from tests.envtuning.loop.test_runs_kill import KILLED, KillableRuns
from tests.envtuning.runs.test_damaged_folders import attacks, outcome, told
from tests.envtuning.runs.test_runs_storage import fill, small_disk  # noqa: F401  # a fixture
from tests.lazily import needed

needed("ray", "torch", extra="rllib")

pytestmark = [pytest.mark.prove, pytest.mark.ray, pytest.mark.timeout(7_200)]

SLICES = {3: {"hole_ratio": 0.1}, 4: {"share": 0.2}}
SPEC = {
    "name": "small",
    "seed": 5,
    "target": {"num_agents": 2, "collisions": "end", "slices": {3: {"hole_ratio": 0.1}, 4: {"hole_ratio": 0.1}}},
    "trainee": {
        "kind": "rllib",
        "options": {"num_envs": 16, "rollout": 16, "minibatch": 128, "hidden": [16], "torch_threads": 1, "pool_size": 256},
    },
    "engineer": {"name": "rules"},
    "suites": {"validation_per_slice": 4, "test_per_slice": 4, "probe_per_slice": 2, "failure_cases": 1},
    "stages": [
        {"budget": 1500, "config": {"num_agents": 2, "collisions": "end", "reward": "shaped", "slices": SLICES}},
        {"budget": 1500},
        {"budget": 1500},
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    return RunSpec.model_validate(SPEC)


@pytest.fixture(scope="module")
def whole(spec, ray_session, tmp_path_factory) -> Path:
    return loop.start(spec, tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture(scope="module")
def half(spec, ray_session, tmp_path_factory) -> Path:
    """Two of three stages."""
    run = RunLog.create(tmp_path_factory.mktemp("half") / "run", Plan.of(spec))
    loop.continue_run(run, stages=2)
    return run.path


def test_sixty_corruptions(whole, half, tmp_path):
    copy = tmp_path / "undamaged" / "run"
    shutil.copytree(half, copy)
    assert told(["resume", str(copy)])[0] == 0
    assert outcome(copy) == outcome(whole)
    ended = attacks(60, 2, whole, half, tmp_path)
    assert ended["told"] > 35


def test_a_full_disk_loses_nothing(half, whole, small_disk):  # noqa: F811
    run = small_disk / "run"
    shutil.copytree(half, run)
    ballast = small_disk / "ballast"
    fill(ballast)
    code, said = told(["resume", str(run)])
    assert code == 1
    assert "the disk is full: free some space" in said
    ballast.unlink()
    assert told(["resume", str(run)])[0] == 0
    assert outcome(run) == outcome(whole)


@pytest.fixture(scope="module")
def runs() -> Iterator[KillableRuns]:
    server = KillableRuns("envtuning.trainees.rllib.trainee")
    yield server
    server.close()


def test_kills_at_any_write_of_later_stages(runs, spec, whole, tmp_path):
    log = tmp_path / "operations"
    (tmp_path / "undisturbed").mkdir()
    assert runs.run(tmp_path / "undisturbed" / "run", spec, log=str(log))["code"] == 0
    expected = outcome(whole)
    assert outcome(tmp_path / "undisturbed" / "run") == expected  # another process, another Ray
    operations = log.read_text().splitlines()
    later = [number for number, label in enumerate(operations) if "stages/01/" in label or "stages/02/" in label]
    last = [number for number, label in enumerate(operations) if "test.json" in label]
    draw = random.Random(0)
    for moment in [*draw.sample(later, 4), draw.choice(last)]:
        folder = tmp_path / f"at-{moment}" / "run"
        folder.parent.mkdir()
        assert runs.run(folder, spec, kill_at=moment)["code"] == KILLED, operations[moment]
        assert runs.run(folder, spec)["code"] == 0, operations[moment]
        assert next_task(Plan.of(spec), RunLog.open(folder).state) is None
        assert outcome(folder) == expected, operations[moment]


def test_sigterm_while_it_trains_ends_it_soon_and_it_goes_on(spec, whole, tmp_path):
    """Each moment is some seconds after the stage's config was written: Ray, the runners and the learner are at work."""
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(spec.model_dump(mode="json", exclude_defaults=True)))
    for number, seconds in ((signal.SIGTERM, 0.5), (signal.SIGINT, 4.0), (signal.SIGTERM, 8.0)):
        run = tmp_path / f"{number.name}-after-{seconds:g}" / "run"
        words = ["run", str(tmp_path / "spec.yaml"), "--out", str(run)]
        with subprocess.Popen(
            [sys.executable, "-m", "envtuning", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:  # fmt: skip
            while not (run / "stages" / "00" / "config.json").exists():
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.05)
            time.sleep(seconds)
            process.send_signal(number)
            said, _ = process.communicate(timeout=90)
        assert process.returncode == ENDED, said
        assert "interrupted" in said
        assert "Traceback" not in said
        assert next_task(Plan.of(spec), RunLog.open(run).state) is not None
        assert told(["resume", str(run)])[0] == 0
        assert outcome(run) == outcome(whole)
