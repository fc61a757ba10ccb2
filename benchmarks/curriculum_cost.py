"""What an engineer's curriculum costs: ``python -m benchmarks.curriculum_cost``, CPU time within one run, a few minutes.

Two arms train on one config: with a curriculum that counts and never asks, and with one that asks as well. The engineer thinks as ``rules`` does
and keeps the config: with another config the environment itself has other work, which would hide the cost.

- ``sb3``: PPO of Stable-Baselines3 on 64 lakes; asked every 500 episodes.
- ``vector``: 1,024 lakes with random actions; asked every 20,000 episodes.
- ``light``: the same, where an episode takes two steps on average: half of the copies end in every step;
- ``sync``: 1,024 copies of the same lake in Gymnasium's ``SyncVectorEnv``, which steps one after the other in Python, as most environments are.

``counting`` and ``with questions`` are what the callback or the wrapper takes, over the rest of the same run: medians of the rounds. So a machine
whose speed changes from run to run slows both. What a slower cache costs the rest is not in it. ``question_ms`` is one question's CPU time, the
report that it is about included. (An earlier version compared runs with and without a curriculum: +0.7 and +6.2 % for ``sb3`` and ``vector`` on a
quiet machine, commit `bc2d0ec7911f`; on a busy one, rounds of it differ by twenty points.)

With 1,024 copies in one kernel, 1 % of a step is two to three microseconds. Handing a step on takes half of that. The code that counts takes six in a
loop of its own, and two to three times as long between two steps, which leave it little of a core's cache; summing what it kept adds two to seven a
step. Two other ways that were tried miss 1 %, too: to keep whole arrays for some steps costs more, as the environment then writes to new memory; and a
compiled sum, called once a step, still takes more than 2 %. Sums by slice in the lake's own compiled step could reach it: they take less than 1 % of the
step. But they would pass by `observe_many` and by wrappers in between, need a copy for each thread, and have to be fetched whenever somebody looks at the
curriculum; and no policy is so fast that it would show.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from pydantic import BaseModel

import mapf_frozenlake as mfl
from benchmarks._record import record
from engineers import Proposal
from engineers.plain.rules import RulesEngineer
from engineers.report import StageReport
from envtuning import CurriculumVectorEnv, EngineerCurriculum, SB3CurriculumCallback

CONFIG = mfl.LakeConfig(slices={3: {}, 4: {}, 5: {}}, num_agents=2, reward="shaped")
COPIES = 1_024
NEVER = 10**9
ARMS = ("counted", "asked")


class Keeps(RulesEngineer):
    """Thinks as ``rules`` does, and keeps the config."""

    name = "keeps"

    def propose(self, report: StageReport, current: BaseModel, editable: Sequence[str] | None = None) -> Proposal:
        super().propose(report, current, editable)
        return Proposal(config=current, engineer=self.name)


class Measured(NamedTuple):
    """Seconds of CPU."""

    ours: float  # of the callback or the wrapper, the curriculum and its engineer included
    rest: float
    questions: int


def curriculum(config: mfl.LakeConfig, arm: str, every: int) -> EngineerCurriculum:
    place = "benchmarks.curriculum_cost:Keeps"
    return EngineerCurriculum(place, config, target=config, every=every if arm == "asked" else NEVER)


class Timed(SB3CurriculumCallback):
    """Knows how long it has taken."""

    seconds = 0.0

    def on_step(self) -> bool:
        begin = time.process_time()
        goes_on = super().on_step()
        self.seconds += time.process_time() - begin
        return goes_on

    def on_rollout_end(self) -> None:
        begin = time.process_time()
        super().on_rollout_end()
        self.seconds += time.process_time() - begin


def sb3(arm: str, steps: int) -> Measured:
    """Of ``learn``."""
    from stable_baselines3 import PPO

    envs = mfl.sb3_vec_env(64, config=CONFIG, window=5, success_key="valid")
    model = PPO("MlpPolicy", envs, n_steps=32, batch_size=512, seed=0, device="cpu")
    counts = curriculum(CONFIG, arm, every=500)
    callback = Timed(counts, success_key="valid")
    begin = time.process_time()
    model.learn(steps, callback=callback)
    took = time.process_time() - begin
    return Measured(callback.seconds, took - callback.seconds, counts.stage)


class Beneath(gym.vector.VectorWrapper):
    """Knows how long the environment below has taken."""

    seconds = 0.0

    def step(self, actions: Any) -> Any:
        begin = time.process_time()
        told = self.env.step(actions)
        self.seconds += time.process_time() - begin
        return told


def vector(
    arm: str, steps: int, horizon: int | None = None, mode: str = "vector_entry_point", every: int = 20_000
) -> Measured:
    """Of stepping."""
    config = CONFIG.model_copy(update={"horizon": horizon})
    below = Beneath(
        gym.make_vec("MAPFFrozenLake-v0", num_envs=COPIES, config=config, window=5, vectorization_mode=mode)
    )
    counts = curriculum(config, arm, every)
    envs = CurriculumVectorEnv(below, counts, success_key="valid")
    envs.reset(seed=0)
    actions = np.random.default_rng(0).integers(0, 4, (64, COPIES, 2))
    begin = time.process_time()
    for step in range(steps):
        envs.step(actions[step % 64])
    return Measured(time.process_time() - begin - below.seconds, below.seconds, counts.stage)


def shares(measure: Callable[..., Measured], rounds: int, **given: Any) -> dict[str, Any]:
    """What the curriculum takes over the rest of the same run, and what a question takes."""
    for arm in ARMS:
        measure(arm, **given)  # compiled and warmed
    found: dict[str, list[float]] = {"counting": [], "with questions": [], "question_ms": []}
    for _ in range(rounds):
        counted, asked = (measure(arm, **given) for arm in ARMS)
        found["counting"].append(counted.ours / counted.rest)
        found["with questions"].append(asked.ours / asked.rest)
        found["question_ms"].append(1_000 * (asked.ours - counted.ours) / asked.questions)
    medians = {name: statistics.median(of_rounds) for name, of_rounds in found.items()}
    return medians | {"ms": 1_000 * asked.rest, "questions": asked.questions, "rounds": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--only", choices=("sb3", "vector", "light", "sync"), help="measure this alone, and record nothing"
    )
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "training ended after")  # of the arm that never asks
    ways: dict[str, tuple[Callable[..., Measured], dict[str, Any]]] = {
        "sb3": (sb3, {"steps": 32_768}),
        "vector": (vector, {"steps": 1_500}),
        "light": (vector, {"steps": 1_500, "horizon": 2}),
        "sync": (vector, {"steps": 120, "mode": "sync", "every": 3_000}),
    }
    found = {}
    for name, (measure, settings) in ways.items():
        if given.only in (None, name):
            one = found[name] = shares(measure, given.rounds, **settings)
            print(
                f"{name}: counting adds {one['counting']:.2%} of CPU time, {one['with questions']:.2%} with {one['questions']} questions "
                f"({one['question_ms']:.1f} ms each)"
            )
    if given.only is None:
        print(f"figures: {record('curriculum_cost', found)}")


if __name__ == "__main__":
    main()
