"""The page on learners in closed form: its code runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "dynamics.md").read_text(encoding="utf-8")


def test_the_example_runs(capsys):
    [block] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/dynamics.md", "exec"), {})
    assert re.fullmatch(r"uniform: \d\d\.\d %\nfailure-share: \d\d\.\d %\n", capsys.readouterr().out)
