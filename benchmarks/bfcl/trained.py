"""Policies of the stand-in ``menu``: trained once, kept, and tested on any number of tasks. ``ablations`` and ``held-out`` use them.

Every run and its scores are kept in a folder, so an interrupted table continues where it stopped.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._record import conditions
from benchmarks.bfcl.menu import MenuWorld
from benchmarks.bfcl.menu_trainee import MenuPolicy
from benchmarks.bfcl.seeds_and_cases import t_mean_over_cases
from envtuning import atomic
from envtuning.loop.run import start
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.studies.intervals import FEWEST, Interval, t_mean
from envtuning.worlds.bfcl.package import SPLITS, ToolClass, Version
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.bfcl.world import BFCLCases
from envtuning.worlds.episodes import Episode

FOUR_STAGES = Path(__file__).with_name("four_stages.yaml")
OUT = "runs/bfcl-trained"
SEEDS = (5100, 5101, 5102, 5103, 5104)
SCORES = {"success": "success_rate", "progress": "progress"}  # as the tables call them, and as the world does


def spec_of(version: Version, changes: dict[str, Any]) -> RunSpec:
    return load_spec(FOUR_STAGES, changes={"world.options.version": version} | changes, trust=["benchmarks"])


def last_policy(run: RunLog) -> MenuPolicy:
    """The policy in the last stage's checkpoint."""
    return MenuPolicy(np.load(run.state.done[-1].checkpoint / "weights.npy"))


def stage_row(run: RunLog, number: int) -> dict[str, Any]:
    """Why a stage ended, its cost, and its closing validation on the target's tasks, with the stage's feedback."""
    done = run.state.stages[number].done
    assert done is not None
    validated = {name: round(value, 4) for name, value in done.metrics.items()}
    return {"ended": done.reason, "episodes": done.spent["episodes"], "validation": validated}


@dataclass(frozen=True)
class Arm:
    """One way to train: what the preset is changed in, and the tool class that it never sees."""

    name: str
    version: Version
    changes: dict[str, Any] = field(default_factory=dict)
    held_out: ToolClass | None = None
    fraction: float = 1.0  # of every stage's budget

    def spec(self, seed: int) -> RunSpec:
        """The run, without a test of its own: that of a preset has one variant of each scenario."""
        held_out = {"world.options.held_out": self.held_out} if self.held_out else {}
        changes = {**held_out, "seed": seed, "suites.test_per_slice": 0} | self.changes
        stages = enumerate(spec_of(self.version, changes).stages)
        budgets = {f"stages.{number}.budget": round(self.fraction * stage.budget) for number, stage in stages}
        return spec_of(self.version, changes | budgets)

    @property
    def world(self) -> MenuWorld:
        return MenuWorld(version=self.version, held_out=self.held_out)


Scores = dict[str, list[float]]  # success and progress of each task


@dataclass(frozen=True)
class Trained:
    """The runs of some arms and seeds under one folder."""

    out: Path
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]

    def work(self, jobs: int) -> None:
        """Run and test what is not done yet, in so many processes."""
        left = [(arm, seed) for seed in self.seeds for arm in self.arms if not self.file(arm, seed).exists()]
        if jobs == 1:
            for arm, seed in left:
                self.one(arm, seed)
            return
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            for done in [pool.submit(self.one, arm, seed) for arm, seed in left]:
                done.result()

    def one(self, arm: Arm, seed: int) -> None:
        """A run to its end, and its last policy on every task that it may be tested on."""
        done = start(arm.spec(seed), self.folder(arm, seed))
        rows = [stage_row(done, number) for number in range(len(done.state.done))]
        scores = played(last_policy(done), arm.world, tasks_tested(arm))
        found = {"commit": conditions()["commit"], "stages": rows, "scores": scores}
        atomic.write_text(self.file(arm, seed), json.dumps(found))
        print(f"{arm.name}, seed {seed}: {means(found['scores'])}", flush=True)

    def folder(self, arm: Arm, seed: int) -> Path:
        fraction = "" if arm.fraction == 1 else f"-budget{arm.fraction:g}"
        return self.out / arm.version / f"{arm.name.replace(' ', '-')}{fraction}-seed{seed}"

    def file(self, arm: Arm, seed: int) -> Path:
        folder = self.folder(arm, seed)
        return folder.with_name(f"{folder.name}.json")

    def found(self, arm: Arm, seed: int) -> dict[str, Any]:
        return json.loads(self.file(arm, seed).read_text())

    def scores(self, arm: Arm, score: str, tasks: Sequence[Task]) -> list[list[float]]:
        """Of each seed and each scenario the mean over its variants among these tasks, which the arm was tested on."""
        place = {task.id: place for place, task in enumerate(tasks_tested(arm))}
        kept = [self.found(arm, seed)["scores"][score] for seed in self.seeds]
        return [by_scenario([scores[place[task.id]] for task in tasks], tasks) for scores in kept]


def tasks_tested(arm: Arm) -> list[Task]:
    """The tasks of the arm's test scenarios; where a tool class is held out, those that use it."""
    tasks = arm.world.cut.tasks(arm.world.package, "test", SPLITS)
    return [task for task in tasks if arm.held_out is None or arm.held_out in task.classes]


def played(policy: Any, world: MenuWorld, tasks: Sequence[Task]) -> Scores:
    """What a policy gets on each task, without hints, as in the preset's last stage."""
    target = Plan.of(spec_of(world.version, {})).target
    episodes: list[Episode] = world.play(policy, BFCLCases(tuple(task.id for task in tasks)), target, seed=0)
    return {name: [round(episode.metrics[key], 4) for episode in episodes] for name, key in SCORES.items()}


def by_scenario(values: Sequence[float], tasks: Sequence[Task]) -> list[float]:
    """Means over each scenario's variants, in the order of the scenarios' numbers."""
    groups: dict[int, list[float]] = {}
    for value, task in zip(values, tasks, strict=True):
        groups.setdefault(task.scenario, []).append(value)
    return [sum(group) / len(group) for _, group in sorted(groups.items())]


def means(scores: Scores) -> dict[str, float]:
    return {name: round(sum(values) / len(values), 3) for name, values in scores.items()}


def raw(trained: Trained, arm: Arm) -> dict[str, Any]:
    """Each seed's commit, stages and score on every task, in the order of ``tasks``, short enough to be read in a file."""
    runs = {}
    for seed in trained.seeds:
        found = trained.found(arm, seed)
        scores = {name: " ".join(f"{value:g}" for value in values) for name, values in found["scores"].items()}
        runs[str(seed)] = {"commit": found["commit"], "stages": found["stages"]} | scores
    return {"tasks": " ".join(task.id.removeprefix("multi_turn_") for task in tasks_tested(arm)), "seeds": runs}


def minus(ours: list[list[float]], theirs: list[list[float]]) -> list[list[float]]:
    return (np.array(ours) - np.array(theirs)).tolist()


def figures(rows: list[list[float]]) -> dict[str, Any]:
    """Mean with its 95 % interval, and the mean of each seed. The interval is over seeds and scenarios; with too few seeds over scenarios alone."""
    enough = len(rows) >= FEWEST
    interval = t_mean_over_cases(rows) if enough else t_mean(np.mean(rows, axis=0).tolist())
    return {"mean": shown(interval), "by seed": [round(float(np.mean(row)), 4) for row in rows]}


def shown(interval: Interval) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in (interval.mean, interval.low, interval.high)]


def ranged(of: dict[str, Any], *, signed: bool = False) -> str:
    """Percent with the interval."""
    sign = "+" if signed else ""
    mean, low, high = (100 * value for value in of["mean"])
    return f"{mean:{sign}.1f} ({low:{sign}.1f}, {high:{sign}.1f})"
