"""This project's part of a training step: ``python -m benchmarks.grpo_overhead --model FOLDER``, CPU time, in turns in one process.

TRL alone trains on rows that are there already, with a reward that is always 0; ours draws the rows, judges every reply, counts
it and feeds the loop's callback. Same model, same prompts, same settings; the two take turns, several times. Both pay random
rewards of equal spread, so that the same gradients are computed.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset

import mapf_frozenlake as mfl
from benchmarks._record import record
from benchmarks.grpo import CONFIG, SMALL, random_rewards
from envtuning.trainees.language.learner import Learner
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.tasks import LakePlans


def ours(learner: Learner, seed: int, prompts: int) -> float:
    """CPU seconds of a stretch as the trainee trains it."""
    begin = time.process_time()
    rows = LakePlans("short", ()).rows(CONFIG, prompts, seed)
    learner.train(rows, seed, on_iteration=lambda _: None)
    return time.process_time() - begin


def theirs(learner: Learner, seed: int, prompts: int) -> float:
    """CPU seconds of TRL's ``train`` on the same rows, with a reward function that looks at nothing."""
    rows = LakePlans("short", ()).rows(CONFIG, prompts, seed)
    trainer = learner.trainer
    trainer.train_dataset, trainer.args.seed = Dataset.from_list(rows), seed
    trainer.args.max_steps = (
        prompts // (learner.options.batch // learner.options.group) * learner.options.steps_per_batch
    )
    trainer._step, trainer._buffered_inputs = 0, None
    watch, functions = learner.watch, trainer.reward_funcs
    trainer.remove_callback(watch)
    trainer.reward_funcs = [random_rewards]
    begin = time.process_time()
    trainer.train()
    spent = time.process_time() - begin
    trainer.reward_funcs = functions
    trainer.add_callback(watch)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, required=True, help="a folder that `envtuning pretrain` made")
    parser.add_argument("--rounds", type=int, default=5, help="stretches of each")
    parser.add_argument("--batches", type=int, default=1, help="batches of replies in a stretch")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    random.seed(0)
    options = LanguageOptions(
        model=str(arguments.model),
        grpo=SMALL | {"learning_rate": 0.0},
        torch_threads=1,
        reward="benchmarks.grpo:random_rewards",
    )
    learner = Learner(options, seed=0)
    prompts = arguments.batches * options.batch // options.group
    mfl.generate(CONFIG, 1)
    ours(learner, 0, prompts), theirs(learner, 0, prompts)  # compiled and warmed
    pairs: list[dict[str, Any]] = []
    for number in range(arguments.rounds):
        pair = {"ours": ours(learner, number, prompts), "trl": theirs(learner, number, prompts)}
        pairs.append(pair | {"share": 1 - pair["trl"] / pair["ours"]})
        print(pairs[-1], flush=True)
    share = statistics.median(pair["share"] for pair in pairs)
    print(f"our share of a step: median {share:.1%}")
    print(f"figures: {record('grpo_overhead', {'rounds': pairs, 'median_share': share})}")


if __name__ == "__main__":
    main()
