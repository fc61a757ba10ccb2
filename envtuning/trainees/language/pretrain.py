"""``pretrain``: makes a small model with random weights, and teaches it certified plans by cross-entropy.

The boards of ``held_out``, their rotations, reflections and relabellings are never shown. Their keys are stored beside the
weights, so that a run can tell whether its validation and test sets are new to the model.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from envtuning import atomic
from envtuning.trainees.language.quiet import quiet
from envtuning.trainees.language.small import small_model
from envtuning.trainees.language.supervised import Taught, padded, step, tokens_of
from envtuning.trainees.language.tokenizer import small_tokenizer
from envtuning.worlds.lakes.lessons import lessons_of
from mapf_frozenlake import LakeConfig, LakeError, generate
from mapf_frozenlake.generator.generate import excluded_keys
from mapf_frozenlake.generator.symmetry import canonical_keys
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.text import TextStyle

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

HELD_OUT = "held_out.npy"  # uint64[n], sorted: symmetry keys that this training never saw
RECORD = "pretraining.json"
CHUNK = 4_096  # boards drawn at a time

Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class Pretraining:
    """Length and learning rate of the training. The seed decides weights, boards and their order."""

    samples: int = 60_000
    batch: int = 64
    learning_rate: float = 2e-3  # the highest rate; it rises over the first twentieth, then falls along a cosine
    seed: int = 0
    style: TextStyle = "short"
    width: int = 128
    layers: int = 4
    heads: int = 4

    def __post_init__(self) -> None:
        for name in ("samples", "batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: give at least 1")


def pretrain(
    out: str | Path,
    config: LakeConfig,
    held_out: NDArray[np.uint64],
    options: Pretraining = Pretraining(),
    progress: Progress | None = None,
) -> Path:
    """Make, teach and save a model. The folder appears only when it is complete. Equal arguments give equal weights."""
    out = Path(out)
    if out.exists():
        raise LakeError(f"{out} exists already: choose another folder, or remove it to train the model again")
    tokenizer = small_tokenizer()
    model = small_model(tokenizer, options.seed, width=options.width, layers=options.layers, heads=options.heads)
    begin = time.process_time()
    losses = teach(model, tokenizer, config, held_out, options, progress)
    atomic.make_folder(out.parent)
    with atomic.new_folder(out) as draft, quiet():
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        np.save(draft / HELD_OUT, np.unique(held_out))
        record = {
            "config": config.model_dump(mode="json"),
            "options": asdict(options),
            "parameters": sum(each.numel() for each in model.parameters()),
            "loss": losses[-1],
            "cpu_seconds": round(time.process_time() - begin, 1),
        }
        (draft / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return out


def teach(
    model: Any,
    tokenizer: PreTrainedTokenizerBase,
    config: LakeConfig,
    held_out: NDArray[np.uint64],
    options: Pretraining,
    progress: Progress | None = None,
) -> list[float]:
    """Supervise ``model`` in place on ``options.samples`` boards of ``config``; returns the loss of every batch."""
    import torch

    optimiser = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98))
    batches = math.ceil(options.samples / options.batch)
    losses: list[float] = []
    model.train()
    for number, (ids, labels) in enumerate(batches_of(tokenizer, config, held_out, options)):
        loss = step(model, optimiser, ids, labels, options.learning_rate * warmed_cosine(number / batches)).loss
        losses.append(loss)
        if progress is not None:
            progress(min((number + 1) * options.batch, options.samples), loss)
    model.eval()
    return losses


def warmed_cosine(done: float, warm: float = 0.05) -> float:
    """The learning rate, as a part of the highest, when a part ``done`` (0 to 1) of the training is over."""
    if done < warm:
        return (done + 1e-3) / warm
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (done - warm) / (1 - warm)))


def batches_of(
    tokenizer: PreTrainedTokenizerBase, config: LakeConfig, held_out: NDArray[np.uint64], options: Pretraining
) -> Iterator[tuple[Any, Any]]:
    """(ids, labels), int64[batch, length] each, padded on the right; boards in an order that the seed decides."""
    left = options.samples
    for first in range(0, options.samples, CHUNK):
        boards = generate(config, n=min(CHUNK, left), seed=options.seed, first=first, exclude=held_out, num_threads=1)
        left -= len(boards)
        order = np.random.default_rng([options.seed, first]).permutation(len(boards))
        taught = lessons(tokenizer, boards, options.style)
        for begin in range(0, len(boards), options.batch):
            yield padded([taught[row] for row in order[begin : begin + options.batch]], tokenizer.pad_token_id)


def lessons(tokenizer: PreTrainedTokenizerBase, boards: InstanceSet, style: TextStyle) -> list[Taught]:
    """(ids, labels) of each board: prompt and optimal plan; only the plan is taught."""
    return tokens_of(tokenizer, lessons_of(boards, style))


def pass_on_unseen(first: Path, checkpoint: Path, excluded: Sequence[InstanceSet]) -> None:
    """Store with a checkpoint the boards that it has not seen: those that neither its first model nor its run trained on.

    If the first model comes from elsewhere, its training data are unknown; then only the run's held-out boards count.
    """
    unseen = np.unique(excluded_keys(excluded))
    if (first / HELD_OUT).is_file():
        unseen = np.intersect1d(np.load(first / HELD_OUT), unseen)
    elif not excluded:
        return
    np.save(checkpoint / HELD_OUT, unseen)


def boards_in(held_out: Sequence[Any]) -> list[InstanceSet]:
    """The held-out cases that are boards: pretraining here teaches only boards."""
    return [cases for cases in held_out if isinstance(cases, InstanceSet)]


def raise_unless_unseen(folder: Path, boards: InstanceSet) -> None:
    """Raise ``LakeError`` when the model in ``folder`` was trained here without holding these boards out."""
    if not (folder / HELD_OUT).is_file():
        return  # made elsewhere: its training data are unknown
    keys = canonical_keys(boards)
    seen = ~np.isin(keys, np.load(folder / HELD_OUT))
    if seen.any():
        raise LakeError(
            f"The model in {folder} may have seen {int(seen.sum())} of {len(keys)} held-out boards: pretrain it "
            "with `envtuning pretrain --hold-out` for this run, or validate on the boards it was made for"
        )
