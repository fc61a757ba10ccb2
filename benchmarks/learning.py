"""How fast and how far the RLlib trainee learns, and how it acts at several temperatures.

    python -m benchmarks.learning [--seeds 3]

Env steps and CPU seconds until 80 % of the training episodes succeed on 5×5 with 2 agents; four stages of one trainee up to
9×9 with 4 agents where every conflict ends the episode; and its policy at several temperatures on held-out boards.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import mapf_frozenlake as mfl
from benchmarks._record import record
from envtuning.trainees.rllib.trainee import RLlibTrainee

GOAL = 0.8  # share of training episodes that succeed
EASY = mfl.LakeConfig.single(5, num_agents=2, hole_ratio=0.2, reward="shaped")
TEMPERATURES = (0.0, 0.25, 0.5, 1.0)  # 0: greedy, 1: as trained


def lakes(sizes: tuple[int, ...], num_agents: int | dict[int, float]) -> mfl.LakeConfig:
    slices = {size: {"share": 1.0, "hole_ratio": 0.2} for size in sizes}
    return mfl.LakeConfig(slices=slices, num_agents=num_agents, reward="shaped", collisions="end")


STAGES = [
    (lakes((4,), 2), 60_000),
    (lakes((4, 5, 6), {2: 1, 3: 1}), 100_000),
    (lakes((6, 7, 8), {3: 1, 4: 1}), 120_000),
    (lakes((9,), 4), 120_000),
]


class Reached(Exception):
    """The goal is reached: nothing more to train for."""


def until_goal(config: mfl.LakeConfig, seed: int) -> dict[str, float]:
    """Env steps and seconds until an iteration reaches the goal; compilation is done before the clock starts."""
    trainee = RLlibTrainee(capacity={"max_size": 5, "max_agents": 2}, seed=seed)
    trainee.train(config, 1, seed=seed)
    spent = {"env_steps": 0.0}

    def watch(metrics: dict[str, float]) -> None:
        spent["env_steps"] += metrics["env_steps"]
        if metrics["success_rate"] >= GOAL:
            raise Reached

    cpu, wall = time.process_time(), time.perf_counter()
    try:
        trainee.train(config, 500_000, seed=seed + 1, on_iteration=watch)
    except Reached:
        spent["cpu_seconds"] = round(time.process_time() - cpu, 1)
        spent["wall_seconds"] = round(time.perf_counter() - wall, 1)
    trainee.close()
    return spent


def four_stages(seed: int, boards: int) -> list[dict[str, Any]]:
    """One trainee through all stages; after each, valid and optimal rates on its stage's and on the last stage's boards."""
    held_out = {number: mfl.generate(config, n=boards, seed=10_000) for number, (config, _) in enumerate(STAGES)}
    trainee = RLlibTrainee(capacity={"max_size": 9, "max_agents": 4}, seed=seed)
    rows, cpu = [], 0.0
    for number, (config, budget) in enumerate(STAGES):
        begun = time.process_time()
        metrics = trainee.train(config, budget, seed=seed + number)
        cpu += time.process_time() - begun
        row = {
            "stage": number,
            "env_steps": metrics["env_steps"],
            "cpu_seconds_so_far": round(cpu, 1),
            "training_success": round(metrics["success_rate"], 3),
            "valid_on_its_boards": by_temperature(trainee, held_out[number], config),
            "valid_on_9x9_with_4_agents": by_temperature(trainee, held_out[len(STAGES) - 1], STAGES[-1][0]),
        }
        rows.append(row)
        print(row, flush=True)
    trainee.close()
    return rows


def by_temperature(trainee: RLlibTrainee, boards: mfl.InstanceSet, config: mfl.LakeConfig) -> dict[str, float]:
    """Valid rate in percent by temperature."""
    rates = {}
    for temperature in TEMPERATURES:
        policy = trainee.policy()
        policy.temperature = temperature
        rates[str(temperature)] = round(mfl.evaluate(policy, boards, config=config).overall.valid, 1)
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--boards", type=int, default=500, help="held-out boards per stage")
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    figures: dict[str, Any] = {}
    for rule in ("block", "end"):
        config = EASY.model_copy(update={"collisions": rule})
        figures[f"until 80 % success, 5x5, 2 agents, collisions {rule}"] = [until_goal(config, 10 * s) for s in seeds]
        print(figures, flush=True)
    figures["four stages"] = [four_stages(100 * seed, arguments.boards) for seed in seeds]
    print(record("learning", figures))


if __name__ == "__main__":
    main()
