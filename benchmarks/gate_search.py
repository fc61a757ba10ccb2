"""Repeat the gate's search for the best open-loop schedule: ``python -m benchmarks.gate_search``.

Which schedule that reads nothing ends highest on ``codes-slow``, by its mean end on four roots on which nothing else is played? All
settings below are tried. The arm ``searched`` of the gate was found by an earlier search, whose settings were not kept: its place in
this table says whether a better rival was overlooked. Every run is kept in ``runs/gate``: after a kill, the same command continues.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch

from benchmarks import gate
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks.gate import SEARCHED, SLOW, Run

ROOTS = (200, 201, 202, 203)
TRIED: dict[str, tuple[Any, ...]] = {
    "even": (None,),
    "shares": (1 / 9, 1 / 3, 0.6, 1.7, 3.0, 9.0),
    "warm-up": tuple(product((1, 2, 3, 4), (0.0, 0.2))),
    "blocks": tuple(product((2, 3, 4), (False, True), (0.0, 0.2, 0.4))),
}


def searched() -> list[dict[str, Any]]:
    """Every setting's ends on the roots, the highest mean first."""
    settings = [(arm, config) for arm, configs in TRIED.items() for config in configs]
    ends = [row["end"] for row in gate.rows(SLOW, [Run(root, *setting) for setting in settings for root in ROOTS])]
    found = [
        {"arm": arm, "config": config, "success": float(of.mean()), "per_root": of.round(4).tolist()}
        for (arm, config), of in zip(settings, np.reshape(ends, (-1, len(ROOTS))), strict=True)
    ]
    return sorted(found, key=lambda row: -row["success"])


def main() -> None:
    arguments = arguments_of(command(__doc__))
    torch.set_num_threads(1)
    found = searched()
    for place, row in enumerate(found, 1):
        rival = (row["arm"], row["config"]) == ("blocks", SEARCHED["searched"][1][0])
        print(f"{place:2} {100 * row['success']:5.1f} {row['arm']} {row['config']}{' (searched)' * rival}")
    record_if_asked(arguments, "gate_search", {"variant": SLOW.name, "roots": ROOTS, "settings": found})


if __name__ == "__main__":
    main()
