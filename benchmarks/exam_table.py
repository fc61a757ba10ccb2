"""The held-out families, opened once, and every engineer on the development families: ``python -m benchmarks.exam_table``.

Preregistered. ``rising`` was named before a held-out family was opened; ``once`` and ``reader`` stand beside it, all with their defaults. On each
of the eleven held-out families, these and the bounds of ``benchmarks.exam_ground`` are played on the roots 1100 to 1115 with two training
seeds each. What comes is reported, whatever a family's headroom. The goals: ``rising`` takes 60 % of the oracle's gain over all families but
``null``, and on ``null`` the lower bound of its difference to even draws is above −2 points.

The leaderboard has every engineer that asks no model, and the three samplers, on the development family ``codes-slow``: eight of
these roots, one training seed. Success and score are read by those who read scores.

Added after the families were opened, so exploratory: on the first eight of these roots, one training seed, ``rising`` with successes alone, ``rising`` yoked
(its own counts, the rates of a run on another root), two samplers that need no engineer, and ``steady``, the default engineer, also yoked.

Every sitting is kept in ``runs/exam_sittings``: after a kill, the same command continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from benchmarks.exam_rules import FRESH, KEPT, ROOTS, papers_of
from envtuning.exam.families import CODES, HELD_OUT, NULL, Family
from envtuning.exam.hall import WITHOUT_A_MODEL, Hall, papers
from envtuning.exam.reading import Reads
from envtuning.exam.scores import Score, by_root, scores
from envtuning.exam.session import Start
from envtuning.exam.sitting import BOUNDS, EVEN
from envtuning.studies.closed_loop import lower_bound

NAMED_BEFORE = "rising"
OPENED = (NAMED_BEFORE, "once", "reader")
AFTERWARDS: tuple[tuple[str, Reads], ...] = (
    (NAMED_BEFORE, "scores"), (NAMED_BEFORE, "success"), (NAMED_BEFORE, "yoked"), ("p(1-p)", "success"), ("thompson", "success"), ("steady", "scores"), ("steady", "yoked")
)  # fmt: skip

READS = {  # what an engineer of the leaderboard reads; those that are missing read success alone
    "oracle": "what each task is", "best open loop": "nothing", EVEN: "nothing", "random": "nothing",
    **dict.fromkeys(("rising", "steady", "reader", "rules"), "success and score"),
}  # fmt: skip
TUNED = {  # on roots of the development families; the others have their defaults
    "oracle": "30 settings, 4 roots", "best open loop": "33 settings, 4 roots",
    "rising": "24 settings, 8 roots; about 35 forms by hand, 16 roots", "once": "12 settings, 8 roots",
    "steady": "as `rising`; its form by hand, on worlds of text",
}  # fmt: skip
UNTUNED = "not tuned"


def opened(hall: Hall, families: Sequence[Family], trainings: int) -> dict[str, Any]:
    """The named engineers on families that nobody had seen."""
    found, starts = [], [start for start in FRESH if start.training < trainings]
    for family in families:
        found += hall.sittings(papers(OPENED, [family], starts))
        now = scores([one for one in found if one.paper.family == family])
        print(row_of(family.name, {one.engineer: of_score(one) for one in now}), flush=True)
    told = {one.engineer: of_score(one) for one in scores(found)}
    for name, row in told.items():
        of = [one for one in found if one.paper.engineer == name]
        row["per_root"] = {
            family.name: [round(end, 4) for end in by_root([one for one in of if one.paper.family == family]).values()]
            for family in families
        }
    if NULL in told[NAMED_BEFORE]["per_root"]:
        pairs = zip(*(told[name]["per_root"][NULL] for name in (NAMED_BEFORE, EVEN)), strict=True)
        told[NAMED_BEFORE]["bound_over_even_on_null"] = lower_bound([mine - theirs for mine, theirs in pairs])
    return told


def afterwards(hall: Hall, families: Sequence[Family]) -> dict[str, Any]:
    """The control of the named engineer, and rivals, on the first training of each root."""
    starts, found = [Start(root) for root in ROOTS[:8]], []
    for family in families:
        arms = [paper for name, reads in AFTERWARDS for paper in papers_of(name, reads, {}, family, starts)]
        found += hall.sittings([*papers([], [family], starts), *arms])
    told = {f"{one.engineer}, {one.reads}": of_score(one) for one in scores(found) if one.engineer not in BOUNDS}
    print(*(row_of_control(name, row) for name, row in told.items()), sep="\n", flush=True)
    return told


def leaderboard(hall: Hall, families: Sequence[Family]) -> dict[str, Any]:
    """All engineers that ask no model."""
    starts = [Start(root) for root in ROOTS[:8]]
    return {one.engineer: of_score(one) for one in scores(hall.sittings(papers(WITHOUT_A_MODEL, families, starts)))}


def of_score(score: Score) -> dict[str, Any]:
    return {"reads": score.reads, "families": {name: asdict(of) for name, of in score.families.items()}, "part": score.part and asdict(score.part)}  # fmt: skip


def row_of(family: str, told: dict[str, Any]) -> str:
    """A held-out family's line: what the bounds reach, and the engineers' points over the best open loop."""
    reached = [f"{100 * told[name]['families'][family]['success']:.1f}" for name in BOUNDS]
    gained = [in_points(told[name]["families"][family]["over_open_loop"]) for name in OPENED]
    return f"| `{family}` | {' | '.join([*reached, *gained])} |"


def row_of_control(name: str, row: dict[str, Any]) -> str:
    """A line of what was played afterwards: the part of the oracle's gain, and on how many families it ends above even draws, and below."""
    part, over = row["part"], [of["over_even"] for of in row["families"].values()]
    above, below = sum(one["low"] > 0 for one in over), sum(one["high"] < 0 for one in over)
    return (
        f"| {name} | {100 * part['mean']:.0f} ({100 * part['low']:.0f}, {100 * part['high']:.0f}) | {above} | {below} |"
    )


def row_of_all(name: str, row: dict[str, Any]) -> str:
    """A line of the leaderboard: what is read, what it was tuned on, success and gain on each family."""
    cells = [f"{100 * of['success']:.1f} | {in_points(of['over_open_loop'])}" for of in row["families"].values()]
    return f"| {name} | {READS.get(name, 'success')} | {TUNED.get(name, UNTUNED)} | {' | '.join(cells)} |"


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="sittings at a time (2)")
    parser.add_argument("--trainings", type=int, default=2, choices=(1, 2), help="of each root (2)")
    parser.add_argument("--leave-out", nargs="*", default=[], help="held-out families that another call opens")
    arguments = arguments_of(parser)
    hall = Hall(KEPT, jobs=arguments.jobs)
    families = [family for family in HELD_OUT if family.name not in arguments.leave_out]
    with errors_in_one_sentence():
        told = opened(hall, families, arguments.trainings)
        after = afterwards(hall, families)
        board = leaderboard(hall, [CODES])
        print(*(row_of_all(name, row) for name, row in board.items()), sep="\n", flush=True)
    part = told[NAMED_BEFORE]["part"]
    print(
        f"{NAMED_BEFORE} takes {100 * part['mean']:.0f} % ({100 * part['low']:.0f}, {100 * part['high']:.0f}) of the oracle's gain"
    )
    record_if_asked(
        arguments,
        "exam_table",
        {"opened": told, "afterwards": after, "leaderboard": board, "trainings": arguments.trainings},
    )


if __name__ == "__main__":
    main()
