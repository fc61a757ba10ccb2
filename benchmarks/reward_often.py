"""Should an engineer be asked more often when a transformer learns by reward? ``python -m benchmarks.reward_often``, an hour of CPU at most.

Preregistered, after ``rising`` asked after every five updates had been tried on three of the roots for trying out (3100 to 3102), where it was
ahead half-way. The learner, the roots, the tests and the budget are those of ``benchmarks.reward_study``, with one training a root. There an
engineer is asked after every 60 updates (15,360 replies), so each stage shows 40 questions of a task, with sixteen replies each. Here it is also
asked after every 20 and every 5 updates; the latter shows about three questions of a task. A question to a rule costs nothing.

- rising after every 60, 20 and 5 updates;
- learnability, p(1 - p), after every 60 and 5: is it the engineer that gains, or whoever reads?
- even draws, which nobody decides.

Primary: success over all 24 tasks half-way, at 92,160 replies: ``rising`` after every 5 updates minus after every 60, paired by root, with a 95 %
interval. The same at the end, for the lacking tasks, and for the others is reported beside it. Runs are kept with those of the study.

Added after the results: the primary pair and even draws, with another training of every root (``--again``, stored as ``reward_often_again``). Every 20
updates had gained nothing, so a gain of every 5 could have been chance. And the control (``--yoked``, stored as ``reward_often_yoked``): ``rising``
after every 5 updates, told the rates of a run on another root.
"""

from __future__ import annotations

from typing import Any

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from benchmarks.exam_rules import compared
from benchmarks.reward_study import (
    ARMS,
    BUDGET,
    EVEN,
    KEPT,
    LAST,
    MEASURES,
    RISING,
    ROOTS,
    YOKED,
    Runs,
    by_root,
    runs_of,
)

RULE = "learnability"
EACH_20, EACH_5 = ", every 20 updates", ", every 5 updates"
ASKED = {name: ARMS[name] for name in (EVEN, RULE, RISING)} | {
    RISING + EACH_20: ARMS[RISING]._replace(often=3),
    RISING + EACH_5: ARMS[RISING]._replace(often=12),
    RULE + EACH_5: ARMS[RULE]._replace(often=12),
    RISING + YOKED + EACH_5: ARMS[RISING + YOKED]._replace(often=12),
}
PAIRS = [
    (RISING + EACH_5, RISING),
    (RISING + EACH_20, RISING),
    (RULE + EACH_5, RULE),
    (RISING + EACH_5, RULE + EACH_5),
    (RISING + EACH_5, EVEN),
    (RULE + EACH_5, EVEN),
    (RISING + EACH_5, RISING + YOKED + EACH_5),
    (RISING + YOKED + EACH_5, EVEN),
]
SITTINGS = {  # by the name of the stored figures: the training of each root, and the arms
    "reward_often": (0, [arm for arm in ASKED if YOKED not in arm]),
    "reward_often_again": (1, [EVEN, RISING, RISING + EACH_5]),
    "reward_often_yoked": (0, [EVEN, RISING + EACH_5, RISING + YOKED + EACH_5]),
}


def figures_of(runs: Runs) -> dict[str, Any]:
    pairs = [(one, other) for one, other in PAIRS if {one, other} <= runs.keys()]
    found = {replies: {arm: by_root(of, "replies", replies) for arm, of in runs.items()} for replies in (BUDGET, LAST)}
    return {
        "means": {
            f"{replies} replies": {
                arm: {name: float(columns[name].mean()) for name in MEASURES}
                | {"per_root": columns["all"].round(4).tolist()}
                for arm, columns in arms.items()
            }
            for replies, arms in found.items()
        },
        "differences": {
            f"{replies} replies": {
                f"{one} - {other}": {name: compared(arms[one][name], arms[other][name]) for name in MEASURES}
                for one, other in pairs
            }
            for replies, arms in found.items()
        },
    }


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--roots", type=int, default=len(ROOTS), help=f"the first so many ({len(ROOTS)})")
    parser.set_defaults(name="reward_often")
    other, named = parser.add_mutually_exclusive_group(), {"action": "store_const", "dest": "name"}
    other.add_argument(
        "--again", **named, const="reward_often_again", help="three arms, with another training of every root"
    )
    other.add_argument("--yoked", **named, const="reward_often_yoked", help="the control, beside two of the arms")
    arguments = arguments_of(parser)
    seed, arms = SITTINGS[arguments.name]
    asked = {arm: ASKED[arm] for arm in arms}
    with errors_in_one_sentence():
        figures = figures_of(runs_of(ROOTS[: arguments.roots], (seed,), arguments.jobs, KEPT / "runs.jsonl", asked))
        for place, pairs in figures["differences"].items():
            for pair, of in pairs.items():
                print(f"{place}, {pair}: {in_points(of['all'])}; lacking {in_points(of['lacking'])}", flush=True)
    record_if_asked(arguments, arguments.name, figures | {"roots": arguments.roots})


if __name__ == "__main__":
    main()
