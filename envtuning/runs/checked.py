"""Protects a run's files against accidents: each file that a later step reads has a checksum, which is checked on reading.

``RUN/checksums.json`` has the SHA-256 of every complete file, and one for each checkpoint's folder. A checksum is written before
its file gets its name, so a process that dies in between leaves a checksum without a file, and the file is written again. While a
folder is changed in place, it has no checksum. A run without ``checksums.json`` is damaged. This does not protect against an
attacker, who can change a file and its checksum.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from engineers.knobs import as_text
from engineers.shared import untrusted
from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable
from envtuning import atomic
from envtuning.errors import RunError

NAME = "checksums.json"
REMEDY = "restore it from a copy, or remove this run and start again"

T = TypeVar("T")
Signature = tuple[tuple[str, int, int, int], ...]
TABLE = TypeAdapter(dict[str, list[str]])


def damaged(path: Path, why: object) -> RunError:
    """The error for a damaged file of a run; ``why`` follows the file's name."""
    return RunError(f"{path} {why}: {REMEDY}")


def raise_on_links_out(run: Path) -> None:
    """Raises ``RunError`` for a link that leads out of the run's folder: writing through it would change somebody else's file."""
    _raise_on_link_out_of(
        run, (os.path.join(at, name) for at, folders, files in os.walk(run) for name in (*folders, *files))
    )


def raise_on_links_to_runs(out: Path) -> None:
    """The same for a folder that holds runs, ``ARM/seedN``. The files of each run are checked when it is opened."""
    _raise_on_link_out_of(out, [*map(str, out.glob("*")), *map(str, out.glob("*/*"))])


def _raise_on_link_out_of(folder: Path, paths: Iterable[str]) -> None:
    home = os.path.realpath(folder)
    for path in paths:
        if os.path.islink(path) and os.path.commonpath((home, end := os.path.realpath(path))) != home:
            raise RunError(f"{path} is a link to {end}, outside of the run: remove the link, or copy what it leads to")


class Files:
    """A run's files. The table of checksums is read once. Only the holder of the run's lock may write."""

    def __init__(self, root: Path) -> None:
        self.root, self.table = root, root / NAME
        self.sums: dict[str, list[str]] = {}
        self._lines: dict[str, str] = {}  # the lines of the table's file
        self._hashed: dict[Path, tuple[Signature, str]] = {}  # hashed folders, with their signatures at that time
        self._read_table()

    @classmethod
    def begin(cls, root: Path) -> Files:
        """The files of a new run's folder."""
        if not (root / NAME).exists():
            atomic.write_text(root / NAME, "{}\n")
        return cls(root)

    def is_current(self) -> bool:
        """Whether the table has not changed since it was read."""
        return self._stamp == _stamp(self.table)

    # Writing

    def write_text(self, path: Path, text: str) -> None:
        with self.new_file(path) as draft:
            draft.write_text(text, encoding="utf-8")

    def write_record(self, path: Path, record: BaseModel) -> None:
        self.write_text(path, as_text(record) + "\n")

    def replace_record(self, path: Path, record: BaseModel) -> None:
        """Write a record in place of a file that has a checksum. If the process dies meanwhile, the old or the new one is there."""
        text = as_text(record) + "\n"
        new = hashlib.sha256(text.encode()).hexdigest()
        self._note({path: list(dict.fromkeys((self.digest_of(path), new)))})
        atomic.write_text(path, text)
        self._note({path: [new]})

    def write_json(self, path: Path, value: Any) -> None:
        self.write_text(path, atomic.as_json(value))

    @contextmanager
    def new_file(self, path: Path) -> Iterator[Path]:
        """``atomic.new_file`` with a checksum."""
        with atomic.new_file(path) as draft:
            yield draft
            self._note({path: [_digest_of_file(draft)]})

    @contextmanager
    def new_folder(self, path: Path) -> Iterator[Path]:
        """``atomic.new_folder`` with a checksum of all that is in it."""
        with atomic.new_folder(path) as draft:
            yield draft
            digest = _digest_of_folder(draft)
            self._note({path: [digest]})
        self._hashed[path] = _signature(path), digest

    def note(self, path: Path) -> None:
        """Note the checksum of a complete file or folder. If it does not exist, do nothing."""
        if path.exists():
            self._note({path: [self.digest_of(path)]})

    @contextmanager
    def changing(self, path: Path) -> Iterator[None]:
        """Use this while a folder is changed in place. If the process dies meanwhile, the folder is accepted as it is found."""
        self.raise_unless_as_written(path)
        self._note({path: []})
        yield
        self.note(path)

    def note_copies(self, source: Files, copies: Mapping[Path, Path]) -> None:
        """Note the checksums of files and folders that are copied from another run, after checking the originals."""
        for original in copies:
            source.raise_unless_as_written(original)
        self._note({copy: [source.digest_of(original)] for original, copy in copies.items()})

    def append_line(self, path: Path, value: Any) -> None:
        """``atomic.append_line`` to a file that is complete after every line."""
        before = path.read_bytes() if path.exists() else b""
        whole = before[: before.rfind(b"\n") + 1]  # without a last line that was cut off
        after = whole + json.dumps(value).encode() + b"\n"
        self._note({path: [hashlib.sha256(state).hexdigest() for state in dict.fromkeys((whole, after))]})
        if whole != before:
            atomic.write_text(path, whole.decode())
        atomic.append_line(path, value)

    def _note(self, digests: Mapping[Path, list[str]]) -> None:
        new = {str(path.relative_to(self.root)): found for path, found in digests.items()}
        if any(self.sums.get(name) != found for name, found in new.items()):
            self.sums |= new
            self._lines |= _lines_of(new)
            lines = ",\n".join(self._lines[name] for name in sorted(self._lines))
            atomic.write_text(self.table, f"{{\n{lines}\n}}\n")
            self._stamp = _stamp(self.table)

    # Reading

    def read(self, path: Path) -> bytes | None:
        """The file's bytes; None if there is no file. Raises ``RunError`` if they differ from what was written."""
        found = read_unchecked(path)
        if found is not None:
            whole = found[: found.rfind(b"\n") + 1] if path.suffix == ".jsonl" else found
            self._compare(path, [hashlib.sha256(state).hexdigest() for state in {found, whole}])
        return found

    def value(self, path: Path, kind: type[T], context: object = None) -> T | None:
        """The file's content as a record or a JSON value of this type; None if there is no file. ``context`` is pydantic's."""
        found = self.read(path)
        return None if found is None else parsed(path, found, kind, context)

    def lines(self, path: Path, kind: Any, *, whole: bool = True) -> list[Any]:
        """Every complete line of a JSON-lines file, oldest first.

        ``kind`` is the type of a line. ``whole`` means that nothing more is appended, so the file has a checksum.
        """
        found = (self.read if whole else read_unchecked)(path) or b""
        try:
            lines = untrusted.parsed_lines(found)
        except NotReadable as error:
            raise damaged(path, error) from error
        shaped(path, lines, list[kind])
        return lines

    def raise_unless_as_written(self, path: Path) -> None:
        """Raises ``RunError`` for a file or a checkpoint's folder that has changed since it was written."""
        try:
            digest = self.digest_of(path)
        except OSError as error:
            raise RunError(f"{path} cannot be read ({error.strerror}): fix this, or {REMEDY}") from error
        self._compare(path, [digest])

    def digest_of(self, path: Path) -> str:
        """SHA-256 of a file, or of the names and contents of all files in a folder. A folder's is computed again only if a file was touched."""
        if not path.is_dir():
            return _digest_of_file(path)
        signature = _signature(path)
        known = self._hashed.get(path)
        if known is None or known[0] != signature:
            known = self._hashed[path] = signature, _digest_of_folder(path)
        return known[1]

    def _compare(self, path: Path, digests: list[str]) -> None:
        name = str(path.relative_to(self.root))
        if not self._allows(name, digests) and not self.is_current():
            self._read_table()  # another process has written the file since
        if self._allows(name, digests):
            return
        if name not in self.sums:
            raise RunError(f"{path} is not in {self.table}, so it cannot be checked: {REMEDY}")
        raise RunError(
            f"{path} has changed since it was written: it differs from its checksum in {self.table}. Restore it from "
            "a copy, or remove this run and start again"
        )

    def _allows(self, name: str, digests: list[str]) -> bool:
        expected = self.sums.get(name)
        return expected is not None and (not expected or bool(set(digests) & set(expected)))

    def _read_table(self) -> None:
        self._stamp = _stamp(self.table)
        found = read_unchecked(self.table)
        if found is None:
            raise damaged(self.table, "is missing, so nothing in this run can be checked")
        try:
            self.sums = TABLE.validate_python(untrusted.parsed(found or b"{}"))
        except ValidationError:
            raise damaged(self.table, "is damaged (no table of checksums)") from None
        except NotReadable as error:
            raise damaged(self.table, error) from error
        self._lines = _lines_of(self.sums)


def read_unchecked(path: Path) -> bytes | None:
    """The bytes of a file without the check, for example while it is still being written; None if it does not exist."""
    try:
        return untrusted.read_bytes(path)
    except NotReadable as error:
        raise damaged(path, error) from error


def parsed(path: Path, written: bytes, kind: type[T], context: object = None) -> T:
    """A file's bytes as a record or a value of that type; ``context`` is pydantic's."""
    try:
        value = untrusted.parsed(written)  # this has bounds; pydantic's JSON parser has none
    except NotReadable as error:
        raise damaged(path, error) from error
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return shaped(path, value, kind)
    try:
        return kind.model_validate_json(written, context=context)
    except ValidationError as error:
        raise damaged(path, f"is damaged or from another version ({in_sentences(error)})") from error


def shaped(path: Path, value: Any, kind: type[T]) -> T:
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise damaged(path, f"is damaged ({in_sentences(error):.300})") from error


def figures(path: Path, kind: type[T]) -> T | None:
    """A command's cached result as a value of that type; None if there is none.

    Such files have no checksum. Raises ``RunError`` for a damaged one.
    """
    try:
        found = untrusted.read_bytes(path)
        if found is None:
            return None
        return TypeAdapter(kind).validate_python(untrusted.parsed(found))
    except NotReadable as error:
        raise RunError(f"{path} {error}: remove it, and it is made again") from error
    except ValidationError as error:
        raise RunError(f"{path} is damaged ({in_sentences(error)}): remove it, and it is made again") from error


def _lines_of(sums: Mapping[str, list[str]]) -> dict[str, str]:
    """The line of each entry in the table's file."""
    return {name: f" {json.dumps(name)}: {json.dumps(digests)}" for name, digests in sums.items()}


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_size, now.st_mtime_ns, now.st_ino


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
