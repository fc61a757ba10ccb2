"""The page on learners in closed form: its code runs, its table and its ranges are what is stored."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from envtuning.dynamics.families import FAMILIES, FORGETTING, TIME, WAIT
from tests.lazily import Lazy

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "dynamics.md").read_text(encoding="utf-8")
dynamics = Lazy("benchmarks.dynamics")


def stored(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def test_the_example_runs(capsys):
    [block] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/dynamics.md", "exec"), {})
    assert re.fullmatch(r"uniform: \d\d\.\d %\nfailure-share: \d\d\.\d %\n", capsys.readouterr().out)


def test_the_table_is_what_is_stored():
    studies = stored("dynamics")["studies"]
    assert {study["setting"].removesuffix(", outside") for study in studies} == set(FAMILIES)
    for study in studies:
        assert dynamics.line(study) in PAGE, study["setting"]


def test_on_the_null_reading_and_knowing_are_within_a_point_of_the_best_open_loop():
    [null] = [study for study in stored("dynamics")["studies"] if study["setting"] == "null"]
    for arm in ("full information", "attainable"):
        assert abs(null["rows"][arm]["over_best_open_loop"]["mean"]) < 0.01


@pytest.mark.parametrize(("name", "within"), [("time", TIME), ("wait", WAIT), ("forgetting", FORGETTING)])
def test_the_ranges_hold_nine_tenths_of_what_was_measured_and_the_page_says_it(name, within):
    low, middle, high = stored("doses")["fits"][name]
    assert within[0] <= low < middle < high <= within[1]
    assert f"{middle} ({low} to {high})" in PAGE


def test_a_run_takes_less_than_five_milliseconds():
    milliseconds = stored("dynamics")["milliseconds"]
    assert milliseconds["a run"] < 5
    assert 1000 / milliseconds["a run of a thousand at once"] > 5000
