"""Does a model's certainty predict its own failures? ``python -m benchmarks.introspection``: equally good models, the same held-out boards.

The models are pretrained alike from different seeds, and kept under --out; or name folders of your own that were kept from these boards.
For every ordered pair: how well the first's log-probability (and entropy) of its own greedy reply predicts on which boards the
*second* fails, as the area under the ROC curve. A model knows itself if the diagonal beats the rest of its column: the certainty
of other models only shows how hard the boards are.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM, AutoTokenizer

import mapf_frozenlake as mfl
from benchmarks._record import record
from benchmarks.grpo import CONFIG
from envtuning.cli.arguments import parse_seeds
from envtuning.trainees.language.policy import ReplyPolicy
from envtuning.trainees.language.pretrain import Pretraining, pretrain
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.text.trl import judged_reply, prompt_row

TEST = mfl.LakeConfig.single(4, 2, hole_ratio=0.2)


def auc(scores: Sequence[float], positive: NDArray[np.bool_]) -> float:
    """The chance that a positive case has a higher score than a negative one, ties counted half."""
    values = np.asarray(scores, dtype=np.float64)
    ranks = np.empty(len(values))
    order = values.argsort(kind="stable")
    ranks[order] = np.arange(1, len(values) + 1)
    for value in np.unique(values):
        ranks[values == value] = ranks[values == value].mean()
    wins = ranks[positive].sum() - positive.sum() * (positive.sum() + 1) / 2
    return float(wins / (positive.sum() * (~positive).sum()))


def taught(folder: Path, held_out: InstanceSet, samples: int, seed: int) -> Path:
    """A model that never saw these boards; made where it is not there yet."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        pretrain(folder, CONFIG, canonical_keys(held_out), Pretraining(samples=samples, seed=seed))
    return folder


def asked(folder: Path, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Failures, uncertainty by log-probability, and entropy, of a model on these boards."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    policy = ReplyPolicy(model, tokenizer, max_tokens=40)
    prompts = [policy.prompt(row["prompt"]) for row in rows]
    replies = policy.sample(prompts)  # greedy ones, as its temperature is 0
    texts = [policy.told(prompt, reply).text for prompt, reply in zip(prompts, replies, strict=True)]
    judged = [judged_reply(text, row["metadata"])[1] for text, row in zip(texts, rows, strict=True)]
    sure = [certainty(model, prompt, reply) for prompt, reply in zip(prompts, replies, strict=True)]
    return {
        "failed": np.array([not verdict.valid for verdict in judged]),
        "unsure": [-log_probability for log_probability, _ in sure],
        "entropy": [entropy for _, entropy in sure],
    }


def certainty(model: Any, prompt: Sequence[int], reply: Sequence[int]) -> tuple[float, float]:
    """Log-probability of these tokens after the prompt, and the mean entropy of the choices."""
    whole = torch.tensor([[*prompt, *reply]], device=model.device)
    with torch.no_grad():
        logits = model(input_ids=whole, logits_to_keep=len(reply) + 1).logits[0, :-1].float()
    logs = torch.log_softmax(logits, dim=-1)
    chosen = logs.gather(1, whole[0, len(prompt) :, None]).sum()
    entropy = -(logs.exp() * logs).sum(dim=-1).mean()
    return float(chosen), float(entropy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path, help="folders of models of about the same valid rate")
    parser.add_argument("--seeds", default="1,2,3", help="seeds of the models that are pretrained where none is named")
    parser.add_argument("--samples", type=int, default=32_768, help="boards that each of them is taught")
    parser.add_argument("--boards", type=int, default=1_000, help="held-out boards")
    parser.add_argument("--out", type=Path, default=Path("runs/introspection"), help="folder of the pretrained models")
    parser.add_argument("--name", default="introspection", help="name of the result in benchmarks/results")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    suite = mfl.validation_suite(TEST, 2_000, seed=20_261)
    models = arguments.models or [
        taught(arguments.out / f"{arguments.samples}-seed{seed}", suite, arguments.samples, seed)
        for seed in parse_seeds(arguments.seeds)
    ]
    rows = [prompt_row(board, "sparse", "short") for board in suite[: arguments.boards]]
    found = [asked(folder, rows) for folder in models]
    table = [
        {
            "asked": one,
            "fails": other,
            **{name: auc(found[one][name], found[other]["failed"]) for name in ("unsure", "entropy")},
        }
        for one, other in itertools.product(range(len(found)), repeat=2)
    ]
    for row in table:
        print(row)
    rates = [float(1 - one["failed"].mean()) for one in found]
    print(f"figures: {record(arguments.name, {'valid_rates': rates, 'boards': len(rows), 'auc': table})}")


if __name__ == "__main__":
    main()
