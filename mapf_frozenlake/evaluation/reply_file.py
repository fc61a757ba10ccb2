"""The answers file: one JSON line per answer, appended as it comes, so that nothing paid for is lost."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.evaluation.forms import Answer, Form
from mapf_frozenlake.instance_set import InstanceSet

VERSION = 1


def digest_of(suite: InstanceSet) -> str:
    """Names the boards of a suite and their order: 16 hex digits."""
    joined = hashlib.sha256()
    for instance in suite:
        joined.update(instance.key())
    return joined.hexdigest()[:16]


class ReplyFile:
    """Holds the answers that are there, and takes new ones: a line is on the disk before the next answer is asked for.

    A last line that was cut off by a kill is dropped; any other broken line, or the file of another suite, policy,
    prompt or setting, is an error.
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
        whole = self._read()
        self._file = open(self.path, "ab")  # noqa: SIM115 -- closed by close()
        self._file.truncate(whole)
        if whole == 0:
            self._append(self.header)

    def add(self, index: int, answer: Answer) -> None:
        self._append({"index": index, "answer": answer})
        self.answers[index] = answer

    def close(self) -> None:
        self._file.close()

    def _append(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, ensure_ascii=True).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> int:
        """Take in what is there; the length of its whole lines in bytes."""
        if not self.path.exists():
            return 0
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        lines = data[:whole].splitlines()
        if lines:
            self._check_header(self._parsed(lines[0], 1))
        for number, line in enumerate(lines[1:], start=2):
            entry = self._parsed(line, number)
            index, answer = entry.get("index"), entry.get("answer")
            if not (type(index) is int and 0 <= index < self.count and _is_answer(answer)):
                raise LakeError(f"{self.path}, line {number}: no answer to an instance of this suite; delete the line")
            self.answers[index] = answer
        return whole

    def _parsed(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LakeError(
                f"{self.path}, line {number}: not JSON ({error.__class__.__name__}); delete the line"
            ) from error
        if not isinstance(entry, dict):
            raise LakeError(f"{self.path}, line {number}: not a JSON object; delete the line")
        return entry

    def _check_header(self, found: dict[str, Any]) -> None:
        for key, wanted in self.header.items():
            if found.get(key) != wanted:
                raise LakeError(
                    f"{self.path} holds answers with {key}={found.get(key)!r:.40}, this run has {wanted!r}: "
                    "give another resume= path"
                )


def _is_answer(answer: Any) -> bool:
    if answer is None or isinstance(answer, str):
        return True
    return isinstance(answer, list) and all(
        isinstance(actions, list) and all(type(action) is int for action in actions) for actions in answer
    )
