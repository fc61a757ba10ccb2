"""The clients' scripts say what they need, and the compatibility page is the one that their figures make."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from clients.__main__ import checkout
from clients.checks._checks import commit_of
from clients.scripts import read, scripts
from clients.table import write_table

ROOT = Path(__file__).parents[2]
FIGURES = json.loads((ROOT / "benchmarks/results/clients.json").read_text())["figures"]


def test_the_page_is_what_the_figures_say(tmp_path):
    write_table(FIGURES, scripts(), tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text() == (ROOT / "docs/compatibility.md").read_text()


def test_every_client_was_run_and_worked():
    assert set(FIGURES) <= set(scripts())
    assert len(FIGURES) >= 11
    for name, figures in FIGURES.items():
        assert figures["shown"], f"{name} shows nothing"
        assert not figures["failed"], f"{name}: {figures['failed']}"


@pytest.mark.parametrize("name", list(scripts()))
def test_what_a_script_takes_from_here_exists(name):
    tree = ast.parse(scripts()[name].path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("mapf_frozenlake", "envtuning")):
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                there = hasattr(module, alias.name) or find_spec(f"{node.module}.{alias.name}")
                assert there, f"{node.module} has no {alias.name}"


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("print()", "no script metadata"),
        ('# /// script\n# dependencies = []\n# [tool.client]\n# title = "X"\n# ///\n', "has no 'how'"),
    ],
)
def test_a_script_without_its_head_is_refused(tmp_path, head, message):
    path = tmp_path / "with_x.py"
    path.write_text(head)
    with pytest.raises(ValueError, match=message):
        read(path)


def test_a_client_without_a_package_is_fetched_at_its_commit(tmp_path, monkeypatch):
    monkeypatch.delenv("EPYMARL_SOURCE", raising=False)
    source = tmp_path / "source"
    git = ["git", "-C", str(source), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(source)], check=True)
    for text in ("old", "new"):
        (source / "file").write_text(text)
        subprocess.run([*git, "add", "file"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", text], check=True)
    wanted = subprocess.run([*git, "rev-parse", "HEAD~1"], check=True, capture_output=True, text=True).stdout.strip()
    script = replace(scripts()["epymarl"], source=str(source), commit=wanted)
    fetched = checkout(script, tmp_path)
    assert (fetched / "file").read_text() == "old"
    assert commit_of(str(fetched)) == wanted[:12]
    assert commit_of(str(tmp_path)) == "a copy of unknown version"
    (tmp_path / "COMMIT").write_text(wanted + "\n")
    assert commit_of(str(tmp_path)) == f"{wanted[:12]} (a copy)"
    monkeypatch.setenv("EPYMARL_SOURCE", str(source))
    assert checkout(script, tmp_path) == source
