"""What the site shows is there: every page has a place, every public name is in the reference, the notebook runs.

That the site builds, with every link and anchor, is checked by `make docs`."""

from __future__ import annotations

import re
import resource
from importlib import import_module
from itertools import groupby
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "first_lake.ipynb"


def test_every_page_has_a_place_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    missing = [page for page in pages if f": {page}\n" not in navigation]
    assert not missing, f"mkdocs.yml's nav has no line for {', '.join(missing)}"


@pytest.mark.parametrize("package", ["mapf_frozenlake", "engineers", "envtuning"])
def test_every_public_name_is_in_the_reference(package):
    page = (ROOT / f"docs/reference/{package}.md").read_text(encoding="utf-8")
    missing = [name for name in import_module(package).__all__ if not re.search(rf"\b{name}\b", page)]
    assert not missing, f"docs/reference/{package}.md does not name {', '.join(missing)}"


@pytest.mark.parametrize("package", ["mapf_frozenlake", "engineers", "envtuning"])
def test_completion_finds_every_public_name(package):
    module = import_module(package)
    assert {*module.__all__, "__name__"} <= set(dir(module))


SHORT = {f"stages.{number}.budget": 4_000 for number in range(4)} | {"suites.validation_per_slice": 10}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [SHORT, pytest.param({}, marks=pytest.mark.prove)], ids=["short", "as it stands"])
def test_the_notebook_runs(tmp_path, changes, monkeypatch):
    """All cells run, one after the other, and print what the stored notebook shows; pictures and times are not compared."""
    monkeypatch.setenv("MAPF_FROZENLAKE_QUIET", "1")  # on a fresh machine the first cell compiles, and would say so
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    [training] = [cell for cell in fresh.cells if "with_rounds(4)" in cell.source]
    training.source = training.source.replace("changes={", f"changes={changes} | {{")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    NotebookClient(fresh, timeout=280, resources={"metadata": {"path": str(tmp_path)}}).execute()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} CPU seconds")
    assert (tmp_path / "first-lake.html").stat().st_size > 10_000
    for was, now in zip(stored.cells, fresh.cells, strict=True):
        assert kinds(now) == kinds(was), now.source
        if was.cell_type == "code" and "varies" not in was.metadata.get("tags", ()):
            assert printed(now) == printed(was), now.source


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def kinds(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell shows, in order; a stream may arrive in several pieces."""
    return [kind for kind, _ in groupby(output.output_type for output in cell.get("outputs", ()))]
