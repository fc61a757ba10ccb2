"""What reading is worth: ``python -m benchmarks.reading`` prints the pages' tables from the stored studies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks._points import in_points
from benchmarks._record import RESULTS
from envtuning.runs.spec import preset_names
from envtuning.studies.closed_loop import Gain, gain
from envtuning.studies.intervals import t_mean

ENGINEER = "rules"
# Every arm that reads nothing of its own run, with what it does.
OPEN_LOOP = {
    "uniform": "draws evenly over the whole space",
    "near-uniform": "the same, no slice beyond the target's",
    "fixed": "keeps its first config",
    "target-only": "trains on the target alone",
    "warm-target": "one easy stage, then the target",
    "mixture": "half easy, half target, from the first step",
    "ladder": "fixed steps to the target, written by hand",
    "searched": "fixed steps, found by a search on other seeds",
    "rules-average": "a schedule, which `rules` makes of other runs' mean reports",
}
TARGETS = {
    "small-corridors": "study_small-corridors-2",
    "corridors": "study_corridors-2",
    "three-agents": "study_three-agents-2",
    "engineer": "study_engineer-2",
    "MountainCar": "study_own-world",
}
SAID = {"engineer": "`engineer`: the stages of From Trainee to Trainer"}  # of a target whose name needs it

# The arms on the text tasks, by result and name: what each one is, what it reads, and what that costs.
FRESH = 16  # roots
READS = {
    ("gate", "oracle"): "an oracle | which tasks the policy lacks | nothing",
    ("gate_engineers", "reader"): "`reader` | a test of every task after each stage | not charged: 1,200 questions a test",
    ("gate_training", "reader"): "`reader` | the successes in training | nothing",
    ("gate_training", "read-once"): "a simple rule | the successes in the training of the first stage | nothing",
    ("gate_cost", "reader by compute"): "`reader` | a smaller test of every task after each stage | its compute, paid for with updates",
    ("gate", "searched"): "the best of five fixed schedules | nothing | nothing",
    ("gate_training", "give-up"): "`give-up`, a known rule, which sets a task's share by its success | the successes in training | nothing",
    ("gate_training", "permuted"): "`reader`, control | the successes in training, each under another task's name | nothing",
}  # fmt: skip

Figures = Mapping[str, Any]
Success = Mapping[str, list[float]]


def success_of(result: str) -> Success:
    """Success on the test by arm, in the order of the seeds."""
    runs = json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))["figures"]["runs"]
    found: dict[str, list[float]] = {}
    for run in sorted(runs, key=lambda run: run["seed"]):
        found.setdefault(run["arm"], []).append(run["success"])
    return found


def over_open_loop(success: Success) -> Gain:
    return gain(success, ENGINEER, [name for name in OPEN_LOOP if name in success])


def in_words(target: str) -> str:
    return f"`{target}`" if target in preset_names() else target


def percent(success: list[float]) -> str:
    return f"{100 * t_mean(success).mean:.1f}"


def with_interval(success: list[float]) -> str:
    found = t_mean(success)
    return f"{percent(success)} ± {50 * (found.high - found.low):.1f}"


def line(target: str) -> str:
    """A target's row: the best arm that reads nothing, the engineer, and the difference with its interval."""
    success = success_of(TARGETS[target])
    found = over_open_loop(success)
    best, ours = percent(success[found.above]), percent(success[ENGINEER])
    gains = [one - other for one, other in zip(success[ENGINEER], success[found.above], strict=True)]
    return f"| {SAID.get(target, in_words(target))} | `{found.above}`: {OPEN_LOOP[found.above]} | {best} | {ours} | {in_points(asdict(t_mean(gains)))} |"


def bound(target: str) -> str:
    """The one-sided 95 % bound over all arms that read nothing, in points."""
    found = over_open_loop(success_of(TARGETS[target]))
    assert found.low is not None, "these studies have several seeds"
    return f"{100 * found.low:+.1f}"


def table_of_arms() -> list[str]:
    """All arms on all targets: means with 95 % intervals."""
    studies = {target: success_of(result) for target, result in TARGETS.items()}
    does = OPEN_LOOP | {ENGINEER: "reads the run's own reports"}
    lines = [
        f"| arm | what it does | {' | '.join(map(in_words, studies))} |",
        f"| --- | --- | {' | '.join(['---:'] * len(studies))} |",
    ]
    for arm, doing in does.items():
        cells = [with_interval(success[arm]) if arm in success else "" for success in studies.values()]
        lines.append(f"| `{arm}` | {doing} | {' | '.join(cells)} |")
    return lines


def lines_of_tasks() -> list[str]:
    """The arms on the text tasks, from the best to the worst: what earlier versions stored, before there was the exam."""
    rows = [(says, arms_on_tasks(result)[name]) for (result, name), says in READS.items()]
    rows.sort(key=lambda row: -row[1]["success"])
    return [f"| {says} | {100 * arm['success']:.1f} | {over_fixed(arm)} |" for says, arm in rows]


def arms_on_tasks(result: str) -> Figures:
    figures = json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))["figures"]
    if "studies" in figures:
        (figures,) = [study for study in figures["studies"] if len(study["roots"]) == FRESH]
    return figures["arms"] if "arms" in figures else {f"{row['arm']} {row['charge']}": row for row in figures["rows"]}


def over_fixed(arm: Figures) -> str:
    return in_points(arm["over_best_open_loop"]) if "over_best_open_loop" in arm else ""


def main() -> None:
    print(
        *table_of_arms(),
        "",
        *(f"{line(target)} {bound(target)} |" for target in TARGETS),
        "",
        *lines_of_tasks(),
        sep="\n",
    )


if __name__ == "__main__":
    main()
