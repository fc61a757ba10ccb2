"""The answers file: one JSON line per answer, written at once, so that no paid answer is lost."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.evaluation.forms import Answer, Form
from mapf_frozenlake.instance_set import InstanceSet

VERSION = 1
ANSWER = b'{"index": '  # the beginning of an answer's line


def digest_of(suite: InstanceSet) -> str:
    """Identifies the boards of a suite and their order: 16 hex digits."""
    joined = hashlib.sha256()
    for instance in suite:
        joined.update(instance.key())
    return joined.hexdigest()[:16]


class ReplyFile:
    """Holds the present answers and takes new ones: a line is on the disk before the next question.

    A last line that a kill cut off is dropped. Any other broken line is an error, and so is a file of another kind, suite,
    policy, prompt or setting; the file stays as it is.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        suite: InstanceSet,
        form: Form,
        name: str,
        first_prompt: str | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        self.count = len(suite)
        self.header = dict(settings or {}) | {
            "answers": VERSION,
            "suite": digest_of(suite),
            "instances": self.count,
            "form": form,
            "policy": name,
            "prompt": None if first_prompt is None else hashlib.sha256(first_prompt.encode()).hexdigest()[:16],
        }
        self.answers: dict[int, Answer] = {}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole, ends = self._read()
        self._file = open(self.path, "ab")  # noqa: SIM115 -- closed by close()
        self._file.truncate(whole)
        if not ends:  # an editor removed the end of the last line
            self._file.write(b"\n")
        if whole == 0:
            self._append(self.header)

    def add(self, index: int, answer: Answer) -> None:
        self._append({"index": index, "answer": answer, "check": _check(index, answer)})
        self.answers[index] = answer

    def close(self) -> None:
        self._file.close()

    def _append(self, line: dict[str, Any]) -> None:
        self._file.write(_line(line))
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> tuple[int, bool]:
        """Read the file; returns the length of its whole lines in bytes, and whether the last one ends with a line break."""
        # Line ends of any kind, because an editor may have changed them.
        lines = self._content().splitlines(keepends=True)
        if lines and self._is_cut_off(lines[-1], first=len(lines) == 1):
            lines.pop()
        for number, line in enumerate(lines, start=1):
            entry = self._parsed(line, number)
            if number == 1:
                self._check_header(entry)
            else:
                self._take(entry, number)
        return sum(map(len, lines)), not lines or lines[-1].endswith((b"\n", b"\r"))

    def _content(self) -> bytes:
        """Only for a regular file, because a pipe would never end."""
        try:
            if not self.path.exists() and not self.path.is_symlink():
                return b""
            if not self.path.is_file():
                raise LakeError(f"{self.path} is not a file: give another resume= path")
            return self.path.read_bytes()
        except OSError as error:
            raise LakeError(f"{self.path} cannot be read ({error.strerror}): give another resume= path") from error

    def _is_cut_off(self, line: bytes, first: bool) -> bool:
        """Whether this is the beginning of one of our lines, cut off by a kill."""
        if line.endswith((b"\n", b"\r")):
            return False
        if first:
            return _line(self.header).startswith(line) and line + b"\n" != _line(self.header)
        return ANSWER.startswith(line) or (line.startswith(ANSWER) and not _is_json(line))

    def _take(self, entry: dict[str, Any], number: int) -> None:
        index, answer = entry.get("index"), entry.get("answer")
        if not (type(index) is int and 0 <= index < self.count and _is_answer(answer)):
            raise self._fault(number, "no answer to an instance of this suite")
        if entry.get("check", _check(index, answer)) != _check(index, answer):
            raise self._fault(number, "not the answer that was written there")
        self.answers[index] = answer

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise self._fault(number, f"not JSON ({error.__class__.__name__})") from error
        if not isinstance(entry, dict):
            raise self._fault(number, "not a JSON object")
        return entry

    def _fault(self, number: int, why: str) -> LakeError:
        if number == 1:
            return LakeError(f"{self.path} holds no answers of an evaluation: give another resume= path")
        return LakeError(f"{self.path}, line {number}: {why}; delete the line")

    def _check_header(self, found: dict[str, Any]) -> None:
        if "answers" not in found:
            raise self._fault(1, "no header")
        for key, wanted in self.header.items():
            if found.get(key) != wanted:
                raise LakeError(
                    f"{self.path} holds answers with {key}={found.get(key)!r:.40}, this run has {wanted!r}: "
                    "give another resume= path"
                )


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, ensure_ascii=True).encode() + b"\n"


def _check(index: int, answer: Answer) -> int:
    """The checksum of a line, to detect a changed answer; older files have no checksums."""
    return zlib.crc32(json.dumps([index, answer]).encode())


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _is_answer(answer: Any) -> bool:
    if answer is None or isinstance(answer, str):
        return True
    return isinstance(answer, list) and all(
        isinstance(actions, list) and all(type(action) is int for action in actions) for actions in answer
    )
