"""One file uses Numba's private names, and a Numba that lacks one of them is said so in a sentence."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import pytest

ROOT = Path(__file__).parents[2]
PRIVATE = ROOT / "mapf_frozenlake" / "numba_private.py"


def constant(name: str) -> Any:
    """A constant of the file, without an import: that would fail first on such a Numba."""
    for node in ast.parse(PRIVATE.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return ast.literal_eval(node.value)
    raise LookupError(name)


def lacks(thing: Any, path: str) -> bool:
    for name in path.split("."):
        if not hasattr(thing, name):
            return True
        thing = getattr(thing, name)
    return False


def why_not(names: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """A sentence for every name that this Numba lacks."""
    for module, paths in names.items():
        try:
            found = importlib.import_module(module)
        except ImportError:
            found = None
        for path in paths:
            if lacks(found, path):
                yield f"Numba {numba.__version__} has no {module}.{path} any more: change mapf_frozenlake/numba_private.py"


def test_numba_has_every_private_name() -> None:
    assert list(why_not(constant("NAMES"))) == []


@numba.njit(cache=True)
def one() -> int:
    return 1


@pytest.mark.parametrize("path", constant("OF_A_KERNEL"))
def test_a_kernel_has_every_private_attribute(path: str) -> None:
    assert not lacks(one, path), f"a kernel of Numba {numba.__version__} has no {path}: change numba_private.is_cached"


def test_a_missing_name_is_said_in_a_sentence() -> None:
    gone = {"numba.core.codegen": ("JITCodeLibrary.gone", "JITCodeLibrary.codegen"), "numba.no": ("at_all",)}
    assert list(why_not(gone)) == [
        f"Numba {numba.__version__} has no numba.core.codegen.JITCodeLibrary.gone any more: change mapf_frozenlake/numba_private.py",
        f"Numba {numba.__version__} has no numba.no.at_all any more: change mapf_frozenlake/numba_private.py",
    ]


def private_imports(path: Path) -> set[str]:
    """What a file imports of Numba beyond ``numba`` and ``numba.extending``, as ``module.name``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "numba":
            if node.module not in ("numba", "numba.extending"):
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("numba.")}
    return found


def test_every_private_import_is_listed() -> None:
    listed = constant("NAMES")
    for name in private_imports(PRIVATE):
        module, _, thing = name.rpartition(".")
        inside = [path.split(".")[0] for path in listed.get(module, ())]
        assert thing in inside or name in listed, f"{name} is not in NAMES"


@pytest.mark.parametrize(
    "package", ["mapf_frozenlake", "engineers", "envtuning", "benchmarks", "examples", "mapf_lake"]
)
def test_no_other_file_uses_private_names(package: str) -> None:
    others = {path: private_imports(path) for path in (ROOT / package).rglob("*.py") if path != PRIVATE}
    assert {path.name: names for path, names in others.items() if names} == {}
