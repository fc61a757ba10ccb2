"""Train ``learnt`` and its twins on learners in closed form, and compare them: ``python -m benchmarks.learnt train``, then ``compare``.

The learners are formulas, so that success at the end can be differentiated: by the shares, and through the outcomes that are reported on the
way. Trained on the development families alone, once, for 400 steps of 160 learners each. The *blind* twin is told no outcomes, so that it is a learnt schedule; the *memoryless* one
knows the last stage alone. ``compare`` scores them by reports on families that none of them saw, beside ``benchmarks.reader``'s rows.

Written down before the comparison was run: the figures are ``learnt`` less the blind twin, less the memoryless one, less the give-up rule, less
the thermometer and less ``reader`` with shares alone, on 24 roots of each held-out family, each family counting alike, with 95 % intervals over
roots. Expected: it reads (above the blind twin), and loses where skills are forgotten, which no development family shows. It turns shares
alone, so that ``reader`` with a focus is no match in ``causes``. Whatever comes out is stored.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import engineers
from benchmarks import dynamics, reader
from benchmarks._command import arguments_of, command, record_if_asked
from engineers.controls import permuted
from engineers.engineer import as_engineer
from engineers.plain import learnt
from engineers.plain.learnt import MEMORY, SHAPES, TWINS, features, outcomes, stage
from envtuning.dynamics import families, learners, reports
from envtuning.dynamics.families import DEVELOPMENT, FAMILIES, HELD_OUT, NULL, draw
from envtuning.dynamics.learners import Array, Learners
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "learnt"
WEIGHTS = Path(learnt.__file__).with_name("learnt.npz")
STEPS, RUNS, RATE, SEED = 400, 40, 4e-3, 11  # RUNS: of each development family in a batch
ROWS = ("failure", "give-up", *TWINS, "permuted", "reader", "reader, shares alone")


class Batch:
    """Learners as tensors, and what a stage does to them: ``learners.step`` and ``validate``, differentiable."""

    def __init__(self, parts: Sequence[Learners]) -> None:
        import torch

        self.torch = torch
        stacked = {name: np.concatenate([getattr(part, name) for part in parts]) for name in asdict(parts[0])}
        for name, values in stacked.items():
            setattr(self, name, torch.tensor(values, dtype=torch.float32))
        self.present = (self.weight > 0).float()
        self.count = self.present.sum(-1)[:, None] * torch.ones_like(self.present)
        self.deepest = int(self.stages.max())

    def mastery(self, practice: Any) -> Any:
        return -self.torch.expm1(-(self.torch.relu(practice - self.plateau) ** 2))

    def success(self, practice: Any) -> Any:
        return self.ceiling * self.mastery(practice)

    def value(self, practice: Any) -> Any:
        return (self.weight * self.success(practice)).sum(-1)

    def step(self, practice: Any, shares: Any) -> Any:
        torch = self.torch
        dose = self.count * shares
        felt = dose + (dose[:, None] @ self.transfer)[:, 0]
        lacking = ((1 - self.mastery(practice))[:, None] @ self.needs)[:, 0]
        kept = practice * torch.exp(-self.forgetting * torch.relu(1 - dose))
        return torch.relu(kept + self.rate * torch.clip(1 - lacking, 0, 1) * felt)

    def seen(self, practice: Any, generator: Any) -> tuple[Any, Any]:
        """Rates on validation and probe together: as they are drawn, with the gradient of what they are drawn from."""
        right = self.success(practice)
        cases = 2 * self.cases[:, None] * self.torch.ones_like(right)
        drawn = self.torch.binomial(cases, right.detach().clip(0, 1), generator=generator) / cases
        return right + (drawn - right).detach(), cases

    def ends(self, weights: Any, twin: str, generator: Any) -> Any:
        """Success on the target at each run's end."""
        torch = self.torch
        practice = self.step(self.start, self.present / self.count)
        memory = torch.zeros(*self.present.shape, MEMORY)
        dose, like, found = self.present, torch.ones_like(self.present), torch.zeros(len(self.present))
        for number in range(1, self.deepest + 1):
            found = torch.where(self.stages == number, self.value(practice), found)
            if number == self.deepest:
                return found
            rate, cases = outcomes(*self.seen(practice, generator), twin)
            left = torch.relu(self.stages[:, None] - number) * like
            seen = features(self.weight, dose, rate, cases, number * like, left, self.count, xp=torch)
            if twin == "memoryless":
                memory = torch.zeros_like(memory)
            shares, memory = stage(weights, seen, memory, self.present, xp=torch)
            dose, practice = self.count * shares, self.step(practice, shares)
        return found


def trained(twin: str, steps: int, log: Any = print, *, seed: int = SEED) -> dict[str, Array]:
    """Weights by gradient ascent on success at the end; every batch is of new learners."""
    import torch

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(seed)
    weights = {
        name: (torch.randn(shape, generator=generator) * (0 if "bias" in name else shape[0] ** -0.5)).requires_grad_()
        for name, shape in SHAPES.items()
    }
    optimiser = torch.optim.Adam(list(weights.values()), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, RATE / 20)
    began, recent = time.process_time(), list[float]()
    for number in range(steps):
        batch = Batch([draw(family, RUNS, [seed, number, place]) for place, family in enumerate(DEVELOPMENT)])
        mean = batch.ends(weights, twin, generator).mean()
        optimiser.zero_grad()
        (-mean).backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 0.1)
        optimiser.step()
        schedule.step()
        recent.append(float(mean.detach()))
        if (number + 1) % 20 == 0:
            log(
                f"{twin} {number + 1}: {np.mean(recent[-20:]):.4f}, {time.process_time() - began:.0f} CPU s", flush=True
            )
    return {name: value.detach().numpy() for name, value in weights.items()}


def train(steps: int, twins: Sequence[str]) -> None:
    """Each twin in turn; what is trained already is kept."""
    for twin in twins:
        path = KEPT / f"{twin}-{steps}.npz"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, **trained(twin, steps))
    found = {twin: np.load(KEPT / f"{twin}-{steps}.npz") for twin in TWINS if (KEPT / f"{twin}-{steps}.npz").exists()}
    np.savez_compressed(WEIGHTS, **{f"{twin}.{name}": file[name] for twin, file in found.items() for name in SHAPES})
    learnt.stored.cache_clear()


def study(family: str, roots: int) -> dict[str, Any]:
    """On the roots and cases of ``benchmarks.reader``, by reports as in a run."""
    tuning, fresh, opened = reader.begun(family, roots)
    ends = dict(opened)
    for name in ("failure", "give-up"):
        ends[name] = reader.ruled(
            reader.RULES[name], reader.best_floor(reader.RULES[name], tuning), fresh, reader.CASES
        )
    for twin in TWINS:
        ends[twin] = reader.ended(engineers.make("learnt", twin=twin), fresh)
    ends["permuted"] = reader.ended(permuted(engineers.make("learnt"), 0), fresh)
    ends["reader"] = reader.ended(engineers.make("reader"), fresh)
    ends["reader, shares alone"] = reader.ended(as_engineer(reader.Turning("slices.*.share")), fresh)
    found, others = reader.figures(family, opened, ends), [name for name in ROWS if name != "learnt"]
    return found | {
        "learnt_less": {name: asdict(t_mean((ends["learnt"] - ends[name]).tolist())) for name in others},
        "differences": {name: (ends["learnt"] - ends[name]).round(5).tolist() for name in [*others, found["best"]]},
    }


def pooled(studies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By root, each held-out family counting alike: ``learnt`` less each other row, and less the best open loop."""
    held = [one for one in studies if one["family"] in HELD_OUT]
    names = [name for name in ROWS if name != "learnt"]
    less = {name: np.mean([one["differences"][name] for one in held], axis=0) for name in names}
    less["best open loop"] = np.mean([one["differences"][one["best"]] for one in held], axis=0)
    return {name: asdict(t_mean(values.tolist())) for name, values in less.items()}


def compare(arguments: argparse.Namespace) -> None:
    modules = (dynamics, reader, families, learners, reports, learnt)
    sources = [*(module.__file__ for module in modules), str(WEIGHTS), __file__]
    made = {f"{name}-{arguments.roots}": partial(study, name, arguments.roots) for name in arguments.families}
    studies = dynamics.kept(KEPT, sources, made, reader.line)
    if set(arguments.families) >= set(HELD_OUT):
        print(f"learnt less others, mean over held-out families: {pooled(studies)}")
        record_if_asked(arguments, "learnt", {"less": pooled(studies), "studies": studies})


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("what", choices=("train", "compare"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--twins", nargs="*", choices=TWINS, default=TWINS)
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=[*HELD_OUT, NULL])
    parser.add_argument("--roots", type=int, default=24)
    arguments = arguments_of(parser)
    if arguments.what == "train":
        train(arguments.steps, arguments.twins)
    else:
        compare(arguments)


if __name__ == "__main__":
    main()
