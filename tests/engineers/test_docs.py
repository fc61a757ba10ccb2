"""The Python of docs/engineers.md runs, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_examples_run(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "engineers.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/engineers.md", "exec"), names)
    assert len(blocks) == 4
    assert "slices.4.wait_ratio 0.2 → 0.3125 because" in capsys.readouterr().out


def test_every_engineer_and_context_is_in_the_tables():
    from engineers import CONTEXTS, available

    text = (ROOT / "docs" / "engineers.md").read_text()
    assert all(f"| `{name}" in text for name in available())
    assert all(f"| `{name}`" in text for name in CONTEXTS)
