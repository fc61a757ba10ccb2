"""Our trainee against stock RLlib: the same network, the same PPO settings, the same lakes, one process and one core each.

    python -m benchmarks.training [--iterations 8]

It compares CPU seconds of this process, so that other work on the machine does not matter; wall seconds stand beside them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.callbacks.callbacks import RLlibCallback

from benchmarks._record import record
from envtuning.trainees.rllib.options import RLlibOptions, algorithm_config, module_spec
from envtuning.trainees.rllib.ray_session import start_ray
from envtuning.trainees.rllib.trainee import RLlibTrainee
from envtuning.worlds.lakes.rllib_envs import register_lakes
from mapf_frozenlake import LakeConfig

LAKES = LakeConfig.single(5, num_agents=2, hole_ratio=0.2, reward="shaped")
OPTIONS = RLlibOptions(
    encoder="mlp", hidden=(128, 128), separate_value=True, num_envs=64, rollout=64, minibatch=1024, epochs=4
)
ROOM = {"observation": "ego", "window": 7, "hints": False, "max_size": 5, "max_agents": 2}


def ours() -> Algorithm:
    trainee = RLlibTrainee(capacity={"max_size": 5, "max_agents": 2}, seed=0, **OPTIONS.model_dump())
    trainee.algorithm.env_runner.env.set_config(LAKES)
    return trainee.algorithm


def stock(env: str) -> Algorithm:
    """RLlib's PPO, EnvRunner, connectors and Learner with our network and our settings."""
    ours = algorithm_config(OPTIONS, ROOM, seed=0)
    settings = (
        PPOConfig()
        .environment(env, env_config=ROOM | {"config": LAKES})
        .multi_agent(policies={"shared"}, policy_mapping_fn=lambda agent, episode, **_: "shared")
        .rl_module(rl_module_spec=module_spec(OPTIONS, ROOM))
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=OPTIONS.num_envs, rollout_fragment_length=OPTIONS.rollout
        )
        .callbacks(RLlibCallback)
        .debugging(seed=0, log_level="ERROR")
    )
    same = ("lr", "gamma", "lambda_", "clip_param", "entropy_coeff", "vf_loss_coeff", "vf_clip_param", "use_kl_loss",
            "grad_clip", "grad_clip_by", "train_batch_size_per_learner", "minibatch_size", "num_epochs")  # fmt: skip
    return settings.training(**{name: getattr(ours, name) for name in same}).build_algo()


ROWS: dict[str, Callable[[], Algorithm]] = {
    "ours": ours,
    "stock MultiAgentEnv": lambda: stock("lake-agents"),
    "stock PettingZoo wrapper": lambda: stock("lake-pettingzoo"),
}


def measure(algorithm: Algorithm, iterations: int) -> dict[str, Any]:
    """Env steps per second: sampling alone, and training end to end. The first of each warms up."""
    algorithm.env_runner.sample()
    algorithm.train()
    sampling = _rate(iterations, lambda: _sampled_steps(algorithm))
    training = _rate(iterations, lambda: _trained_steps(algorithm))
    return {"sampling": sampling, "end_to_end": training}


def _rate(times: int, work: Callable[[], int]) -> dict[str, float]:
    cpu, wall, steps = time.process_time(), time.perf_counter(), 0
    for _ in range(times):
        steps += work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return {
        "env_steps": steps,
        "cpu_us_per_step": round(cpu / steps * 1e6, 2),
        "steps_per_cpu_s": round(steps / cpu),
        "steps_per_wall_s": round(steps / wall),
    }


def _sampled_steps(algorithm: Algorithm) -> int:
    """Env steps: agents' moves over the number of agents, so that resets count in nobody's favour."""
    sample = algorithm.env_runner.sample()
    algorithm.env_runner.get_metrics()
    moves = len(sample["obs"]) if "obs" in sample else sum(episode.agent_steps() for episode in sample)
    return moves // LAKES.max_agents


def _trained_steps(algorithm: Algorithm) -> int:
    before = _lifetime(algorithm)
    algorithm.train()
    return _lifetime(algorithm) - before


def _lifetime(algorithm: Algorithm) -> int:
    return int(algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"), default=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=8, help="iterations of 4,096 env steps measured per row")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    start_ray()
    register_lakes()
    rows: dict[str, Any] = {}
    for name, build in ROWS.items():
        algorithm = build()
        rows[name] = measure(algorithm, arguments.iterations)
        algorithm.stop()
        print(f"{name:26}", rows[name], flush=True)
    ratios = {
        name: {
            "sampling_cpu_per_step": round(
                row["sampling"]["cpu_us_per_step"] / rows["ours"]["sampling"]["cpu_us_per_step"], 1
            ),
            "end_to_end_steps_per_cpu_s": round(
                rows["ours"]["end_to_end"]["steps_per_cpu_s"] / row["end_to_end"]["steps_per_cpu_s"], 2
            ),
        }
        for name, row in rows.items()
        if name != "ours"
    }
    print("ours better by", ratios)
    settings = {"lakes": LAKES.model_dump(mode="json"), "options": OPTIONS.model_dump(mode="json")}
    print(record("training", {"settings": settings, "rows": rows, "ours_better_by": ratios}))


if __name__ == "__main__":
    main()
