"""What an engineer's curriculum costs: ``python -m benchmarks.curriculum_cost``, CPU time, in turns in one process, two minutes.

- ``sb3``: PPO of Stable-Baselines3 on 64 lakes, with and without the callback; the engineer ``rules`` is asked every 500 episodes.
- ``vector``: 1,024 lakes with random actions, with and without ``CurriculumVectorEnv``; asked every 20,000 episodes.
- ``light``: the same, where an episode takes two steps on average: half of the copies end in every step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np

import mapf_frozenlake as mfl
from benchmarks._record import record
from envtuning import CurriculumVectorEnv, EngineerCurriculum, SB3CurriculumCallback

CONFIG = mfl.LakeConfig(slices={3: {}, 4: {}, 5: {}}, num_agents=2, reward="shaped")
COPIES = 1_024


def curriculum(every: int) -> EngineerCurriculum:
    return EngineerCurriculum("rules", CONFIG, target=CONFIG, every=every)


def sb3(steps: int, *, counted: bool) -> float:
    """CPU seconds of ``learn``."""
    from stable_baselines3 import PPO

    envs = mfl.sb3_vec_env(64, config=CONFIG, window=5, success_key="valid")
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=512, seed=0, device="cpu")
    callback = SB3CurriculumCallback(curriculum(500), success_key="valid") if counted else None
    begin = time.process_time()
    model.learn(steps, callback=callback)
    return time.process_time() - begin


def vector(steps: int, *, counted: bool, horizon: int | None = None) -> float:
    """CPU seconds of stepping."""
    config = CONFIG.model_copy(update={"horizon": horizon})
    envs = gym.make_vec(
        "MAPFFrozenLake-v0", num_envs=COPIES, config=config, window=5, vectorization_mode="vector_entry_point"
    )
    if counted:
        envs = CurriculumVectorEnv(
            envs, EngineerCurriculum("rules", config, target=config, every=20_000), success_key="valid"
        )
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, (64, COPIES, 2))
    begin = time.process_time()
    for step in range(steps):
        envs.step(actions[step % 64])
    return time.process_time() - begin


def share(measure: Callable[..., float], rounds: int, **given: int) -> dict[str, float | list[float]]:
    """The part of the time that counting takes: the median of the rounds' ratios."""
    measure(counted=True, **given), measure(counted=False, **given)  # compiled and warmed
    ratios = []
    for number in range(rounds):
        order = (True, False) if number % 2 else (False, True)
        seconds = {counted: measure(counted=counted, **given) for counted in order}
        ratios.append(seconds[True] / seconds[False] - 1)
    return {"median": statistics.median(ratios), "rounds": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    import torch

    torch.set_num_threads(1)
    found = {
        "sb3": share(sb3, rounds, steps=32_768),
        "vector": share(vector, rounds, steps=1_500),
        "light": share(vector, rounds, steps=1_500, horizon=2),
    }
    for name, one in found.items():
        print(f"{name}: counting adds {one['median']:.1%} of CPU time")
    print(f"figures: {record('curriculum_cost', found)}")


if __name__ == "__main__":
    main()
