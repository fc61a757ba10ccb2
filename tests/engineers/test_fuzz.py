"""Whatever a model writes, reading it ends in a guarded config or a ReplyError that says where and why."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_five_thousand_replies():
    path = Path(__file__).parents[2] / "benchmarks" / "fuzz" / "engineer_replies.py"
    spec = importlib.util.spec_from_file_location("engineer_replies", path)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    outcome = fuzz.run(5_000, seed=1)
    assert outcome["accepted"] > 500
    assert outcome["refused"] > 3_000
