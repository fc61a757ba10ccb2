"""Detects the papers' collapse: entropy vanishes and the gradient's norm surges, some steps before numbers stop being finite.

``collapsed`` is a pure function of the metrics of one stage; it returns the reason, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

WINDOW = 5  # optimiser steps that count as the present
BEGIN = 10  # optimiser steps that count as healthy, from the stage's first on
ENTROPY_LEFT = 0.2  # part of the healthy entropy; below it, the entropy counts as gone
SILENT = 3  # optimiser steps without any difference between replies
SURGE = 3.0  # times the healthy gradient norm; above it, the norm surges


def collapsed(history: Sequence[dict[str, float]]) -> str | None:
    """Why a stage's iterations so far are a collapse; None if they are not, or if they are too few to decide.

    Entropy also falls when a task is learnt, and the gradient also surges when a config is new. So only both together count,
    each compared with this stage's own first steps.
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
    """Why a stage's iterations so far teach nothing: in each, all replies to a prompt had the same reward; None if some differed."""
    told = [one["equal_groups"] for one in history if "equal_groups" in one]
    if len(told) < SILENT or min(told) < 1.0:
        return None
    return (
        f"in {len(told)} optimiser steps, all replies to a prompt earned the same, so nothing could be learnt: pretrain longer, begin "
        "with an easier config, or pay a part of the way (reward: progress)"
    )
