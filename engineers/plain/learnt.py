"""``learnt``: divides the data by a small network that was trained on learners in closed form (``python -m benchmarks.learnt``).

The network sees the slices as a set: the same weights for each, and the mean of all as their context. So it works for 4 slices or 48, and
ignores names and order. It reads the stages of the report's history one by one, with a memory for each slice. It changes only shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from engineers.from_file import PLAIN, reads
from engineers.knobs import Knob, dump
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.reader import evidence_of, stages_left
from engineers.plain.way import Way
from engineers.report import StageReport
from engineers.roles import find_slices
from engineers.tiers import Tier

Array = NDArray[np.floating[Any]]
Weights = Mapping[str, Any]  # by name, matrices and biases

FEATURES, HIDDEN, MEMORY = 7, 32, 12
SHAPES = {  # of the weights
    "see": (FEATURES + MEMORY, HIDDEN),
    "see_bias": (HIDDEN,),
    "meet": (2 * HIDDEN, HIDDEN),
    "meet_bias": (HIDDEN,),
    "act": (HIDDEN, 1 + 2 * MEMORY),
    "act_bias": (1 + 2 * MEMORY,),
}
TWINS = ("learnt", "blind", "memoryless")  # blind: outcomes masked; memoryless: each stage as if it were the first


def features(weight: Any, dose: Any, rate: Any, cases: Any, done: Any, left: Any, count: Any, *, xp: Any = np) -> Any:
    """The inputs for each slice after a stage, [runs, slices, features]; all arguments are [runs, slices].

    ``weight`` in the target and ``dose`` in the last stage are in even shares; ``rate`` is success on ``cases``.
    """
    seen = [count * weight, dose, rate, 1 / xp.sqrt(cases), done / 12, left / 12, xp.log(count) / 3]
    return xp.stack(seen, -1)


def stage(weights: Weights, seen: Any, memory: Any, present: Any, *, xp: Any = np) -> tuple[Any, Any]:
    """Shares of the next stage, [runs, slices], and the memory after this one, [runs, slices, memory].

    ``present``: 1 for slices that a run has, 0 for others, [runs, slices]. With ``xp=torch`` the same for training.
    """
    own = xp.tanh(xp.concatenate([seen, memory], -1) @ weights["see"] + weights["see_bias"])
    count = present.sum(-1)[:, None, None]
    mean = (own * present[:, :, None]).sum(1)[:, None] / count
    both = xp.concatenate([own, mean + 0 * own], -1)
    found = xp.tanh(both @ weights["meet"] + weights["meet_bias"]) @ weights["act"] + weights["act_bias"]
    logits, gate, new = found[:, :, 0], found[:, :, 1 : 1 + MEMORY], found[:, :, 1 + MEMORY :]
    gate = 1 / (1 + xp.exp(-gate))
    wanted = xp.exp(8 * xp.tanh(logits / 8)) * present
    return wanted / wanted.sum(-1)[:, None], (1 - gate) * memory + gate * xp.tanh(new)


@cache
def stored(twin: str) -> Weights:
    """The weights in this package."""
    if twin not in TWINS:
        raise ValueError(f"twin={twin!r}: give one of {', '.join(TWINS)}")
    with np.load(Path(__file__).with_name("learnt.npz"), allow_pickle=False) as file:
        return {name: file[f"{twin}.{name}"] for name in SHAPES}


@reads({"twin": PLAIN})
class LearntEngineer(PlainEngineer):
    """``twin``: ``learnt``, or one with the same training and fewer inputs: ``blind`` has no outcomes, ``memoryless`` no earlier stages."""

    name = "learnt"
    tier = Tier.SLICE_SUCCESS
    turns = "the shares of two slices or more"

    def __init__(self, *, twin: str = "learnt", **options: Any) -> None:
        super().__init__(**options)
        self.weights, self.twin = stored(twin), twin
        if twin == "blind":
            self.tier = Tier.FAMILY

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return sum(piece.share is not None for piece in find_slices(knobs)) > 1

    def design(self, report: StageReport, current: BaseModel, knobs: Sequence[Knob]) -> Design:
        design = Design()
        slices = [piece for piece in find_slices(knobs) if piece.share is not None]
        if len(slices) < 2:
            return design
        way = Way(slices, dump(current), report.target, self.range_of)
        aims = [piece for piece in slices if piece.name in way.aims]
        told = evidence_of(report, current, aims, knobs)
        weight = np.array([[way.weights[piece.name] for piece in aims]])
        shares = self.shares(weight / weight.sum(), told.doses, told.succeeded, told.played, stages_left(report))
        parts = {piece.name: part for piece, part in zip(aims, shares.tolist(), strict=True)}
        design.share_out(slices, parts, {name: f"{part * len(aims):.2g} even shares" for name, part in parts.items()})
        return design

    def shares(self, weight: Array, doses: Array, succeeded: Array, played: Array, left: int) -> Array:
        """Of the next stage, [slices]; ``doses`` and counts are [stages, slices], ``weight`` is [1, slices]."""
        stages, slices = doses.shape
        memory, present, like = np.zeros((1, slices, MEMORY)), np.ones((1, slices)), np.ones((1, slices))
        shares = present / slices
        for number in range(stages):
            rate, cases = outcomes(succeeded[number] / np.maximum(played[number], 1), played[number], self.twin)
            seen = features(
                weight, doses[number][None], rate[None], cases[None], (number + 1) * like,
                (left + stages - 1 - number) * like, slices * like,
            )  # fmt: skip
            if self.twin == "memoryless":
                memory = np.zeros_like(memory)
            shares, memory = stage(self.weights, seen, memory, present)
        return shares[0]


def outcomes(rate: Any, cases: Any, twin: str) -> tuple[Any, Any]:
    """A twin's inputs: for the blind one, each slice succeeded in half of four cases."""
    return (0 * rate + 0.5, 0 * cases + 4.0) if twin == "blind" else (rate, cases + 1.0)
