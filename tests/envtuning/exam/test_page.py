"""docs/exam.md says what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.lazily import needed

needed("torch", extra="exam")

from benchmarks import exam_ground  # noqa: E402
from benchmarks._record import RESULTS  # noqa: E402
from envtuning.exam.bounds import FOUND, OPEN_LOOPS, ORACLES  # noqa: E402
from envtuning.exam.families import DEVELOPMENT, DRAWN, HELD_OUT, named  # noqa: E402

STORED = json.loads((RESULTS / "exam_ground.json").read_text(encoding="utf-8"))["figures"]["families"]
PAGE = (Path(__file__).parents[3] / "docs" / "exam.md").read_text(encoding="utf-8")


def test_every_family_has_its_row():
    named = re.findall(r"^\| `([\w-]+)`", PAGE, re.MULTILINE)
    assert named[: len(DEVELOPMENT) + len(HELD_OUT)] == [family.name for family in (*DEVELOPMENT, *HELD_OUT)]
    assert f"`drawn-1` to `drawn-{DRAWN}`" in PAGE


def test_the_searches_are_as_large_as_it_says():
    assert f"the best of {len(OPEN_LOOPS)} schedules" in PAGE
    assert f"the best of {len(ORACLES)} rules" in PAGE


def test_the_bounds_are_the_stored_search():
    for found in STORED:
        rows, name = found["rows"], found["family"]["name"]
        assert exam_ground.line(found) in PAGE
        assert [str(arm) for arm in FOUND[name]] == [rows["open loop"]["arm"], rows["oracle"]["arm"]]
        for kind in ("open loop", "oracle"):
            assert rows[kind]["arm"] == found["searches"][kind][0]["arm"]
        assert found["family"] == named(name).model_dump(mode="json")
    assert {found["family"]["name"] for found in STORED} == FOUND.keys()


@pytest.mark.slow
def test_its_code_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("ENVTUNING_EXAM", str(tmp_path))
    as_env, by_hand = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(as_env, names)
    assert names["done"] is False
    *before, last = by_hand.strip().splitlines()
    exec("\n".join(before), names)
    assert 0.5 < eval(last, names) < 0.75  # the oracle's mean success
