"""Private names of other libraries: the installed versions have them, and nothing but one file a library uses them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
OURS = ("self", "cls", "engineers", "envtuning")
OWN = {"_apply"}  # names that this package gives
NO_SECRET = {
    "os._exit",
    "sys._getframe",
    "_replace",
    "_asdict",
    "_fields",
    "_name_or_path",
}  # documented in spite of their names
OF_A_WORLD = "envtuning/worlds/bfcl/"  # bfcl-eval's tools, which its page asks to set up in this way


@pytest.mark.parametrize(
    ("name", "library"),
    [("rllib", "ray"), ("sb3", "stable_baselines3"), ("trl", "trl"), ("multiprocessing", "multiprocessing")],
)
def test_the_installed_version_has_every_private_name_that_is_used(name, library):
    pytest.importorskip(library)
    used = import_module(f"envtuning.trainees.privates.{name}")
    assert missing(library.replace("_", "-"), used.TESTED, used.NAMES) == []


def missing(library: str, tested: str, names: Mapping[type, Iterable[str]]) -> list[str]:
    """A sentence for each name that its class no longer has, as a member or as an attribute that its code sets."""
    found = f"{library} {version(library)}" if tested[0].isdigit() else library
    return [
        f"{found} has no {owner.__name__}.{name}, which envtuning uses: install {library} {tested}, with which it was tested"
        for owner, wanted in names.items()
        for name in wanted
        if not hasattr(owner, name) and not sets(owner, name)
    ]


def sets(owner: type, name: str) -> bool:
    """Whether the code of the class or of its bases sets this attribute."""
    bases = [base for base in owner.__mro__ if base.__module__ != "builtins"]
    return any(f"self.{name}" in inspect.getsource(base) for base in bases)


class Library:
    """Of somebody else."""

    def __init__(self) -> None:
        self._set = 1

    def _method(self) -> None: ...


def test_a_name_that_is_gone_is_told_with_the_version_to_install():
    names = {Library: ("_set", "_method", "_gone")}
    (said,) = missing("pytest", "1.2.3", names)
    assert said.startswith(
        f"pytest {pytest.__version__} has no Library._gone, which envtuning uses: install pytest 1.2.3, "
    )
    (said,) = missing("multiprocessing", "Python 3.11", names)
    assert said.startswith("multiprocessing has no Library._gone")


def reached_into(tree: ast.AST) -> list[str]:
    """Private names of objects that are not the file's own."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        owner = ast.unparse(node.value)
        if owner not in OURS and node.attr not in OWN | NO_SECRET and f"{owner}.{node.attr}" not in NO_SECRET:
            found.append(f"{owner}.{node.attr}")
    return found


def defined_in(tree: ast.AST) -> set[str]:
    """The private names that a file defines itself."""
    named: Any = (ast.FunctionDef, ast.ClassDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, named)}


def test_no_other_file_reaches_into_a_library():
    strangers = {}
    for path in sorted((ROOT / "envtuning").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(("envtuning/trainees/privates/", OF_A_WORLD)):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = defined_in(tree)
        if found := [name for name in reached_into(tree) if name.rpartition(".")[2] not in own]:
            strangers[place] = found
    assert strangers == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("model._last_obs = None", ["model._last_obs"]),
        ("self._x", []),
        ("super()._x()", ["super()._x"]),
        ("a.__dict__", []),
    ],
)
def test_a_private_name_is_seen(code, found):
    assert reached_into(ast.parse(code)) == found
