"""The boards that are drawn without compiled code are those that compiled code draws, number for number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapf_frozenlake import LakeConfig, generate
from mapf_frozenlake.errors import GenerationError
from mapf_frozenlake.generator import first_boards
from mapf_frozenlake.generator.kernel import NUM_FATES, fill_exact
from mapf_frozenlake.instance_set import ARRAYS
from mapf_frozenlake.uncompiled import is_compiled, uncompiled


@pytest.fixture
def nothing_compiled(monkeypatch):
    """As on a new machine; what the plain path fills is counted."""
    filled = []

    def told(count, arguments):
        done = fill_first(count, arguments)
        filled.append((count, done))
        return done

    fill_first = first_boards.fill_first
    monkeypatch.setattr(first_boards, "_left", 10_000)
    monkeypatch.setattr(first_boards, "is_compiled", lambda *_: False)
    monkeypatch.setattr(first_boards, "fill_first", told)
    return filled


def same(these, those):
    return all((getattr(these, name) == getattr(those, name)).all() for name in ARRAYS)


CONFIGS = {
    "default": LakeConfig(),
    "full of holes": LakeConfig.single(6, 2, hole_ratio=0.45),
    "five agents": LakeConfig.single(7, 5, hole_ratio=0.15),
    "far apart": LakeConfig.single(8, 3, hole_ratio=0.1, min_distance=9),
    "no wait": LakeConfig.single(5, 3, hole_ratio=0.2, wait_ratio=0.0),
    "large": LakeConfig.single(10, 4, hole_ratio=0.3),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_boards(name, nothing_compiled, monkeypatch):
    config = CONFIGS[name]
    drawn = [generate(config, 1, seed=7, first=j, exclude=generate(config, 5)) for j in range(12)]
    plainly = sum(count for count, done in nothing_compiled if done)
    assert plainly >= 8, "most boards need no search"
    monkeypatch.setattr(first_boards, "_left", 0)
    wanted = generate(config, 12, seed=7, exclude=generate(config, 5))
    assert all(same(one, wanted[j : j + 1]) for j, one in enumerate(drawn))


@settings(max_examples=30)
@given(st.integers(2, 10), st.integers(2, 10), st.integers(1, 4), st.floats(0, 0.5), st.integers(0, 2**63))
def test_every_array_is_the_same(height, width, agents, holes, key):
    agents = min(agents, height * width // 3)
    num_holes = int(holes * (height * width - 2 * agents))

    def filled(run):
        boards = np.zeros((3, height, width), np.bool_)
        starts, goals = np.zeros((3, agents, 2), np.int16), np.zeros((3, agents, 2), np.int16)
        tally, makespan, waits = np.zeros((3, NUM_FATES), np.int64), np.zeros(3, np.int32), np.zeros(3, np.int8)
        count = run(
            np.uint64(key), np.arange(3), np.arange(3), np.zeros(5), height, width, agents, num_holes, 1, np.empty((0, 3), np.int64),
            np.empty(0, np.uint64), 60, boards, starts, goals, tally, -1, 60, 1000, 0, makespan, waits,
        )  # fmt: skip
        return [np.array(count), boards, starts, goals, tally, makespan, waits]

    for plain, compiled in zip(filled(uncompiled(fill_exact)), filled(fill_exact), strict=True):
        assert (plain == compiled).all()


def test_where_a_search_is_needed_or_boards_are_rare_or_many_it_is_compiled(nothing_compiled, monkeypatch):
    waits = LakeConfig.single(4, 3, hole_ratio=0.2, wait_ratio=1.0)
    monkeypatch.setattr(first_boards, "MOST_DRAWS", 50)
    assert generate(waits, 2, seed=1).needs_wait.all()
    assert nothing_compiled[-1][1] is False
    monkeypatch.setattr(first_boards, "_left", 3)
    generate(LakeConfig(), 4)
    assert nothing_compiled[-1] == (4, False)
    generate(LakeConfig(), 2)
    generate(LakeConfig(), 2)
    assert nothing_compiled[-2:] == [(2, True), (2, False)]


def test_what_cannot_be_drawn_says_so_as_ever(nothing_compiled):
    with pytest.raises(GenerationError, match="holes"):
        generate(LakeConfig.single(4, 1, hole_ratio=0.9, min_distance=6), 1)
    assert nothing_compiled == [(1, False)]


def test_compiled_code_is_found_in_the_process_and_asked_for_once(monkeypatch):
    generate(LakeConfig(), first_boards.MOST + 1)
    monkeypatch.setattr(first_boards, "_left", 5)
    generate(LakeConfig(), 1)
    assert first_boards._left == 0
    assert not is_compiled(fill_exact, (1, 2))


def test_plain_python_calls_no_compiled_part():
    plain = uncompiled(fill_exact).__wrapped__
    seen, left = set(), [plain]
    while left:
        function = left.pop()
        for name in function.__code__.co_names:
            called = function.__globals__.get(name)
            assert not hasattr(called, "py_func"), f"{function.__name__} calls compiled {name}"
            if callable(called) and hasattr(called, "__code__") and called not in seen:
                seen.add(called)
                left.append(called)
    assert {"certify", "make_problem", "plan_in_turn", "mix"} <= {function.__name__ for function in seen}
