"""The papers' collapse: the entropy vanishes and the gradient's norm surges, some steps before the numbers stop being finite.

A pure function of the metrics of one stage; ``collapsed`` says why, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

WINDOW = 5  # optimiser steps that count as now
BEGIN = 10  # optimiser steps that count as healthy, from the stage's first on
ENTROPY_LEFT = 0.2  # of the healthy entropy: below it, it is gone
SILENT = 3  # optimiser steps without any difference between replies
SURGE = 3.0  # times the healthy gradient norm: above it, it surges


def collapsed(history: Sequence[dict[str, float]]) -> str | None:
    """Why these iterations, a stage's so far, are a collapse; None while they are none or too few to tell.

    Entropy alone also falls when a task is learnt, and the gradient alone surges where a config is new: only both together
    count, each against this stage's own first steps.
    """
    steps = [one for one in history if "entropy" in one and "grad_norm" in one]
    if len(steps) < BEGIN + WINDOW:
        return None
    begin, now = steps[:BEGIN], steps[-WINDOW:]
    entropy, entropy_before = fmean(one["entropy"] for one in now), fmean(one["entropy"] for one in begin)
    norm, norm_before = fmean(one["grad_norm"] for one in now), median(one["grad_norm"] for one in begin)
    if entropy < ENTROPY_LEFT * entropy_before and norm > SURGE * norm_before > 0:
        return (
            f"collapsed: in {len(steps)} optimiser steps the entropy fell from {entropy_before:.3f} to {entropy:.3f} while "
            f"the gradient's norm rose from {norm_before:.3g} to {norm:.3g}; what is learnt from here on is of little use: a shorter "
            "stage, or more KL"
        )
    return None


def unrewarded(history: Sequence[dict[str, float]]) -> str | None:
    """Why a stage's iterations so far teach nothing: in each of them, all replies to a prompt earned the same; None if some did not."""
    told = [one["equal_groups"] for one in history if "equal_groups" in one]
    if len(told) < SILENT or min(told) < 1.0:
        return None
    return (
        f"in {len(told)} optimiser steps, all replies to a prompt earned the same, so nothing could be learnt: pretrain longer, begin "
        "with an easier config, or pay a part of the way (reward: progress)"
    )
