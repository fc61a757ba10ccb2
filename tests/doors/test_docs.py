"""docs/doors.md: its Python runs, from top to bottom, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from tests.lazily import needed

needed("datasets", extra="grpo")
needed("openenv", extra="openenv")

PAGE = (Path(__file__).parents[2] / "docs" / "doors.md").read_text(encoding="utf-8")


def test_the_page_s_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code, said in re.findall(r"```python\n(.*?)```(?:\s*```text\n(.*?)```)?", PAGE, re.DOTALL):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, "docs/doors.md", "exec"), names)
        assert printed.getvalue().strip() == said.strip(), code
