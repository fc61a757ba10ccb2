"""Calls that would not end are refused before they are made; up to each bound they are not."""

from types import SimpleNamespace

import pytest

from envtuning.worlds.bfcl.bounds import (
    MAX_BITS,
    MAX_FILES,
    MAX_FOLDERS_DEEP,
    MAX_PLACES,
    MAX_PRECISION,
    over_bounds,
    tree_is_small,
)
from envtuning.worlds.bfcl.calls import Call


def folder(**contents):
    return SimpleNamespace(contents=contents)


def refused(name, *positional, **named):
    return over_bounds("MathAPI", None, Call(name, positional, named)) is not None


def test_a_power_may_have_so_many_bits_and_no_more():
    assert not refused("power", 2, MAX_BITS // 2)
    assert refused("power", 2, MAX_BITS // 2 + 1)
    assert refused("power", base=-(2**9), exponent=MAX_BITS // 10 + 1)
    assert not refused("power", base=2**9, exponent=MAX_BITS // 10)
    for base, exponent in [(1, 10**9), (-1, 10**9), (0, 10**9), (2, -(10**9)), (2.0, 10**9), (3, 1e9), ("2", 10**9)]:
        assert not refused("power", base, exponent)


@pytest.mark.parametrize(("name", "before"), [("logarithm", (8, 2)), ("square_root", (8,))])
def test_digits_may_be_so_many_and_no_more(name, before):
    for precision, over in [
        (MAX_PRECISION, False),
        (MAX_PRECISION + 1, True),
        (-MAX_PRECISION - 1, True),
        (float(MAX_PRECISION), False),
        (MAX_PRECISION + 1.0, True),
        (10**309, True),
        (f" {MAX_PRECISION} ", False),
        ("3_000_00", True),  # mpmath reads texts
        ("9" * 5_000, False),  # and refuses these
        ("many", False),
        ([10**9], False),
        (None, False),
    ]:
        assert refused(name, *before, precision) == over
        assert refused(name, precision=precision) == over


def test_places_may_be_so_many_either_way_and_no_more():
    for places, over in [
        (MAX_PLACES, False),
        (MAX_PLACES + 1, True),
        (-MAX_PLACES, False),
        (-MAX_PLACES - 1, True),
        (1e9, False),
    ]:
        assert refused("round_number", 1.5, places) == over
        assert refused("round_number", decimal_places=places) == over


def test_tools_without_a_bound_are_not_asked():
    assert not refused("add", 10**9, 10**9)
    assert over_bounds("VehicleControlAPI", None, Call("power", (2, 10**9), {})) is None


def test_a_tree_may_have_so_many_paths_and_be_so_deep_and_no_more():
    files = {str(number): object() for number in range(MAX_FILES)}
    assert tree_is_small(folder(**files))
    assert not tree_is_small(folder(**files, more=object()))
    half = folder(**dict(list(files.items())[: MAX_FILES // 2]))
    assert not tree_is_small(folder(one=half, two=half))  # counted each way that leads there
    deep = folder()
    for _ in range(MAX_FOLDERS_DEEP):
        deep = folder(inner=deep)
    assert tree_is_small(deep)
    assert not tree_is_small(folder(inner=deep))


@pytest.mark.parametrize("name", ["find", "du", "cp", "mv"])
def test_whatever_walks_the_tree_is_refused_on_one_that_holds_itself(name):
    root = folder()
    tool = SimpleNamespace(root=root, _current_dir=root)
    assert over_bounds("GorillaFileSystem", tool, Call(name, (), {})) is None
    root.contents["again"] = root
    said = over_bounds("GorillaFileSystem", tool, Call(name, (), {}))
    assert "remove some" in said
    assert over_bounds("GorillaFileSystem", tool, Call("ls", (), {})) is None
