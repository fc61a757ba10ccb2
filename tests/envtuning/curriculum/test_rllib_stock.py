"""Stock RLlib trains on every interface of the lake, and the callback keeps its runners on one config, deaths included."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import engineers
import mapf_frozenlake as mfl
from envtuning.curriculum.apply import config_below
from tests.lazily import Lazy, needed

needed("ray", "torch", extra="rllib")
ray, ppo, models, curriculum, engineer_curriculum, lakes, ladders = (
    Lazy(name)
    for name in (
        "ray",
        "ray.rllib.algorithms.ppo",
        "ray.rllib.core.rl_module.default_model_config",
        "envtuning.curriculum.rllib_callback",
        "envtuning.curriculum.engineer_curriculum",
        "envtuning.worlds.lakes.rllib_envs",
        "envtuning.curriculum.ladder",
    )
)

pytestmark = pytest.mark.ray

EASY = mfl.LakeConfig.single(3, num_agents=2, hole_ratio=0.0)
HARD = mfl.LakeConfig.single(4, num_agents=2, hole_ratio=0.2)
PLAIN_ID = "mapf_frozenlake:MAPFFrozenLake-v0"
ENV = {"config": EASY, "max_size": 4, "window": 3}
SHARED = {"policies": {"shared"}, "policy_mapping_fn": lambda agent, episode, **_: "shared"}


def settings(env, **runners):
    lakes.register_lakes()
    config = (
        ppo.PPOConfig()
        .environment(env, env_config=ENV)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=4, num_cpus_per_env_runner=0.5, **runners)
        .rl_module(model_config=models.DefaultModelConfig(fcnet_hiddens=[16]))
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .callbacks(curriculum.RLlibCurriculumCallback)
        .fault_tolerance(restart_failed_env_runners=True)
        .debugging(log_level="ERROR")
    )
    return config if env == "lakes" else config.multi_agent(**SHARED)


INTERFACES = {
    "native vector": lambda: settings("lakes", gym_env_vectorize_mode="vector_entry_point"),
    "single copies": lambda: settings("lakes"),
    "MultiAgentEnv": lambda: settings("lake-agents"),
    "PettingZoo wrapper": lambda: settings("lake-pettingzoo"),
}


def configs_on(algorithm):
    return algorithm.env_runner_group.foreach_env_runner(
        lambda runner: None if runner.env is None else config_below(runner.env)
    )


@pytest.mark.parametrize("interface", INTERFACES)
def test_trains_and_swaps(ray_session, interface):
    algorithm = INTERFACES[interface]().build_algo()
    try:
        before = algorithm.train()
        curriculum.RLlibCurriculumCallback.swap(algorithm, HARD)
        assert configs_on(algorithm) == [HARD]
        after = algorithm.train()
        steps = "num_env_steps_sampled_lifetime"
        assert after[steps] > before[steps] > 0
    finally:
        algorithm.stop()


def test_curriculum_that_follows_the_results(ray_session):
    asked = []

    def choose(result):
        asked.append(result["training_iteration"])
        return HARD if len(asked) == 2 else None

    config = INTERFACES["native vector"]().callbacks(curriculum.RLlibCurriculumCallback.following(choose))
    algorithm = config.build_algo()
    try:
        seen = []
        for _ in range(3):
            algorithm.train()
            seen += configs_on(algorithm)
        assert seen == [EASY, HARD, HARD]
        assert asked == [1, 2, 3]
    finally:
        algorithm.stop()


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_ladder_climbs_by_episodes_and_results_say_success_and_valid(ray_session, interface):
    """A lake of one step from start to goal: anybody succeeds now and then."""
    ladder = ladders.Ladder([EASY, HARD], threshold=0.05, window=8)
    algorithm = (
        INTERFACES[interface]()
        .callbacks(curriculum.RLlibCurriculumCallback.following(ladder, success_key="success"))
        .build_algo()
    )
    climbing = curriculum.RLlibCurriculumCallback.of(algorithm).curriculum
    try:
        assert configs_on(algorithm) == [EASY]
        for _ in range(30):
            result = algorithm.train()["env_runners"]
            if climbing.rung:
                break
        assert (climbing.rung, configs_on(algorithm)) == (1, [HARD])
        assert 0 <= result["valid"] <= result["success"] <= 1
    finally:
        algorithm.stop()


class Crowds(engineers.Engineer):
    """Wants more agents than there is room for."""

    name = "crowds"

    def propose(self, report, current, editable=None):
        return engineers.Proposal(config=current.model_copy(update={"num_agents": 3}))


@pytest.mark.parametrize("runners", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:crowds")
def test_a_config_beyond_the_room_is_an_incident_on_every_runner(ray_session, runners):
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # remote runners know no tests
    asked = engineer_curriculum.EngineerCurriculum(Crowds(), EASY, every=8, editable=["*"])
    config = INTERFACES["native vector"]().callbacks(curriculum.RLlibCurriculumCallback.following(asked))
    algorithm = config.env_runners(num_env_runners=runners).build_algo()
    try:
        while len(asked.incidents) < 2:
            algorithm.train()
        assert "beyond max_agents=2: make the env with max_agents=3" in asked.incidents[1].message
        assert configs_on(algorithm)[-1] == EASY
        assert algorithm.train()["env_runners"]["num_env_steps_sampled"] > 0
    finally:
        algorithm.stop()
    bare = config.copy(copy_frozen=False).environment("CartPole-v1")
    bare.env_config = {}
    follows = curriculum.RLlibCurriculumCallback.following(ladders.Ladder([EASY]))
    with pytest.raises(TypeError, match="nor an environment that it wraps has set_config: give apply=lambda"):
        bare.env_runners(gym_env_vectorize_mode="sync").callbacks(follows).build_algo()


def test_stock_rllib_trains_by_gymnasiums_id(ray_session):
    lakes.register_lakes()
    config = (
        ppo.PPOConfig().environment("MAPFFrozenLake-v0").env_runners(num_env_runners=1, num_cpus_per_env_runner=0.5)
    )
    config = config.training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1).debugging(
        log_level="ERROR"
    )
    algorithm = config.build_algo()
    try:
        assert algorithm.train()["num_env_steps_sampled_lifetime"] > 0
    finally:
        algorithm.stop()


def test_without_the_callback_it_says_what_to_add(ray_session):
    algorithm = INTERFACES["native vector"]().callbacks(None).build_algo()
    try:
        with pytest.raises(LookupError, match="callbacks\\(RLlibCurriculumCallback\\)"):
            curriculum.RLlibCurriculumCallback.swap(algorithm, HARD)
    finally:
        algorithm.stop()


@pytest.mark.slow
def test_restarted_stock_runner_is_on_the_current_config(ray_session):
    """Remote runners import the package by the id's prefix; ``flat`` is what RLlib's default networks take."""
    config = INTERFACES["native vector"]().environment(PLAIN_ID, env_config=ENV | {"flat": True})
    algorithm = config.env_runners(num_env_runners=1).build_algo()
    try:
        curriculum.RLlibCurriculumCallback.swap(algorithm, HARD)
        assert configs_on(algorithm) == [None, HARD]
        ray.kill(algorithm.env_runner_group._worker_manager.actors()[1], no_restart=False)
        group, deadline = algorithm.env_runner_group, time.monotonic() + 120
        while time.monotonic() < deadline and not (
            group.num_remote_worker_restarts() > 0 and group.num_healthy_remote_workers() > 0
        ):
            algorithm.train()
            time.sleep(0.5)  # the new runner needs the cores
        assert group.num_remote_worker_restarts() == 1
        assert configs_on(algorithm) == [None, HARD]
    finally:
        algorithm.stop()


def test_rebuilt_environment_is_on_the_current_config(ray_session):
    """RLlib rebuilds a failed environment inside its runner from the first config."""
    algorithm = INTERFACES["native vector"]().build_algo()
    try:
        curriculum.RLlibCurriculumCallback.swap(algorithm, HARD)
        algorithm.env_runner.make_env()
        assert configs_on(algorithm) == [HARD]
    finally:
        algorithm.stop()


def test_multi_agent_form_is_the_pettingzoo_form():
    ours = lakes.LakeMultiAgentEnv({"config": HARD})
    theirs = mfl.parallel_env(config=HARD)
    seen, _ = ours.reset(seed=4)
    expected, _ = theirs.reset(seed=4)
    for _ in range(30):
        assert seen.keys() == expected.keys()
        for agent in seen:
            np.testing.assert_array_equal(seen[agent], expected[agent]["observation"])
        assert set(seen) <= set(ours.agents)
        if not theirs.agents:
            break
        actions = {agent: (i + 1) % 4 for i, agent in enumerate(theirs.agents)}
        seen, _, terminated, *_ = ours.step(actions)
        expected, _, ended, *_ = theirs.step(actions)
        assert terminated == ended | {"__all__": all(ended.values())}


def test_the_agents_of_an_episode_that_is_over_stay_known_until_the_next():
    """RLlib takes a random step before it trains, and asks afterwards whose the observations are."""
    env = lakes.LakeMultiAgentEnv({"config": HARD.model_copy(update={"horizon": 1})})
    seen, _ = env.reset(seed=0)
    assert env.agents == list(seen)
    last, *_ = env.step(dict.fromkeys(env.agents, 4))
    assert env.agents == list(last) == ["agent_0", "agent_1"]
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments

    check_multiagent_environments(lakes.LakeMultiAgentEnv({"config": HARD.model_copy(update={"horizon": 1})}))


def test_a_crowd_that_varies_trains_in_both_multi_agent_forms(ray_session):
    crowd = {"config": EASY.model_copy(update={"num_agents": {1: 1.0, 2: 1.0}}), "window": 3}
    for interface in ("lake-agents", "lake-pettingzoo"):
        algorithm = settings(interface).environment(interface, env_config=crowd).build_algo()
        try:
            assert algorithm.train()["num_env_steps_sampled_lifetime"] > 0
        finally:
            algorithm.stop()


def test_an_episode_is_over_for_all_though_one_agent_leaves_as_the_others_run_out_of_time():
    board = mfl.from_desc(["SGF", "sFg"])
    env = lakes.LakeMultiAgentEnv({"instance": board, "on_goal": "finish", "horizon": 1})
    env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step({"agent_0": 2, "agent_1": 4})
    assert terminated == {"agent_0": True, "agent_1": False, "__all__": False}
    assert truncated == {"agent_0": False, "agent_1": True, "__all__": True}
    longer = lakes.LakeMultiAgentEnv({"instance": board, "on_goal": "finish"})
    longer.reset(seed=0)
    assert not longer.step({"agent_0": 2, "agent_1": 2})[2]["__all__"]
    assert longer.step({"agent_1": 2})[2] == {"agent_1": True, "__all__": True}


@pytest.mark.parametrize(
    ("interface", "on_goal", "rules"),
    [
        ("MultiAgentEnv", "finish", {"map_family": "maze"}),
        ("PettingZoo wrapper", "next", {"map_family": "rooms", "room_size": 2}),
        ("native vector", "next", {"collisions": "soft"}),
    ],
)
def test_trains_on_other_goals_maps_and_rules(ray_session, interface, on_goal, rules):
    config = mfl.LakeConfig.single(5, 2, on_goal=on_goal, horizon=12, **rules)
    env = {"native vector": "lakes", "MultiAgentEnv": "lake-agents", "PettingZoo wrapper": "lake-pettingzoo"}[interface]
    algorithm = INTERFACES[interface]().environment(env, env_config={"config": config, "max_size": 5}).build_algo()
    try:
        assert algorithm.train()["num_env_steps_sampled_lifetime"] > 0
    finally:
        algorithm.stop()


@pytest.mark.prove  # `make test` restarts a runner by this id
@pytest.mark.parametrize("vectorised", [False, True])
def test_by_plain_id_with_the_module_as_its_prefix(ray_session, vectorised):
    mode = {"gym_env_vectorize_mode": "vector_entry_point"} if vectorised else {}
    config = (
        ppo.PPOConfig()
        .environment(PLAIN_ID, env_config={"size": 3, "window": 3, "flat": True})
        .env_runners(num_env_runners=1, num_envs_per_env_runner=2, num_cpus_per_env_runner=0.5, **mode)
        .rl_module(model_config=models.DefaultModelConfig(fcnet_hiddens=[16]))
        .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
        .debugging(log_level="ERROR")
    )
    algorithm = config.build_algo()
    try:
        assert algorithm.train()["num_env_steps_sampled_lifetime"] > 0
    finally:
        algorithm.stop()
