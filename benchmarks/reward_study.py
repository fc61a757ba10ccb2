"""What a curriculum buys when small transformers learn by reward, at equal replies: ``python -m benchmarks.reward_study``.

Preregistered. The learner and the tasks are those of the exam's family ``by-reward``: 8 mastered tasks, 6 lacking ones that start low, 5 hopeless
ones and 5 coins, in groups of sixteen replies (GRPO), without a KL term unless an arm says so. Sixteen roots, 3000 to 3015, have two training seeds each. A run has
184,320 replies, twice the family's budget, and at least 360 updates. It is tested after every 23,040 replies and after 90, 180, 270 and 360
updates, so the tables at equal updates and at equal replies are read from the same runs. A test asks 64 questions of each task; a task has no
more, so these are not unseen. A table at so many replies takes the first test after them, which is less than an update away.

With ``refill``, an update draws questions until it has sixteen groups whose replies are not all paid alike, or has drawn 48. A reply counts
as soon as it is sampled. The loss is a mean over the groups with a signal, in every arm. With all groups in the denominator, even draws would
take smaller steps the fewer groups have a signal, and refill would gain by its larger steps alone. All replies have two letters, so replies
stand for tokens.

The shares of the tasks may change after every 15,360 replies, sixty updates without refill. The arms:

- even draws; even draws with refill;
- samplers that read successes: ``learnability`` by p(1 − p), the same with refill, ``thompson`` with decay, and the ``pools`` of prime-rl;
- ``rising``, an engineer of this package with its defaults, which reads success and score;
- ``rising, yoked``: told the rates of a run on another root, with its own counts;
- the oracle of ``envtuning.exam.bounds`` with the setting that ``benchmarks.exam_ground`` found for ``by-reward``, or else that of ``codes-slow``;
- even draws, the same with refill, ``learnability`` and ``rising`` at three times the family's rate of 3e-4;
- the same four at the family's rate with a KL term of weight 0.02. These were added after the results of the others;
- the three samplers told another run's rates (*yoked*), and the KL term for the arms that lacked it, but controls. These were added last, with one
  training seed (``--seeds 1 --name reward_tasks``), so that every reader has its control.

Primary: success over all 24 tasks, ``rising`` minus even draws with refill, at 184,320 replies and the family's rate, paired by root (seeds are averaged
first), with a 95 % interval. Second: the same at three times the rate. Refill makes fewer updates of the same replies, so at a rate that is too low
it loses by that alone. On the roots for trying out, even draws at three times the rate had at 92,160 replies what they had at 184,320 at the family's, and
less at six times. A gain that is gone at the higher rate was not one of the curriculum.

Whatever comes is reported, and so are: the lacking tasks alone; the worst quarter (four) of the fourteen tasks that can be learnt; the same
at 92,160 replies and at 180 and 360 updates; and the replies that an arm needs to reach the success that even draws have on the same root at 92,160
replies (between two tests by a straight line; an arm that never does counts with 184,320). Added after the results: the same for what even draws have
at the end, each task with an interval over roots, and every run's right answers by task. A simple rule does as well if the interval of ``rising`` minus
it includes zero or is below it. The rules in question are even draws and the samplers, with refill and at the higher rate where these are arms.

What was chosen after runs on the roots 3100 to 3102 (``--pilot``), with three times the budget: 184,320 replies, because at half of them refill has made
150 updates, and at 276,480 most arms are near the top; and the higher rate. Every run is kept in ``runs/reward_study``: after a kill, the same
command continues. The first seed of all roots comes first, root by root; ``--seeds 1`` reports it alone, and ``--roots N`` the first N roots, if time ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

import engineers
from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._kept import kept_or_made
from benchmarks._points import in_points
from benchmarks.exam_rules import compared
from benchmarks.reward_learner import CASES, Learner
from engineers.roles import shares_in
from envtuning.curriculum.curriculum import Curriculum
from envtuning.exam.bounds import Arm as Shares
from envtuning.exam.bounds import shares_for
from envtuning.exam.families import KINDS, LACKING, MASTERED, Family, named
from envtuning.exam.reading import AWAY, Told, as_of_others, plainly, rates_of
from envtuning.exam.roots import tasks_of
from envtuning.exam.session import Shown, Start
from envtuning.exam.sitting import BOUNDS, Paper, arm_of, examined, halves
from envtuning.exam.training import Floats
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "reward_study"
ROOTS, PILOT = range(3000, 3016), range(3100, 3103)
SEEDS = (0, 1)
TIMES = 2  # the family's budget
FAMILY = named("by-reward").model_copy(update={"updates": TIMES * named("by-reward").updates})
STAGES = 6 * TIMES
STAGE = FAMILY.updates // STAGES * FAMILY.batch * FAMILY.replies  # replies between two decisions
EACH = 90 * FAMILY.batch * FAMILY.replies  # replies between two tests
LAST = FAMILY.updates * FAMILY.batch * FAMILY.replies
BUDGET = LAST // TIMES
TESTED = (90, 180, 270, 360)  # updates
Unit = Literal["updates", "replies"]
PLACES: tuple[tuple[Unit, int], ...] = (("updates", 180), ("updates", 360), ("replies", BUDGET), ("replies", LAST))


class Arm(NamedTuple):
    by: str  # as ``engineer`` of an exam's paper
    refill: bool = False
    yoked: bool = False
    rate: float = 1.0  # times the family's
    kl: float = 0.0  # weight of the KL term
    often: int = 1  # times as many decisions

    @property
    def family(self) -> Family:
        return FAMILY.model_copy(update={"rate": self.rate * FAMILY.rate})

    @property
    def decisions(self) -> int:
        return self.often * STAGES


EVEN, EVEN_REFILL, RISING = "even draws", "even draws, refill", "rising"
FASTER, HIGHER = 3.0, ", higher rate"
KL, HELD = 0.02, ", KL"
YOKED = ", yoked"
ARMS = {
    EVEN: Arm("even"),
    EVEN_REFILL: Arm("even", refill=True),
    "learnability": Arm("p(1-p)"),
    "learnability, refill": Arm("p(1-p)", refill=True),
    "thompson": Arm("thompson"),
    "pools": Arm("pools"),
    RISING: Arm("rising"),
    RISING + YOKED: Arm("rising", yoked=True),
    "oracle": Arm("oracle"),
    EVEN + HIGHER: Arm("even", rate=FASTER),
    EVEN_REFILL + HIGHER: Arm("even", refill=True, rate=FASTER),
    "learnability" + HIGHER: Arm("p(1-p)", rate=FASTER),
    RISING + HIGHER: Arm("rising", rate=FASTER),
    EVEN + HELD: Arm("even", kl=KL),
    EVEN_REFILL + HELD: Arm("even", refill=True, kl=KL),
    "learnability" + HELD: Arm("p(1-p)", kl=KL),
    RISING + HELD: Arm("rising", kl=KL),
    "learnability" + YOKED: Arm("p(1-p)", yoked=True),
    "thompson" + YOKED: Arm("thompson", yoked=True),
    "pools" + YOKED: Arm("pools", yoked=True),
    "learnability, refill" + HELD: Arm("p(1-p)", refill=True, kl=KL),
    "thompson" + HELD: Arm("thompson", kl=KL),
    "pools" + HELD: Arm("pools", kl=KL),
    "oracle" + HELD: Arm("oracle", kl=KL),
}
SIMPLE = [name for name, arm in ARMS.items() if arm.by not in ("rising", "oracle") and not arm.yoked]
RIVALS = (EVEN, EVEN_REFILL, EVEN + HIGHER, EVEN_REFILL + HIGHER)
MEASURES = ("all", "lacking", "worst")
Point = dict[str, Any]  # of a test: updates, replies, trained, the replies drawn and the success by task


def played(task: tuple[Arm, Start]) -> list[Point]:
    """The tests of a run."""
    torch.set_num_threads(1)
    arm, start = task
    return points_of(arm, Learner(arm.family, start, arm.decisions, refill=arm.refill, kl=arm.kl))


def points_of(arm: Arm, learner: Learner, reader: Curriculum | None = None) -> list[Point]:
    """The tests of this learner's run, the first before training. ``reader`` is as in ``run``."""
    points = [point(learner)]
    told = reading(arm, learner.session.starts[0])
    run(arm, learner, told, lambda: points.append(point(learner)), reader)
    return points


def run(
    arm: Arm, learner: Learner, told: Told, after: Callable[[], object], reader: Curriculum | None = None
) -> list[Shown]:
    """Train to the last reply; what each half of a stage showed. ``after`` is called where a test is due. ``reader`` is the arm's
    engineer or sampler, made here if it is not given."""
    paper = paper_of(arm, learner.session.starts[0])
    knowing = arm_of(paper) if arm.by in BOUNDS else None
    if knowing is None and reader is None:
        reader = examined(paper, learner.session, None, {})
    seen = list[Shown]()
    while not over(learner):
        shares = next_shares(knowing, reader, learner)
        seen.extend(halves(stage(learner, shares, STAGE // arm.often, after)))
        learner.session.stage += 1
        if reader is not None:
            for number in (len(seen) - 2, len(seen) - 1):
                reader.observe_many(*told(seen[number], number))
            reader.next()
    return seen


def over(learner: Learner) -> bool:
    return learner.replies >= LAST and learner.updates >= TESTED[-1]


def paper_of(arm: Arm, start: Start) -> Paper:
    return Paper(engineer=arm.by, family=arm.family, root=start.root, training=start.training, decisions=arm.decisions)


def next_shares(knowing: Shares | None, reader: Curriculum | None, learner: Learner) -> Floats:
    if knowing is not None:
        return shares_for(knowing, learner.session)
    assert reader is not None
    return np.array(list(shares_in(reader.config).values()))


def stage(learner: Learner, shares: Floats, replies: int, after: Callable[[], object]) -> Shown:
    """Updates with these shares until the next decision is due, after so many replies, or the run ends."""
    begun, parts = learner.replies, list[Shown]()
    while learner.replies < begun + replies and not over(learner):
        before = learner.replies
        parts.append(learner.update(shares))
        if learner.updates in TESTED or learner.replies // EACH > before // EACH:
            after()
    return Shown(*(np.concatenate(column, axis=1) for column in zip(*parts, strict=True)))


def reading(arm: Arm, start: Start) -> Told:
    """What the arm is told of a stage: its own outcomes, or those of a run on a root of its own."""
    tasks, rng = tasks_of(FAMILY, start.root), np.random.default_rng([start.root, start.training, 6])
    if not arm.yoked:
        return plainly("scores", tasks, rng)
    donor, free = Start(start.root + AWAY, start.training), arm._replace(yoked=False)
    learner = Learner(arm.family, donor, arm.decisions, refill=arm.refill, kl=arm.kl)
    shown = run(free, learner, reading(free, donor), after=lambda: None)
    return as_of_others(rates_of([shown], FAMILY.tasks), tasks, rng)


def point(learner: Learner) -> Point:
    return {
        "updates": learner.updates,
        "replies": learner.replies,
        "trained": learner.trained,
        "drawn": learner.drawn.tolist(),
        "success": learner.tested().tolist(),
    }


# Tables


class Run(NamedTuple):
    """A run's tests, and which of its tasks lack and which are mastered."""

    points: list[Point]
    kind: Any

    def at(self, unit: Unit, amount: int) -> Point:
        """The first test after so many."""
        return next(one for one in self.points if one[unit] >= amount)

    def measured(self, place: Point) -> dict[str, float]:
        success = np.array(place["success"])
        able = np.sort(success[np.isin(self.kind, (MASTERED, LACKING))])
        return {
            "all": float(success.mean()),
            "lacking": float(success[self.kind == LACKING].mean()),
            "worst": float(able[: -(-len(able) // 4)].mean()),
            "updates": float(place["updates"]),
            "replies": float(place["replies"]),
            "trained": place["trained"] / max(1, place["replies"]),
            "drawn_lacking": float(np.array(place["drawn"])[self.kind == LACKING].sum() / max(1, place["replies"])),
        }


Runs = Mapping[str, Sequence[Sequence[Run]]]  # by arm: of each root, its seeds


def by_root(runs: Sequence[Sequence[Run]], unit: Unit, amount: int) -> dict[str, Floats]:
    """Each figure by root, the mean of its seeds."""
    found = [[one.measured(one.at(unit, amount)) for one in seeds] for seeds in runs]
    return {name: np.array([np.mean([one[name] for one in seeds]) for seeds in found]) for name in found[0][0]}


def table(runs: Runs, unit: Unit, amount: int) -> dict[str, Any]:
    """The arms at one place: means, and differences paired by root."""
    found = {arm: by_root(of, unit, amount) for arm, of in runs.items()}
    rows = {}
    for arm, columns in found.items():
        means: dict[str, Any] = {name: round(float(column.mean()), 4) for name, column in columns.items()}
        means["per_root"] = columns["all"].round(4).tolist()
        for other in RIVALS:
            means[f"minus {other}"] = {name: compared(columns[name], found[other][name]) for name in MEASURES}
        for ours in (RISING, RISING + HIGHER):
            means[f"{ours} minus it"] = {name: compared(found[ours][name], columns[name]) for name in MEASURES}
        rows[arm] = means
    return rows


def curve(runs: Sequence[Run]) -> list[float]:
    """Success over all tasks at every ``EACH`` replies, the mean of a root's seeds; the first before training."""
    return np.mean([[one.measured(one.at("replies", at))["all"] for at in range(0, LAST + 1, EACH)] for one in runs], 0).tolist()  # fmt: skip


def needed_for(level: float, along: Sequence[float]) -> float:
    """Replies until a curve first reaches the level, by a straight line between two tests; all of them if it never does."""
    if along[0] >= level:
        return 0.0
    for at, (before, now) in enumerate(pairwise(along)):
        if now >= level:
            return EACH * (at + (level - before) / (now - before))
    return float(LAST)


def reached(runs: Runs, amount: int) -> dict[str, Any]:
    """Replies that each arm needs for what even draws have after ``amount``, by root."""
    curves = {arm: [curve(seeds) for seeds in of] for arm, of in runs.items()}
    levels = [along[amount // EACH] for along in curves[EVEN]]
    found = {}
    for arm, of in curves.items():
        replies = [needed_for(level, along) for level, along in zip(levels, of, strict=True)]
        never = sum(max(along) < level for level, along in zip(levels, of, strict=True))
        found[arm] = {"replies": asdict(t_mean(replies)), "never": never, "curve": np.mean(of, 0).round(4).tolist()}
    return found


def by_task(runs: Sequence[Sequence[Run]], unit: Unit, amount: int) -> dict[str, Any]:
    """Success on each task with an interval over roots, the mean of a root's seeds. A root has tasks of its own: those of a kind stand in the order
    of their success before training, from the lowest."""
    found: dict[str, list[list[float]]] = {}
    for seeds in runs:
        for name, value in by_place(seeds, unit, amount).items():
            found.setdefault(name, []).append(value)
    return {
        name: {"before": float(np.mean(column, 0)[0]), "after": asdict(t_mean([after for _, after in column]))}
        for name, column in found.items()
    }


def by_place(seeds: Sequence[Run], unit: Unit, amount: int) -> dict[str, list[float]]:
    """A root's tasks by kind and place, such as "lacking 1": the success before training and after so many."""
    kind = seeds[0].kind
    before, after = (
        np.mean([place["success"] for place in places], 0)
        for places in ([one.points[0] for one in seeds], [one.at(unit, amount) for one in seeds])
    )
    order = {name: [at for at in np.argsort(before, kind="stable") if kind[at] == of] for of, name in enumerate(KINDS)}
    return {
        f"{name} {place}": [float(before[at]), float(after[at])]
        for name, places in order.items()
        for place, at in enumerate(places, start=1)
    }


def raw(runs: Runs) -> list[dict[str, Any]]:
    """Each run's right answers by task, of ``CASES`` questions, before training and at every place of a table."""
    return [
        {"arm": arm, "root": root, "seed": seed}
        | {
            name: " ".join(f"{round(CASES * value)}" for value in place["success"])
            for name, place in [
                ("before", one.points[0]),
                *((f"{amount} {unit}", one.at(unit, amount)) for unit, amount in PLACES),
            ]
        }
        for arm, of in runs.items()
        for root, seeds in enumerate(of)
        for seed, one in enumerate(seeds)
    ]


def figures_of(runs: Runs) -> dict[str, Any]:
    tables = {f"{amount} {unit}": table(runs, unit, amount) for unit, amount in PLACES}
    last = tables[f"{LAST} replies"]
    alike = [arm for arm in SIMPLE if last[arm][f"{RISING} minus it"]["all"]["low"] <= 0]
    return {
        "primary": last[RISING][f"minus {EVEN_REFILL}"]["all"],
        "at the higher rate": last[RISING + HIGHER][f"minus {EVEN_REFILL + HIGHER}"]["all"],
        "simple rules that do as well": alike,
        "tables": tables,
        "reached": reached(runs, BUDGET),
        "reached at the end": reached(runs, LAST),
        "by task": {
            f"{amount} replies": {arm: by_task(of, "replies", amount) for arm, of in runs.items()}
            for amount in (BUDGET, LAST)
        },
        "runs": raw(runs),
    }


def thousands(replies: Mapping[str, float]) -> str:
    """A mean and its interval, in thousand replies."""
    mean, low, high = (f"{replies[key] / 1000:.0f}" for key in ("mean", "low", "high"))
    return f"{mean} ({low}, {high})"


def lines(rows: Mapping[str, Any], reach: Mapping[str, Any]) -> list[str]:
    """A place's table, as the page has it."""
    told = []
    for arm, row in rows.items():
        cells = [arm, f"{row['updates']:,.0f}", f"{100 * row['trained']:.0f}"]
        cells += [f"{100 * row[name]:.1f}" for name in MEASURES]
        cells += [in_points(row[f"minus {EVEN_REFILL}"]["all"]), thousands(reach[arm]["replies"])]
        told.append(f"| {' | '.join(cells)} |")
    return told


def task_lines(tasks: Mapping[str, Any], reach: Mapping[str, Any]) -> list[str]:
    """The lacking tasks of every arm, in %, and the replies that it needs for even draws' end, as the page has them."""
    told = []
    for arm, found in tasks.items():
        cells = [arm]
        for name in found:
            if name.startswith("lacking"):
                mean, low, high = (100 * found[name]["after"][key] for key in ("mean", "low", "high"))
                cells.append(f"{mean:.0f} ({max(low, 0):.0f}, {min(high, 100):.0f})")
        told.append(f"| {' | '.join([*cells, thousands(reach[arm]['replies']), str(reach[arm]['never'])])} |")
    return told


def control_lines(tables: Mapping[str, Any]) -> list[str]:
    """What reading is worth to each reader: its success minus that of the same told another run's rates, half-way and at the end; and the latter's minus
    even draws. As the page has them."""
    told = []
    for reader in (name.removesuffix(YOKED) for name in ARMS if name.endswith(YOKED)):
        cells = [reader]
        for minus, other in ((reader, reader + YOKED), (reader + YOKED, EVEN)):
            for at in (BUDGET, LAST):
                ours, its = (np.array(tables[f"{at} replies"][arm]["per_root"]) for arm in (minus, other))
                cells.append(in_points(compared(ours, its)))
        told.append(f"| {' | '.join(cells)} |")
    return told


def runs_of(roots: Sequence[int], seeds: Sequence[int], jobs: int, kept: Path, arms: Mapping[str, Arm] = ARMS) -> Runs:
    """The first seed of all roots comes first, root by root."""
    starts = [Start(root, seed) for seed in seeds for root in roots]
    tasks = {key_of(arm, start): (arm, start) for start in starts for arm in arms.values()}
    made = kept_or_made(kept, tasks, played, jobs)
    kinds = {root: tasks_of(FAMILY, root).kind for root in roots}
    return {
        name: [[Run(made[key_of(arm, Start(root, seed))], kinds[root]) for seed in seeds] for root in roots]
        for name, arm in arms.items()
    }


def key_of(arm: Arm, start: Start) -> str:
    return f"{FAMILY.model_dump_json()} {start.root} {start.training} {arm}{settings_of(arm)}"


def settings_of(arm: Arm) -> str:
    """Of an arm whose settings are tuned elsewhere: its runs are made again if these change."""
    if arm.by == "rising":
        return f" {dict(sorted((name, value) for name, value in vars(engineers.make(arm.by)).items() if isinstance(value, float)))}"
    return f" {arm_of(paper_of(arm, Start(0)))}" if arm.by == "oracle" else ""


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--pilot", action="store_true", help="the roots for trying out alone, one training each")
    parser.add_argument("--seeds", type=int, choices=(1, 2), default=2, help="training seeds of a root (2)")
    parser.add_argument("--roots", type=int, default=len(ROOTS), help=f"the first so many ({len(ROOTS)})")
    parser.add_argument("--name", default="reward_study", help="of the stored figures")
    arguments = arguments_of(parser)
    with errors_in_one_sentence():
        chosen = (PILOT, SEEDS[:1]) if arguments.pilot else (ROOTS[: arguments.roots], SEEDS[: arguments.seeds])
        runs = runs_of(*chosen, arguments.jobs, KEPT / ("pilot.jsonl" if arguments.pilot else "runs.jsonl"))
        figures = figures_of(runs)
        for place, rows in figures["tables"].items():
            print(f"at {place}:", *lines(rows, figures["reached"]), sep="\n", flush=True)
        print(
            f"primary: {in_points(figures['primary'])}; at the higher rate: {in_points(figures['at the higher rate'])}"
        )
        print(f"as well: {', '.join(figures['simple rules that do as well'])}")
    record_if_asked(arguments, arguments.name, figures | {"roots": len(chosen[0]), "seeds": len(chosen[1])})


if __name__ == "__main__":
    main()
