"""What the score gives away where hopeless tasks earn credit, too, and in natural tasks: ``python -m benchmarks.exam_gives_away``.

In codes, letters tell the learnable from the hopeless by construction. In ``half-right``, the hopeless rise to .5 and stop; ``reasoning`` has
data sets of reasoning-gym. On both, ``rising`` reads success and score, success alone, and success with the score of an answer to another task of
the same kind. Each is played on the first eight roots of ``benchmarks.exam_table``, one training each. Exploratory: the families had been opened
before. The same arms on the development families are in ``benchmarks.exam_rules``.
"""

from __future__ import annotations

from typing import Any

from benchmarks._command import arguments_of, command, errors_in_one_sentence, record_if_asked
from benchmarks._points import in_points
from benchmarks.exam_rules import KEPT, ROOTS, compared, ends
from envtuning.exam.families import HELD_OUT, Family
from envtuning.exam.hall import Hall
from envtuning.exam.reading import Reads
from envtuning.exam.session import Start
from envtuning.exam.sitting import EVEN, OPEN_LOOP, ORACLE

NAMES = ("half-right", "reasoning")
SHOWN: tuple[Reads, ...] = ("scores", "shuffled scores", "success")
STARTS = [Start(root) for root in ROOTS[:8]]
PAIRS: tuple[tuple[Reads, Reads], ...] = (
    ("scores", "shuffled scores"),
    ("shuffled scores", "success"),
    ("scores", "success"),
)


def on(family: Family, hall: Hall) -> dict[str, Any]:
    by_root = {shown: ends(hall, "rising", shown, {}, family, STARTS) for shown in SHOWN}
    bounds = {name: ends(hall, name, "scores", {}, family, STARTS) for name in (EVEN, OPEN_LOOP, ORACLE)}
    return {
        "success": {name: float(of.mean()) for name, of in (by_root | bounds).items()},
        "over_best_open_loop": {shown: compared(of, bounds[OPEN_LOOP]) for shown, of in by_root.items()},
        "differences": {f"{one} - {other}": compared(by_root[one], by_root[other]) for one, other in PAIRS},
    }


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="sittings at a time (2)")
    arguments = arguments_of(parser)
    hall = Hall(KEPT, jobs=arguments.jobs)
    found = {}
    with errors_in_one_sentence():
        for family in HELD_OUT:
            if family.name in NAMES:
                found[family.name] = told = on(family, hall)
                cells = [in_points(told["over_best_open_loop"][shown]) for shown in SHOWN]
                print(f"| `{family.name}` | {' | '.join(cells)} | {in_points(told['differences']['scores - shuffled scores'])} |", flush=True)  # fmt: skip
    record_if_asked(arguments, "exam_gives_away", found)


if __name__ == "__main__":
    main()
