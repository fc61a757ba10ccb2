"""A stored figure names the command and the commit that it can be made again by."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from benchmarks import _record, readme
from benchmarks.__main__ import commands

TELLS = "from benchmarks._record import _started\nprint(*_started()[1:])\n"


@pytest.mark.parametrize("stored", sorted(_record.RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_stored_command_names_a_program_that_there_is(stored):
    first, second, *rest = json.loads(stored.read_text(encoding="utf-8"))["command"].split()
    if first == "make":
        assert f"\n{second}:" in (_record.RESULTS.parents[1] / "Makefile").read_text(encoding="utf-8")
    else:
        assert (first, second) == ("python", "-m")
        program = rest[0]
        if importlib.util.find_spec(program) is None:  # of the file's commit
            assert re.search(rf"`{re.escape(program)}[ `]", readme.HEAD), "the page says which command does this today"
        elif program.startswith("benchmarks."):
            assert program.removeprefix("benchmarks.") in commands()


def test_the_command_is_what_was_started(tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "__main__.py").write_text(TELLS)
    paths = {"PYTHONPATH": f"{Path(_record.__file__).parents[1]}{os.pathsep}{tmp_path}"}
    asked = [sys.executable, "-m", "whole", "--n", "3"]
    assert subprocess.run(asked, env=paths, capture_output=True, text=True, check=True).stdout == "-m whole\n"
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", ModuleSpec("whole.part", None), raising=False)
    assert _record._started() == ["python", "-m", "whole.part"]
    monkeypatch.setattr(main, "__spec__", None)
    monkeypatch.setattr(sys, "argv", ["some/folder/alone.py", "--n", "3"])
    assert _record.conditions()["command"] == "python alone.py --n 3"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setattr(_record, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(_record, "REFUSED", tmp_path / "refused")
    monkeypatch.setattr(readme, "main", lambda: None)
    monkeypatch.delenv(_record.DIRTY, raising=False)
    return tmp_path


def test_figures_of_a_tree_that_is_not_committed_are_refused_and_kept_elsewhere(folders, monkeypatch):
    monkeypatch.setattr(_record, "_commit", lambda: "abc+")
    with pytest.raises(_record.NotCommitted, match=r"commit them, or set BENCHMARKS_DIRTY=1.*refused.some\.json"):
        _record.record("some", {"speed": 3})
    assert not (folders / "results").exists()
    assert json.loads((folders / "refused" / "some.json").read_text())["figures"] == {"speed": 3}
    monkeypatch.setenv(_record.DIRTY, "1")
    assert json.loads(_record.record("some", {"speed": 3}).read_text())["commit"] == "abc+"


def test_figures_of_a_commit_are_stored(folders, monkeypatch):
    monkeypatch.setattr(_record, "_commit", lambda: "abc")
    assert json.loads(_record.record("some", {"speed": 3}).read_text())["commit"] == "abc"
    assert not (folders / "refused").exists()


def test_a_changed_file_makes_the_commit_a_plus_and_a_result_does_not(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    for name in ("benchmarks/results/some.json", "benchmarks/code.py"):
        (tmp_path / name).write_text("1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    monkeypatch.setattr(_record, "__file__", str(tmp_path / "benchmarks" / "_record.py"))
    (tmp_path / "benchmarks" / "results" / "some.json").write_text("2\n")
    assert not _record._commit().endswith("+")
    (tmp_path / "benchmarks" / "code.py").write_text("2\n")
    assert _record._commit().endswith("+")
