"""``sb3_policy``: what a model of SB3 predicts is what ``evaluate`` plays, whatever interface of envs it was trained in."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")

from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import mapf_frozenlake as mfl

ROOM = {"size": 4, "num_agents": {1: 1, 2: 1}, "window": 3, "horizon": 6, "collisions": "end"}
BOARDS = mfl.generate(mfl.LakeConfig.single(4, {1: 1, 2: 1}, horizon=6), n=12, seed=5)
INTERFACES = {
    "lakes": lambda: mfl.sb3_vec_env(2, **ROOM),
    "agents": lambda: mfl.sb3_vec_env(2, per_agent=True, **ROOM),
    "copies, flat": lambda: DummyVecEnv([lambda: gym.make("MAPFFrozenLake-v0", flat=True, hints=True, **ROOM)]),
    "normalised": lambda: VecNormalize(mfl.sb3_vec_env(2, **ROOM)),
    "grid": lambda: mfl.sb3_vec_env(2, **ROOM, observation="grid", dtype="int8"),
}


@pytest.mark.parametrize("interface", INTERFACES)
def test_it_plays_the_boards_as_the_model_does_in_its_own_envs(interface):
    envs = INTERFACES[interface]()
    model = PPO("MlpPolicy", envs, n_steps=4, batch_size=8, device="cpu", seed=3)
    if interface == "normalised":
        model.learn(16)  # its envs have seen something to normalise by
    table = mfl.evaluate(mfl.sb3_policy(model), BOARDS, config=mfl.LakeConfig.single(4, horizon=6))
    assert table.name == "PPO"
    single = gym.make("MAPFFrozenLake-v0", **ROOM, flat="flat" in interface, hints="flat" in interface)
    if interface == "grid":
        single = gym.make("MAPFFrozenLake-v0", **ROOM, observation="grid", dtype="int8")
    for board, record in zip(BOARDS, table.per_instance, strict=True):
        seen, _ = single.reset(options={"instance": board})
        over, made = False, []
        while not over:
            seen = model.get_env().normalize_obs(seen) if interface == "normalised" else seen
            action = np.asarray(model.predict(seen, deterministic=True)[0])
            made.append(action)
            seen, _, terminated, truncated, info = single.step(action)
            over = terminated or truncated
        # the table's episodes go on after a conflict, these end there
        assert np.array(record.plan).T[: len(made)].tolist() == [a[: board.num_agents].tolist() for a in made]
        assert record.valid == info["valid"]


def stays_on_the_board(table):
    """A random walk that minds its masks; one that did not would leave these boards many times."""
    faults = [
        fault for record in table.per_instance for fault in mfl.judge(BOARDS[record.index], record.plan).violations
    ]
    return faults and all(fault.event is not mfl.Event.OFF_BOARD for fault in faults)


class Masked:
    """As sb3-contrib's MaskablePPO looks from outside: any action that its mask allows."""

    observation_space, policy = gym.spaces.Box(-1, 1, (4 * 9 + 11,)), SimpleNamespace()

    def __init__(self, envs=None):
        self.envs, self.rng, self.masks = envs, np.random.default_rng(0), []

    def get_env(self):
        return self.envs

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
        assert observation.shape[1:] == self.observation_space.shape
        rows = action_masks.reshape(len(observation), 5)
        assert rows.any(axis=1).all()
        self.masks.append(rows)
        return np.array([self.rng.choice(np.flatnonzero(row)) for row in rows]), None


def test_a_model_that_takes_masks_gets_those_of_the_envs():
    envs = mfl.sb3_vec_env(12, per_agent=True, **ROOM)
    model = Masked(envs)
    table = mfl.evaluate(mfl.sb3_policy(model), BOARDS)
    assert stays_on_the_board(table)
    envs.lakes.reset(options={"instance": list(BOARDS)})
    np.testing.assert_array_equal(model.masks[0], envs.action_masks())
    empty = ~envs.active
    assert empty.any()
    assert (model.masks[0][empty] == [False, False, False, False, True]).all()


def test_what_it_cannot_know_is_asked_for():
    with pytest.raises(mfl.LakeError, match=r"sb3_policy\(model, envs\)"):
        mfl.sb3_policy(Masked())
    assert mfl.sb3_policy(Masked(), mfl.sb3_vec_env(1, **ROOM)).env_kwargs["window"] == 3
    with pytest.raises(mfl.LakeError, match="train it on 'ego'"):
        mfl.sb3_policy(Masked(mfl.sb3_vec_env(1, observation="compact")))
    small = mfl.sb3_policy(Masked(mfl.sb3_vec_env(1, per_agent=True, **ROOM)))
    with pytest.raises(mfl.LakeError, match="max_size=5"):
        mfl.evaluate(small, mfl.generate(mfl.LakeConfig.single(5, 1), n=1))
    recurrent = Masked(mfl.sb3_vec_env(1, **ROOM))
    recurrent.policy = SimpleNamespace(lstm_actor=None)
    with pytest.raises(mfl.LakeError, match="recurrent"):
        mfl.sb3_policy(recurrent)


def test_maskable_ppo_itself():
    MaskablePPO = pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: pip install sb3-contrib").MaskablePPO
    for per_agent in (False, True):
        model = MaskablePPO(
            "MlpPolicy", mfl.sb3_vec_env(2, per_agent=per_agent, **ROOM), n_steps=4, batch_size=8, device="cpu"
        )
        table = mfl.evaluate(mfl.sb3_policy(model, deterministic=False), BOARDS)
        assert table.name == "MaskablePPO"
        assert stays_on_the_board(table)
