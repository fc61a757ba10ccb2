"""A curriculum inside your own Stable-Baselines3 script: the lines marked ← are all it takes.

pip install stable-baselines3
python examples/own_sb3.py --steps 60000    # about three minutes on two cores
"""

import argparse

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import mapf_frozenlake as mfl
from envtuning import CurriculumEnv, Ladder  # ←

STAGES = [mfl.LakeConfig.single(size, num_agents=2, reward="shaped") for size in (3, 4, 5)]  # ←


def make_env() -> gym.Env:
    env = gym.make("MAPFFrozenLake-v0", config=STAGES[0], max_size=5, window=5)
    return CurriculumEnv(env, curriculum=Ladder(STAGES, threshold=0.6, window=50))  # ← each copy climbs by itself


def main(steps: int = 60_000, num_envs: int = 8) -> list[int]:
    envs = make_vec_env(make_env, n_envs=num_envs)
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=256, n_epochs=4, device="cpu")
    model.learn(steps)
    sizes = [config.max_size for config in envs.env_method("get_config")]  # ← for the eye
    print("board sizes reached:", sizes)
    return sizes


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60_000)
    parser.add_argument("--num-envs", type=int, default=8)
    main(**vars(parser.parse_args()))
