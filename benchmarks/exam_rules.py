"""What reading training's scores is worth, by the simplest rule: ``python -m benchmarks.exam_rules``.

Preregistered. ``rising`` has 24 settings (rehearsal, how sure it must be that a score is no blind guess, what counts as standing still, the data
of what does not rise) and ``once`` 12. On the roots 200 to 203 of both development families, one training seed, each is played as a reader of
success and score, and as a reader of success alone; the setting with the highest mean over both families is kept for each. These three and
``reader`` are then played on the roots 1100 to 1115 with two training seeds each, beside the bounds of ``benchmarks.exam_ground``, and so is
a control of ``rising``: yoked (its own counts, the rates of a run on another root).

Two questions, each on both families: is the one-sided 95 % bound of the gain of ``rising`` over the best open loop above 0, and that of
success and score over success alone? Besides: does the control end above the best open loop, how far is ``once`` from ``rising``, and how far is
the best rule that reads successes alone?

Two more controls were added after the results: the mean rates of five other runs (false, but not those of any one run), and the score of an
answer to another task of the same kind. So were ``steady``, the default engineer, and its yoked control. None of them is part of a question.

The rule itself was chosen among about 35 by hand, on the roots 200 to 207 of the same families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from envtuning.exam.families import DEVELOPMENT, Family
from envtuning.exam.hall import Hall
from envtuning.exam.reading import Reads
from envtuning.exam.session import Start
from envtuning.exam.sitting import BOUNDS, EVEN, OPEN_LOOP, Paper
from envtuning.studies.closed_loop import lower_bound
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "exam_sittings"  # with those of ``benchmarks.exam_table``
TUNING = [Start(root) for root in range(200, 204)]
ROOTS = range(1100, 1116)
FRESH = [Start(root, training) for root in ROOTS for training in (0, 1)]
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "rising": [
        {"keep": keep, "sure": sure, "gap": gap, "flat": flat}
        for keep, sure, gap, flat in product((0.2, 0.3), (1.0, 1.5, 2.0), (0.1, 0.15), (0.05, 0.1))
    ],
    "once": [{"learnt": learnt, "keep": keep, "part": part} for learnt, keep, part in product((0.2, 0.5), (0.1, 0.2, 0.3), (0.5, 1.0))],
}  # fmt: skip
TUNED: tuple[tuple[str, Reads], ...] = (("rising", "scores"), ("rising", "success"), ("once", "success"))
RIVALS: tuple[tuple[str, Reads], ...] = (
    ("steady", "scores"), ("steady", "yoked"), ("reader", "scores"), ("reader", "success")
)  # fmt: skip
CONTROLS: tuple[Reads, ...] = ("yoked", "mean of others", "shuffled scores")


def papers_of(
    engineer: str, reads: Reads, options: dict[str, Any], family: Family, starts: Sequence[Start]
) -> list[Paper]:
    return [
        Paper(engineer=engineer, options=options, family=family, root=one.root, training=one.training, reads=reads)
        for one in starts
    ]


def ends(hall: Hall, *arm: Any) -> Any:
    """Mean success at the end of each run."""
    return np.array([sitting.end for sitting in hall.sittings(papers_of(*arm))])


def tuned(hall: Hall, engineer: str, reads: Reads) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The best setting on the tuning roots of both families, and all of them, the best first."""
    asked = [paper for options in SETTINGS[engineer] for family in DEVELOPMENT for paper in papers_of(engineer, reads, options, family, TUNING)]  # fmt: skip
    found = np.reshape([sitting.end for sitting in hall.sittings(asked)], (len(SETTINGS[engineer]), -1)).mean(1)
    order = np.argsort(-found, kind="stable")
    return SETTINGS[engineer][order[0]], [{"setting": SETTINGS[engineer][at], "success": round(float(found[at]), 4)} for at in order]  # fmt: skip


def compared(by_root: Any, other: Any) -> dict[str, Any]:
    """A difference paired by root, with the one-sided 95 % bound."""
    gains = (by_root - other).tolist()
    return asdict(t_mean(gains)) | {"bound": lower_bound(gains)}


def on(family: Family, hall: Hall, arms: dict[str, tuple[str, Reads, dict[str, Any]]]) -> dict[str, Any]:
    by_root = {name: np.reshape(ends(hall, *arm, family, FRESH), (-1, 2)).mean(1) for name, arm in arms.items()}
    rows = {
        name: {
            "success": float(of.mean()),
            "per_root": of.round(4).tolist(),
            "over_best_open_loop": compared(of, by_root[OPEN_LOOP]),
            "over_even": compared(of, by_root[EVEN]),
        }
        for name, of in by_root.items()
    }
    return {"rows": rows, "scores_over_success_alone": compared(by_root["rising, scores"], by_root["rising, success"])}


def lines(name: str, found: dict[str, Any]) -> list[str]:
    told = [
        f"| `{name}` | {arm} | {100 * row['success']:.1f} | {in_points(row['over_best_open_loop'])} | {100 * row['over_best_open_loop']['bound']:+.1f} |"
        for arm, row in found["rows"].items()
    ]
    over = found["scores_over_success_alone"]
    return [*told, f"`{name}`: scores over success alone {in_points(over)}, bound {100 * over['bound']:+.1f}"]


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="sittings at a time (2)")
    arguments = arguments_of(parser)
    hall = Hall(KEPT, jobs=arguments.jobs)
    with errors_in_one_sentence():
        settings, tried = {}, {}
        for engineer, reads in TUNED:
            settings[engineer, reads], tried[f"{engineer}, {reads}"] = tuned(hall, engineer, reads)
            print(f"{engineer}, {reads}: {tried[f'{engineer}, {reads}'][0]}", flush=True)
        arms = {bound: (bound, "scores", {}) for bound in BOUNDS}
        arms |= {f"{engineer}, {reads}": (engineer, reads, settings[engineer, reads]) for engineer, reads in TUNED}
        arms |= {f"{engineer}, {reads}": (engineer, reads, {}) for engineer, reads in RIVALS}
        arms |= {f"rising, {control}": ("rising", control, settings["rising", "scores"]) for control in CONTROLS}
        found = {}
        for family in DEVELOPMENT:
            found[family.name] = on(family, hall, arms)  # type: ignore[arg-type]
            print(*lines(family.name, found[family.name]), sep="\n", flush=True)
    chosen = {f"{engineer}, {reads}": options for (engineer, reads), options in settings.items()}
    record_if_asked(arguments, "exam_rules", {"families": found, "settings": chosen, "on_tuning_roots": tried})


if __name__ == "__main__":
    main()
