"""A table is opened in the order in which it was filled: every field comes back as the very memory that went in."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from mapf_frozenlake import LakeConfig, generate
from mapf_frozenlake.world.boards import Boards, boards_of
from mapf_frozenlake.world.state import State, make_state
from mapf_frozenlake.world.table import open_boards, open_state, table_of_boards, table_of_state


@njit
def state_at(table):
    return open_state(table)


@njit
def boards_at(table):
    return open_boards(table)


def assert_same_memory(opened, filled):
    assert opened._fields == filled._fields
    for name, one, other in zip(filled._fields, opened, filled, strict=True):
        if isinstance(other, np.ndarray):
            assert one.ctypes.data == other.ctypes.data, name
            assert (one.shape, one.dtype) == (other.shape, other.dtype), name
        else:
            assert one == other, name


@pytest.mark.parametrize(("with_distance", "with_lakes"), [(True, False), (False, False), (False, True)])
def test_a_state_is_opened_field_by_field_as_it_was_filled(with_distance, with_lakes):
    """All sides differ, so that no two fields could stand for each other."""
    state = make_state(num_envs=3, max_agents=2, max_size=4, pad=1, with_distance=with_distance, with_lakes=with_lakes)
    assert isinstance(state, State)
    assert_same_memory(state_at(table_of_state(state)), state)


def test_boards_are_opened_field_by_field_as_they_were_filled():
    boards = boards_of(generate(LakeConfig(num_agents=2, slices={4: {}, 5: {}}), 3, seed=0))
    assert isinstance(boards, Boards)
    assert_same_memory(boards_at(table_of_boards(boards)), boards)


def test_an_array_with_strides_is_refused():
    boards = boards_of(generate(LakeConfig(), 4, seed=0))
    with pytest.raises(ValueError, match="C-contiguous"):
        table_of_boards(boards._replace(heights=np.repeat(boards.heights, 2)[::2]))
