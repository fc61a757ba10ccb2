"""A trainee of your own: stock RLlib's PPO in any Gymnasium world. All the loop asks is train, policy, save and load.

envtuning run examples/own_world_mountain_car.yaml --trust examples --set trainee.kind=examples.own_trainee_rllib:StockPPO --set 'trainee.options={}'
"""

import copy
from functools import partial
from pathlib import Path

import torch
from gymnasium.vector import SyncVectorEnv
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune import register_env

from envtuning.seeds import derive
from envtuning.trainees.base import Trainee
from envtuning.trainees.process_state import process_state


class StockPPO(Trainee):
    form = "acts"
    reports = frozenset({"loss"})

    def __init__(self, *, world, capacity, exclude=(), seed=0, num_envs=8, **training):
        def make(context):  # copies of the stage's config, each with a seed of its own
            own = {"exclude": exclude, "capacity": capacity}
            seeds = [derive(context["seed"], "copy", copy) for copy in range(context["num_envs"])]
            return SyncVectorEnv([partial(world.make_env, context["config"], seed=one, **own) for one in seeds])

        register_env(name := f"own-world-{id(self)}", make)
        settings = PPOConfig().environment(name, env_config={"config": capacity["config"], "seed": seed})
        settings.env_runners(
            num_env_runners=0, num_envs_per_env_runner=num_envs, gym_env_vectorize_mode="vector_entry_point"
        )
        settings.callbacks(on_episode_end=log_success).training(**training).debugging(log_level="ERROR")
        self.settings, self.seed = settings, seed
        self.algorithm = self.build()

    def build(self):
        with process_state(self.seed, torch_threads=1):
            return self.settings.copy().build_algo()

    def train(self, config, budget, *, seed, on_iteration=None):
        runner = self.algorithm.env_runner
        runner.config = runner.config.copy(copy_frozen=False).environment(env_config={"config": config, "seed": seed})
        spent = 0
        with process_state(seed, torch_threads=1):  # RLlib draws from the process's generators
            runner.make_env()  # every episode begins anew
            while spent < budget:
                metrics = metrics_of(self.algorithm.train())
                spent += metrics["env_steps"]
                if on_iteration is not None:
                    on_iteration(metrics)
        return metrics | {"env_steps": spent}

    def policy(self):
        return Policy(copy.deepcopy(self.algorithm.get_module()))

    def save(self, folder: Path) -> None:
        self.algorithm.save_to_path(str(folder))  # with pickles inside: load none that you did not write

    def load(self, folder: Path) -> None:
        """Into a new Algorithm: in one that has learnt since, RLlib's runners keep the newer weights."""
        self.close()
        self.algorithm = self.build()
        self.algorithm.restore_from_path(str(folder))

    def close(self) -> None:
        self.algorithm.stop()


class Policy:
    """Takes the likeliest action, for a whole batch at once."""

    def __init__(self, module):
        self.module = module

    def act(self, observations):
        with torch.inference_mode():
            out = self.module.forward_inference({"obs": torch.from_numpy(observations)})
        return out["action_dist_inputs"].argmax(dim=1).numpy()


def log_success(*, episode, metrics_logger, **_):
    success = float(episode.get_infos(-1)["is_success"])
    metrics_logger.log_value("success_rate", success, reduce="mean", window=100)


def metrics_of(result):
    sampled, learnt = result["env_runners"], result["learners"]["default_policy"]
    metrics = {"env_steps": sampled["num_env_steps_sampled"], "loss": float(learnt["total_loss"])}
    if "success_rate" in sampled:  # as soon as an episode has ended
        metrics["success_rate"] = float(sampled["success_rate"])
    return metrics
