"""A curriculum inside your own Stable-Baselines3 script: the lines marked ← are all it takes.

pip install ".[sb3]"
python examples/own_sb3.py --steps 150000    # about half a minute on one core
"""

import argparse

from stable_baselines3 import PPO

import mapf_frozenlake as mfl
from envtuning import Ladder, SB3CurriculumCallback  # ←

STAGES = [mfl.LakeConfig.single(size, num_agents=2, reward="shaped") for size in (3, 4, 5)]  # ←


def main(steps: int = 150_000, num_lakes: int = 64) -> int:
    envs = mfl.sb3_vec_env(num_lakes, per_agent=True, config=STAGES[0], max_size=5, window=5)  # a row for every agent
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=512, n_epochs=4, learning_rate=1e-3, device="cpu")
    climbing = SB3CurriculumCallback(Ladder(STAGES, threshold=0.7, window=500))  # ← hears of every episode that ends
    model.learn(steps, callback=climbing)  # ←
    held_out = mfl.generate(STAGES[-1], n=200, seed=1)
    print("board size reached:", envs.get_config().max_size)
    print(mfl.evaluate(mfl.sb3_policy(model, deterministic=False), held_out).overall)  # counts plans without a conflict
    return envs.get_config().max_size


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150_000)
    parser.add_argument("--num-lakes", type=int, default=64)
    main(**vars(parser.parse_args()))
