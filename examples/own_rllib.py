"""A curriculum inside your own RLlib script: the lines marked ← are all it takes.

python examples/own_rllib.py --iterations 30    # about two minutes on two cores, a line per iteration
"""

import argparse
import logging

from ray.rllib.algorithms.ppo import PPOConfig

import mapf_frozenlake as mfl
from envtuning import RLlibCurriculumCallback  # ←
from envtuning.worlds.lakes.rllib_envs import register_lakes

STAGES = [mfl.LakeConfig.single(size, num_agents=2, reward="shaped") for size in (3, 4, 5)]  # ←


def main(iterations: int = 30, num_env_runners: int = 0) -> list[float]:
    logging.getLogger("ray.rllib").setLevel(logging.ERROR)  # it warns of its own renamings
    register_lakes()
    settings = (
        PPOConfig()
        .environment("lakes", env_config={"config": STAGES[0], "max_size": 5, "window": 5})
        .env_runners(
            num_env_runners=num_env_runners,
            num_envs_per_env_runner=32,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .training(lr=5e-4, train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=4)
        .callbacks(RLlibCurriculumCallback)  # ←
    )
    algorithm = settings.build_algo()
    returns = []
    for stage in STAGES:
        RLlibCurriculumCallback.swap(algorithm, stage)  # ← every runner, remote and restarted ones too
        for _ in range(iterations // len(STAGES)):
            result = algorithm.train()
            mean_return = result["env_runners"]["episode_return_mean"]
            print(
                f"iteration {result['training_iteration']}, size {stage.max_size}: mean return {mean_return:.2f}",
                flush=True,
            )
        returns.append(mean_return)
    algorithm.stop()
    return returns


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--num-env-runners", type=int, default=0)
    main(**vars(parser.parse_args()))
