"""What clients of the field ask of the interfaces: flat, discrete, masks elsewhere, a fixed crowd, one global vector, records."""

from __future__ import annotations

import inspect
import json
import pickle
from importlib.util import find_spec

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test

import mapf_frozenlake as mfl
from mapf_frozenlake import mapf_frozenlake_v0
from mapf_frozenlake.envs.options import BATCH, DEFAULTS, DRAW, KNOWN
from mapf_frozenlake.envs.parallel_vec_env import MAPFFrozenLakeAgentsVectorEnv
from mapf_frozenlake.errors import LakeError, UnknownArgument

ID = "MAPFFrozenLake-v0"
ENVS = {  # every class that an id or a function of the package makes
    **{
        spec.entry_point: load_env_creator(spec.entry_point)
        for spec in gym.registry.values()
        if spec.id.startswith("MAPF")
    },
    **{
        spec.vector_entry_point: load_env_creator(spec.vector_entry_point)
        for spec in gym.registry.values()
        if spec.id.startswith("MAPF") and spec.vector_entry_point
    },
    "parallel_env": mapf_frozenlake_v0.parallel_env,
    "parallel_vec_env": MAPFFrozenLakeAgentsVectorEnv,
    **({"sb3_vec_env": mfl.sb3_vec_env} if find_spec("stable_baselines3") else {}),
}
OF_A_TEXT = {"observation", "dtype", "window", "hints"}  # which the text interface has no use for


@pytest.mark.parametrize("name", ENVS)
def test_every_argument_is_in_the_signature_with_its_default(name) -> None:
    """So ``help()``, an IDE and the reference show it."""
    shown = inspect.signature(ENVS[name]).parameters
    hidden = OF_A_TEXT if "text_env" in name else set()
    assert {option: shown[option].default for option in KNOWN if option not in hidden} == {
        option: default for option, default in DEFAULTS.items() if option not in hidden
    }
    assert [one.name for one in shown.values() if one.kind is one.VAR_KEYWORD] == ["unknown"]


def test_the_defaults_are_the_configs_and_the_batchs() -> None:
    batch = inspect.signature(mfl.LakeBatch).parameters
    assert set(BATCH) == set(batch) - {"config", "num_envs", "autoreset", "reward", "instance"}
    assert {name: DEFAULTS[name] for name in BATCH} == {name: batch[name].default for name in BATCH}
    assert set(DRAW) == set(inspect.signature(mfl.LakeConfig.single).parameters) - {"rules"}
    assert gym.make(ID).unwrapped.get_config() == mfl.LakeConfig()


@pytest.mark.parametrize("name", ["is_slippery", "hint_strength", "num_threads"])
def test_an_argument_that_equals_a_default_still_replaces_the_configs(name) -> None:
    config = mfl.LakeConfig(is_slippery=True, hint_strength=0.5)
    given = {"is_slippery": False, "hint_strength": 1.0, "num_threads": None}[name]
    batch = gym.make(ID, config=config, **{name: given}).unwrapped.batch
    assert getattr(batch.get_config(), name, given) == given
    other = {"is_slippery": True, "hint_strength": 0.5}
    assert {key: getattr(batch.get_config(), key) for key in other if key != name} == {
        key: value for key, value in other.items() if key != name
    }


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"map_name": "8x8"}, "did you mean size=8?"),
        ({"max_cycles": 50}, "did you mean horizon=50?"),
        ({"n_agents": 3}, "did you mean num_agents=3?"),
        ({"max_steps": 50}, "did you mean horizon=50?"),
        ({"hole_ration": 0.1}, "did you mean hole_ratio=0.1?"),
        ({"frameskip": 4}, "known are config"),
        ({"choose": len}, "known are config"),
    ],
)
def test_an_unknown_argument_is_both_errors_and_names_the_known_one(given, hint) -> None:
    """TorchRL tries ``frameskip`` and expects Python's own TypeError; others expect this package's ValueError."""
    (name,) = given
    for make in (gym.make, lambda id, **kwargs: gym.make_vec(id, num_envs=2, **kwargs)):
        for kind in (TypeError, ValueError, LakeError, UnknownArgument):
            with pytest.raises(kind, match=f"unexpected keyword argument '{name}'") as caught:
                make(ID, **given)
            assert hint in str(caught.value)


@pytest.mark.parametrize("observation", ["ego", "grid", "compact", "pogema"])
def test_flat_is_the_same_numbers_in_one_vector(observation) -> None:
    kwargs = {"size": 5, "num_agents": 3, "observation": observation}
    deep, flat = gym.make(ID, **kwargs), gym.make(ID, flat=True, **kwargs)
    check_env(flat.unwrapped, skip_render_check=True)
    assert flat.observation_space.shape == (int(np.prod(deep.observation_space.shape)),)
    many = gym.make_vec(ID, num_envs=2, flat=True, autoreset_mode=AutoresetMode.SAME_STEP, horizon=1, **kwargs)
    seen, _ = deep.reset(seed=3)
    np.testing.assert_array_equal(flat.reset(seed=3)[0], seen.ravel())
    np.testing.assert_array_equal(many.reset(seed=3)[0][0], seen.ravel())
    action = np.full(3, 4)
    after = deep.step(action)[0].ravel()
    np.testing.assert_array_equal(flat.step(action)[0], after)
    final = many.step(np.stack([action, action]))[4]["final_obs"][0]
    assert final.shape == after.shape
    twin = pickle.loads(pickle.dumps(flat))
    np.testing.assert_array_equal(twin.step(action)[0], flat.step(action)[0])


def test_one_agent_alone_may_act_by_one_number() -> None:
    one, many = gym.make(ID, num_agents=1, discrete=True), gym.make_vec(ID, num_envs=3, num_agents=1, discrete=True)
    usual = gym.make(ID, num_agents=1)
    check_env(one.unwrapped, skip_render_check=True)
    assert one.action_space == many.single_action_space == spaces.Discrete(5)
    one.reset(seed=0), many.reset(seed=0), usual.reset(seed=0)
    assert one.unwrapped.action_masks().shape == (5,)
    assert many.unwrapped.action_masks().shape == (3, 5)
    for action in (2, 1, 4):
        seen, _reward, *ended, _ = usual.step([action])
        if any(ended):
            break
        np.testing.assert_array_equal(one.step(action)[0], seen)
        np.testing.assert_array_equal(many.step(np.full(3, action))[0][0], seen)
    with pytest.raises(LakeError, match=r"discrete=True with 2 agents: .*num_agents=1"):
        gym.make(ID, num_agents=2, discrete=True)


def solved(env: gym.Env) -> dict:
    """The info of an episode played to its success."""
    plan = mfl.solve(env.unwrapped.instance).plan
    for step in range(max(map(len, plan))):
        info = env.step([moves[step] if step < len(moves) else 4 for moves in plan])[4]
    return info


@pytest.mark.parametrize("option", ["flat", "discrete"])
def test_where_every_agent_is_a_row_there_is_nothing_to_join(option) -> None:
    mfl.parallel_vec_env(2, num_agents=1, **{option: False})
    with pytest.raises(LakeError, match=f"^{option}=True is for one controller of all agents"):
        mfl.parallel_vec_env(2, num_agents=1, **{option: True})


def test_success_has_the_name_that_stable_baselines_looks_for() -> None:
    env = gym.make(ID, size=4, num_agents=2)
    env.reset(seed=1)
    info = solved(env)
    assert info["is_success"] is True
    assert info["success"] is True
    envs = gym.make_vec(ID, num_envs=4, size=4, num_agents=2, horizon=1)
    envs.reset(seed=0)
    info = envs.step(np.full((4, 2), 4))[4]
    np.testing.assert_array_equal(info["is_success"], info["success"])
    np.testing.assert_array_equal(info["_is_success"], np.ones(4, bool))


def test_positions_goals_and_the_instance_are_public() -> None:
    env, parallel = gym.make(ID, size=5, num_agents=3), mfl.parallel_env(size=5, num_agents=3)
    envs = gym.make_vec(ID, num_envs=2, size=5, num_agents=3)
    with pytest.raises(LakeError, match="call reset first"):
        _ = env.unwrapped.instance
    with pytest.raises(LakeError, match="call reset first"):
        _ = envs.unwrapped.instances
    for one in (env, parallel, envs):
        one.reset(seed=7)
    instance = env.unwrapped.instance
    assert instance == parallel.instance == envs.unwrapped.instances[0]
    assert instance.makespan == mfl.solve(instance).makespan
    np.testing.assert_array_equal(env.unwrapped.positions, instance.starts)
    np.testing.assert_array_equal(parallel.goals, instance.goals)
    env.step([0, 1, 2])
    assert env.unwrapped.instance == instance, "the instance is what the episode began on"
    np.testing.assert_array_equal(envs.unwrapped.positions[0], instance.starts)
    assert envs.unwrapped.goals.shape == (2, 3, 2)


@pytest.mark.parametrize("mask", ["observation", "info", None])
@pytest.mark.parametrize("observation", ["ego", "compact"])
def test_the_mask_is_where_it_was_asked_for(mask, observation) -> None:
    env = mfl.parallel_env(size=4, num_agents=2, action_mask=mask, observation=observation)
    parallel_api_test(env, num_cycles=60)
    seen, infos = env.reset(seed=0)
    for step in range(2):
        expected = env.batch.action_masks()[0].astype(np.int8)
        for i, agent in enumerate(env.agents):
            assert env.observation_space(agent).contains(seen[agent])
            if mask == "observation":
                np.testing.assert_array_equal(seen[agent]["action_mask"], expected[i])
            else:
                assert isinstance(seen[agent], np.ndarray)
            assert ("action_mask" in infos[agent]) == (mask == "info")
            if mask == "info":
                np.testing.assert_array_equal(infos[agent]["action_mask"], expected[i])
        if step == 0:
            seen, _, _, _, infos = env.step({})
    with pytest.raises(LakeError, match="action_mask='beside': give 'observation', 'info' or None"):
        mfl.parallel_env(action_mask="beside")


def test_max_cycles_is_the_horizon() -> None:
    env = mfl.parallel_env(size=4, num_agents=2, max_cycles=3)
    env.reset(seed=0)
    for _ in range(3):
        *_, truncated, _ = env.step({})
    assert all(truncated.values())
    with pytest.raises(LakeError, match="max_cycles=3 and horizon=4 mean the same"):
        mfl.parallel_env(max_cycles=3, horizon=4)


def test_a_fixed_roster_never_changes_and_empty_slots_wait_unpaid() -> None:
    env = mfl.parallel_env(size=4, num_agents={1: 1, 3: 1}, fixed_roster=True, reward="progress")
    changing = mfl.parallel_env(size=4, num_agents={1: 1, 3: 1}, reward="progress")
    parallel_api_test(env, num_cycles=150)
    crowds = set()
    for seed in range(12):
        seen, _ = env.reset(seed=seed)
        expected, _ = changing.reset(seed=seed)
        crowds.add(len(expected))
        assert env.agents == env.possible_agents == list(seen)
        for agent in set(seen) - set(expected):
            assert not seen[agent]["observation"].any()
            assert seen[agent]["action_mask"].tolist() == [0, 0, 0, 0, 1]
        actions = dict.fromkeys(env.agents, 1)  # what an empty slot says does not count
        _, rewards, terminated, truncated, infos = env.step(actions)
        _, paid, ended, *_ = changing.step(dict.fromkeys(changing.agents, 1))
        assert rewards == dict.fromkeys(env.possible_agents, 0.0) | paid
        assert len(terminated) == len(truncated) == len(infos) == 3
        assert set(terminated.values()) == set(ended.values())
    assert crowds == {1, 3}


def test_the_global_state_fits_its_space_and_says_everything() -> None:
    stack = mfl.parallel_env(size=4, num_agents=2)
    stack.reset(seed=0)
    assert stack.state_space.contains(stack.state())
    config = mfl.LakeConfig(slices={3: {}, 5: {}}, num_agents={1: 1, 3: 1})
    env = mfl.parallel_env(config=config, state="compact")
    told: dict[bytes, tuple] = {}
    for seed in range(40):
        env.reset(seed=seed)
        for _ in range(3):
            state = env.state()
            assert env.state_space.contains(state)
            lake = (
                env.instance.key(),
                env.positions.tobytes(),
                int(env.batch.step_count[0]),
                int(env.batch.horizon[0]),
            )
            without_starts = (env.batch.holes().tobytes(), env.goals.tobytes(), *lake[1:])
            assert told.setdefault(state.tobytes(), without_starts) == without_starts
            if not env.agents:
                break
            env.step(dict.fromkeys(env.agents, 1))
            if not env.agents:
                break
    board = env.state()[:25].reshape(5, 5)
    side = env.instance.height
    np.testing.assert_array_equal(board[:side, :side] == 1, env.instance.holes)
    assert (board[side:] == -1).all()


def test_the_number_of_lakes_has_two_names() -> None:
    assert (
        mfl.parallel_vec_env(num_envs=3, num_agents=2).num_envs == mfl.parallel_vec_env(3, num_agents=2).num_envs == 6
    )
    with pytest.raises(LakeError, match="num_lakes=1 and num_envs=2 mean the same"):
        mfl.parallel_vec_env(1, num_envs=2)


def test_a_recorded_environment_can_be_made_again() -> None:
    """``spec.to_json`` is what recorders (Minari, W&B) keep of an environment."""
    config = mfl.LakeConfig.single(5, 2, reward="shaped")
    instance = mfl.generate(config, 1)[0]
    for kwargs in (
        {"config": config, "max_size": 6},
        {"instance": instance, "config": config},
        {"config": config.canonical_json()},
    ):
        env = gym.make(ID, **kwargs)
        again = gym.make(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
        np.testing.assert_array_equal(again.reset(seed=4)[0], env.reset(seed=4)[0])
        assert again.unwrapped.get_config() == env.unwrapped.get_config() == config
    env = gym.make(ID, config=config)
    from_object = env.reset(options={"instance": instance, "config": config})[0]
    from_text = env.reset(options={"instance": instance.to_json(), "config": config.canonical_json()})[0]
    parsed = env.reset(options={"instance": json.loads(instance.to_json()), "config": config.model_dump(mode="json")})[
        0
    ]
    np.testing.assert_array_equal(from_object, from_text)
    np.testing.assert_array_equal(from_object, parsed)


def test_config_text_that_is_no_config() -> None:
    with pytest.raises(LakeError, match="unknown field 'slice'"):
        gym.make(ID, config='{"slice": {}}')
    with pytest.raises(LakeError, match="nvalid JSON"):
        gym.make(ID, config="size 4")


def test_the_tuple_form_is_the_pettingzoo_form_in_order() -> None:
    """What PyMARL's family asks for: Tuple spaces, a list of rewards, the last one included."""
    kwargs = {"size": 4, "num_agents": {1: 1, 2: 1}, "reward": "progress"}
    env, twin = (
        gym.make("MAPFFrozenLakeTuple-v0", **kwargs),
        mfl.parallel_env(fixed_roster=True, action_mask=None, **kwargs),
    )
    assert len(env.action_space) == len(env.observation_space) == env.unwrapped.n_agents == 2
    for seed in range(6):
        seen, _ = env.reset(seed=seed)
        expected, _ = twin.reset(seed=seed)
        plan = mfl.solve(twin.instance).plan
        for step in range(max(map(len, plan))):
            assert env.observation_space.contains(seen)
            np.testing.assert_array_equal(np.stack(seen), np.stack(list(expected.values())))
            moves = [row[step] if step < len(row) else 4 for row in plan] + [4] * (2 - len(plan))
            seen, rewards, terminated, truncated, info = env.step(moves)
            expected, paid, *_ = twin.step(dict(zip(twin.possible_agents, moves)))
            assert rewards == list(paid.values())
        assert (terminated, truncated, info["success"]) == (True, False, True)
        assert sum(rewards) > 0, "the last step pays"
