"""Engineers without a model, with several thresholds. Their walks are stored beside the trees."""

from __future__ import annotations

from typing import Any

# By the name in the tables the engineer and its options.
ROSTER: dict[str, tuple[str, dict[str, Any]]] = {
    "fixed": ("fixed", {}),
    "uniform": ("uniform", {}),
    "random": ("random", {}),
    "rules": ("rules", {}),
    "rules, bold": ("rules", {"thresholds": {"frontier": 0.2, "alive": 0.05}}),
    "rules, timid": ("rules", {"thresholds": {"frontier": 0.8, "alive": 0.6, "settled": 0.0}}),
    "half-success": ("half-success", {}),
    "progress-share": ("progress-share", {}),
    "ladder": ("schedule", {"parts": [0.4, 0.7]}),
    "ladder, late": ("schedule", {"parts": [0.0, 0.5]}),
    "ladder, short of it": ("schedule", {"parts": [0.2, 0.4, 0.6]}),
    "straight to the target": ("schedule", {"parts": [1.0]}),
    "half way and no further": ("schedule", {"parts": [0.5, 0.5, 0.5]}),
}
