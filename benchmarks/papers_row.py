"""The PPO trainee on 3,150 boards like those of the first paper: ``python -m benchmarks.papers_row --cpu-hours 2``.

It learns on boards of the suite's distribution (3 to 5 agents, 3×3 to 10×10), none of which is in the suite; ``--agents two``: on boards of the same
sizes and kinds with two agents, as the papers train. Then the suite is played greedily, sampled, and sampled eight times with the best plan of each board kept. It acts step by step and sees the board again after
each move; the papers' models write the whole plan at once. A checkpoint is kept after each chunk, so that the command continues where it stopped.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

import mapf_frozenlake as mfl
from benchmarks._record import record
from envtuning import atomic
from envtuning.trainees.lakes.policy import SharedPolicy
from envtuning.trainees.ppo import PPOTrainee
from mapf_frozenlake.suite import load_suite
from mapf_frozenlake.suite.make import HOLE_RATIOS

SUITE = "mapf-frozenlake-3150"
CHUNK = 100_000  # env steps between two checkpoints
SMALL_EVERY = 7  # 3 of the suite's 21 kinds of boards are smaller than 5×5, with fewer agents
TRIES = 8
Agents = Literal["suite", "two"]  # trained on; the suite has three to five


def config_of(chunk: int, trained: Agents = "suite") -> mfl.LakeConfig:
    """The suite's kinds of boards by turns: hole ratios move from size to size, small boards come every seventh time."""
    small = chunk % SMALL_EVERY == SMALL_EVERY - 1
    sizes, agents = ((3, 4), {3: 1.0}) if small else (range(5, 11), {3: 1.0, 4: 1.0, 5: 1.0})
    if trained == "two":
        agents = {2: 1.0}
    slices = {
        size: {"share": 1.0, "hole_ratio": 0.2 if small else HOLE_RATIOS[(size + chunk) % 5], "wait_ratio": 0.5}
        for size in sizes
    }
    return mfl.LakeConfig(slices=slices, num_agents=agents, reward="shaped", collisions="end")


class Training:
    """A trainee and what it has spent, as they were after the last whole chunk."""

    def __init__(self, out: Path, seed: int, agents: Agents = "suite") -> None:
        self.out, self.seed, self.agents = out, seed, agents
        self.trainee = PPOTrainee(capacity={"max_size": 10, "max_agents": 5}, exclude=[load_suite(SUITE)], seed=seed)
        self.state: dict[str, Any] = {"chunks": 0, "env_steps": 0, "cpu_seconds": 0.0, "training_success": []}
        out.mkdir(parents=True, exist_ok=True)
        if (latest := self._latest()) is not None:
            self.trainee.load(latest / "checkpoint")
            self.state = json.loads((latest / "state.json").read_text())

    def _latest(self) -> Path | None:
        """The newest whole chunk; older ones are removed."""
        whole = sorted(path for path in self.out.glob("chunk-*") if path.is_dir())
        for old in whole[:-1]:
            shutil.rmtree(old)
        return whole[-1] if whole else None

    def once(self) -> None:
        begin, number = time.process_time(), self.state["chunks"]
        metrics = self.trainee.train(config_of(number, self.agents), CHUNK, seed=self.seed + number)
        self.state["chunks"] += 1
        self.state["env_steps"] += int(metrics["env_steps"])
        self.state["training_success"].append(round(metrics["success_rate"], 3))
        self.state["cpu_seconds"] += time.process_time() - begin
        with atomic.new_folder(self.out / f"chunk-{number:05d}") as draft:
            self.trainee.save(atomic.make_folder(draft / "checkpoint"))
            (draft / "state.json").write_text(json.dumps(self.state))
        self._latest()


def rows(trainee: PPOTrainee) -> dict[str, Any]:
    """The suite's rows, overall and by number of agents."""
    tables = [played(trainee, 1.0, seed) for seed in range(TRIES)]
    tries = [table.per_instance for table in tables]
    best = {
        f"best of {TRIES}, valid": 100 * float(np.mean([any(record.valid for record in each) for each in zip(*tries)])),
        f"best of {TRIES}, optimal": 100
        * float(np.mean([any(record.optimal for record in each) for each in zip(*tries)])),
    }
    return {"greedy": described(played(trainee, 0.0, 0)), "sampled": described(tables[0])} | best


def played(trainee: PPOTrainee, temperature: float, seed: int) -> mfl.EvaluationTable:
    policy = SharedPolicy(trainee.policy().network, trainee.env_kwargs, temperature=temperature, seed=seed)
    return mfl.evaluate(policy, SUITE, name=f"PPO at temperature {temperature:g}")


def described(table: mfl.EvaluationTable) -> dict[str, Any]:
    return {"overall": asdict(table.overall), "by agents": [asdict(row) for row in table.by("agents")]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu-hours", type=float, default=2.0, help="of training; two are an hour of two cores")
    parser.add_argument("--agents", choices=get_args(Agents), default="suite", help="on the boards that are trained on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/papers-row"), help="folder of what is done so far")
    arguments = parser.parse_args()
    name = "papers_row" if arguments.agents == "suite" else "papers_row_two_agents"
    beside = "" if arguments.agents == "suite" else "-two-agents"
    training = Training(arguments.out / f"seed{arguments.seed}{beside}", arguments.seed, arguments.agents)
    while training.state["cpu_seconds"] < arguments.cpu_hours * 3600:
        training.once()
        state = training.state
        print(
            f"{state['env_steps']:,} env steps, {state['cpu_seconds']:.0f} s, {state['training_success'][-1]}",
            flush=True,
        )
    print(record(name, {"training": training.state} | rows(training.trainee)))


if __name__ == "__main__":
    main()
