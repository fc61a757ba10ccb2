"""Names of modules that pages once told to import: each fails with the new name, and the new name is a module."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import pytest

import engineers
import envtuning

MAPS = [(package, old, new) for package in (engineers, envtuning) for old, new in package.MOVED.items()]


@pytest.mark.parametrize(("package", "old", "new"), MAPS, ids=[old for _, old, _ in MAPS])
def test_an_old_name_fails_with_the_new_one(package, old, new):
    assert old.startswith(f"{package.__name__}.")
    with pytest.raises(ModuleNotFoundError, match=f"^{old} has moved: import {new}$".replace(".", r"\.")) as failed:
        import_module(old)
    assert failed.value.name == old
    assert find_spec(new) is not None


def test_a_name_that_never_was_fails_as_it_does_everywhere():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'engineers\.never_was'"):
        import_module("engineers.never_was")
