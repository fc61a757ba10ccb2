"""SIGKILL at random moments of a run, half-written files included: what ``resume`` ends with is what was to be.

`make prove` takes 18 moments, `make test` 7 of the same kinds.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from engineers.shared import own
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from envtuning.runs.tasks import next_task

pytestmark = pytest.mark.slow

SEED = 20
ALL = (pytest.mark.prove, pytest.mark.timeout(3_000))
KILLED = -9


class KillableRuns:
    """A process with everything imported that forks a real process for every run."""

    def __init__(self, *imports: str) -> None:
        own.trust(name for name in imports if name.partition(".")[0] not in own.KNOWN)
        script = Path(__file__).parents[1] / "killable.py"
        self.process = subprocess.Popen(
            [sys.executable, str(script), *imports],  # which finds the worlds beside it
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder: Path, spec: RunSpec, **how: object) -> dict:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        job = {"folder": str(folder), "spec": spec.model_dump(mode="json")} | how
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.fixture(scope="module")
def runs():
    server = KillableRuns()
    yield server
    server.close()


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    small = SuiteSpec(
        validation_per_slice=6, test_per_slice=6, probe_per_slice=3, validate="every 2000", failure_cases=2
    )
    return load_spec("scripted").with_rounds(3).model_copy(update={"seed": 3, "suites": small})


@pytest.fixture(scope="module")
def undisturbed(runs, spec, tmp_path_factory):
    """The run that nothing happened to, its storage operations in order, and how long it took."""
    place = tmp_path_factory.mktemp("undisturbed")
    log = place / "operations"
    runs.run(place / "warm", spec, here=True)  # what is compiled or cached on first use must not shift the moments
    ended = runs.run(place / "run", spec, log=str(log))
    assert ended["code"] == 0
    return outcome(place / "run"), log.read_text().splitlines(), ended["seconds"]


def outcome(folder: Path) -> dict[str, object]:
    """Everything that a run decided and found, down to the bytes; wall-clock times left out."""
    run = RunLog.open(folder)
    assert next_task(run.plan, run.state) is None
    found: dict[str, object] = {"test": (run.path / "test.json").read_text()}
    for stage in run.state.stages:
        files = [stage.path / name for name in ("report.json", "episodes.json", "metrics.jsonl")]
        for file in (*files, *sorted(stage.checkpoint.iterdir())):
            found[f"{stage.number}/{file.name}"] = file.read_bytes()
        found[f"{stage.number}/config"] = stage.chosen.model_dump(mode="json", exclude={"proposal": {"usage"}})
        found[f"{stage.number}/done"] = stage.done.model_dump(exclude={"seconds"})
    return found


def assert_nothing_is_half_written(folder: Path) -> None:
    """Every file that has its proper name can be read, through the readers that everybody uses."""
    if not (folder / "run.json").exists():
        return
    run = RunLog.open(folder)
    assert run.plan.spec.name == "scripted"
    assert run.state.test is None or run.state.test.last
    for stage in run.state.stages:
        assert stage.chosen is not None
        stage.metrics(), stage.episodes(), stage.report, stage.trained_on, stage.transcript()
        if stage.done is not None:
            assert stage.report.results
            assert stage.done.spent["env_steps"] > 0
        if stage.checkpoint.exists():
            assert json.loads((stage.checkpoint / "skill.json").read_text())


def kinds_of_moments(operations: list[str]) -> dict[str, list[int]]:
    """Operations by what they do to which file, stage numbers aside: 'fsync metrics.jsonl', 'os.rename .report.json.draft'."""
    kinds: dict[str, list[int]] = {}
    for number, label in enumerate(operations):
        kinds.setdefault(f"{label.split()[0]} {Path(label.split(maxsplit=1)[-1]).name}", []).append(number)
    return kinds


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=ALL)])
def test_a_run_killed_at_any_write_resumes_to_the_same_end(runs, spec, undisturbed, tmp_path, kills):
    expected, operations, _ = undisturbed
    kinds = kinds_of_moments(operations)
    assert {"fsync metrics.jsonl", "os.rename .report.json.draft", "os.rename .checkpoint.draft"} <= kinds.keys()
    draw = random.Random(SEED)
    moments = [draw.choice(kinds[kind]) for kind in draw.sample(sorted(kinds), kills)]
    for moment in moments:
        folder = tmp_path / f"at-{moment}" / "run"
        folder.parent.mkdir()
        assert runs.run(folder, spec, kill_at=moment)["code"] == KILLED, operations[moment]
        assert_nothing_is_half_written(folder)
        assert runs.run(folder, spec)["code"] == 0, operations[moment]
        assert outcome(folder) == expected, operations[moment]


@pytest.mark.prove  # `make test` kills at single writes
@pytest.mark.timeout(3_000)
def test_a_run_killed_at_any_time_and_again_while_it_resumes_ends_the_same(runs, spec, undisturbed, tmp_path):
    expected, _, seconds = undisturbed
    draw = random.Random(SEED + 1)
    for number in range(3):
        folder = killed_at_a_time(runs, spec, tmp_path / f"time-{number}", seconds * draw.uniform(0.1, 0.7))
        assert_nothing_is_half_written(folder)
        again = draw.randrange(3)  # at once: while it clears away what the dead process left
        assert runs.run(folder, spec, kill_at=again)["code"] == KILLED
        assert_nothing_is_half_written(folder)
        assert runs.run(folder, spec)["code"] == 0
        assert outcome(folder) == expected


def killed_at_a_time(runs: KillableRuns, spec: RunSpec, place: Path, after: float) -> Path:
    """A run that was killed from outside after so many seconds, or sooner where the machine was faster this time."""
    while True:
        folder = place / f"after-{after:.3f}" / "run"
        folder.parent.mkdir(parents=True)
        if runs.run(folder, spec, kill_after=after)["code"] == KILLED:
            return folder
        after /= 2
