# /// script
# dependencies = ["stable-baselines3", "sb3-contrib"]
# [tool.client]
# title = "Stable-Baselines3, sb3-contrib"
# quick = true
# how = "`mfl.sb3_vec_env(64)`, or its own `DummyVecEnv`; DQN: `gym.make(…, num_agents=1, discrete=True)`"
# ///
"""Stable-Baselines3 trains, evaluates with a success rate, and masks."""

import tempfile

import gymnasium as gym
import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

import mapf_frozenlake as mfl

PACKAGES = ["stable-baselines3", "sb3-contrib"]
ID, SMALL = "MAPFFrozenLake-v0", {"size": 3, "num_agents": 2, "horizon": 10, "reward": "shaped"}


def check_its_own_checker():
    """`check_env`"""
    check_env(gym.make(ID, **SMALL))
    check_env(gym.make(ID, size=3, num_agents=1, discrete=True, flat=True))


def check_ppo_and_a2c():
    """PPO and A2C on `make_vec_env` and on `sb3_vec_env`, per agent too; `EvalCallback` shows a success rate"""
    for envs in (
        make_vec_env(ID, 2, env_kwargs=SMALL),
        mfl.sb3_vec_env(4, **SMALL),
        mfl.sb3_vec_env(2, per_agent=True, **SMALL),
    ):
        A2C("MlpPolicy", envs, device="cpu").learn(40)
        shown = EvalCallback(mfl.sb3_vec_env(2, **SMALL), eval_freq=8, verbose=0, log_path=tempfile.mkdtemp())
        PPO("MlpPolicy", envs, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(
            64, callback=shown if envs.action_space == shown.eval_env.action_space else None
        )
        assert envs.action_space != shown.eval_env.action_space or shown.evaluations_successes


def check_dqn():
    """DQN on one agent"""
    DQN("MlpPolicy", gym.make(ID, size=3, num_agents=1, discrete=True), learning_starts=10, device="cpu").learn(60)


def check_masks():
    """MaskablePPO by `action_masks()`, single and native"""
    MaskablePPO("MlpPolicy", gym.make(ID, **SMALL), n_steps=32, batch_size=16, device="cpu").learn(64)
    envs = mfl.sb3_vec_env(4, per_agent=True, **SMALL)
    model = MaskablePPO("MlpPolicy", envs, n_steps=16, batch_size=16, device="cpu")
    model.learn(128)
    seen = envs.reset()
    for _ in range(30):
        masks = envs.action_masks()
        actions, _ = model.predict(seen, action_masks=masks)
        assert masks[np.arange(envs.num_envs), actions].all()
        seen, *_ = envs.step(actions)


if __name__ == "__main__":
    import _checks

    _checks.run(globals())
