"""Pytest in a copy of the project, forked from a process that has the heavy libraries loaded already.

Most of what a few test files cost is the import of torch, transformers, Ray or Gymnasium; a fork has them for nothing. The
packages whose faults are looked for are imported by each fork anew.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

# Third parties, and our one package that is never changed here.
LOADED = (
    "numpy", "pydantic", "gymnasium", "pettingzoo", "hypothesis", "rich", "yaml", "typer",
    "torch", "transformers", "trl", "datasets", "stable_baselines3", "mapf_frozenlake",
)  # fmt: skip
TIMEOUT = 3600  # seconds; a mutant that hangs a test is killed by that test's own limit long before


class Forked:
    """A copy of the project in ``folder``, and a process that is ready to run its tests. One per process."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.copy = folder / "copy"
        shutil.copytree(root, self.copy, ignore=lambda at, names: _not_copied(Path(at) == root, names))
        self.said = folder / "said.txt"
        os.environ |= {"PYTHONPATH": str(self.copy), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.copy))
        os.chdir(self.copy)
        for name in LOADED:
            if importlib.util.find_spec(name):
                importlib.import_module(name)

    def failing(self, tests: Sequence[str], without: Sequence[str] = ()) -> str | None:
        """The first of these tests that fails; None where all pass."""
        words = ["-x", "-q", "-rfE", "-p", "no:cacheprovider", *tests]
        code = self._ended(words + [word for test in without for word in ("--deselect", test)])
        said = self.said.read_text(encoding="utf-8", errors="replace")
        if code == pytest.ExitCode.OK:
            return None
        if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(f"pytest {' '.join(words)} ended with {code}: {said[-2000:]}")
        named = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said, re.MULTILINE)
        return named[1] if named else "pytest itself"

    def _ended(self, words: list[str]) -> int:
        child = os.fork()
        if child == 0:
            os.setsid()
            signal.alarm(TIMEOUT)
            handle = os.open(self.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            try:
                code = int(pytest.main(words))
                sys.stdout.flush()
            except BaseException:
                code = int(pytest.ExitCode.INTERNAL_ERROR)
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what the tests left running
        return code


def _not_copied(top: bool, names: list[str]) -> set[str]:
    """What no test reads: caches, environments, and at the top the runs of whoever works here."""
    return {name for name in names if name == "__pycache__" or (top and (name.startswith(".") or name == "runs"))}
