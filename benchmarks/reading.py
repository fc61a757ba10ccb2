"""What reading is worth on each target: ``python -m benchmarks.reading`` prints the pages' tables from the stored studies."""

from __future__ import annotations

import json
from collections.abc import Mapping

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
    "ladder": "steps to the target, written beforehand",
    "searched": "steps found by a search on other seeds",
    "rules-average": "`rules`, told the mean reports of other runs",
}
TARGETS = {
    "small-corridors": "study_small-corridors-2",
    "corridors": "study_corridors-2",
    "three-agents": "study_three-agents-2",
    "engineer": "study_engineer-2",
    "MountainCar": "study_own-world",
}

Success = Mapping[str, list[float]]


def success_of(result: str) -> Success:
    """Success on the test by arm, in the order of the seeds."""
    runs = json.loads((RESULTS / f"{result}.json").read_text(encoding="utf-8"))["figures"]["runs"]
    found: dict[str, list[float]] = {}
    for run in sorted(runs, key=lambda run: run["seed"]):
        found.setdefault(run["arm"], []).append(run["success"])
    return found


def over_open_loop(success: Success) -> Gain:
    return gain(success, ENGINEER, [name for name in OPEN_LOOP if name in success], oracle=False)


def in_words(target: str) -> str:
    return f"`{target}`" if target in preset_names() else target


def percent(success: list[float]) -> str:
    return f"{100 * t_mean(success).mean:.1f}"


def with_interval(success: list[float]) -> str:
    found = t_mean(success)
    return f"{percent(success)} ± {50 * (found.high - found.low):.1f}"


def line(target: str) -> str:
    """A target's row: the best arm that reads nothing, the engineer, and the difference with its bound."""
    success = success_of(TARGETS[target])
    found = over_open_loop(success)
    best, ours = percent(success[found.above]), percent(success[ENGINEER])
    return f"| {in_words(target)} | `{found.above}`: {OPEN_LOOP[found.above]} | {best} | {ours} | {100 * found.mean:+.1f} | {bound(found)} |"


def bound(found: Gain) -> str:
    """The one-sided 95 % bound in points; these studies have several seeds, and so have one."""
    assert found.low is not None
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


def main() -> None:
    print(*table_of_arms(), "", *(line(target) for target in TARGETS), sep="\n")


if __name__ == "__main__":
    main()
