"""What the preset ``small-skills`` teaches a real model: ``python -m benchmarks.small_skills --model FOLDER``, 20 CPU minutes without matrix units.

The preset with one seed: 20 updates of Qwen2.5-Coder-0.5B by GRPO with adapters, its engineer, and a test on the same
held-out questions before the first stage, after it and at the end, with the greedy reply. FOLDER is made by `envtuning weights`.

One seed, whose first stage is drawn evenly, without another arm: it says nothing about engineers. With ``--rates``, even draws are trained at two
learning rates instead. A killed run goes on when the same command is given again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._record import raise_unless_committed, record
from engineers.report import SliceResult, wilson
from envtuning import loop
from envtuning.loop.observer import Observer
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.runs.state import Stage
from envtuning.worlds.episodes import pooled

PRESET = "small-skills"
STAGES, QUESTIONS = 4, 8  # the preset's
RATES = (1e-4, 3e-4)
TOKENS = ("generated_tokens", "trained_tokens", "tokens")


class Clock(Observer):
    """Appends the CPU seconds since the event before to a file, so that a resumed run has them, too."""

    def __init__(self, path: Path) -> None:
        self.path, self.before = path, time.process_time()

    def passed(self, what: str) -> None:
        now = time.process_time()
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"what": what, "seconds": now - self.before}) + "\n")
        self.before = now

    def stage_began(self, stage: Stage, allowance: int) -> None:
        self.passed("loading")

    def stage_ended(self, stage: Stage) -> None:
        self.passed(f"stage {stage.number}")

    def test_opened(self, cases: int) -> None:
        self.passed("loading")

    def run_left(self) -> None:
        self.passed("test")

    def minutes(self) -> dict[str, float]:
        """By what the time was spent on; what a killed process had begun is not in it."""
        spent: Counter[str] = Counter()
        for line in self.path.read_text(encoding="utf-8").splitlines():
            one = json.loads(line)
            spent[one["what"]] += one["seconds"] / 60
        return {name: round(value, 2) for name, value in spent.items()}


def spec_of(model: str, seed: int, stages: int = STAGES, questions: int = QUESTIONS, **changes: Any) -> RunSpec:
    changes |= {"trainee.options.model": model, "seed": seed, "suites.test_per_slice": questions}
    return load_spec(PRESET, changes=changes).with_rounds(stages)


def at_rates(rates: Sequence[float], given: argparse.Namespace) -> dict[str, Any]:
    """Even draws at each learning rate, on the same held-out questions."""
    found = {}
    for rate in rates:
        changes = {"engineer": "uniform", "trainee.options.grpo.learning_rate": rate}
        spec = spec_of(f"{given.model.absolute()}", given.seed, given.stages, given.questions, **changes)
        found[f"{rate:g}"] = figures = figures_of(loop.start(spec, given.out.with_name(f"{given.out.name}-{rate:g}")))
        print(f"rate {rate:g}, even draws", table(figures), sep="\n", flush=True)
    return found


def weights_of(model: Path) -> dict[str, str]:
    """The SHA-256 of every file of weights."""
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(model.glob("*.safetensors"))}
    if not found:
        raise SystemExit(f"{model} has no safetensors file: make it with `envtuning weights`")
    return found


def told(rows: list[SliceResult], metric: str) -> dict[str, Any]:
    """Success over all questions with its 95 % interval, and by task."""
    cases, success = sum(row.episodes for row in rows), pooled(rows, metric)
    return {
        "questions": cases,
        "success": success,
        "interval": wilson(success, cases),
        "tasks": {row.name: row.metrics[metric] for row in rows},
    }


def figures_of(run: RunLog) -> dict[str, Any]:
    test, metric = run.state.test, run.plan.world.about.objective
    assert test is not None, "a finished run has opened its test"
    assert test.start is not None, "the preset tests the start"
    lines = [line for stage in run.state.done for line in stage.metrics() if line["kind"] == "iteration"]
    return {
        "engineer": run.plan.spec.engineer.name,
        "learning rate": run.plan.spec.trainee.options["grpo"]["learning_rate"],
        "updates": len(lines),
        "test": {"before": told(test.start, metric), "first stage": told(test.first, metric), "end": told(test.last, metric)},
        "tokens": {name: sum(line[name] for line in lines) for name in TOKENS},
        "samples": run.state.spent["samples"],
        "training success by update": [round(line["success_rate"], 4) for line in lines],
        "groups paid alike by update": [round(line["equal_groups"], 4) for line in lines],
        "shares": [
            {name: task["share"] for name, task in stage.chosen.config.model_dump()["tasks"].items()}
            for stage in run.state.stages
        ],
        "incidents": [one.message for one in run.state.incidents()],
    }  # fmt: skip


def table(figures: dict[str, Any]) -> str:
    tests = figures["test"]
    rows = [f"{'':12}" + "".join(f"{name:>14}" for name in tests)]
    for task in tests["before"]["tasks"]:
        rows.append(f"{task:12}" + "".join(f"{one['tasks'][task]:14.1%}" for one in tests.values()))
    rows.append(f"{'all':12}" + "".join(f"{one['success']:14.1%}" for one in tests.values()))
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, type=Path, help="a transformers folder that `envtuning weights` made")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--stages", type=int, default=STAGES, help="of five updates each")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of the test, for each task")
    parser.add_argument(
        "--rates", nargs="*", type=float, metavar="RATE", help="train even draws at these learning rates (1e-4 3e-4)"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/small-skills"), help="folder of the run")
    parser.add_argument("--no-record", action="store_true", help="print only")
    given = parser.parse_args()
    if not given.no_record:
        raise_unless_committed()
    weights = weights_of(given.model)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    if given.rates is not None:
        found = at_rates(given.rates or RATES, given)
        if not given.no_record:
            print(record("small_skills_rates", {"seed": given.seed, "weights": weights, "rates": found}))
        return
    clock = Clock(given.out.with_suffix(".cpu.jsonl"))
    spec = spec_of(f"{given.model.absolute()}", given.seed, given.stages, given.questions)
    run = loop.start(spec, given.out, clock)
    figures = {"preset": PRESET, "seed": given.seed, "weights": weights} | figures_of(run)
    figures |= {
        "cpu minutes": clock.minutes(),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1),
    }
    print(table(figures))
    if not given.no_record:
        print(record("small_skills", figures))


if __name__ == "__main__":
    main()
