"""Explicit maps: what is written is what stands on the lake, and a broken map says where and why."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.letters import GOAL_LETTERS, MAX_LETTERED_AGENTS, START_LETTERS
from mapf_frozenlake.maps import from_desc, load_map, load_movingai, save_movingai, to_desc
from mapf_frozenlake.types import Instance


@st.composite
def instances(draw, max_agents=MAX_LETTERED_AGENTS):
    height, width = draw(st.integers(2, 9)), draw(st.integers(2, 9))
    agents = draw(st.integers(1, min(max_agents, height * width // 2)))
    cells = draw(st.permutations([(r, c) for r in range(height) for c in range(width)]))
    starts, goals = cells[:agents], cells[agents : 2 * agents]
    return Instance(holes=np.zeros((height, width), bool), starts=np.array(starts), goals=np.array(goals))


def test_letters_are_all_different():
    assert len({*START_LETTERS, *GOAL_LETTERS, "F", "H"}) == 2 * MAX_LETTERED_AGENTS + 2


def test_gymnasiums_own_map_reads_as_it_stands():
    instance = from_desc(["SFFF", "FHFH", "FFFH", "HFFG"])
    assert instance.starts.tolist() == [[0, 0]]
    assert instance.goals.tolist() == [[3, 3]]
    assert np.argwhere(instance.holes).tolist() == [[1, 1], [1, 3], [2, 3], [3, 0]]


@given(instances())
def test_desc_round_trip(instance):
    assert from_desc(to_desc(instance)) == instance
    assert from_desc("\n".join(" ".join(row) for row in to_desc(instance))) == instance


@given(instance=instances(max_agents=40))
def test_movingai_round_trip(instance, tmp_path_factory):
    folder = tmp_path_factory.mktemp("movingai")
    save_movingai(instance, folder / "lake.map", folder / "lake.scen")
    assert load_movingai(folder / "lake.map", folder / "lake.scen", instance.num_agents) == instance


def test_an_instance_without_a_path_is_not_saved(tmp_path):
    walled = Instance(holes=[[0, 1, 0], [0, 1, 0]], starts=[(0, 0)], goals=[(0, 2)])
    with pytest.raises(LakeError, match="agent 0 has no path"):
        save_movingai(walled, tmp_path / "lake.map", tmp_path / "lake.scen")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("desc", "says"),
    [
        (["SF", "FGF"], "row 1 of the map has 3 cells, row 0 has 2"),
        (["S", "G"], "2×1"),
        ([], "equally long"),
        (["SF", "F?"], "row 1 of the map has '?' in column 1"),
        (["SS", "FG"], "has 'S' twice, at (0, 0) and at (0, 1)"),
        (["SF", "FF"], "do not pair up (G)"),
        (["FF", "FF"], "do not pair up (S, G)"),
        (["SFA", "GFa"], "do not pair up"),
        (["SHG", "HFF"], "agent 0 has no path from (0, 0) to (0, 2)"),
    ],
)
def test_a_broken_desc_says_where_and_why(desc, says):
    with pytest.raises(LakeError) as caught:
        from_desc(desc)
    assert says in str(caught.value)


MAP = "type octile\nheight 2\nwidth 3\nmap\n.@.\n...\n"
SCEN = "version 1\n0\tlake.map\t3\t2\t0\t0\t2\t0\t4\n"


@pytest.mark.parametrize(
    ("map_text", "scen_text", "says"),
    [
        ("height 2\nmap\n..\n..", SCEN, "begins with the lines 'type …'"),
        (MAP.replace("height 2", "height two"), SCEN, "height is 'two': write a whole number"),
        (MAP.replace("height 2", "height 999"), SCEN, "999×3 is outside 2–64"),
        (MAP.replace("height 2", "height 3"), SCEN, "height says 3, the map has 2 rows"),
        (MAP.replace(".@.", ".@"), SCEN, "row 0 (line 5) has 2 characters"),
        (MAP.replace(".@.", ".x."), SCEN, "has 'x'"),
        (MAP, "0 lake.map 3 2 0 0 2 0 4\n", "begins with the line 'version 1'"),
        (MAP, "version 1\n", "has 0 tasks"),
        (MAP, "version 1\n0\tlake.map\t3\n", "line 2 has 3 fields"),
        (MAP, SCEN.replace("2\t0\t4", "1.5\t0\t4"), "with whole numbers from width to goal y"),
        (MAP, SCEN.replace("2\t0\t4", f"{'1' * 5000}\t0\t4"), "with whole numbers from width to goal y"),
        (MAP.replace("height 2", f"height {'1' * 5000}"), SCEN, "write a whole number of at most 9 digits"),
        (MAP, SCEN.replace("3\t2", "9\t9"), "is for a 9×9 map"),
        (MAP, SCEN.replace("2\t0\t4", "7\t0\t4"), "agent 0's goal (0, 7) is off the board"),
        (MAP, SCEN.replace("2\t0\t4", "1\t0\t4"), "is a hole"),
        (MAP.replace("...", "@@@"), SCEN, "agent 0 has no path"),
    ],
)
def test_a_broken_movingai_file_says_where_and_why(tmp_path, map_text, scen_text, says):
    (tmp_path / "lake.map").write_text(map_text)
    (tmp_path / "lake.scen").write_text(scen_text)
    with pytest.raises(LakeError) as caught:
        load_movingai(tmp_path / "lake.map", tmp_path / "lake.scen", 1)
    assert says in str(caught.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(LakeError, match="give the path of a readable file"):
        load_map(tmp_path / "nowhere.map")
    (tmp_path / "binary.map").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LakeError, match="byte 0 is not text"):
        load_map(tmp_path / "binary.map")


def test_a_map_without_a_scenario_has_tasks_drawn_by_seed(tmp_path):
    path = tmp_path / "two_lakes.map"
    path.write_text("type octile\nheight 4\nwidth 5\nmap\n..@..\n..@..\n..@.@\n@@@..\n")
    for seed in range(20):
        instance = load_movingai(path, num_agents=4, seed=seed)  # 6 cells on the left, 7 on the right: room for 3 + 3
        assert instance.holes.tolist() == load_map(path).tolist()
        assert instance.num_agents == 4
        for start, goal in zip(instance.starts, instance.goals):
            assert (start[1] < 2) == (goal[1] < 2), "a goal on the other lake cannot be reached"
    assert len({load_movingai(path, seed=seed).key() for seed in range(20)}) > 15
    assert load_movingai(path, seed=3) == load_movingai(path, seed=3)
    assert load_movingai(path, num_agents=6).num_agents == 6
    with pytest.raises(LakeError, match=r"num_agents=7: .* has room for 6; ask for 1 to 6"):
        load_movingai(path, num_agents=7)
