"""Files are whole or absent: drafts, renames, cut-off lines, locks, and what the disk says in words."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal

import pytest

from engineers.shared import untrusted
from envtuning import atomic
from envtuning.atomic import StorageError
from envtuning.errors import RunError


def test_a_file_is_replaced_at_once_and_a_failed_draft_leaves_the_old_one(tmp_path):
    path = tmp_path / "value.json"
    atomic.write_json(path, {"n": 1})

    def fail_half_way() -> None:
        with atomic.new_file(path) as draft:
            draft.write_text('{"n": ')
            raise RuntimeError("died here")

    with pytest.raises(RuntimeError, match="died here"):
        fail_half_way()
    assert json.loads(path.read_text()) == {"n": 1}
    assert os.listdir(tmp_path) == ["value.json"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "checkpoint"

    def fail_half_way() -> None:
        with atomic.new_folder(path) as draft:
            (draft / "weights").write_bytes(b"half")
            raise RuntimeError("died here")

    with pytest.raises(RuntimeError, match="died here"):
        fail_half_way()
    assert not path.exists()
    with atomic.new_folder(path) as draft:
        assert list(draft.iterdir()) == []  # what the dead attempt left is gone
        (draft / "weights").write_bytes(b"whole")
    assert (path / "weights").read_bytes() == b"whole"


def test_a_line_that_was_cut_off_is_not_read(tmp_path):
    path = tmp_path / "metrics.jsonl"
    atomic.append_line(path, {"n": 1})
    atomic.append_line(path, {"n": 2})
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        assert untrusted.parsed_lines(path.read_bytes()) == [{"n": 1}, {"n": 2}][: whole[:cut].count(b"\n")]


def test_clear_keeps_what_it_is_told_and_finishes_what_a_killed_clear_began(tmp_path):
    for name in ("checkpoint", ".checkpoint.old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_bytes(b"x")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "metrics.jsonl").write_text("{}\n")
    atomic.clear(tmp_path, keep=("config.json",))
    assert os.listdir(tmp_path) == ["config.json"]


def _hold(folder, ready) -> None:
    with atomic.locked(folder):
        ready.set()
        signal.pause()


def test_a_run_is_locked_while_its_process_lives_and_free_once_it_is_killed(tmp_path):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, ready))
    holder.start()
    assert ready.wait(10)
    assert atomic.is_locked(tmp_path)
    with pytest.raises(RunError, match=str(holder.pid)), atomic.locked(tmp_path):
        pass
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    assert not atomic.is_locked(tmp_path)
    with atomic.locked(tmp_path):
        assert atomic.is_locked(tmp_path)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(errno.ENOSPC, "free some space"), (errno.EROFS, "mount it writable"), (errno.EACCES, "permissions")],
)
def test_a_disk_that_refuses_is_told_with_path_and_remedy(tmp_path, monkeypatch, code, remedy):
    def refuse(*_):
        raise OSError(code, os.strerror(code))

    atomic.write_json(tmp_path / "value.json", 1)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError, match=rf"value\.json could not be written.*{remedy}"):
        atomic.write_json(tmp_path / "value.json", 2)
    assert json.loads((tmp_path / "value.json").read_text()) == 1
    assert os.listdir(tmp_path) == ["value.json"]


def test_an_error_that_is_not_the_disks_passes_through(tmp_path):
    with pytest.raises(ConnectionResetError), atomic.new_folder(tmp_path / "checkpoint"):
        raise ConnectionResetError(errno.ECONNRESET, "a peer went away")


@pytest.mark.parametrize("kind", ["soft link", "hard link", "pipe", "folder"])
def test_what_is_no_lock_of_ours_is_neither_emptied_nor_waited_for(tmp_path, kind):
    outside, run = tmp_path / "outside", tmp_path / "run"
    outside.write_text("somebody else's", encoding="utf-8")
    run.mkdir()
    make = {
        "soft link": lambda at: at.symlink_to(outside),
        "hard link": lambda at: os.link(outside, at),
        "pipe": os.mkfifo,
        "folder": os.mkdir,
    }
    for name, lock in ((atomic.LOCK, atomic.locked), (atomic.TURN, atomic.in_turn)):
        make[kind](run / name)
        refused = f"{name} is a link, a pipe or a folder where a lock should be: remove it"
        with pytest.raises(RunError, match=refused), lock(run):
            pytest.fail("it was locked")
    assert not atomic.is_locked(run)
    assert outside.read_text(encoding="utf-8") == "somebody else's"
