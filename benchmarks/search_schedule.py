"""Search a schedule for a study's `searched` arm: ``python -m benchmarks.search_schedule small-corridors``.

Successive halving over schedules (how far from the first config to the target every stage is): random ones beside the hand-made
ladder, first on few development seeds, the best third of them on more. The winner is chosen by validation alone: no run of the search
has a test, and its boards and seeds are not the study's. What is done is kept under --out, so that a search continues where it stopped.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks._record import record
from envtuning.runs.log import RunLog
from envtuning.runs.spec import EngineerSpec, RunSpec, load_spec
from envtuning.show.terminal import make_console
from envtuning.studies.preregistered import ArmSpec, arm_of
from envtuning.studies.study import comparable, execute, folder_name

SUITE_SEED = 9_001  # held-out boards of the search alone
LADDER = (0.4, 0.7)  # the hand-made one of the preregistered studies

Parts = tuple[float, ...]


def schedules(draws: int, stages: int, rng: np.random.Generator) -> dict[str, Parts]:
    """The hand-made ladder, and different random ones: of 0 to ``stages`` - 2 steps that climb; whatever follows them is the target."""
    if stages < 3:
        raise SystemExit(f"{stages} stages: after the first there is the target alone, and no schedule to search")
    found: dict[str, Parts] = {"ladder": LADDER}
    while len(found) <= draws:
        steps = int(rng.integers(0, stages - 1))
        parts = tuple(float(part) for part in np.sort(rng.uniform(0.1, 0.95, steps)).round(2))
        if parts not in found.values():  # the target at once is one schedule, however often it is drawn
            found[f"draw-{len(found) - 1}"] = parts
    return found


def development(preset: str) -> RunSpec:
    """The preset's run on other held-out boards, its test left shut."""
    base = comparable(load_spec(preset))
    suites = base.suites.model_copy(update={"seed": SUITE_SEED, "test_seed": None, "test_per_slice": 0})
    return base.model_copy(update={"suites": suites})


def valued(
    base: RunSpec, parts: dict[str, Parts], seeds: Sequence[int], out: Path, jobs: int
) -> dict[str, list[float]]:
    """Success on the validation boards after the last stage, schedule by schedule, seed by seed."""
    arms = {
        name: arm_of(base, ArmSpec(engineer=EngineerSpec(name="schedule", options={"parts": list(steps)})))
        for name, steps in parts.items()
    }
    execute(arms, seeds, out, jobs=jobs)
    return {name: [_validated(RunLog.open(out / folder_name(name) / f"seed{seed}")) for seed in seeds] for name in arms}


def _validated(run: RunLog) -> float:
    last = run.state.done[-1].done
    assert last is not None
    return float(last.metrics[run.plan.world.about.objective])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("preset", help="the target, its budget and its stages")
    parser.add_argument("--draws", type=int, default=11, help="random schedules beside the hand-made one")
    parser.add_argument("--first", type=int, default=2, help="seeds on which all are tried")
    parser.add_argument("--more", type=int, default=3, help="further seeds on which the best third is tried")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/search"), help="folder of the search's runs")
    arguments = parser.parse_args()
    console, base, out = make_console(), development(arguments.preset), arguments.out / arguments.preset
    first = range(100, 100 + arguments.first)
    more = range(100 + arguments.first, 100 + arguments.first + arguments.more)
    drawn = schedules(arguments.draws, len(base.stages), np.random.default_rng(0))
    found = valued(base, drawn, first, out, arguments.jobs)
    best = sorted(found, key=lambda name: -float(np.mean(found[name])))[: max(1, len(found) // 3)]
    for name, rates in valued(base, {name: drawn[name] for name in best}, more, out, arguments.jobs).items():
        found[name] += rates
    winner = max(best, key=lambda name: float(np.mean(found[name])))
    rows = [
        {"schedule": name, "parts": drawn[name], "validation": rates, "mean": round(float(np.mean(rates)), 4)}
        for name, rates in sorted(found.items(), key=lambda item: -float(np.mean(item[1])))
    ]
    path = record(f"search_schedule_{arguments.preset}", {"winner": winner, "parts": drawn[winner], "schedules": rows})
    console.print(f"{winner}: parts {list(drawn[winner])}; figures: {path}", highlight=False)


if __name__ == "__main__":
    main()
