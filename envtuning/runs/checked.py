"""Protects a run's files against accidents: each file that a later step reads has a checksum, which is checked on reading.

``RUN/checksums.json`` has the SHA-256 of every file that is whole, and of every checkpoint's folder as one. A checksum is noted
before its file takes its name, so a process that dies between the two leaves at most a file that is still to be written.
A folder that is changed in its place has none meanwhile.
A run without ``checksums.json`` is damaged. This does not protect against an attacker, who
can change a file and its checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from engineers import untrusted
from engineers.knobs import as_text
from engineers.sentences import in_sentences
from engineers.untrusted import NotReadable
from envtuning.runs import atomic

NAME = "checksums.json"
DEEPEST = 4  # folders between a run's and its deepest checked file
REMEDY = "restore it from a copy, or remove this run and start again"

Signature = tuple[tuple[str, int, int, int], ...]
_hashed: dict[Path, tuple[Signature, str]] = {}  # folders that this process has hashed, as they were then


_TABLE = TypeAdapter(dict[str, list[str]])


class RunError(RuntimeError):
    """The folder is not what the command needs; the message says what to do."""


def damaged(path: Path, why: object) -> RunError:
    """What is raised for a file of a run that cannot be what was written there; ``why`` follows its name."""
    return RunError(f"{path} {why}: {REMEDY}")


def raise_on_links_out(run: Path) -> None:
    """Raises ``RunError`` for a link in a run's folder that leads out of it: what is written there would change somebody's file."""
    home = os.path.realpath(run)
    for folder, folders, files in os.walk(home):
        for path in (os.path.join(folder, name) for name in (*folders, *files)):
            if os.path.islink(path) and os.path.commonpath((home, end := os.path.realpath(path))) != home:
                raise RunError(
                    f"{path} is a link to {end}, outside of the run: remove the link, or copy what it leads to"
                )


def begin(run: Path) -> None:
    """From here on the run's files are checked."""
    if not (run / NAME).exists():
        atomic.write_json(run / NAME, {})


# Writing


def write_text(path: Path, text: str) -> None:
    with new_file(path) as draft:
        draft.write_text(text, encoding="utf-8")


def write_record(path: Path, record: BaseModel) -> None:
    write_text(path, as_text(record) + "\n")


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """``atomic.new_file`` with a checksum."""
    with atomic.new_file(path) as draft:
        yield draft
        _note(path, [_digest_of_file(draft)])


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """``atomic.new_folder`` with a checksum of all that is in it."""
    with atomic.new_folder(path) as draft:
        yield draft
        digest = _digest_of_folder(draft)
        _note(path, [digest])
    _hashed[path] = _signature(path), digest


def note(path: Path) -> None:
    """The file or folder is whole from now on; one that is not there is passed over."""
    if path.is_dir():
        _note(path, [digest_of(path)])
    elif path.exists():
        _note(path, [_digest_of_file(path)])


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """For a change of a whole folder in its place. One whose process died in the middle is taken as it is found."""
    raise_unless_as_written(path)
    _note(path, [])
    yield
    note(path)


def note_copies(copies: Mapping[Path, Path]) -> None:
    """For files and folders that are being copied from another run: what they are copied from is checked first."""
    for original, copy in copies.items():
        raise_unless_as_written(original)
        _note(copy, [digest_of(original) if original.is_dir() else _digest_of_file(original)])


def append_line(path: Path, value: Any) -> None:
    """``atomic.append_line`` to a file that is whole after every line."""
    before = path.read_bytes() if path.exists() else b""
    whole = before[: before.rfind(b"\n") + 1]  # without a line that was cut off
    after = whole + json.dumps(value).encode() + b"\n"
    _note(path, [hashlib.sha256(state).hexdigest() for state in dict.fromkeys((whole, after))])
    if whole != before:
        atomic.write_text(path, whole.decode())
    atomic.append_line(path, value)


def _note(path: Path, digests: list[str]) -> None:
    run = _run_of(path)
    if run is not None:
        listed = _listed(run)
        name = str(path.relative_to(run))
        if listed.get(name) != digests:
            atomic.write_json(run / NAME, dict(sorted((listed | {name: digests}).items())))


# Reading


def read_bytes(path: Path) -> bytes | None:
    """What was written there; None where there is nothing. Raises ``RunError`` for whatever else is found."""
    found = read_unchecked(path)
    if found is not None:
        whole = found[: found.rfind(b"\n") + 1] if path.suffix == ".jsonl" else found
        _compare(path, [hashlib.sha256(state).hexdigest() for state in {found, whole}])
    return found


def read_unchecked(path: Path) -> bytes | None:
    """The same for a file that is still being written to."""
    try:
        return untrusted.read_bytes(path)
    except NotReadable as error:
        raise damaged(path, error) from error


def figures(path: Path, kind: Any) -> Any:
    """What a command left to be spared the same work again, as a value of that type; None where there is nothing.

    Such a file has no checksum. Raises ``RunError`` for a damaged one.
    """
    try:
        found = untrusted.read_bytes(path)
        if found is None:
            return None
        value = untrusted.parsed_lines(found) if path.suffix == ".jsonl" else untrusted.parsed(found)
        return TypeAdapter(kind).validate_python(value)
    except NotReadable as error:
        raise RunError(f"{path} {error}: remove it, and it is made again") from error
    except ValidationError as error:
        raise RunError(f"{path} is damaged ({in_sentences(error)}): remove it, and it is made again") from error


def raise_unless_as_written(path: Path) -> None:
    """Raises ``RunError`` for a file or a checkpoint's folder that has changed since; hashed once unless touched."""
    try:
        digest = digest_of(path) if path.is_dir() else _digest_of_file(path)
    except OSError as error:
        raise RunError(f"{path} cannot be read ({error.strerror}): mend that, or {REMEDY}") from error
    _compare(path, [digest])


def value(path: Path) -> Any:
    """The JSON value that was written there; None where there is nothing."""
    found = read_bytes(path)
    try:
        return None if found is None else untrusted.parsed(found)
    except NotReadable as error:
        raise damaged(path, error) from error


def lines(path: Path, *, checked: bool = True) -> list[Any]:
    """Every whole line of a JSON-lines file, oldest first; a last line that was cut off is left out."""
    found = (read_bytes if checked else read_unchecked)(path) or b""
    try:
        return untrusted.parsed_lines(found)
    except NotReadable as error:
        raise damaged(path, error) from error


def _compare(path: Path, digests: list[str]) -> None:
    run = _run_of(path)
    if run is None:
        return
    expected = _listed(run).get(str(path.relative_to(run)))
    if expected is None:
        raise RunError(f"{path} is not in {run / NAME}, so it cannot be checked: {REMEDY}")
    if expected and not set(digests) & set(expected):
        raise RunError(
            f"{path} is not what was written there: it differs from its checksum in {run / NAME}. Restore it from a copy, "
            "or remove this run and start again"
        )


def _run_of(path: Path) -> Path | None:
    """The run that the path lies in, where its files are checked."""
    return next((parent for parent in list(path.parents)[:DEEPEST] if (parent / NAME).exists()), None)


def _listed(run: Path) -> dict[str, list[str]]:
    found = read_unchecked(run / NAME)
    try:
        return _TABLE.validate_python(untrusted.parsed(found or b"{}"))
    except ValidationError:
        raise damaged(run / NAME, "is damaged (no table of checksums)") from None
    except NotReadable as error:
        raise damaged(run / NAME, error) from error


# Hashing


def digest_of(folder: Path) -> str:
    """SHA-256 of the names and contents of all files in the folder; not computed again while nothing was touched."""
    signature = _signature(folder)
    known = _hashed.get(folder)
    if known is None or known[0] != signature:
        known = _hashed[folder] = signature, _digest_of_folder(folder)
    return known[1]


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir())


def _signature(folder: Path) -> Signature:
    states = [(path, os.stat(path)) for path in _files(folder)]
    return tuple((str(path.relative_to(folder)), now.st_size, now.st_mtime_ns, now.st_ino) for path, now in states)


def _digest_of_folder(folder: Path) -> str:
    whole = hashlib.sha256()
    for path in _files(folder):
        whole.update(f"{path.relative_to(folder)}\0{_digest_of_file(path)}\n".encode())
    return whole.hexdigest()


def _digest_of_file(path: Path) -> str:
    if not stat.S_ISREG(path.stat().st_mode):
        raise RunError(f"{path} is not a file: {REMEDY}")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
