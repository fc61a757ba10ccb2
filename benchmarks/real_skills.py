"""Does an engineer beat drawing other questions, on a real model? ``python -m benchmarks.real_skills --model FOLDER --seeds 3``, 50 CPU minutes a seed for the first five arms.

Written before any of its runs at the rate 1e-4 began; at 3e-4, which three seeds had, even draws forget (``benchmarks.small_skills``). The preset
``small-skills`` with Qwen2.5-Coder-0.5B. For each seed, ten even updates are shared, because they teach the format. Then every arm has as many
replies as 30 updates without refill (a reply has at most eight tokens), and its engineer is asked before every five:

- even with refill: equal shares; groups without a signal give way to other questions, up to two for each prompt;
- rising: the exam's engineer, which reads training's outcomes;
- even: equal shares, nothing else;
- learnability: p(1 - p) of training's outcomes;
- hindsight: the tasks that rose by a tenth or more in the seed's even arm have ten times the share of the others. It stands for an oracle.

Three arms tell what more replies buy, and one more what the KL term does:

- even with refill for as long: as many updates as the others have, or a few more, with 2.5 times the replies;
- even with sixteen prompts: twice the batch and twice the replies, so as many updates;
- even for long: 120 updates after the shared ones, more than the paper's long stage has;
- even for long with KL: the same with the KL term of the paper, 0.02.

And one is a control:

- even with shuffled rewards: even draws in which the rewards of a question are dealt anew among its replies. So as many groups have a
  signal, as large a one, and it says nothing of a reply. What such updates gain is no learning by reward.

The test has 24 held-out questions a task, greedy replies, after the shared updates and at the end (64 cost as much as the training on a CPU; on
a GPU give ``--set suites.test_per_slice=64 --set trainee.options.reply_batch=384``). The primary outcome is the mean success over the tasks that lie between .05 and .6 after the shared updates; those below and above are told apart. The primary contrast is rising less even
with refill, by seed. All arms skip groups without a signal, whose gradient is zero. The other contrasts are exploratory. The primary arms of all seeds are
run first, and an unfinished run is in no table. Fewer than three seeds have no interval over seeds and decide nothing; then the
interval is of the held-out questions alone.

Seeds 0 to 2 have all of the first five arms, in bfloat16 (``real_skills``). Seeds 3 and later have the primary ones alone, on a processor without
bfloat16: ``--first 3 --seeds 4 --arms "even with refill,rising" --set trainee.options.dtype=float32 --beside real_skills --name real_skills_more``. This was
written when the first of them had begun and none had ended. The primary contrast is then that of all seeds; an arm is only compared within a seed.

Seeds 5 and 6, and further ones as time allows, have the control as well, in float32: ``--first 5 --seeds 2 --arms "even with shuffled rewards"``. This was
written before any of its runs began, while seeds 5 and 6 were in their shared updates. It is compared with both primary arms, over all tasks.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks._record import RESULTS, raise_unless_committed, record
from benchmarks.small_skills import TOKENS, weights_of
from engineers.report import SliceResult, wilson
from envtuning.cli.arguments import listed, parse_settings
from envtuning.loop.run import continue_run, create
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.runs.tasks import next_task
from envtuning.studies.intervals import t_mean

PRESET = "small-skills"
PROMPTS, REPLIES = 8, 64  # of an update without refill
SHARED, STAGES, UPDATES = 10, 6, 5  # shared updates; stages after them, and the updates of each
QUESTIONS = 24  # held out, of each task, where no change says otherwise
ROSE, LESS = 0.1, 0.1  # what a task must gain in the even arm to be drawn in hindsight, and the share of all others
MIDDLE = (0.05, 0.6)  # success after the shared updates, of the tasks of the primary outcome
PRIMARY = ("rising", "even with refill")
CONTROL = "even with shuffled rewards"
SHARED_RUN = "shared"
SIGNS = ("entropy", "grad_norm")  # of a collapse: the first vanishes while the second surges
LEAST = {"suites.validation_per_slice": 1, "suites.test_per_slice": QUESTIONS, "suites.test_start": False}


@dataclass(frozen=True)
class Arm:
    engineer: str
    refill: int = 0
    hindsight: bool = False
    times: float = 1.0  # the replies of the other arms
    prompts: int = PROMPTS  # a batch
    kl: float = 0.0
    reward: str | None = None  # a function in place of the world's reward


ARMS = {
    "even with refill": Arm("fixed", refill=2),
    "rising": Arm("rising"),
    "even": Arm("fixed"),
    "learnability": Arm("learnability"),
    "hindsight": Arm("fixed", hindsight=True),
    "even with refill for as long": Arm("fixed", refill=2, times=2.5),
    "even with sixteen prompts": Arm("fixed", prompts=16, times=2),
    "even for long": Arm("fixed", times=4),
    "even for long with KL": Arm("fixed", times=4, kl=0.02),
    CONTROL: Arm("fixed", reward="benchmarks.real_skills:shuffled"),
}
MAIN = list(ARMS)[:5]
OTHER_PAIRS = [
    ("rising", "even with refill for as long"),
    ("even for long with KL", "even for long"),
    *[(arm, CONTROL) for arm in PRIMARY],
]


def shuffled(
    *, metadata: Sequence[Mapping[str, Any]], completion_ids: Sequence[list[int]], paid: Sequence[float], **columns: Any
) -> list[float]:
    """What the world pays for the replies to each question, dealt anew among these. The same replies are dealt alike."""
    rng = np.random.default_rng([token for ids in completion_ids for token in ids])
    questions = groupby(zip(metadata, paid, strict=True), key=lambda reply: reply[0]["case"])
    return [reward for _, replies in questions for reward in rng.permutation([one for _, one in replies]).tolist()]


def spec_of(
    arm: Arm, seed: int, model: Path, shares: dict[str, float] | None = None, changes: Mapping[str, Any] | None = None
) -> RunSpec:
    """The arm's run. Its stages after the shared updates begin with these shares."""
    of_arm = {
        "seed": seed,
        "trainee.options.model": f"{model.absolute()}",
        "trainee.options.refill": arm.refill,
        "trainee.options.skip_equal_groups": not arm.kl,
        "trainee.options.grpo.beta": arm.kl,
        "trainee.options.grpo.per_device_train_batch_size": REPLIES * arm.prompts // PROMPTS,
    }
    if arm.reward is not None:  # other arms keep the plan that they were begun with
        of_arm["trainee.options.reward"] = arm.reward
    preset = load_spec(PRESET, changes=of_arm | LEAST | dict(changes or {}))
    first, *later = preset.stages
    after = later[0].model_copy(update={"budget": round(arm.times * UPDATES * REPLIES)})
    if shares is not None:
        after = after.on({"tasks": {task: {"share": share} for task, share in shares.items()}})
    stages = (first.model_copy(update={"budget": SHARED * REPLIES}), *[after] * STAGES)
    return preset.model_copy(update={"stages": stages, "engineer": preset.engineer.replaced_by(arm.engineer)})


def folder_of(out: Path, name: str, seed: int) -> Path:
    return out / f"seed{seed}" / name.replace(" ", "-")


def shares_in_hindsight(seed: int, out: Path) -> dict[str, float]:
    """More of the tasks that the seed's even arm has learnt."""
    test = RunLog.open(folder_of(out, "even", seed)).state.test
    assert test is not None, "the even arm is played first"
    before, end = successes(test.first), successes(test.last)
    return {task: 1.0 if end[task] - before[task] >= ROSE else LESS for task in before}


def play_shared(seed: int, model: Path, out: Path, changes: Mapping[str, Any] | None = None) -> RunLog:
    run = create(folder_of(out, SHARED_RUN, seed), spec_of(ARMS["even"], seed, model, changes=changes))
    continue_run(run, stages=1)
    return run


def play(name: str, seed: int, model: Path, out: Path, changes: Mapping[str, Any] | None = None) -> None:
    """An arm of a seed to its end, from the shared updates of this seed."""
    shares = shares_in_hindsight(seed, out) if ARMS[name].hindsight else None  # first: it needs the even arm
    shared = play_shared(seed, model, out, changes)
    run = create(folder_of(out, name, seed), spec_of(ARMS[name], seed, model, shares, changes))
    if not run.state.done:
        run.begin_with(shared)
    continue_run(run)


def finished(out: Path, seeds: Sequence[int]) -> Iterator[tuple[str, int, RunLog]]:
    for seed in seeds:
        for name in ARMS:
            folder = folder_of(out, name, seed)
            if (folder / "run.json").exists():
                run = RunLog.open(folder)
                if next_task(run.plan, run.state) is None:
                    yield name, seed, run


def successes(rows: Sequence[SliceResult]) -> dict[str, float]:
    return {row.name: row.metrics["success_rate"] for row in rows}


def row_of(name: str, seed: int, run: RunLog) -> dict[str, Any]:
    test = run.state.test
    assert test is not None, "a finished run has opened its test"
    lines = [line for stage in run.state.done for line in stage.metrics() if line["kind"] == "iteration"]
    return {
        "arm": name,
        "seed": seed,
        "learning rate": run.plan.spec.trainee.options["grpo"]["learning_rate"],
        "questions": test.last[0].episodes,  # of each task
        "before": successes(test.first),
        "end": successes(test.last),
        "updates": len(lines),
        "replies": run.state.spent["samples"],
        "tokens": {token: sum(line[token] for line in lines) for token in TOKENS},
        "signs of collapse": {sign: first_and_last(lines, sign) for sign in SIGNS},
        "shares": [
            {task: knobs["share"] for task, knobs in stage.chosen.config.model_dump()["tasks"].items()}
            for stage in run.state.stages
        ],
    }


def first_and_last(lines: Sequence[dict[str, Any]], name: str) -> tuple[float, float]:
    """The means of a metric over a run's first and last ``UPDATES`` updates, the shared ones included."""
    return fmean(line[name] for line in lines[:UPDATES]), fmean(line[name] for line in lines[-UPDATES:])


def groups_of(before: dict[str, float]) -> dict[str, list[str]]:
    """The tasks of the primary outcome, and those that are told apart, by their success after the shared updates."""
    low, high = MIDDLE
    return {
        "between": [task for task, rate in before.items() if low <= rate <= high],
        "below": [task for task, rate in before.items() if rate < low],
        "above": [task for task, rate in before.items() if rate > high],
        "all": list(before),
    }


def mean_over(tasks: Sequence[str], rates: dict[str, float]) -> float | None:
    return fmean(rates[task] for task in tasks) if tasks else None


def half_of_questions(tasks: Sequence[str], questions: int, *ends: dict[str, float]) -> float:
    """Half of the 95 % interval of a difference of two means over tasks, by the number of held-out questions a task."""
    variance = sum(rates[task] * (1 - rates[task]) for rates in ends for task in tasks) / questions
    return 1.96 * math.sqrt(variance) / len(tasks)


def contrast(one: str, other: str, rows: Sequence[dict[str, Any]], group: str) -> dict[str, Any] | None:
    """One arm less the other by seed; None without a seed in which both are finished."""
    by = {(row["arm"], row["seed"]): row for row in rows}
    differences, halves = [], []
    for seed in sorted({seed for _, seed in by}):
        if (one, seed) in by and (other, seed) in by:
            ours, theirs = by[one, seed], by[other, seed]
            if tasks := groups_of(ours["before"])[group]:
                differences.append(fmean(ours["end"][task] - theirs["end"][task] for task in tasks))
                halves.append(half_of_questions(tasks, ours["questions"], ours["end"], theirs["end"]))
    if not differences:
        return None
    return {
        "arms": f"{one} - {other}",
        "tasks": group,
        "by seed": differences,
        "over seeds": asdict(t_mean(differences)),
        "half of the interval over questions, by seed": halves,
    }


def gain(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What an arm ends above the shared updates over all tasks, by seed."""
    gains = [fmean(row["end"][task] - row["before"][task] for task in row["end"]) for row in rows if row["arm"] == name]
    return {"arm": name, "by seed": gains, "over seeds": asdict(t_mean(gains))}


def arms_in(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [name for name in ARMS if any(row["arm"] == name for row in rows)]


def gains_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [gain(name, rows) for name in arms_in(rows)]


def task_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Each task after the shared updates and at the end of each arm, in %, with an interval over the questions of all seeds, as the page has it."""
    arms = arms_in(rows)
    ends = [("before", [row for row in rows if row["arm"] == arms[0]])]
    ends += [("end", [row for row in rows if row["arm"] == name]) for name in arms]
    told = []
    for task in rows[0]["end"]:
        cells = [task]
        for when, of in ends:
            rate = fmean(row[when][task] for row in of)
            low, high = wilson(rate, sum(row["questions"] for row in of))
            cells.append(f"{100 * rate:.0f} ({100 * low:.0f}, {100 * high:.0f})")
        told.append(f"| {' | '.join(cells)} |")
    return told


def worst_quarter(row: Mapping[str, Any]) -> float:
    """Mean success at the end over the quarter of the tasks with the least."""
    ends = sorted(row["end"].values())
    return fmean(ends[: math.ceil(len(ends) / 4)])


def contrasts_of(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    pairs = [PRIMARY, *[(name, "even") for name in ARMS if name != "even"], *OTHER_PAIRS]
    found = (contrast(one, other, rows, group) for one, other in pairs for group in ("between", "all"))
    return [one for one in found if one is not None]


def rows_beside(name: str, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The stored rows of other seeds. A run that stands in both is refused: its seed would count twice."""
    file = RESULTS / f"{name}.json"
    if not file.exists():
        raise SystemExit(f"--beside {name}: there is no {file.name} in benchmarks/results")
    stored = json.loads(file.read_text(encoding="utf-8"))["figures"]["rows"]
    if twice := {(row["arm"], row["seed"]) for row in stored} & {(row["arm"], row["seed"]) for row in rows}:
        arm, seed = min(twice)
        raise SystemExit(
            f"--beside {name}: it has seed {seed} of {arm!r}, too: give other seeds by --first and --seeds"
        )
    return [*stored, *rows]


def figures_of(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    means = [
        {"arm": row["arm"], "seed": row["seed"]}
        | {
            group: {when: mean_over(tasks, row[when]) for when in ("before", "end")}
            for group, tasks in groups_of(row["before"]).items()
        }
        for row in rows
    ]
    return {"rows": list(rows), "means": means, "gains": gains_of(rows), "contrasts": contrasts_of(rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", required=True, type=Path, help="a transformers folder that `envtuning weights` made")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--arms", default=",".join(MAIN), help=f"in this order, of: {', '.join(ARMS)}")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the preset and its value"
    )
    parser.add_argument("--minutes", type=float, default=960.0, help="CPU minutes after which no run is begun")
    parser.add_argument("--out", type=Path, default=Path("runs/real-skills"), help="folder of the runs")
    parser.add_argument("--device", help="what the runs were trained on, if not on this machine's processor")
    parser.add_argument("--beside", metavar="NAME", help="stored figures of other seeds, which join in the contrasts")
    parser.add_argument("--name", default="real_skills", help="of the stored figures")
    parser.add_argument("--no-record", action="store_true", help="print only")
    given = parser.parse_args()
    arms = listed(given.arms)
    if unknown := [name for name in arms if name not in ARMS]:  # before the shared updates are trained for them
        parser.error(f"--arms has {unknown[0]!r}: give some of {', '.join(ARMS)}")
    if not given.no_record:
        raise_unless_committed()
    seeds = range(given.first, given.first + given.seeds)
    changes = parse_settings(given.set)
    if given.beside is not None:  # refused before hours of training
        rows_beside(given.beside, [{"arm": name, "seed": seed} for name in arms for seed in seeds])
    for name in arms:
        for seed in seeds:
            if time.process_time() < 60 * given.minutes:
                play(name, seed, given.model, given.out, changes)
                print(f"seed {seed}, {name}: {time.process_time() / 60:.1f} CPU minutes", flush=True)
    rows = [row_of(name, seed, run) for name, seed, run in finished(given.out, seeds)]
    figures = {
        "preset": PRESET,
        "changes": changes,
        "trained on": given.device,
        "weights": weights_of(given.model),
        "arms": {name: asdict(arm) for name, arm in ARMS.items()},
    }
    figures |= figures_of(rows)
    if given.beside is not None:
        rows = rows_beside(given.beside, rows)
        figures |= {
            "beside": given.beside,
            "gains beside it": gains_of(rows),
            "contrasts beside it": contrasts_of(rows),
        }
    for one in contrasts_of(rows):
        print(one)
    if not given.no_record:
        print(record(given.name, figures))


if __name__ == "__main__":
    main()
