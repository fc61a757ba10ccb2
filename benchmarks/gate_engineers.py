"""The package's engineers on the gate, where reading can pay: ``python -m benchmarks.gate_engineers``, on its fresh roots.

The roots, budgets, draws and tests are those of ``python -m benchmarks.gate --fresh codes-slow``, whose arms are stored. The first
stage draws evenly; from then on the engineer reads a report after each stage and writes the next shares. A report holds
success by task and no letters. ``permuted`` exchanges the tasks' outcomes; ``average`` is told the mean outcomes of the same
engineer on development roots. Every run is kept in ``runs/gate``: after a kill, the same command continues.

Written before any of its runs: reading pays here if the least one-sided 95 % bound of an engineer's mean gain over the open-loop
arms is above zero, and neither of its two controls is above the best of them.

A checkpoint reads, too, without any right answer: ``checkpoint`` is ``failure-share``, told 1 minus the entropy of the policy's own
answers in place of success; ``base`` is told that of the root, which has learnt nothing since. Written before their runs: a checkpoint
reads better than its base if the 95 % interval of ``checkpoint - base`` is above zero and ``checkpoint`` ends above
``checkpoint-permuted``; its reading is worth something if its bound over the best open loop is above zero.

``--everywhere`` plays ``reader`` on the five development roots of all twelve variants of the gate, too: what does it gain or lose where
nobody chose the variant for it? Every variant is reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, Field

import engineers
from benchmarks import gate
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks._record import RESULTS
from benchmarks.gate import DEVELOP, FRESH, SLOW, TUNE, Run, Seen, Variant
from engineers.controls import average, permuted
from engineers.engineer import Engineer
from engineers.report import SliceResult, StageRecord, StageReport
from envtuning.studies.closed_loop import gain
from envtuning.studies.intervals import t_mean

STORED = RESULTS / "gate_engineers.json"  # keeps the figures of all variants where they are not made again
TRAININGS = 2
FLOORS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)  # the gate's arms have four settings at most
CONTROLLED = "reader"

Rows = dict[str, dict[str, Any]]  # an arm's figures by its name
Results = Callable[[Seen, int], list[SliceResult]]  # what a report has of a stage


class Task(BaseModel):
    share: float = Field(1.0, ge=0, le=1, description="Weight of this task in the data.")


class TasksConfig(BaseModel):
    """How often each task is drawn in a stage."""

    slices: dict[str, Task] = Field(description="The tasks. Names and order say nothing.")


def config_of(parts: np.ndarray) -> TasksConfig:
    shares = np.round(parts / parts.max(), 6)
    return TasksConfig(slices={f"task-{i}": Task(share=share) for i, share in enumerate(shares.tolist())})


def asked_after(seen: Seen, stage: int) -> list[SliceResult]:
    """The success of every task on the questions of the report."""
    return [result(i, seen.variant.cases, rate) for i, rate in enumerate(seen.success[stage + 1].tolist())]


def result(task: int, episodes: int, rate: float) -> SliceResult:
    return SliceResult(name=f"task-{task}", episodes=episodes, metrics={"success_rate": rate})


def report_of(seen: Seen, stages: int, results: Results = asked_after) -> StageReport:
    """The report after so many trained stages."""
    records = []
    for stage in range(stages):
        rows = results(seen, stage)
        cost = {"updates": float(seen.variant.updates)}
        drawn = config_of(seen.drawn[stage]).model_dump(mode="json")
        records.append(StageRecord(stage=stage, config=drawn, results=rows, cost=cost))
    last, left = records[-1], seen.variant.stages - stages
    return StageReport(
        stage=last.stage,
        environment="A small transformer learns text tasks. Some are mastered, some are lacking, some may be out of reach.",
        objective="success_rate",
        config=last.config,
        target=config_of(np.ones(seen.tasks.n)).model_dump(mode="json"),
        rounds_left=left,
        budget_left=float(seen.variant.updates * left),
        unit="updates",
        cost=last.cost,
        results=last.results,
        history=records[:-1],
        training={"round": last.stage, "rounds": seen.variant.stages},
    )


def success(seen: Seen) -> list[np.ndarray]:
    return seen.success


def checkpoint(seen: Seen) -> list[np.ndarray]:
    """How sure the policy is of its own answers, before each stage."""
    assert seen.entropy is not None
    seen.entropies.append(seen.entropy())
    return [1 - entropy for entropy in seen.entropies]


def base(seen: Seen) -> list[np.ndarray]:
    """How sure the root was of its own answers, whatever was learnt since."""
    if seen.stage == 0:
        checkpoint(seen)
    return [1 - seen.entropies[0]] * (seen.stage + 1)


def itself(engineer: Engineer) -> Engineer:
    return engineer


def exchanged(engineer: Engineer) -> Engineer:
    return permuted(engineer, 0)


def average_self(engineer: Engineer) -> Engineer:
    """The engineer, told the mean outcomes of its own runs on the development roots."""
    gate.ARMS[engineer.name] = (asking(engineer), (None,))
    runs = gate.play(SLOW, [Run(root, engineer.name) for root in DEVELOP])
    return average(engineer, [[report_of(seen, stages + 1) for stages in range(SLOW.stages)] for seen in runs])


@dataclass(frozen=True)
class Asked:
    """Which engineer is asked, and what it is told of each task."""

    engineer: str
    told: Callable[[Seen], list[np.ndarray]] = success
    control: Callable[[Engineer], Engineer] = itself
    tuned: bool = False  # its floor is chosen on the roots for tuning


ASKED = {
    "reader": Asked("reader"),
    "rules": Asked("rules"),
    "failure-share": Asked("failure-share", tuned=True),
    "give-up": Asked("give-up", tuned=True),
    "learning-progress": Asked("learning-progress", tuned=True),
    "learnability": Asked("learnability", tuned=True),
    "permuted": Asked("reader", control=exchanged),
    "average": Asked("reader", control=average_self),
    "checkpoint": Asked("failure-share", checkpoint, tuned=True),
    "checkpoint-permuted": Asked("failure-share", checkpoint, exchanged, tuned=True),
    "base": Asked("failure-share", base, tuned=True),
    "reader-checkpoint": Asked("reader", checkpoint),
}
AGAINST = [("checkpoint", other) for other in ("base", "even", "failure-share", "checkpoint-permuted")]
AGAINST += [("reader-checkpoint", "reader")]


def asking(
    engineer: Engineer, told: Callable[[Seen], list[np.ndarray]] = success, results: Results = asked_after
) -> Callable[[Any, Seen], np.ndarray]:
    """An arm of the gate: even draws first, then what the engineer proposes."""

    def arm(_config: Any, seen: Seen) -> np.ndarray:
        known = replace(seen, success=told(seen))
        if seen.stage == 0:
            return np.ones(seen.tasks.n)
        report = report_of(known, seen.stage, results)
        proposed = engineer.propose(report, config_of(seen.drawn[-1])).config
        return np.array([task.share for task in proposed.slices.values()])

    return arm


def engineer_of(name: str, floor: float | None) -> Engineer:
    asked = ASKED[name]
    options = {} if floor is None else {"floor": floor}
    return asked.control(engineers.make(asked.engineer, **options))


def enter(name: str, floor: float | None) -> Callable[[int, int], Run]:
    """Enters an arm in the gate's table; what makes its runs."""
    arm = f"engineer {name}"
    gate.ARMS[arm] = (asking(engineer_of(name, floor), ASKED[name].told), (floor,))
    return lambda root, training: Run(root, arm, floor, training)


@cache
def best_floor(name: str) -> float | None:
    """The floor with which a rule ends highest on the roots for tuning; None for an engineer without one."""
    if not ASKED[name].tuned:
        return None
    ends = {}
    for floor in FLOORS:
        run = enter(name, floor)
        ends[floor] = sum(row["end"] for row in gate.rows(SLOW, [run(root, 0) for root in TUNE]))
    return max(ends, key=lambda floor: ends[floor])


def stored(variant: Variant, roots: tuple[int, ...]) -> dict[str, Any]:
    """The arms of the gate on these roots."""
    studies = json.loads((RESULTS / "gate.json").read_text(encoding="utf-8"))["figures"]["studies"]
    (found,) = [one for one in studies if (one["variant"]["name"], tuple(one["roots"])) == (variant.name, roots)]
    return found["arms"]


def measured(
    variant: Variant, roots: tuple[int, ...], trainings: int, run: Callable[[int, int], Run]
) -> dict[str, Any]:
    """How an arm ends on these roots, over the stored open-loop arms."""
    arms = stored(variant, roots)
    success = {arm: arms[arm]["per_root"] for arm in gate.OPEN | gate.SEARCHED if arm in arms}
    played = gate.rows(variant, [run(root, seed) for root in roots for seed in range(trainings)])
    ends = np.array([row["end"] for row in played]).reshape(len(roots), trainings).mean(1).round(4).tolist()
    over = gain(success | {"it": ends}, "it", list(success))
    between = t_mean([ours - theirs for ours, theirs in zip(ends, success[over.above], strict=True)])
    kinds = np.array([row["by_kind"][-1] for row in played], float).mean(0)
    return {
        "success": float(np.mean(ends)),
        "per_root": ends,
        "by_kind": {
            kind: None if np.isnan(x) else round(float(x), 4) for kind, x in zip(gate.KINDS, kinds, strict=True)
        },
        "over_best_open_loop": asdict(between),
        "above": over.above,
        "bound": over.low,
    }


def stored_engineers() -> Rows:
    return json.loads(STORED.read_text(encoding="utf-8"))["figures"]["arms"]


def study(variant: Variant, roots: tuple[int, ...], trainings: int, asked: Iterable[str]) -> Rows:
    """Each engineer in turn."""
    found = {}
    for name in asked:
        found[name] = measured(variant, roots, trainings, enter(name, best_floor(name)))
        print(line(name, found[name]), flush=True)
    return found


def everywhere() -> dict[str, Rows]:
    """``reader`` on the development roots of every variant."""
    return {name: study(variant, DEVELOP, 1, [CONTROLLED]) for name, variant in gate.VARIANTS.items()}


def differences(found: Rows) -> dict[str, Any]:
    """Of an arm that is told the checkpoint's entropy, to what it is set against: paired by root, with 95 % intervals."""
    ends = {name: row["per_root"] for name, row in found.items()} | {"even": stored(SLOW, FRESH)["even"]["per_root"]}
    return {
        f"{one} - {other}": asdict(t_mean([a - b for a, b in zip(ends[one], ends[other], strict=True)]))
        for one, other in AGAINST
    }


def line(name: str, row: dict[str, Any]) -> str:
    """An engineer's row: its end and each kind of task in percent, and points over the best open loop."""
    mean, low, high, bound = (100 * x for x in (*row["over_best_open_loop"].values(), row["bound"]))
    kinds = " | ".join("–" if share is None else f"{100 * share:.0f}" for share in row["by_kind"].values())
    return f"| `{name}` | {100 * row['success']:.1f} | {kinds} | {mean:+.1f} ({low:+.1f}, {high:+.1f}) | {bound:+.1f} |"


def line_of_variant(name: str, found: Rows) -> str:
    """A variant's row: the best open loop, ``reader``, and points over it."""
    row, best = found[CONTROLLED], stored(gate.VARIANTS[name], DEVELOP)[found[CONTROLLED]["above"]]["success"]
    mean, low, high, bound = (100 * x for x in (*row["over_best_open_loop"].values(), row["bound"]))
    ends = f"{100 * best:.1f} (`{row['above']}`) | {100 * row['success']:.1f}"
    return f"| `{name}` | {ends} | {mean:+.1f} ({low:+.1f}, {high:+.1f}) | {bound:+.1f} |"


def main() -> None:
    parser = command(__doc__)
    parser.add_argument(
        "--everywhere", action="store_true", help="`reader` on the development roots of all variants, too"
    )
    arguments = arguments_of(parser)
    torch.set_num_threads(1)
    fresh = {"variant": SLOW.name, "roots": FRESH, "training_seeds": TRAININGS}
    figures: dict[str, Any] = fresh | {"arms": study(SLOW, FRESH, TRAININGS, ASKED)}
    figures["floors"] = {name: best_floor(name) for name, asked in ASKED.items() if asked.tuned}
    figures["differences"] = differences(figures["arms"])
    for pair, found in figures["differences"].items():
        print(f"{pair}: {' '.join(f'{100 * x:+.1f}' for x in found.values())}")
    figures["everywhere"] = (
        everywhere()
        if arguments.everywhere
        else json.loads(STORED.read_text(encoding="utf-8"))["figures"]["everywhere"]
    )
    record_if_asked(arguments, "gate_engineers", figures)


if __name__ == "__main__":
    main()
