"""What GRPO adds to a warm start: ``python -m benchmarks.grpo``.

A model of 1.2 million parameters with random weights is taught certified plans; in few of them an agent waits. The target is boards
that need a wait. From each such warm start there are five paired arms: no further training, continued supervision
(the target's certified plans, equal CPU time), rejection fine-tuning (as many samples, the valid ones are taught once), GRPO with random
rewards, GRPO. Each is asked the same held-out boards of the target: greedy, sampled once, best of 16.
Each finished part is kept under --out: an interrupted benchmark continues where it stopped, and other processes may do parts of it
(the same command with ``--parts-only``). Settings and target were chosen on seed 0, which is not
among them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout

import mapf_frozenlake as mfl
from benchmarks._record import record
from engineers.shared import own
from envtuning import atomic
from envtuning.cli.arguments import parse_seeds
from envtuning.studies.intervals import t_mean
from envtuning.trainees.language.learner import Learner
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.policy import ReplyPolicy
from envtuning.trainees.language.pretrain import Pretraining, pretrain, teach
from envtuning.trainees.language.supervised import padded, step, tokens_of
from envtuning.trainees.language.tasks import LakePlans
from envtuning.worlds.world import Lesson
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.text.trl import judged_reply, prompt_row

CONFIG = mfl.LakeConfig(
    num_agents=2, slices={3: {"share": 0.3, "hole_ratio": 0.2}, 4: {"share": 0.7, "hole_ratio": 0.2}}
)
# What the model is to become good at: boards that nobody can solve without a wait. Of the lessons hardly any is of this kind.
TARGET = mfl.LakeConfig.single(4, 2, hole_ratio=0.2, wait_ratio=1.0)
ARMS = ("warm start", "continued supervision", "rejection fine-tuning", "GRPO, random rewards", "GRPO")
ORDER = (
    "warm start",
    "GRPO",
    "GRPO, random rewards",
    "continued supervision",
    "rejection fine-tuning",
)  # the longest first
COLUMNS = ("greedy", "sampled", "best_of_16")
SMALL = {
    "learning_rate": 1e-4,
    "beta": 0.0,  # no reference model: a third less arithmetic, and seed 0 lost nothing without it
    "max_completion_length": 40,
    "per_device_train_batch_size": 256,
    "gradient_accumulation_steps": 2,  # one update for 512 replies
    "steps_per_generation": 2,
}


def random_rewards(completions: Sequence[Any], **_: Any) -> list[float]:
    """A coin for each reply: what is left of GRPO when the reward says nothing."""
    return [float(random.random() < 0.5) for _ in completions]


class Study:
    def __init__(
        self, out: Path, samples: int, grpo_samples: int, boards: int, best_of: int, beta: float | None = None
    ) -> None:
        self.out, self.samples, self.grpo_samples, self.best_of = out, samples, grpo_samples, best_of
        self.grpo = SMALL if beta is None else SMALL | {"beta": beta}
        self.test = mfl.validation_suite(TARGET, boards, seed=20_261)
        self.keys = canonical_keys(self.test)

    def work(self, seeds: Sequence[int]) -> None:
        """Do every part that no other process is doing, seed by seed; returns when all parts are done."""
        while left := [(seed, arm) for seed in seeds for arm in ORDER if not self.file(seed, arm).exists()]:
            if not any(self.claim(seed, arm) for seed, arm in left):
                time.sleep(5)  # others do what is left, or what it waits for

    def claim(self, seed: int, arm: str) -> bool:
        """Do this part, unless another process does it, or what it needs is not done yet."""
        needed = {"warm start": None, "continued supervision": "GRPO"}.get(arm, "warm start")
        if needed is not None and not self.file(seed, needed).exists():
            return False
        file = self.file(seed, arm)
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(file.with_suffix(".lock"), timeout=0):
                self.figures(seed, arm)
        except Timeout:
            return False
        return True

    def file(self, seed: int, arm: str) -> Path:
        return self.out / f"seed{seed}" / f"{arm.replace(' ', '_').replace(',', '')}.json"

    def figures(self, seed: int, arm: str) -> dict[str, Any]:
        """One arm from one pretraining: from the disk where it is done, else done now."""
        file = self.file(seed, arm)
        if not file.exists():
            policy, extra = self.trained(self.warm_start(seed), seed, arm)
            found = extra | self.asked(policy, seed)
            atomic.write_text(file, json.dumps(found))  # a step's figures may be NaN
            print(f"seed {seed}, {arm}: { {column: found[column] for column in COLUMNS} }", flush=True)
        return json.loads(file.read_text())

    def warm_start(self, seed: int) -> Path:
        folder = self.out / f"seed{seed}" / "warm"
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            pretrain(folder, CONFIG, self.keys, Pretraining(samples=self.samples, seed=seed))
        return folder

    def trained(self, warm: Path, seed: int, arm: str) -> tuple[ReplyPolicy, dict[str, Any]]:
        """The arm's policy, and what its training took; imports and loading are not counted."""
        own.trust(["benchmarks.grpo"])
        reward = "benchmarks.grpo:random_rewards" if "random" in arm else None
        options = LanguageOptions(
            model=str(warm),
            grpo=self.grpo,
            torch_threads=1,
            reward=reward,
            skip_equal_groups=not self.grpo[
                "beta"
            ],  # the same steps for two thirds of the time: half of the groups are equal
        )
        learner = Learner(options, seed)
        begin = time.process_time()
        if arm.startswith("GRPO"):
            extra = self.reinforced(learner, seed)
        elif arm == "continued supervision":
            extra = self.supervised(learner, seed, self.figures(seed, "GRPO")["cpu_seconds"])
        elif arm == "rejection fine-tuning":
            extra = self.rejection(learner, seed)
        else:
            extra = {}
        return learner.policy(), extra | {"cpu_seconds": round(time.process_time() - begin, 1)}

    def reinforced(self, learner: Learner, seed: int) -> dict[str, Any]:
        rows = LakePlans("short", self.keys).rows(TARGET, learner.prompts_for(self.grpo_samples), 1_000 + seed)
        random.seed(seed)
        history = learner.train(rows, seed)
        counted = [step for step in history if "success_rate" in step]
        return {"samples": len(rows) * learner.options.group, "steps": len(history), "history": counted}

    def supervised(self, learner: Learner, seed: int, seconds: float) -> dict[str, Any]:
        """Certified plans of the target's boards, until as much CPU time is spent as GRPO took."""
        begin = time.process_time()
        chunk = 0
        while time.process_time() - begin < seconds:
            chunk += 1
            more = Pretraining(samples=1_024, learning_rate=3e-4, seed=5_000 + seed + 100 * chunk)
            teach(learner.model, learner.tokenizer, TARGET, self.keys, more)
        return {"samples": 1_024 * chunk}

    def rejection(self, learner: Learner, seed: int) -> dict[str, Any]:
        """As many replies as GRPO samples, to the same prompts; the valid ones are taught once."""
        prompts = learner.prompts_for(self.grpo_samples)
        rows = LakePlans("short", self.keys).rows(TARGET, prompts, 1_000 + seed)
        talks = [row["prompt"] for row in rows for _ in range(learner.options.group)]
        replies = learner.policy(temperature=1.0).reply(talks, seed=seed)
        metadata = [row["metadata"] for row in rows for _ in range(learner.options.group)]
        good = [
            Lesson(talk[0]["content"], reply.text)
            for talk, reply, row in zip(talks, replies, metadata, strict=True)
            if judged_reply(reply.text, row)[1].valid
        ]
        random.Random(seed).shuffle(good)
        tokenizer, model = learner.tokenizer, learner.model
        optimiser = torch.optim.AdamW(model.parameters())
        model.train()
        for begin in range(0, len(good), 64):
            taught = tokens_of(tokenizer, good[begin : begin + 64])
            step(model, optimiser, *padded(taught, tokenizer.pad_token_id), rate=1e-4)
        model.eval()
        return {"samples": len(replies), "kept": len(good)}

    def asked(self, policy: ReplyPolicy, seed: int) -> dict[str, float]:
        """Valid rates on the held-out boards."""
        rows = [prompt_row(board, "sparse", "short") for board in self.test]
        greedy = _valid(policy, rows, 0.0, seed)
        sampled = _valid(policy, rows, 1.0, seed)
        few = [row for row in rows[: self.best_of] for _ in range(16)]
        many = np.array(_valid(policy, few, 1.0, seed + 1)).reshape(-1, 16)
        return {
            "boards": len(rows),
            "greedy": float(np.mean(greedy)),
            "sampled": float(np.mean(sampled)),
            "best_of_16": float(many.any(axis=1).mean()),
            "best_of_16_boards": self.best_of,
        }


def _valid(policy: ReplyPolicy, rows: Sequence[dict[str, Any]], temperature: float, seed: int) -> list[bool]:
    policy.temperature = temperature
    replies = policy.reply([row["prompt"] for row in rows], seed=seed)
    return [judged_reply(reply.text, row["metadata"])[1].valid for reply, row in zip(replies, rows, strict=True)]


def briefly(found: dict[str, Any]) -> dict[str, Any]:
    """An arm's figures with the course of its training in two columns."""
    steps = found.get("history", [])
    course = {name: [round(step[name], 4) for step in steps] for name in ("success_rate", "entropy")} if steps else {}
    return {name: value for name, value in found.items() if name != "history"} | course


def summary(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Per arm and column the mean over pretrainings, and the paired gain over the warm start, with 95 % intervals."""
    table: dict[str, Any] = {}
    for arm, found in runs.items():
        table[arm] = {}
        for column in COLUMNS:
            own = [one[column] for one in found]
            base = [one[column] for one in runs["warm start"]]
            gains = [mine - theirs for mine, theirs in zip(own, base)]
            mean, gain = t_mean(own), t_mean(gains)
            table[arm][column] = {"mean": mean.mean, "low": mean.low, "high": mean.high}
            if arm != "warm start":
                table[arm][column] |= {"gain": gain.mean, "gain_low": gain.low, "gain_high": gain.high}
    return table


def settings_digest(arguments: argparse.Namespace) -> str:
    told: dict[str, Any] = {
        name: value for name, value in vars(arguments).items() if name not in ("out", "seeds", "name", "parts_only")
    }
    return hashlib.sha256(
        json.dumps(
            told | {"grpo": SMALL, "target": TARGET.model_dump(mode="json")}, sort_keys=True, default=str
        ).encode()
    ).hexdigest()[:8]


def main(say: Callable[[str], None] = print) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1,2,3,4,5", help="warm starts, one run of each arm from each")
    parser.add_argument("--samples", type=int, default=24_576, help="boards that a warm start is taught")
    parser.add_argument("--grpo-samples", type=int, default=16_384, help="replies that GRPO and rejection may sample")
    parser.add_argument("--boards", type=int, default=2_000, help="held-out boards")
    parser.add_argument("--best-of-boards", type=int, default=250, help="of these, boards that are asked 16 times")
    parser.add_argument(
        "--beta", type=float, help="weight of GRPO's KL term; the papers use 0.1, here it is 0 by default"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/grpo"), help="folder of what is done so far")
    parser.add_argument("--name", default="grpo", help="name of the result in benchmarks/results")
    parser.add_argument("--parts-only", action="store_true", help="help another process, and write no table")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    place = arguments.out / settings_digest(arguments)
    boards, few = arguments.boards, arguments.best_of_boards
    study = Study(place, arguments.samples, arguments.grpo_samples, boards, few, arguments.beta)
    seeds = parse_seeds(arguments.seeds)
    study.work(seeds)
    if arguments.parts_only:
        return
    runs = {arm: [briefly(study.figures(seed, arm)) for seed in seeds] for arm in ARMS}
    for arm, row in (table := summary(runs)).items():
        say(f"{arm}: " + ", ".join(f"{column} {cell['mean']:.3f}" for column, cell in row.items()))
    path = record(arguments.name, {"seeds": list(seeds), "table": table, "runs": runs, "grpo": study.grpo})
    say(f"figures: {path}")


if __name__ == "__main__":
    main()
