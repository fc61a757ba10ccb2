"""What ``python -m benchmarks.bfcl`` prints: every row that is stored, and its figures."""

import importlib
import json

import pytest

from benchmarks._record import RESULTS
from benchmarks.bfcl.__main__ import TABLES

STORED = {
    "baselines": ("repeat one call  0.825 (0.770–0.875)", "generous_progress"),
    "actionability": ("ours, by names", "97.8 (96.2–99.1)"),
    "four-stages": ("all tasks, no hints", "seconds of CPU"),
    "language": ("groups with variance", "CPU seconds:"),
    "ablations": ("untrained", "four stages minus no KL"),
}


@pytest.mark.parametrize("name", STORED)
def test_a_table_has_every_row_of_the_stored_figures(name):
    module = importlib.import_module(f"benchmarks.bfcl.{name.replace('-', '_')}")
    figures = json.loads((RESULTS / f"bfcl_{name.replace('-', '_')}_v4.json").read_text(encoding="utf-8"))["figures"]
    printed = module.table(figures)
    for said in STORED[name]:
        assert said in printed
    rows = (
        figures.get("splits", {}).get("base")
        or figures.get("silent harmful faults")
        or figures.get("test")
        or figures.get("tests")
        or {}
    )
    rows = [*rows, *(stage["name"] for stage in figures.get("stages", ()))]
    assert rows
    assert all(any(line.startswith(row) for line in printed.splitlines()) for row in rows)


def test_every_table_has_a_module():
    for name in TABLES:
        assert callable(importlib.import_module(f"benchmarks.bfcl.{name.replace('-', '_')}").run)
