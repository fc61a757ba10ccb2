"""docs/exam.md says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.lazily import needed

needed("torch", extra="exam")

from envtuning.exam.bounds import OPEN_LOOPS, ORACLES  # noqa: E402
from envtuning.exam.families import DEVELOPMENT, DRAWN, HELD_OUT  # noqa: E402

PAGE = (Path(__file__).parents[3] / "docs" / "exam.md").read_text(encoding="utf-8")


def test_every_family_has_its_row():
    named = re.findall(r"^\| `([\w-]+)`", PAGE, re.MULTILINE)
    assert named[: len(DEVELOPMENT) + len(HELD_OUT)] == [family.name for family in (*DEVELOPMENT, *HELD_OUT)]
    assert f"`drawn-1` to `drawn-{DRAWN}`" in PAGE


def test_the_searches_are_as_large_as_it_says():
    assert f"the best of {len(OPEN_LOOPS)} schedules" in PAGE
    assert f"the best of {len(ORACLES)} rules" in PAGE


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
