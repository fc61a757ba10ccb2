"""Writes files so that each is either complete or absent, even if the process dies.

A file is written under a temporary name, synced to the disk, and renamed; so is a folder. Lines are appended. Text after the
last line break is a line that was cut off, and readers ignore it. Every file that a run reads again is written here, except
transcripts: ``engineers.model.transcript`` writes them in the same way, because engineers also work without a run. Pages, event
files and trained models are not written here, because they can be made again.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock
from filelock import Timeout as LockTimeout

from engineers.shared import lines
from envtuning.errors import RunError

LOCK, OWNER = ".lock", ".owner"  # the lock, and the id of the process that holds it
TURN = ".turn"  # the lock that processes wait for
LOCK_PATIENCE = 0.5  # seconds; ``is_locked`` holds the lock for a moment
REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "the disk quota is used up: free some space",
    errno.EROFS: "the file system is read-only: mount it writable, or copy the run elsewhere",
    errno.EACCES: "this folder may not be written: change its permissions, or choose another --out",
    errno.EPERM: "this folder may not be written: change its permissions, or choose another --out",
    errno.ENOENT: "there is no such folder: make it first, or choose another place",
    errno.ENOTDIR: "a part of the path is a file: choose another place",
    errno.EISDIR: "this is a folder: give a file's name in it",
    errno.EEXIST: "there is a file where a folder should be: move it away, or choose another place",
    errno.ELOOP: "a link leads back to itself: remove it",
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one",
    errno.EIO: "the disk failed: copy the run to another one",
    errno.EFBIG: "no file may be that large here: raise the limit (ulimit -f), or choose another place",
}


class StorageError(RunError):
    """A file could not be written. Earlier files are complete, and nothing was overwritten."""


def in_a_sentence(error: OSError) -> str:
    """The operating system's error, with a remedy if one is known."""
    about = f"{error.filename}: " if error.filename is not None else ""
    remedy = f": {REMEDIES[error.errno]}" if error.errno in REMEDIES else ""
    return f"{about}{error.strerror or error}{remedy}"


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn a storage error into one sentence with a remedy. Other errors pass through."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # numpy counts the bytes itself, and its error says only that some were not written
            raise StorageError(f"{path} could not be written ({error}): {REMEDIES[errno.ENOSPC]}") from error
        if error.errno not in REMEDIES:
            raise
        raise StorageError(f"{path} could not be written ({error.strerror}): {REMEDIES[error.errno]}") from error


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # a folder cannot be opened there, and its entries are written with its files
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file(path: Path) -> None:
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def make_folder(folder: Path) -> Path:
    """Make the folder and sync its entry to the disk."""
    with storage_errors(folder):
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            _sync_folder(folder.parent)
    return folder


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to. If the block ends without an error, the new file replaces ``path`` in one step."""
    draft = path.with_name(f".{path.name}.draft")
    with storage_errors(path):
        draft.unlink(missing_ok=True)  # through a soft or hard link, somebody else's file would be overwritten
        try:
            yield draft
            _sync_file(draft)
            os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Like ``new_file`` for a folder; ``path`` must not exist yet."""
    draft = path.with_name(f".{path.name}.draft")
    with storage_errors(path):
        if draft.exists():
            shutil.rmtree(draft)
        draft.mkdir()
        try:
            yield draft
            for folder, _, files in os.walk(draft):
                for name in files:
                    _sync_file(Path(folder) / name)
                _sync_folder(Path(folder))
            os.rename(draft, path)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        _sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    with new_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    write_text(path, as_json(value))


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line and sync it to the disk."""
    with storage_errors(path):
        lines.append_line(path, json.dumps(value).encode())


def whole_lines(path: Path, text: str) -> list[str]:
    """The lines of a file that is appended to, given its text. A last line that was cut off is removed, for the next would be written behind it."""
    whole, _, cut = text.rpartition("\n")
    if cut:
        write_text(path, f"{whole}\n" if whole else "")
    return whole.split("\n") if whole else []


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """A whole JSON-lines file at once."""
    write_text(path, "".join(json.dumps(value) + "\n" for value in values))


def clear(folder: Path, keep: tuple[str, ...] = ()) -> None:
    """Remove everything in the folder except the names in ``keep``. An entry loses its name before it is removed, so nobody sees half of it."""
    with storage_errors(folder):
        for entry in sorted(folder.iterdir()):
            if entry.name in keep:
                continue
            if entry.is_dir():
                doomed = entry.with_name(f".{entry.name}.old")
                os.rename(entry, doomed)
                shutil.rmtree(doomed)
            else:
                entry.unlink()
        _sync_folder(folder)


def _lock_at(path: Path, timeout: float = -1) -> FileLock:
    """Raises ``RunError`` for anything but a file with one name, because opening a lock empties the file."""
    with suppress(FileNotFoundError):
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise RunError(f"{path} is a link, a pipe or a folder where a lock should be: remove it")
    return FileLock(path, timeout=timeout, thread_local=False)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock the folder for this process. The operating system releases the lock when the process ends, even if it is killed."""
    lock = _lock_at(folder / LOCK, timeout=LOCK_PATIENCE)
    with storage_errors(folder / LOCK):
        try:
            lock.acquire()
        except LockTimeout:  # an OSError, too
            raise RunError(
                f"{folder} is being worked on by process {_owner(folder)}: wait for it, or end it and try again"
            ) from None
    try:
        write_text(folder / OWNER, f"{os.getpid()}\n")
        yield
    finally:
        lock.release()


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """Let one process at a time work in this folder; the others wait, then see what it did."""
    turn = _lock_at(make_folder(folder) / TURN)
    with storage_errors(folder / TURN):
        turn.acquire()
    try:
        yield
    finally:
        turn.release()


def _owner(folder: Path) -> str:
    try:
        return (folder / OWNER).read_text(encoding="utf-8", errors="replace").strip()[:20] or "unknown"
    except OSError:
        return "unknown"


def is_locked(folder: Path) -> bool:
    """Whether a process works on this folder now."""
    if not (folder / LOCK).is_file():
        return False
    try:
        with _lock_at(folder / LOCK, timeout=0):
            return False
    except LockTimeout:
        return True
    except (OSError, RunError):  # somebody else's folder
        return False
