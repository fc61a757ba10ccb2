"""What is written to the disk is on it, is noted with its checksum, and is compared with that when it is read."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from envtuning import atomic
from envtuning.atomic import StorageError
from envtuning.errors import RunError
from envtuning.runs import checked
from envtuning.runs.checked import Files
from envtuning.runs.state import Measured


@pytest.fixture
def files(tmp_path) -> Files:
    return Files.begin(tmp_path)


@pytest.fixture
def run(files) -> Path:
    return files.root


@pytest.fixture
def synced(monkeypatch) -> list[str]:
    """What was forced to the disk, in order: files with what they held by then, folders, and the renames in between."""
    events: list[str] = []
    real = {name: getattr(os, name) for name in ("fsync", "replace", "rename")}

    def fsync(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        events.append(f"{path.name}={path.read_text()}" if path.is_file() else f"{path.name}/")
        real["fsync"](handle)

    def moving(name: str):
        def move(old: Path, new: Path) -> None:
            events.append(f"{Path(old).name} -> {Path(new).name}")
            real[name](old, new)

        return move

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", moving("replace"))
    monkeypatch.setattr(os, "rename", moving("rename"))
    return events


needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at the process's open files")


@needs_proc
def test_a_file_is_on_the_disk_before_it_takes_its_name_and_then_its_name_is(tmp_path, synced):
    atomic.write_text(tmp_path / "a.txt", "whole")
    assert synced == [".a.txt.draft=whole", ".a.txt.draft -> a.txt", f"{tmp_path.name}/"]


@needs_proc
def test_a_line_is_on_the_disk_when_it_was_added(tmp_path, synced):
    atomic.append_line(tmp_path / "a.jsonl", [1])
    assert synced == ["a.jsonl=[1]\n"]


@needs_proc
def test_a_folder_and_all_that_is_in_it_is_on_the_disk_before_it_takes_its_name(tmp_path, synced):
    with atomic.new_folder(tmp_path / "c") as draft:
        (draft / "inner").mkdir()
        (draft / "inner" / "w").write_text("x")
    assert set(synced[:3]) == {".c.draft/", "inner/", "w=x"}
    assert synced[3:] == [".c.draft -> c", f"{tmp_path.name}/"]


@needs_proc
def test_a_new_folder_and_a_cleared_one_are_on_the_disk(tmp_path, synced):
    atomic.make_folder(tmp_path / "a" / "b")
    assert synced == ["a/"]
    atomic.clear(tmp_path / "a")
    assert synced[1:] == ["b -> .b.old", "a/"]


@needs_proc
def test_nothing_stays_open(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        atomic.write_text(tmp_path / "a.txt", str(number))
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_that_another_process_makes_meanwhile_is_no_error(tmp_path, monkeypatch):
    real, looks = Path.is_dir, iter([False])  # as it was a moment ago
    monkeypatch.setattr(Path, "is_dir", lambda path: next(looks, True) and real(path))
    assert atomic.make_folder(tmp_path) == tmp_path


def test_records_are_json_without_odd_numbers_and_with_a_line_for_each_value(tmp_path):
    for write in (atomic.write_json, Files.begin(tmp_path).write_json):
        write(tmp_path / "a.json", {"ä": [1]})
        assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n "\\u00e4": [\n  1\n ]\n}\n'
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(tmp_path / "a.json", float("nan"))
    assert sorted(os.listdir(tmp_path)) == ["a.json", "checksums.json"]


def test_what_goes_wrong_before_anything_is_written_is_told_as_it_is(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic.new_file(tmp_path / "a"):
        raise ZeroDivisionError


def test_an_error_without_a_number_is_a_disk_that_took_only_a_part(tmp_path):
    with (
        pytest.raises(StorageError, match=r"a could not be written \(100 bytes\): the disk is full"),
        atomic.new_file(tmp_path / "a"),
    ):
        raise OSError("100 bytes")


def test_a_folder_that_is_half_removed_has_no_longer_its_name(tmp_path, monkeypatch):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "weights").write_text("x")

    def killed(folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("envtuning.atomic.shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            atomic.clear(tmp_path)
    assert not (tmp_path / "checkpoint").exists()
    atomic.clear(tmp_path)
    assert os.listdir(tmp_path) == []


# Locks


def test_a_run_may_be_let_go_by_another_thread_than_took_it(tmp_path):
    held = atomic.locked(tmp_path)
    held.__enter__()
    begin = time.monotonic()
    assert atomic.is_locked(tmp_path)
    assert time.monotonic() - begin < 0.4  # who looks does not wait
    with pytest.raises(RunError, match=f"is being worked on by process {os.getpid()}: wait"), atomic.locked(tmp_path):
        pass
    thread = threading.Thread(target=held.__exit__, args=(None, None, None))
    thread.start()
    thread.join()
    assert not atomic.is_locked(tmp_path)


@pytest.mark.parametrize(
    ("written", "said"),
    [(b"12\n", "12"), (b"", "unknown"), (b"\xff\n", "\ufffd"), (b"1" * 30, "1" * 20), (None, "unknown")],
)
def test_who_holds_a_run_is_said_whatever_was_written_there(tmp_path, written, said):
    if written is not None:
        (tmp_path / ".owner").write_bytes(written)
    assert atomic._owner(tmp_path) == said


def test_a_folder_without_a_lock_or_of_somebody_elses_is_not_locked(tmp_path, monkeypatch):
    assert not atomic.is_locked(tmp_path)
    (tmp_path / ".lock").touch()

    def refused(self, *_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("envtuning.atomic.FileLock.__enter__", refused)
    assert not atomic.is_locked(tmp_path)


# Checksums


def test_files_of_a_run_are_noted_and_a_folder_without_a_table_is_none(files, run, tmp_path_factory):
    files.write_text(run / "a.txt", "a")
    assert Files.begin(run).sums == files.sums  # a second time changes nothing
    (run / "b").mkdir()
    (run / "b" / "c").write_text("c")
    files.note(run / "b")
    files.note(run / "gone")
    listed = json.loads((run / checked.NAME).read_text())
    assert list(listed) == ["a.txt", "b"]
    with pytest.raises(RunError, match="nothing in this run can be checked"):
        Files(tmp_path_factory.mktemp("elsewhere"))


def test_what_another_process_wrote_since_is_no_damage(files, run):
    other = Files(run)
    assert files.is_current()
    other.write_text(run / "a", "a")
    assert not files.is_current()
    assert files.read(run / "a") == b"a"
    assert files.is_current()
    (run / "a").write_text("b")
    with pytest.raises(RunError):
        files.read(run / "a")


@pytest.mark.parametrize(
    ("name", "text", "damaged", "may"),
    [
        ("a.json", "{}\n", "{}\n", True),
        ("a.json", "{}\n", "{}\ngarbage", False),
        ("a.json", "{}\n", "", False),
        ("a.jsonl", "[1]\n[2]\n", '[1]\n[2]\n{"cut o', True),  # a last line that was cut off is none
        ("a.jsonl", "[1]\n[2]\n", "[1]\n", False),
    ],
)
def test_what_differs_from_its_checksum_is_not_read(files, run, name, text, damaged, may):
    files.write_text(run / name, text)
    (run / name).write_text(damaged)
    if may:
        assert files.read(run / name) == damaged.encode()
        return
    with pytest.raises(RunError, match=f"{name} has changed since it was written: it differs from its checksum"):
        files.read(run / name)
    with pytest.raises(RunError, match=f"{name} has changed since it was written"):
        files.raise_unless_as_written(run / name)


def test_what_is_not_there_is_empty_and_what_is_no_file_is_said(files, run):
    assert files.read(run / "a.jsonl") is None
    assert files.lines(run / "a.jsonl", int) == []
    (run / "a.jsonl").mkdir()
    with pytest.raises(RunError, match="is not a file"):
        files.lines(run / "a.jsonl", int)
    with pytest.raises(RunError, match="cannot be read"):
        files.raise_unless_as_written(run / "b")


def test_a_file_that_is_still_written_to_is_read_unchecked(files, run):
    atomic.append_line(run / "metrics.jsonl", {"kind": "iteration"})
    assert files.lines(run / "metrics.jsonl", dict, whole=False) == [{"kind": "iteration"}]
    with pytest.raises(RunError, match="so it cannot be checked"):
        files.lines(run / "metrics.jsonl", dict)


@pytest.mark.parametrize(
    ("table", "says"), [("", "so it cannot be checked"), ("[]", "damaged"), ('{"a": 1}', "damaged")]
)
def test_a_table_of_checksums_that_is_none_is_told(files, run, table, says):
    files.write_text(run / "a", "a")
    (run / checked.NAME).write_text(table)
    with pytest.raises(RunError, match=says):
        Files(run).read(run / "a")


def test_copies_are_noted_once_what_they_are_copied_from_was_checked(files, run, tmp_path_factory):
    copies = Files.begin(tmp_path_factory.mktemp("copy"))
    copy = copies.root
    files.write_text(run / "a", "a")
    with files.new_folder(run / "b") as draft:
        (draft / "c").write_text("c")
    copies.note_copies(files, {run / "a": copy / "a", run / "b": copy / "b"})
    listed = [json.loads((each / checked.NAME).read_text()) for each in (run, copy)]
    assert listed[0] == listed[1]
    (run / "a").write_text("other")
    with pytest.raises(RunError, match="a has changed since it was written"):
        copies.note_copies(files, {run / "a": copy / "z"})


def test_a_checkpoints_checksum_is_of_its_files_names_and_contents(files, run):
    def digest(**texts: str) -> str:
        folder = run / f"c{len(list(run.iterdir()))}"
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return files.digest_of(folder)

    assert digest(a="1", b="2") == digest(b="2", a="1")
    assert len({digest(a="1", b="2"), digest(a="2", b="1"), digest(a="1"), digest(b="1"), digest(a="1", c="2")}) == 5


def test_a_checkpoint_is_hashed_again_once_it_was_touched(files, run, monkeypatch):
    with files.new_folder(run / "c") as draft:
        (draft / "weights").write_text("1")
    hashed, real = [], checked._digest_of_folder
    monkeypatch.setattr(checked, "_digest_of_folder", lambda folder: hashed.append(1) or real(folder))
    files.raise_unless_as_written(run / "c")
    assert hashed == []
    (run / "c" / "weights").write_text("22")
    with pytest.raises(RunError, match="c has changed since it was written"):
        files.raise_unless_as_written(run / "c")
    files.note(run / "c")
    files.raise_unless_as_written(run / "c")
    assert hashed == [1]


def test_a_folder_that_is_changed_in_its_place_is_checked_before_and_after_and_taken_as_it_is_meanwhile(files, run):
    with files.new_folder(run / "c") as draft:
        (draft / "weights").write_text("1")

    def change(to: str, dies: bool) -> None:
        with files.changing(run / "c"):
            (run / "c" / "weights").write_text(to)
            if dies:
                raise KeyboardInterrupt

    for said in ("2", "3"):  # the second process finds what the first one left
        with pytest.raises(KeyboardInterrupt):
            change(said, dies=True)
        files.raise_unless_as_written(run / "c")
    change("4", dies=False)
    files.raise_unless_as_written(run / "c")
    (run / "c" / "weights").write_text("damaged")
    with pytest.raises(RunError, match="c has changed since it was written"):
        change("5", dies=False)
    assert (run / "c" / "weights").read_text() == "damaged"


def test_a_line_is_added_after_what_is_whole(files, run):
    path = run / "incidents.jsonl"
    files.append_line(path, 1)
    path.write_bytes(path.read_bytes() + b'{"cut o')
    files.append_line(path, 2)
    assert path.read_bytes() == b"1\n2\n"
    assert files.lines(path, int) == [1, 2]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_measured_number_is_finite(number):
    assert Measured(kind="validation", spent=3, valid_rate=0.5).spent == 3
    with pytest.raises(ValidationError):
        Measured(kind="validation", spent=3, valid_rate=number)
