"""Whether an engineer is safe where nobody chose it: ``python -m benchmarks.safety``.

An engineer is compared with even draws (``uniform``, which draws difficulties, too), paired by seed, on eighteen grounds: the lakes' presets
``scripted`` and ``small-corridors``, the two development families of the exam and its family ``null``, twelve small worlds of text, and the newcomer's
four arithmetic tasks. Forms of ``steady`` were compared on `five-tasks`, `six-tasks`, `three-words` and `six-words`, and an earlier one on
`twelve-codes`, with other seeds; `seven-moves` was written after a first choice, which ended 7.5 points below even draws there, so the form was chosen
again, on it, too, with these and other seeds. On `five-bits`, `four-days` and `six-boards` nothing had been played then.

Fixed in advance: an engineer is safe on a ground if the one-sided 95 % bound of the difference is above -2 points. Ten seeds are played first, and ten
more at a time, up to forty, while neither this nor the opposite is shown; what stays undecided counts as not safe. On the newcomer's tasks it takes
thirty seeds at least, none more than 10 points below even draws, and no task given up for good. Added later: most grounds; how often the first of two
runs of even draws ends that far below the second (`chance_of_worst`); and 160 questions a task in the newcomer's test, which had 40, when chance in the
test was most of the spread between two runs of a seed.
An engineer is safe if it is safe on every ground, so the levels are not corrected for their number. Nor are they for looking up to four
times at the same ground, so a bound close to -2 should be read with care.

Three more presets of lakes are played only where they are named: ``--grounds engineer three-agents corridors`` takes about half an hour of
CPU, and is stored as ``safety_lakes``. They were added last.

Every run is kept in ``runs/safety``: after a kill, the same command continues.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import newcomer, safety_worlds
from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from engineers.shared import own
from envtuning.exam.families import DEVELOPMENT, NULL, Family, named
from envtuning.exam.hall import Hall
from envtuning.exam.sitting import EVEN, Paper
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.studies.closed_loop import lower_bound
from envtuning.studies.compare import compare
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "safety"
TRUSTED = ("benchmarks.newcomer", "benchmarks.safety_worlds", "examples.five_tasks", "examples.six_tasks")
MARGIN = 0.02  # success that an engineer may lose against even draws
ENGINEERS = ["steady"]
ROUND, MOST = 10, 40  # seeds that are added at a time, and that a ground has at most
LAKES = ("scripted", "small-corridors")  # presets
LAKES_BY_NAME = ("engineer", "three-agents", "corridors")  # presets that are played only where `--grounds` names them
LEARNER = {"kind": "lm", "options": {"layers": 1, "batch": 16, "learning_rate": 6e-3}}

FIVE = {name: {"length": 3} for name in ("copy", "reverse", "sort", "shift")} | {"double": {"digits": 3}}
TEXTS: dict[str, tuple[str, dict[str, Any], int, int]] = {  # world, tasks, stages, questions of a stage
    "five-tasks": ("examples.five_tasks:world", FIVE, 4, 1920),
    "six-tasks": ("examples.six_tasks:world", {**FIVE, "scramble": {"length": 3}}, 4, 1920),
    "three-words": ("benchmarks.safety_worlds:three", {name: {} for name in safety_worlds.three.tasks}, 6, 800),
    "six-words": ("benchmarks.safety_worlds:six", {name: {} for name in safety_worlds.six.tasks}, 6, 1280),
    "twelve-codes": ("benchmarks.safety_worlds:twelve", {name: {} for name in safety_worlds.twelve.tasks}, 6, 1280),
    "four-counts": ("benchmarks.safety_worlds:counts", {name: {} for name in safety_worlds.counts.tasks}, 6, 1280),
    "eight-lengths": ("benchmarks.safety_worlds:lengths", {name: {} for name in safety_worlds.lengths.tasks}, 6, 1280),
    "five-sums": ("benchmarks.safety_worlds:sums", {name: {} for name in safety_worlds.sums.tasks}, 6, 1280),
    "seven-moves": ("benchmarks.safety_worlds:moves", {name: {} for name in safety_worlds.moves.tasks}, 6, 1280),
    "five-bits": ("benchmarks.safety_worlds:bits", {name: {} for name in safety_worlds.bits.tasks}, 6, 1280),
    "six-boards": ("benchmarks.safety_worlds:boards", {name: {} for name in safety_worlds.boards.tasks}, 6, 1280),
    "four-days": ("benchmarks.safety_worlds:days", {name: {} for name in safety_worlds.days.tasks}, 6, 1280),
}

Ends = Callable[[str, Sequence[int]], list[float]]  # of an engineer, by seed


@dataclass(frozen=True)
class Ground:
    """Where engineers are compared, and how to play them there."""

    name: str
    ends: Ends
    first: int = 0  # its first seed
    enough: int = ROUND
    worst: float = -1.0


@dataclass(frozen=True)
class Found:
    """An engineer's differences from even draws on a ground."""

    even: list[float]
    over: list[float]
    given_up: list[int]  # seeds in which a task was given up for good

    @property
    def low(self) -> float:
        return lower_bound(self.over) or 0.0

    @property
    def high(self) -> float:
        return -(lower_bound([-one for one in self.over]) or 0.0)

    def safe(self, worst: float) -> bool:
        return self.low > -MARGIN and min(self.over) >= worst and not self.given_up

    def unsafe(self, worst: float) -> bool:
        return self.high < -MARGIN or min(self.over) < worst or bool(self.given_up)


def text_spec(name: str) -> RunSpec:
    """A run on a world of text in which only the shares can be turned."""
    world, tasks, stages, budget = TEXTS[name]
    config = {"tasks": tasks}
    return RunSpec.model_validate(
        {
            "name": name,
            "world": world,
            "target": config,
            "stages": [{"config": config, "budget": budget}, *[{"budget": budget}] * (stages - 1)],
            "trainee": LEARNER,
            "editable": ["tasks.*.share"],
            "suites": {"validation_per_slice": 2, "test_per_slice": 60, "validate": "last"},
            "guard": {"max_drop": None},
        }
    )


def by_runs(name: str, spec: Callable[[], RunSpec]) -> Ends:
    def ends(engineer: str, seeds: Sequence[int]) -> list[float]:
        compared = compare(spec(), [engineer], seeds, KEPT / name)
        return [one.success for one in sorted(compared.runs, key=lambda one: one.seed)]

    return ends


def by_sittings(family: Family) -> Ends:
    hall = Hall(KEPT / "exam")

    def ends(engineer: str, roots: Sequence[int]) -> list[float]:
        who = EVEN if engineer == "uniform" else engineer
        return [one.end for one in hall.sittings([Paper(engineer=who, family=family, root=root) for root in roots])]

    return ends


def preset(name: str) -> Ground:
    return Ground(name, by_runs(name, partial(load_spec, name)))


def grounds() -> list[Ground]:
    """Those that are played unless others are named, the cheapest first."""
    return [
        *map(preset, LAKES),
        *(Ground(name, by_runs(name, partial(text_spec, name))) for name in TEXTS),
        *(Ground(family.name, by_sittings(family), first=2000) for family in (named(NULL), *DEVELOPMENT)),
        Ground("newcomer", by_runs("newcomer", newcomer.spec), first=20, enough=30, worst=-0.1),
    ]


def found_on(ground: Ground, engineer: str, count: int) -> Found:
    seeds = range(ground.first, ground.first + count)
    even, ours = (np.array(ground.ends(one, seeds)) for one in ("uniform", engineer))
    gave_up = []
    if ground.name == "newcomer":
        runs = {seed: RunLog.open(KEPT / ground.name / engineer / f"seed{seed}") for seed in seeds}
        gave_up = [seed for seed, run in runs.items() if newcomer.given_up(run)]
    return Found(even.tolist(), (ours - even).tolist(), gave_up)


def verdict(found: Found, ground: Ground) -> str:
    """``undecided`` asks for more seeds."""
    if found.unsafe(ground.worst):
        return "not safe"
    return "safe" if found.safe(ground.worst) and len(found.over) >= ground.enough else "undecided"


def decided(ground: Ground, engineer: str, most: int) -> dict[str, Any]:
    """With as many seeds as it takes, ten at a time."""
    for count in range(ROUND, most + 1, ROUND):
        found = found_on(ground, engineer, count)
        told = {
            "seeds": count,
            "even": float(np.mean(found.even)),
            "over_even": asdict(t_mean(found.over)) | {"bound": found.low, "worst": min(found.over)},
            "per_seed": np.round(found.over, 4).tolist(),
            "given_up": found.given_up,
            "chance_of_worst": apart(found.even, -ground.worst),
            "verdict": verdict(found, ground),
        }
        print(line(ground.name, told), flush=True)
        if told["verdict"] != "undecided" and count >= ground.enough:
            break
    return told


def apart(ends: Sequence[float], much: float) -> float:
    """The part of all ordered pairs of runs of even draws in which the first ends more than ``much`` below the second."""
    pairs = list(permutations(ends, 2))
    return sum(one - other < -much for one, other in pairs) / len(pairs)


def line(name: str, told: dict[str, Any]) -> str:
    over = told["over_even"]
    numbers = f"{100 * told['even']:.1f} | {in_points(over)} | {100 * over['bound']:+.1f} | {100 * over['worst']:+.1f}"
    return f"| `{name}` | {told['seeds']} | {numbers} | {told['verdict']} |"


def main() -> None:
    parser = command(__doc__)
    parser.add_argument(
        "--engineers",
        nargs="+",
        default=ENGINEERS,
        help="whom to measure (steady, the default); others, and some grounds alone, are stored apart",
    )
    names = [ground.name for ground in grounds()]
    parser.add_argument(
        "--grounds",
        nargs="+",
        choices=[*names, *LAKES_BY_NAME],
        default=names,
        metavar="GROUND",
        help=f"where (on the eighteen); {', '.join(LAKES_BY_NAME)} are played only if they are named",
    )
    parser.add_argument("--most", type=int, default=MOST, help=f"seeds of a ground at most ({MOST})")
    arguments = arguments_of(parser)
    if arguments.most < ROUND or arguments.most % ROUND:
        parser.error(f"--most {arguments.most}: give a multiple of {ROUND}, because so many seeds are played at a time")
    own.trust(TRUSTED)
    figures = {}
    with errors_in_one_sentence():
        for engineer in arguments.engineers:
            print(f"{engineer}:", flush=True)
            chosen = [one for one in [*grounds(), *map(preset, LAKES_BY_NAME)] if one.name in arguments.grounds]
            figures[engineer] = {ground.name: decided(ground, engineer, arguments.most) for ground in chosen}
    record_if_asked(arguments, file_of(arguments.engineers, arguments.grounds), {"engineers": figures})


def file_of(engineers: Sequence[str], played: Sequence[str]) -> str:
    """Where figures are stored: other engineers, and some grounds alone, do not replace those of the whole."""
    if engineers == ENGINEERS:
        if set(played) == {ground.name for ground in grounds()}:
            return "safety"
        if set(played) == set(LAKES_BY_NAME):
            return "safety_lakes"
    return "_".join(["safety", *engineers])


if __name__ == "__main__":
    main()
