"""What ``reader`` gains from the successes in training alone, which cost nothing: ``python -m benchmarks.gate_training``.

``python -m benchmarks.gate_cost`` found that the gain of ``reader`` does not survive if it pays for its reports. But every stage shows for
free how often the policy was right on the questions that it trained on, each before its own update. Here a report has these successes
and no others: about 40 questions of a task under even draws, none of a task that is not drawn. Roots, draws, tests and budget are those
of ``python -m benchmarks.gate_engineers``.

Written before any of these runs: a report counts all updates of a stage or its last half, whichever ends higher on the two tuning roots
with two training seeds. Reading pays without a cost if the least one-sided 95 % bound of the mean gain of ``reader`` over the open-loop
arms is above zero on the sixteen fresh roots, and ``permuted``, the control, is not above the best of them. ``read-once`` gets the same
successes of the first stage, with its threshold chosen from four on the same tuning roots: a simple rule may do as well.

``--everywhere`` plays ``reader`` and ``read-once`` with these settings on the five development roots of all twelve variants, too: what do they
gain where nobody chose the variant? Written after the runs above and before these; every variant is reported.

``give-up`` and ``learnability``, the best two of the simple rules of gate_engineers, read the same successes with the floors that they have
there. They were added last, to see whether they would do as well as ``reader``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

import engineers
from benchmarks import gate
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks._points import in_points
from benchmarks._record import RESULTS
from benchmarks.gate import DEVELOP, FRESH, SLOW, TUNE, Run, Seen
from benchmarks.gate_cost import setting
from benchmarks.gate_engineers import TRAININGS, asking, exchanged, line, measured, result, stored
from benchmarks.gate_rivals import keeping
from engineers.engineer import Engineer
from engineers.report import SliceResult

PARTS = (1.0, 0.5)  # of a stage's updates, its last ones
RULES = ("give-up", "learnability")
THRESHOLDS = (0.1, 0.2, 0.35, 0.5)  # from which success on ``read-once`` counts a task as known

Config = tuple[float, float]  # part, and the threshold of ``read-once``


def counted(part: float, seen: Seen, stage: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each task: the questions of training in the stage's last updates, and how many of them were right."""
    rows, right = (one[-round(part * len(one)) :].ravel() for one in seen.trained[stage])
    return tuple(np.bincount(rows, weights, minlength=seen.tasks.n) for weights in (None, right))  # type: ignore[return-value]


def in_training(part: float, seen: Seen, stage: int) -> list[SliceResult]:
    questions, right = counted(part, seen, stage)
    return [result(i, int(n), float(right[i] / n)) for i, n in enumerate(questions) if n]


def told_by_training(engineer: Engineer) -> Callable[[Config, Seen], np.ndarray]:
    return lambda config, seen: asking(engineer, results=partial(in_training, config[0]))(None, seen)


def read_once(config: Config, seen: Seen) -> np.ndarray:
    """``read-once`` of gate_rivals, by the successes in the first stage's training."""
    if seen.stage == 0:
        return np.ones(seen.tasks.n)
    questions, right = counted(config[0], seen, 0)
    return keeping(right >= config[1] * np.maximum(questions, 1), setting("read-once"), seen)


def floors_of_rules() -> dict[str, float]:
    """The floors that gate_engineers chose on the tuning roots, where tests are free."""
    return json.loads((RESULTS / "gate_engineers.json").read_text(encoding="utf-8"))["figures"]["floors"]


ARMS = {
    "reader": told_by_training(engineers.make("reader")),
    "permuted": told_by_training(exchanged(engineers.make("reader"))),
    "read-once": read_once,
    **{rule: told_by_training(engineers.make(rule, floor=floors_of_rules()[rule])) for rule in RULES},
}
CONFIGS = {"reader": [(part, 0.0) for part in PARTS], "read-once": [(part, at) for part in PARTS for at in THRESHOLDS]}
gate.ARMS |= {f"training {name}": (arm, (None,)) for name, arm in ARMS.items()}


def run_of(arm: str, config: Config, root: int, training: int) -> Run:
    return Run(root, f"training {arm}", config, training)


def on_tuning_roots(arm: str) -> dict[Config, float]:
    runs = {
        config: [run_of(arm, config, root, seed) for root in TUNE for seed in range(TRAININGS)]
        for config in CONFIGS[arm]
    }
    return {config: float(np.mean([row["end"] for row in gate.rows(SLOW, each)])) for config, each in runs.items()}


def best(ends: dict[Config, float]) -> Config:
    return max(ends, key=lambda config: ends[config])


def everywhere(chosen: dict[str, Config]) -> dict[str, Any]:
    """Both arms on the development roots of every variant, with one training seed."""
    found: dict[str, Any] = {}
    for name, variant in gate.VARIANTS.items():
        found[name] = {
            arm: measured(variant, DEVELOP, 1, partial(run_of, arm, chosen[arm])) for arm in ("reader", "read-once")
        }
        print(line_of_variant(name, found[name]), flush=True)
    return found


def line_of_variant(name: str, found: dict[str, Any]) -> str:
    """A variant's row: the best open loop, and both arms in points over it."""
    row = found["reader"]
    rival = stored(gate.VARIANTS[name], DEVELOP)[row["above"]]["success"]
    cells = [f"`{name}`", f"{100 * rival:.1f} (`{row['above']}`)", f"{100 * row['success']:.1f}"]
    cells += [in_points(row["over_best_open_loop"]), f"{100 * row['bound']:+.1f}"]
    cells.append(in_points(found["read-once"]["over_best_open_loop"]))
    return f"| {' | '.join(cells)} |"


def stored_everywhere() -> dict[str, Any]:
    return json.loads((RESULTS / "gate_training.json").read_text(encoding="utf-8"))["figures"]["everywhere"]


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--everywhere", action="store_true", help="the development roots of all variants, too")
    arguments = arguments_of(parser)
    torch.set_num_threads(1)
    tuning = {arm: on_tuning_roots(arm) for arm in CONFIGS}
    chosen = {arm: best(ends) for arm, ends in tuning.items()}
    chosen |= dict.fromkeys(("permuted", *RULES), chosen["reader"])
    found = {}
    for arm in ARMS:
        found[arm] = measured(SLOW, FRESH, TRAININGS, partial(run_of, arm, chosen[arm]))
        print(line(arm, found[arm]), chosen[arm], flush=True)
    fresh = {"variant": SLOW.name, "roots": FRESH, "training_seeds": TRAININGS}
    tried = {arm: [{"config": config, "success": end} for config, end in ends.items()] for arm, ends in tuning.items()}
    figures = fresh | {"arms": found, "settings": chosen, "on_tuning_roots": tried}
    figures["everywhere"] = everywhere(chosen) if arguments.everywhere else stored_everywhere()
    record_if_asked(arguments, "gate_training", figures)


if __name__ == "__main__":
    main()
