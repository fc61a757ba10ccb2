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


def test_a_function_by_its_old_name_warns_where_it_is_used_and_works():
    from envtuning import loop

    with pytest.warns(DeprecationWarning, match=r"envtuning\.loop\.go is called continue_run") as warned:
        assert loop.go is loop.continue_run
    assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match=r"module 'envtuning\.loop' has no attribute 'gone'"):
        _ = loop.gone
