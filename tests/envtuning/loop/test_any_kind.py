"""The loop and its log know trainees, engineers and worlds by their contracts alone: no kind of trainee or world has a name there."""

import ast
import re
from pathlib import Path

import pytest

from envtuning.trainees import KINDS, LIVE
from envtuning.worlds.registry import WORLDS

PACKAGE = Path(__file__).parents[3] / "envtuning"
GENERIC = [path for folder in ("loop", "runs") for path in sorted((PACKAGE / folder).glob("*.py"))]
# Of what may be asked for an attribute by its name: none is a trainee, an engineer or a world.
ASKED_BY_NAME = {("loop/__init__.py", "run"), ("loop/observer.py", "observer"), ("runs/unknown_fields.py", "config")}
IMPLEMENTED = {
    place.rpartition(":")[0] for place in (*(known.place for known in KINDS.values()), *LIVE.values(), *WORLDS.values())
}
KIND = re.compile(rf"\b({'|'.join((*KINDS, *WORLDS, 'lake'))})\b")


def asked_by_name(tree):
    """What ``getattr`` and ``hasattr`` are called on."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            yield ast.unparse(node.args[0])


def kinds_named(tree):
    """Texts with the name of a kind in them, and imports of the modules that hold kinds."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and KIND.search(node.value):
            yield node.value
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        yield from (
            module
            for module in modules
            if any(
                f"{module}.".startswith(f"{place.rpartition('.')[0]}.") and place.count(".") > 2
                for place in IMPLEMENTED
            )
            or module in IMPLEMENTED
        )


@pytest.mark.parametrize("path", GENERIC, ids=lambda path: path.stem)
def test_everybody_is_asked_by_a_contract(path):
    place = path.relative_to(PACKAGE).as_posix()
    asked = {(place, what) for what in asked_by_name(ast.parse(path.read_text()))}
    assert asked <= ASKED_BY_NAME


@pytest.mark.parametrize("path", GENERIC, ids=lambda path: path.stem)
def test_no_kind_is_named(path):
    assert list(kinds_named(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("kind = 'ppo'", ["ppo"]),
        ("'a run of the scripted kind'", ["a run of the scripted kind"]),
        ("from envtuning.trainees.language.collapse import collapsed", ["envtuning.trainees.language.collapse"]),
        ("import envtuning.worlds.lakes.play", ["envtuning.worlds.lakes.play"]),
        ("from envtuning.trainees.scripted import x", ["envtuning.trainees.scripted"]),
        ("from envtuning.trainees.base import Trainee", []),
        ("from envtuning.worlds.world import World", []),
    ],
)
def test_the_name_of_a_kind_is_seen(code, found):
    assert list(kinds_named(ast.parse(code))) == found


def test_a_question_by_name_is_seen():
    assert list(asked_by_name(ast.parse("getattr(self.trainee, 'slim', None)"))) == ["self.trainee"]
