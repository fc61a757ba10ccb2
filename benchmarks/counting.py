"""What counting the outcomes of training costs, by trainee, in percent of its CPU time: ``python -m benchmarks.counting``.

Every function that judges an episode for its outcome, sums outcomes, knows a question again or stores the sums is timed while a
trainee trains. The timers themselves are included, so the real part is smaller. ``grpo`` has a tiny model, for which training costs
little; ``menu`` needs the extra ``bfcl``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._record import record
from benchmarks.bfcl.trained import spec_of
from envtuning.loop.contract import read_outcomes
from envtuning.outcomes import Tally
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, TraineeSpec, load_spec
from envtuning.trainees.lakes import sampler
from envtuning.trainees.lakes.trainee import LakeTrainee
from envtuning.trainees.language import outcomes, supervised
from envtuning.trainees.language.pretrain import Pretraining, pretrain
from envtuning.trainees.visited import Visited
from envtuning.worlds.lakes.world import LakeWorld
from envtuning.worlds.world import World
from mapf_frozenlake import LakeConfig

COUNTING = [  # owner and name of each function
    (Tally, "observe"),
    (Tally, "observe_many"),
    (Visited, "repeats"),
    (sampler, "just_ended"),
    (sampler, "joined"),
    (LakeTrainee, "count"),
    (supervised, "_judged"),
    (outcomes, "further_replies"),
    (World, "outcome"),
    (LakeWorld, "outcome"),
]
EXAMPLES = Path(__file__).parents[1] / "examples"
BUDGETS = {"lm": 16_000, "ppo": 50_000, "rllib": 50_000, "sb3": 20_000, "grpo": 256, "menu": 320}
WARM_UP = 4  # part of the budget that is trained before, untimed


class Clock:
    """CPU seconds of this thread inside of timed functions; calls within calls count once."""

    def __init__(self) -> None:
        self.spent, self.depth = 0.0, 0

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            self.depth += 1
            begin = time.thread_time() if self.depth == 1 else 0.0
            try:
                return function(*given, **named)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.spent += time.thread_time() - begin

        return call


def specs(folder: Path) -> dict[str, RunSpec]:
    """A run for each kind of trainee."""
    lakes = load_spec("small-corridors")
    model = pretrain(
        folder / "tiny",
        LakeConfig.single(3, 2, hole_ratio=0.2),
        np.empty(0, np.uint64),
        Pretraining(samples=2_400, batch=16, width=32, layers=1, heads=2, learning_rate=5e-3),
    )
    quick = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, "steps_per_generation": 2}
    options = {"model": str(model), "grpo": quick | {"num_generations": 4, "max_completion_length": 24}}
    trainee = TraineeSpec(kind="grpo", options=options | {"torch_threads": 1})
    return {
        "lm": load_spec(EXAMPLES / "six_tasks.yaml", trust=["examples"]),
        "ppo": lakes,
        "rllib": lakes.model_copy(update={"trainee": TraineeSpec(kind="rllib")}),
        "sb3": load_spec(EXAMPLES / "own_world_mountain_car.yaml", trust=["examples"]),
        "grpo": load_spec("paper-in-miniature").model_copy(update={"trainee": trainee}),
        "menu": spec_of("v4", {}),
    }


def measured(spec: RunSpec, budget: int) -> dict[str, float]:
    """CPU seconds of training and, within it, of counting."""
    plan, clock = Plan.of(spec), Clock()
    slices = plan.world.slices(plan.first)

    def stored(metrics: Mapping[str, Any]) -> None:
        read_outcomes(metrics, "train", slices).dump()

    before = [(owner, name, vars(owner)[name]) for owner, name in COUNTING]
    trainee, told = plan.make_trainee(), clock.timed(stored)
    try:
        trainee.train(plan.first, budget // WARM_UP, seed=0, on_iteration=told)
        for owner, name, function in before:
            setattr(owner, name, clock.timed(function))
        clock.spent = 0.0
        begin = time.process_time()
        trainee.train(plan.first, budget, seed=1, on_iteration=told)
        return {"training": round(time.process_time() - begin, 3), "counting": round(clock.spent, 4)}
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)
        trainee.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.counting", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trainees", default=",".join(BUDGETS), help="some of them, with commas")
    arguments = parser.parse_args()
    asked, found = arguments.trainees.split(","), {}
    with tempfile.TemporaryDirectory() as folder:
        runs = specs(Path(folder))
        for name in asked:
            seconds = measured(runs[name], BUDGETS[name])
            found[name] = seconds | {"percent": round(100 * seconds["counting"] / seconds["training"], 2)}
            print(f"{name}: {found[name]['percent']} % of {seconds['training']} CPU seconds", flush=True)
    if asked == list(BUDGETS):
        record("counting", found)


if __name__ == "__main__":
    main()
