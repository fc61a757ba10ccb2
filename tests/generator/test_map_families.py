"""Mazes, rooms and warehouses: connected maps with the same certified starts and goals, and knobs for an engineer."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from engineers.knobs import find_knobs, with_values
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.map_families import MAP_FAMILIES, least_ice
from tests.oracles.goals import lake_of

FAMILIES = MAP_FAMILIES[1:]
KNOBS = {"loops": 0.1, "room_size": 4, "shelf_length": 5, "aisle": 1}


def draw(family, rows, columns, seed=0, n=1, agents=1, **knobs):
    config = mfl.LakeConfig.single((rows, columns), agents, map_family=family, **knobs)
    return mfl.generate(config, n, seed, certify="reachable", num_threads=1)


@settings(max_examples=150)
@given(
    family=st.sampled_from(FAMILIES), rows=st.integers(2, 40), columns=st.integers(2, 40), seed=st.integers(0, 99),
    loops=st.sampled_from([0.0, 0.2, 1.0]), room_size=st.integers(2, 9), shelf_length=st.integers(1, 9), aisle=st.integers(1, 3),
)  # fmt: skip
def test_every_map_is_one_connected_lake_of_at_least_the_ice_that_the_config_counts_on(
    family, rows, columns, seed, **knobs
):
    least, wrong = least_ice(family, rows, columns, knobs["room_size"], knobs["shelf_length"], knobs["aisle"])
    if wrong:
        with pytest.raises(ValueError, match=rf"{rows}×{columns}|size={rows}"):
            draw(family, rows, columns, seed, **knobs)
        return
    holes = draw(family, rows, columns, seed, **knobs)[0].holes
    ice = [tuple(cell) for cell in np.argwhere(~holes).tolist()]
    assert lake_of(holes, ice[0]) == set(ice)
    assert len(ice) >= least
    assert len(ice) == least or family == "warehouse" or knobs["loops"] > 0


def test_a_maze_without_loops_is_a_tree_and_with_all_loops_has_a_door_in_each_wall():
    tree = ~draw("maze", 21, 15, loops=0.0)[0].holes
    edges = (tree[1:] & tree[:-1]).sum() + (tree[:, 1:] & tree[:, :-1]).sum()
    assert edges == tree.sum() - 1, "connected and without a circle"
    grid = ~draw("maze", 21, 15, loops=1.0)[0].holes
    assert grid[::2, ::2].all()
    assert grid[1::2, ::2].all()
    assert grid[::2, 1::2].all()
    assert not grid[1::2, 1::2].any()


def test_rooms_have_the_size_that_is_asked_for_and_one_door_in_a_wall():
    holes = draw("rooms", 14, 14, room_size=4, loops=1.0)[0].holes
    walls = [4, 9]
    rooms = [slice(0, 4), slice(5, 9), slice(10, 14)]
    assert not any(holes[rows, columns].any() for rows in rooms for columns in rooms)
    for wall in walls:
        assert [int((~holes[wall, room]).sum()) for room in rooms] == [1, 1, 1]
        assert [int((~holes[room, wall]).sum()) for room in rooms] == [1, 1, 1]


def test_a_warehouse_has_its_shelves_where_the_aisles_leave_them():
    holes = draw("warehouse", 9, 15, shelf_length=3, aisle=2)[0].holes
    expected = np.zeros((9, 15), bool)
    for top in (2,):
        for left in (2, 7):
            expected[top : top + 2, left : left + 3] = True
    expected[6:8, :] = False  # two rows would fit, but not the aisle behind them
    np.testing.assert_array_equal(holes, expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_maps_differ_by_instance_and_not_by_threads(family):
    config = mfl.LakeConfig.single(9, 3, map_family=family, room_size=3, shelf_length=2)
    drawn = mfl.generate(config, 60, 5, num_threads=1)
    assert (drawn.heights == 9).all()
    assert drawn.makespan.min() > 0, "certified exactly"
    again = mfl.generate(config, 20, 5, first=40, num_threads=2)
    np.testing.assert_array_equal(drawn.holes[40:], again.holes)
    np.testing.assert_array_equal(drawn.starts[40:], again.starts)
    assert len({instance.key() for instance in drawn}) == 60
    assert len({instance.holes.tobytes() for instance in drawn}) == (1 if family == "warehouse" else 60)
    for instance in drawn[:5]:
        solution = mfl.solve(instance)
        assert (solution.makespan, instance.certificate) == (instance.makespan, "exact")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_boards_in_plain_python_are_those_of_the_kernel(family):
    from mapf_frozenlake.generator import kernel
    from mapf_frozenlake.uncompiled import uncompiled

    layout = np.array([MAP_FAMILIES.index(family), 0.3, 2.0, 2.0, 1.0])
    both = []
    for fill in (kernel.fill_reachable, uncompiled(kernel.fill_reachable)):
        holes, ends, tally = np.zeros((5, 8, 8), bool), np.zeros((2, 5, 2, 2), np.int16), np.zeros((5, 8), np.int64)
        arguments = (np.uint64(3), np.arange(5), np.arange(5), layout, 8, 8, 2, 0, 1)
        excluded = (np.zeros((0, 3), np.int64), np.zeros(0, np.uint64), 100)
        assert fill(*arguments, *excluded, holes, ends[0], ends[1], tally) == 5
        both.append((holes, ends))
    np.testing.assert_equal(both[0], both[1])


def test_least_distances_waits_and_many_agents_go_with_every_family():
    for family in FAMILIES:
        config = mfl.LakeConfig.single(10, 3, map_family=family, min_distance=8, wait_ratio=0.5)
        drawn = mfl.generate(config, 8, 1)
        assert (np.abs(drawn.starts.astype(int) - drawn.goals).sum(-1) >= 8).all()
        assert drawn.needs_wait.sum() == 4
    crowd = mfl.generate(mfl.LakeConfig.single(32, 64, map_family="warehouse"), 2, 0)
    assert [instance.certificate for instance in crowd] == ["solvable"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"map_family": "city"}, "map_family='city': input should be 'random', 'maze', 'rooms' or 'warehouse'"),
        (
            {"map_family": "warehouse"},
            r"shelf_length=5 and aisle=1: a warehouse on 4×4 has no room for a shelf; it takes 4 rows and 7",
        ),
        (
            {"map_family": "rooms"},
            "room_size=4: rooms on 4×4 would be a single room; give at most 2, or a size of at least 6",
        ),
        ({"map_family": "maze", "size": 2}, "size=2: a maze takes at least 3 rows or columns"),
        (
            {"map_family": "maze", "num_agents": 7},
            "num_agents=7 on a maze of 4×4 needs 14 cells, it may have only 12: at most 6 agents",
        ),
        ({"map_family": "rooms", "room_size": 1}, "room_size=1: input should be greater than or equal to 2"),
        ({"map_family": "maze", "loops": 1.5}, "loops=1.5: input should be less than or equal to 1"),
        ({"map_family": "warehouse", "aisle": 9}, "aisle=9: input should be less than or equal to 8"),
        ({"map_family": "warehouse", "shelf_length": 0}, "shelf_length=0: input should be greater than or equal to 1"),
        ({"map_family": "maze", "config": {}}, "map_family and config both say what is drawn"),
    ],
)
def test_wrong_values_name_the_value_the_bound_and_what_to_change(arguments, message):
    with pytest.raises(LakeError, match=message):
        gym.make("MAPFFrozenLake-v0", **arguments)


def test_a_board_that_cannot_be_drawn_is_explained_without_a_hole_ratio():
    config = mfl.LakeConfig.single(9, 1, map_family="maze", loops=0.0, min_distance=16)
    assert mfl.generate(config, 1)[0].num_agents == 1
    crowded = mfl.LakeConfig.single((3, 9), 7, map_family="maze", loops=0.0, min_distance=8)
    with pytest.raises(
        mfl.GenerationError, match=r"maze of 3×9 with 7 agents: .*lower (min_distance|num_agents)"
    ) as error:
        mfl.generate(crowded, 1)
    assert "hole_ratio" not in str(error.value)


def test_older_configs_keep_their_texts_and_every_config_its_meaning():
    random = mfl.LakeConfig.single(5)
    assert "map_family" not in random.canonical_json()
    assert not set(KNOBS) & set(random.model_dump()["slices"][5])
    rooms = mfl.LakeConfig.single(12, map_family="rooms")
    assert set(KNOBS) < set(rooms.model_dump()["slices"][12])
    for config in (rooms, mfl.LakeConfig(slices={9: {"room_size": 3}})):
        assert mfl.LakeConfig.model_validate_json(config.canonical_json()) == config
    assert len({rooms.digest, random.digest, mfl.LakeConfig.single(12, map_family="rooms", loops=0.2).digest}) == 3


def test_an_engineer_turns_the_knobs_of_a_family():
    config = mfl.LakeConfig.single(16, 2, map_family="rooms")
    editable = ("slices.*.room_size", "slices.*.loops", "slices.*.map_family")
    knobs = {knob.path[-1]: knob for knob in find_knobs(config, editable)}
    assert (knobs["room_size"].bounds, knobs["loops"].bounds) == ((2, 32), (0, 1))
    assert knobs["map_family"].options == list(MAP_FAMILIES)
    values = {knobs["room_size"].path: 3, knobs["map_family"].path: "maze"}
    turned = with_values(config, values)
    assert (turned.slices[16].map_family, turned.slices[16].room_size) == ("maze", 3)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_interface_draws_from_the_family(family):
    kwargs = {"size": 9, "num_agents": 2, "map_family": family, "room_size": 3, "shelf_length": 3, "pool_size": 8}
    first = gym.make("MAPFFrozenLake-v0", **kwargs).unwrapped
    first.reset(seed=0)
    boards = [first.instance]
    for env in (
        mfl.parallel_env(**kwargs),
        gym.make("MAPFFrozenLakeTuple-v0", **kwargs),
        gym.make("MAPFFrozenLakeText-v0", **kwargs),
    ):
        env.reset(seed=0)
        boards.append(getattr(env.unwrapped, "lake", env.unwrapped).batch.instance(0))
    many = gym.make_vec("MAPFFrozenLake-v0", num_envs=2, **kwargs)
    many.reset(seed=0)
    boards.append(many.unwrapped.instances[0])
    batch = mfl.parallel_vec_env(num_lakes=2, **kwargs)
    batch.reset(seed=0)
    boards.append(batch.batch.instance(0))
    assert boards == boards[:1] * 6
    assert boards[0].makespan is not None
    assert mfl.from_text(mfl.to_text(boards[0])) == boards[0]
