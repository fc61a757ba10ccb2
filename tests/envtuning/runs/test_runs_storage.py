"""A disk that is full or read-only ends the run in one clear sentence, nothing lost, and it resumes once there is room."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from pathlib import Path

import pytest

from envtuning.atomic import StorageError, locked
from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.runs import sections
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from envtuning.runs.tasks import next_task
from tests.envtuning.commands import called

SMALL = SuiteSpec(validation_per_slice=4, test_per_slice=4, probe_per_slice=2, failure_cases=2, validate="every 100000")


@pytest.fixture
def spec() -> RunSpec:
    return load_spec("scripted").with_rounds(3).model_copy(update={"suites": SMALL})


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root; the tests with injected errors below need nothing")
    yield place
    subprocess.run(["mount", "-o", "remount,rw", place], check=True)
    subprocess.run(["umount", place], check=True)


def results(run: RunLog) -> list[object]:
    return [(stage.chosen, stage.report.results) for stage in run.state.done]


def test_a_full_disk_loses_nothing_and_the_run_goes_on_when_there_is_room(spec, small_disk, tmp_path):
    expected = loop.start(spec, tmp_path / "plenty" / "run")
    run = RunLog.create(small_disk / "run", Plan.of(spec))
    loop.continue_run(run, stages=1)
    kept = results(run)
    ballast = small_disk / "ballast"
    fill(ballast)
    code, output = called("resume", run.path)
    assert code == 1
    assert "the disk is full: free some space" in output
    assert results(RunLog.open(run.path)) == kept
    ballast.unlink()
    run = loop.resume(run.path)
    assert results(run) == results(expected)
    assert run.state.test == expected.state.test


def fill(path: Path) -> None:
    """Until nothing more fits."""
    with open(path, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 1024)
    assert os.statvfs(path).f_bavail == 0


def test_a_read_only_disk_is_told_and_what_is_there_can_still_be_read(spec, small_disk):
    run = RunLog.create(small_disk / "run", Plan.of(spec))
    loop.continue_run(run, stages=1)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    code, output = called("resume", run.path)
    assert code == 1
    assert "read-only: mount it writable" in output
    code, output = called("show", run.path)
    assert code == 0
    assert "0 default" in output


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_disk_that_refuses_at_any_write_loses_nothing(spec, tmp_path, monkeypatch, code):
    expected = results(loop.start(spec, tmp_path / "whole" / "run"))
    sync = os.fsync
    for moment in (3, 20, 45):
        count = 0

        def refuse(handle: int, moment: int = moment) -> None:
            nonlocal count
            count += 1
            if count > moment:
                raise OSError(code, os.strerror(code))
            sync(handle)

        folder = tmp_path / f"{moment}" / "run"
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(StorageError, match="could not be written"):
                loop.start(spec, folder)
        run = loop.start(spec, folder)
        assert next_task(run.plan, run.state) is None
        assert results(run) == expected


def test_two_processes_cannot_work_on_one_run(spec, tmp_path):
    run = RunLog.create(tmp_path / "run", Plan.of(spec))
    with locked(run.path), pytest.raises(RunError, match=str(os.getpid())):
        loop.continue_run(run)


def test_a_folder_that_holds_something_else_is_left_alone(spec, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("precious")
    with pytest.raises(RunError, match=r"not empty and is not a run: choose another --out"):
        loop.start(spec, tmp_path / "thesis")
    run = RunLog.create(tmp_path / "run", Plan.of(spec))
    with pytest.raises(RunError, match="already holds another run"):
        loop.start(spec.model_copy(update={"seed": 9}), run.path)
    with pytest.raises(RunError, match=r"no run\.json"):
        RunLog.open(tmp_path / "thesis")


def test_every_key_of_a_runs_file_says_what_it_is():
    read = [
        model for model in vars(sections).values() if isinstance(model, type) and issubclass(model, sections.Frozen)
    ]
    assert len(read) > 6
    unsaid = {
        f"{model.__name__}.{name}"
        for model in read
        for name, field in model.model_fields.items()
        if not field.description
    }
    assert unsaid == {"StageSpec.name"}


def test_a_run_whose_world_is_not_installed_is_not_called_damaged(spec, tmp_path):
    run = RunLog.create(tmp_path / "run", Plan.of(spec))
    text = (run.path / "run.json").read_text()
    run.files.write_text(run.path / "run.json", text.replace('"name": "lakes"', '"name": "nobodys_module:World"', 1))
    with pytest.raises(RunError, match=r"No module named 'nobodys_module'.*; install the run's world") as told:
        _ = RunLog.open(run.path, trust=["nobodys_module"]).spec
    assert "damaged" not in str(told.value)


def test_a_run_of_another_format_is_refused_with_the_version_that_made_it(spec, tmp_path):
    run = RunLog.create(tmp_path / "run", Plan.of(spec))
    text = (run.path / "run.json").read_text()
    run.files.write_text(run.path / "run.json", text.replace('"format": 3', '"format": 7'))
    with pytest.raises(
        RunError, match=r"run format 7, this version reads 2 and 3: use the version that made it \(0\.1\.0\)"
    ):
        loop.resume(run.path)
