"""Held-out suites for your own target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.generator.generate import Exclude, Limits, generate
from mapf_frozenlake.instance_set import InstanceSet

_SEED_OFFSET = 1 << 63  # training seeds are below, so the two streams never overlap
_LIMITS = Limits(expansions=2_000_000)  # a suite is drawn only once, so the limit can be high


def validation_suite(config: LakeConfig, n: int, seed: int = 0, *, exclude: Exclude = None) -> InstanceSet:
    """n instances of the target ``config`` to validate on, with labels agents, size and hole_ratio to group by.

    Training does not use these seeds. But small lakes repeat: pass this suite as ``exclude`` to the training envs, and the
    test suite as ``exclude`` here. Then the three share no board up to symmetry. The set's ``seed`` is the argument given here;
    ``generate`` makes other boards from it.
    """
    seed = int(seed)  # NumPy's seeds end where the offset begins
    drawn = generate(config, n, seed + _SEED_OFFSET, exclude=exclude, limits=_LIMITS)
    ratios = np.array([config.slices[size].hole_ratio for size in drawn.heights.tolist()])
    labels = {"agents": drawn.num_agents.astype(np.int64), "size": drawn.heights.astype(np.int64), "hole_ratio": ratios}
    ids = tuple(
        f"{agents}ag_{height}x{width}_hr{ratio:g}_{row:03d}"
        for row, (agents, height, width, ratio) in enumerate(
            zip(labels["agents"], drawn.heights, drawn.widths, ratios, strict=True)
        )
    )
    return replace(drawn, labels=labels, sample_ids=ids, seed=seed)
