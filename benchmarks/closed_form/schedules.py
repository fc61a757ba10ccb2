"""Schedules that read nothing, and how they end: the open loop that engineers are measured against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.closed_form.learners import KINDS, Array, Learners, step, value

MOST = 3  # searched schedules that go on to fresh roots

Arm = Callable[[Any, Learners, int], tuple[Array, Array | None]]  # shares and focus of a stage, unread


def shares(power: float, of: Learners, stage: int) -> tuple[Array, None]:
    """Fixed, by the target's weights."""
    return np.where(of.present, np.maximum(of.weight, 1e-12) ** power, 0.0), None


def blocks(config: tuple[int, float], of: Learners, stage: int) -> tuple[Array, None]:
    """One part of the slices after the other, with replay of all."""
    parts, replay = config
    at = (stage - 1) * parts // np.maximum(of.stages - 1, 1) % parts
    chosen = of.present & (np.arange(of.weight.shape[1]) % parts == at[:, None])
    return replay * of.even() + (1 - replay) * chosen / np.maximum(chosen.sum(1, keepdims=True), 1), None


def drop(config: tuple[float, float], of: Learners, stage: int) -> tuple[Array, None]:
    """From some time on, the slices that weigh least are left out."""
    part, after = config
    rank = (of.weight[:, None] > of.weight[:, :, None]).sum(2)  # how many weigh more
    kept = rank < np.ceil((1 - part) * of.present.sum(1))[:, None]
    return np.where((stage > after * of.stages)[:, None], kept, True) * of.even(), None


def focus(config: tuple[int, ...], of: Learners, stage: int) -> tuple[Array, Array]:
    """Even draws, against one kind of failure after the other."""
    kind = config[(stage - 1) % len(config)]
    return of.even(), np.broadcast_to(np.eye(len(KINDS))[kind], of.cause.shape)


OPEN: dict[str, tuple[Arm, tuple]] = {
    "even": (shares, (0.0,)),
    "shares": (shares, (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)),
    "blocks": (blocks, tuple((parts, replay) for parts in (2, 3, 4) for replay in (0.1, 0.4))),
    "drop": (drop, tuple((part, after) for part in (0.25, 0.5, 0.75) for after in (0.0, 0.5))),
    "focus": (focus, ((0,), (1,), (2,), (0, 1, 2), (0, 1), (0, 0, 1, 1, 2, 2))),
}


def unread(arm: str, config: Any, of: Learners) -> Array:
    """Each run's end under a schedule."""
    practice, ends = step(of, of.start, of.even()), np.zeros(len(of))
    for stage in range(1, int(of.stages.max()) + 1):
        ends = np.where(of.stages == stage, value(of, practice), ends)
        practice = step(of, practice, *OPEN[arm][0](config, of, stage))
    return ends


def frozen(tuning: Learners) -> dict[str, tuple[str, Any]]:
    """The schedules that go on to fresh roots, by name: even draws, and the best of all on the tuning roots."""
    tried = {f"{arm} {config}": (arm, config) for arm, (_, configs) in OPEN.items() for config in configs}
    even, *searched = tried
    best = sorted(searched, key=lambda name: -float(unread(*tried[name], tuning).mean()))
    return {name: tried[name] for name in (even, *best[:MOST])}


def in_words(schedule: str) -> str:
    """A schedule's name with its configuration, for a table."""
    return schedule.replace("(", "").replace(")", "")
