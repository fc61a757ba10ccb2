"""The page on learners in closed form: its code runs, and its ranges are what is stored."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.closed_form.families import FORGETTING, TIME, WAIT

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "dynamics.md").read_text(encoding="utf-8")


def stored(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def test_the_example_runs(capsys):
    [block] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/dynamics.md", "exec"), {})
    assert re.fullmatch(r"uniform: \d\d\.\d %\nfailure-share: \d\d\.\d %\n", capsys.readouterr().out)


@pytest.mark.parametrize(("name", "within"), [("time", TIME), ("wait", WAIT), ("forgetting", FORGETTING)])
def test_the_ranges_hold_nine_tenths_of_what_was_measured_and_the_page_says_it(name, within):
    low, middle, high = stored("doses")["fits"][name]
    assert within[0] <= low < middle < high <= within[1]
    assert f"{middle} ({low} to {high})" in PAGE
