"""An update of a real model by GRPO: ``python -m benchmarks.grpo_speed --model FOLDER``, CPU seconds and peak memory, an hour at most.

Adapters of rank 16, eight prompts with eight replies of at most eight tokens, the tasks of the world small-skills. Each arm has a
process of its own, one thread. FOLDER is made by `envtuning weights`.

- ours: the trainee as it is;
- every prompt: TRL's own step, which reads the prompt with each reply;
- without amx: ours, told to compute without the processor's matrix units;
- in float32: ours, with weights in float32, for processors that only emulate bfloat16. ``--arms "in float32" --updates 3 --name
  grpo_speed_avx2`` was measured on such a one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

from benchmarks._record import record
from envtuning.cli.arguments import listed

GRPO: dict[str, Any] = {
    "beta": 0.0, "learning_rate": 3e-4, "num_generations": 8, "per_device_train_batch_size": 64, "gradient_accumulation_steps": 1,
    "steps_per_generation": 1, "max_completion_length": 8,
}  # fmt: skip
ARMS: dict[str, dict[str, str]] = {
    "ours": {},
    "every prompt": {},
    "without amx": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"},
    "in float32": {},
}


def updates(model: str, count: int, *, stock: bool, dtype: str) -> list[float]:
    """CPU seconds of each update after the first."""
    from envtuning.trainees.language import learner, read_once
    from envtuning.trainees.language.trainee import GRPOTrainee
    from envtuning.worlds.small_skills import world

    if stock:
        from trl import GRPOTrainer

        name = "_get_per_token_logps_and_entropies"
        setattr(learner.PromptOnceTrainer, name, getattr(GRPOTrainer, name))
        read_once.read_before = lambda *_: {}
    trainee = GRPOTrainee(world=world, model=model, torch_threads=1, grpo=GRPO, dtype=dtype)
    config = world.config_type.model_validate({"tasks": {name: {} for name in world.tasks}})
    ended: list[float] = []
    trainee.train(config, 64 * (count + 1), seed=1, on_iteration=lambda _: ended.append(time.process_time()))
    return [after - before for before, after in pairwise(ended)]


def measured(arm: str, model: str, count: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.grpo_speed", "--model", model, "--updates", str(count), "--arm", arm]
    done = subprocess.run(
        command, env=os.environ | ARMS[arm] | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(f"{arm}: {told['median']:.1f} s of CPU an update, {told['peak_gb']:.1f} GB", flush=True)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="a transformers folder that `envtuning weights` made")
    parser.add_argument("--updates", type=int, default=5, help="measured updates of each arm, after one that is not")
    parser.add_argument("--arms", default=",".join(ARMS), help="with commas between them")
    parser.add_argument("--name", default="grpo_speed", help="of the stored figures")
    parser.add_argument("--arm", choices=tuple(ARMS), help="measure one arm in this process, and print a line of JSON")
    given = parser.parse_args()
    if given.arm is None:
        arms = {arm: measured(arm, given.model, given.updates) for arm in listed(given.arms)}
        print(f"figures: {record(given.name, {'arms': arms, 'grpo': GRPO})}")
        return
    dtype = "float32" if given.arm == "in float32" else "auto"
    seconds = updates(given.model, given.updates, stock=given.arm == "every prompt", dtype=dtype)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": seconds, "median": statistics.median(seconds), "peak_gb": peak}))


if __name__ == "__main__":
    main()
