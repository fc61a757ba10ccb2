"""Protocols for path finding: their boards, their measures against plain counting, the table and the plot."""

from __future__ import annotations

import hashlib
import json
import time

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import Event

SMALL = mfl.PathProtocol(
    "small", "wait",
    {"open": {"size": 7, "hole_ratio": 0.1}, "rooms": {"size": (8, 11), "map_family": "rooms", "room_size": 3}},
    agents=(2, 6), episodes=4, horizon=40,
)  # fmt: skip


def lifelong(**others):
    return mfl.PathProtocol("small, lifelong", "next", SMALL.maps, agents=(2, 6), episodes=3, horizon=50, **others)


class AtRandom:
    """A network's form; without hints it may fall."""

    env_kwargs = {"observation": "compact"}  # noqa: RUF012

    def __init__(self):
        self._rng = np.random.default_rng(0)

    def act(self, observation):
        return self._rng.integers(0, 5, observation.shape[:2])


def test_a_solvers_plans_have_the_solvers_costs():
    table = mfl.evaluate(mfl.pibt, SMALL, name="LaCAM")
    assert [(row.map, row.agents, row.episodes) for row in table.rows] == [
        ("open", 2, 4), ("open", 6, 4), ("rooms", 2, 4), ("rooms", 6, 4),
    ]  # fmt: skip
    for episode in table.episodes:
        board = SMALL.boards(episode.map, episode.agents)[episode.episode]
        solution = mfl.pibt(board)
        assert episode.solved
        assert (episode.makespan, episode.sum_of_costs) == (solution.makespan, solution.sum_of_costs)
        assert (episode.arrived, episode.collisions, episode.throughput) == (1.0, 0, None)
        assert episode.density == pytest.approx(episode.agents / (~board.holes).sum())
        assert 0 < episode.seconds_per_step < 10


def test_a_solver_without_a_plan_costs_the_horizon():
    def no_plan(instance: mfl.Instance):
        raise mfl.SolverBudgetExceeded("spent")

    [first, *_] = mfl.evaluate(no_plan, SMALL).episodes
    assert (first.arrived, first.solved, first.makespan, first.sum_of_costs) == (0.0, False, 40, 80)


@pytest.mark.parametrize("on_goal", ["wait", "finish", "next"])
def test_the_measures_are_those_counted_step_by_step(on_goal):
    """The same planner on single envs, counted here in plain Python."""
    protocol = mfl.PathProtocol("one", on_goal, {"open": {"size": 6, "hole_ratio": 0.15}}, (4,), 6, 30)
    table = mfl.evaluate(mfl.OnlinePIBT(), protocol)
    boards = protocol.boards("open", 4)
    for episode in table.episodes:
        env = gym.make("MAPFFrozenLake-v0", config=protocol.config("open", 4), observation="compact").unwrapped
        env.reset(seed=episode.episode, options={"instance": boards[episode.episode]})
        planner, step, over = mfl.OnlinePIBT(), 0, False
        away, reached, ever = [0] * 4, 0, set()
        while not over:
            actions = planner.act_on(env.batch)[0]
            _, _, terminated, truncated, info = env.step(actions)
            step, over = step + 1, terminated or truncated
            arrived = {agent for agent in range(4) if env.batch.reached[0, agent]}
            reached, ever = reached + len(arrived), ever | arrived
            assert not np.isin(info["events"], (Event.VERTEX, Event.SWAP, Event.HOLE, Event.OFF_BOARD)).any()
            on = ever if on_goal == "finish" else arrived
            away = [away[agent] if agent in on else step for agent in range(4)]
        costs = [away[agent] + 1 if away[agent] < step else 30 for agent in range(4)]
        assert episode.solved == info["success"]
        if on_goal == "next":
            assert episode.throughput == info["throughput"] == reached / 30
            assert (episode.makespan, episode.arrived) == (None, len(ever) / 4)
        else:
            assert (episode.makespan, episode.sum_of_costs) == (max(costs), sum(costs))


def test_a_network_plays_all_boards_at_once_and_its_bumps_are_counted():
    table = mfl.evaluate(AtRandom(), lifelong(collisions="soft"))
    assert sum(episode.collisions for episode in table.episodes) > 50
    assert sum(episode.throughput for episode in table.episodes) > 0
    falls = mfl.evaluate(AtRandom(), lifelong())
    assert not all(episode.solved for episode in falls.episodes)


def test_pibt_brings_many_goals_and_never_collides():
    table = mfl.evaluate(mfl.OnlinePIBT(), lifelong())
    assert min(episode.throughput for episode in table.episodes) > 0.05
    assert sum(episode.collisions for episode in table.episodes) == 0
    again = mfl.evaluate(mfl.OnlinePIBT(), lifelong())
    measures = ("throughput", "arrived", "collisions")
    assert [[getattr(one, name) for name in measures] for one in table.episodes] == [
        [getattr(one, name) for name in measures] for one in again.episodes
    ]


BOARDS = {  # of the first two boards of every cell: a published protocol never changes
    "paths-2026": "bee1291cd2dec53c",
    "lifelong-2026": "bee1291cd2dec53c",
}


@pytest.mark.parametrize("name", BOARDS)
def test_the_boards_of_a_published_protocol_never_change(name):
    protocol, digest = mfl.PROTOCOLS[name].shorter(2), hashlib.sha256()
    assert (max(protocol.agents), max(protocol.config("warehouse-64", 8).slices)) == (64, 64)
    for map_name in protocol.maps:
        for agents in protocol.agents:
            for board in protocol.boards(map_name, agents):
                digest.update(board.key())
    assert digest.hexdigest()[:16] == BOARDS[name]


def test_the_table_is_printed_exported_and_drawn(tmp_path):
    pibt, lacam = mfl.evaluate(mfl.OnlinePIBT(), SMALL), mfl.evaluate(mfl.pibt, SMALL, name="LaCAM")
    assert str(lacam).startswith(
        "LaCAM on small: all agents arrived in 16 of 16 episodes\n\nmap    agents  individual success %"
    )
    assert "throughput" not in str(lacam)
    assert lacam.to_markdown().splitlines()[1].startswith("| --- | ---: |")
    assert json.loads(lacam.to_json())["rows"][0]["common"] == 100.0
    drawn = pibt.plot(tmp_path / "plot.svg", "sum_of_costs", [lacam]).read_text()
    assert (drawn.count("<polyline"), drawn.count("<circle")) == (4, 8)
    assert all(word in drawn for word in (">open<", ">rooms<", ">PIBT<", ">LaCAM<", ">sum of costs<"))
    with pytest.raises(LakeError, match="measure='speed': give one of individual, common"):
        pibt.plot(tmp_path / "plot.svg", "speed")
    with pytest.raises(LakeError, match=r"plot\.png: a plot is saved as \.svg"):
        pibt.plot(tmp_path / "plot.png", "common")
    assert not (tmp_path / "plot.png").exists()


def test_what_cannot_play_a_protocol_is_refused():
    with pytest.raises(LakeError, match="lifelong gives new goals, which a plan made at the start cannot know"):
        mfl.evaluate(mfl.pibt, lifelong())

    def text(prompt: str) -> str:
        return prompt

    with pytest.raises(LakeError, match="a protocol is played step by step"):
        mfl.evaluate(text, SMALL)
    with pytest.raises(LakeError, match="no map is called 'city': the maps of small are open, rooms"):
        SMALL.boards("city", 2)


def test_a_protocol_takes_the_form_of_a_function_without_annotations():
    def plan(instance):
        return mfl.pibt(instance)

    with pytest.raises(LakeError, match="pass form='solver'"):
        mfl.evaluate(plan, SMALL)
    assert all(episode.solved for episode in mfl.evaluate(plan, SMALL, form="solver").episodes)
    with pytest.raises(LakeError, match="a protocol is played step by step"):
        mfl.evaluate(plan, SMALL, form="text")
    with pytest.raises(LakeError, match="form='neural' needs an object with act"):
        mfl.evaluate(plan, SMALL, form="neural")


def test_the_form_that_is_given_plays_and_not_another_that_the_object_has():
    class Both(AtRandom):
        def __call__(self, instance):
            return mfl.pibt(instance)

    assert all(episode.solved for episode in mfl.evaluate(Both(), SMALL, form="solver").episodes)
    assert not all(episode.solved for episode in mfl.evaluate(Both(), SMALL).episodes)


def test_a_network_that_can_also_plan_is_played_as_a_network():
    class Both(AtRandom):
        def act_on(self, batch):
            raise AssertionError("was asked as a planner")

    assert len(mfl.evaluate(Both(), SMALL).episodes) == 16


@pytest.mark.parametrize(
    "argument",
    [
        {"config": mfl.LakeConfig(collisions="soft")},
        {"resume": "answers.jsonl"},
        {"max_workers": 4},
        {"batch_size": 2},
        {"settings": {}},
        {"prompt": str},
    ],
)
def test_arguments_that_a_protocol_does_not_follow_are_refused(argument):
    [name] = argument
    with pytest.raises(LakeError, match=f"{name}= does not work with a protocol"):
        mfl.evaluate(mfl.pibt, SMALL, **argument)


def test_a_protocol_plays_the_boards_of_a_map_from_a_file(tmp_path):
    (tmp_path / "city.map").write_text("type octile\nheight 3\nwidth 6\nmap\n......\n.@....\n......\n")

    class City(mfl.PathProtocol):
        def boards(self, map_name, agents):
            drawn = (
                mfl.load_movingai(tmp_path / f"{map_name}.map", num_agents=agents, seed=seed)
                for seed in range(self.episodes)
            )
            return mfl.InstanceSet.from_instances(drawn)

    table = mfl.evaluate(mfl.pibt, City("one city", "wait", {"city": {"size": 6}}, agents=(2, 3), episodes=4))
    assert [(row.map, row.agents, row.common) for row in table.rows] == [("city", 2, 100.0), ("city", 3, 100.0)]
    assert {episode.density for episode in table.episodes} == {2 / 17, 3 / 17}


@pytest.mark.parametrize("policy", [mfl.pibt, mfl.OnlinePIBT(), AtRandom()])
@pytest.mark.parametrize("empty", [("open", 2), ("rooms", 6)])
def test_a_cell_without_boards_is_refused_by_its_name(policy, empty):
    class Sparse(mfl.PathProtocol):
        def boards(self, map_name, agents):
            boards = super().boards(map_name, agents)
            return boards[np.array([], int)] if (map_name, agents) == empty else boards

    protocol = Sparse("sparse", "wait", SMALL.maps, agents=(2, 6), episodes=2, horizon=40)
    with pytest.raises(LakeError, match=f"sparse has no boards of map '{empty[0]}' with {empty[1]} agents"):
        mfl.evaluate(policy, protocol)


def test_no_episode_counts_what_the_policy_compiles():
    compiled = []

    def plan(instance: mfl.Instance):
        if not compiled:
            compiled.append(time.sleep(0.5))
        return [[]] * instance.num_agents

    protocol = mfl.PathProtocol("quick", "wait", {"open": {"size": 5}}, agents=(2,), episodes=2, horizon=5)
    assert max(episode.seconds_per_step for episode in mfl.evaluate(plan, protocol).episodes) < 0.05
