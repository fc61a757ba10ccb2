"""A curriculum inside your own Stable-Baselines3 script: the lines marked ← are all it takes.

pip install -e ".[sb3]"
python examples/own_sb3.py --steps 150000    # SB3 counts a step for every agent; less than a minute on one core
"""

import argparse

from stable_baselines3 import PPO

import mapf_frozenlake as mfl
from envtuning import Ladder, SB3CurriculumCallback  # ←

STAGES = [mfl.LakeConfig.single(size, num_agents=2, reward="shaped") for size in (3, 4, 5)]  # ←
HELD_OUT = mfl.generate(STAGES[-1], n=200, seed=1)  # boards that no training env draws, because of ``exclude``


def main(steps: int = 150_000, num_lakes: int = 64) -> int:
    envs = mfl.sb3_vec_env(  # a row for every agent; SB3's success rate counts valid episodes
        num_lakes, per_agent=True, success_key="valid", config=STAGES[0], max_size=5, window=5, exclude=HELD_OUT
    )
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=512, n_epochs=4, learning_rate=1e-3, device="cpu")
    climbing = SB3CurriculumCallback(Ladder(STAGES, threshold=0.7, window=500))  # ←
    model.learn(steps, callback=climbing)  # ←
    print("board size reached:", envs.get_config().max_size)
    for deterministic in (False, True):
        valid = mfl.evaluate(mfl.sb3_policy(model, deterministic=deterministic), HELD_OUT).overall.valid
        print(f"valid plans on held-out 5×5 boards, {'greedy' if deterministic else 'sampled'}: {valid:.1f} %")
    return envs.get_config().max_size


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150_000)
    parser.add_argument("--num-lakes", type=int, default=64)
    main(**vars(parser.parse_args()))
