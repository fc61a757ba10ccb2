"""A text file is read and written in an encoding that the code names, or it would depend on the machine's settings."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("mapf_frozenlake", "engineers", "envtuning")
OPEN_NO_TEXT = ("os", "RunLog", "cls", "archive")  # whose `open` opens no text file


def unnamed(text: str) -> list[str]:
    """The calls that read or write text and name no encoding."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and _is_unnamed(node)]


def _is_unnamed(call: ast.Call) -> bool:
    if any(word.arg in ("encoding", None) for word in call.keywords):
        return False
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", None)
    if name == "open" and not (isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) in OPEN_NO_TEXT):
        texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        modes = texts + [word.value.value for word in call.keywords if word.arg == "mode"]
        return not any("b" in mode for mode in modes if set(mode) <= set("rwaxbt+"))
    return (name == "read_text" and not call.args) or (name == "write_text" and isinstance(call.func, ast.Attribute)
        and len(call.args) == 1)  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
def test_every_text_file_has_a_named_encoding(package):
    found = {}
    for file in sorted((ROOT / package).rglob("*.py")):
        if calls := unnamed(file.read_text(encoding="utf-8")):
            found[str(file.relative_to(ROOT))] = calls
    assert found == {}


def test_what_is_looked_for():
    assert unnamed("path.read_text()") == ["path.read_text()"]
    assert unnamed("path.write_text(x)") == ["path.write_text(x)"]
    assert unnamed("open(path, 'w')") == ["open(path, 'w')"]
    assert unnamed("path.open()") == ["path.open()"]
    fine = ["path.read_text('utf-8')", "path.write_text(x, encoding='utf-8')", "open(path, 'rb')", "os.open(path, 0)",
            "atomic.write_text(path, x)", "path.open('ab')"]  # fmt: skip
    assert [unnamed(one) for one in fine] == [[]] * len(fine)
