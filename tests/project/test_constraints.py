"""``constraints.txt`` gives a version to everything that an extra asks for, and it is one that the extra accepts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
APART = {"verifiers", "reasoning-gym"}  # extras that do not resolve with the others

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ASKED = [Requirement(text) for text in PROJECT["dependencies"]] + [
    Requirement(text)
    for extra, texts in PROJECT["optional-dependencies"].items()
    if extra not in APART
    for text in texts
]
LINES = (ROOT / "constraints.txt").read_text().splitlines()
PINNED = {canonicalize_name(name): found for name, _, found in (line.partition("==") for line in LINES) if found}


@pytest.mark.parametrize("asked", [one for one in ASKED if one.name != PROJECT["name"]], ids=str)
def test_the_version_in_the_constraints_is_one_that_the_extra_accepts(asked):
    assert canonicalize_name(asked.name) in PINNED
    assert asked.specifier.contains(PINNED[canonicalize_name(asked.name)])
