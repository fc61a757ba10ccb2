"""What ``reader`` is worth on simulated learners: ``python -m benchmarks.reader``.

Families that it was not written on, and the null one. Beside it: the best open-loop schedules, four rules that read success, each with its
best of six settings on the tuning roots, the first of them with a focus on failures, too, ``reader`` itself with its outcomes exchanged
(permuted) or those of others (average), and ``reader`` that turns shares alone, or the focus alone (then shares stay even).
Every family is kept in ``runs/reader``: after a kill, the same command continues.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

import engineers
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks._points import in_points
from benchmarks.closed_form import families, learners, reports, schedules
from benchmarks.closed_form.families import FAMILIES, HELD_OUT, NULL, draw
from benchmarks.closed_form.learners import KINDS, Array, Learners, step, validate, value
from benchmarks.closed_form.reports import play
from engineers.controls import average, permuted
from engineers.engineer import Engineer, as_engineer
from engineers.plain import causes, growth, reader, share_rules
from engineers.plain.causes import SMOOTHED
from engineers.plain.share_rules import RULES, Rule, failure
from engineers.proposal import Proposal
from engineers.report import StageReport
from envtuning import atomic
from envtuning.studies.closed_loop import gain
from envtuning.studies.intervals import Interval, t_mean

KEPT = Path(__file__).parents[1] / "runs" / "reader"
TUNING_ROOTS = 12
TUNING, FRESH, CASES = 1, 3, 7  # seeds of roots, and of cases
DONORS = 2  # runs of other learners of the same sizes, of which an average is told
SETTINGS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)  # of every rule: the part of the data that is shared out evenly

OPEN_LOOP = "best open loop"
FOCUSED = "failure, focused"  # the thermometer, with data against the kind of failure that stands out
PARTS = ("shares alone", "focus alone")  # ``reader`` that turns these knobs and no others


def ruled(rule: Rule, floor: float, of: Learners, seed: int, *, focused: bool = False) -> Array:
    """Each run's end under a rule, with a part of the data shared out evenly, and a focus on the failures that stand out."""
    rng = np.random.default_rng(seed)
    practice, rates, ends = step(of, of.start, of.even()), list[Array](), np.zeros(len(of))
    failed, focus = np.full(of.cause.shape, SMOOTHED / len(KINDS)), None
    for stage in range(1, int(of.stages.max()) + 1):
        ends = np.where(of.stages == stage, value(of, practice), ends)
        seen = validate(of, practice, rng)
        rates.append(seen.succeeded / of.cases[:, None])
        if focused:
            failed += seen.failed
            focus = focus_on_causes(failed / failed.sum(-1, keepdims=True))
        wanted = rule(rates) * of.present
        total = wanted.sum(1, keepdims=True)
        shares = np.where(total > 0, wanted / np.maximum(total, 1e-12), of.even())
        practice = step(of, practice, floor * of.even() + (1 - floor) * shares, focus)
    return ends


def focus_on_causes(cause: Array) -> Array:
    """Each slice's data against the kind of failure that is likeliest; against all alike where none stands out."""
    likeliest = np.eye(len(KINDS))[cause.argmax(-1)]
    return np.where(cause.max(-1, keepdims=True) > 1.1 / len(KINDS), likeliest, 1.0 / len(KINDS))


def best_floor(rule: Rule, tuning: Learners, *, focused: bool = False) -> float:
    return max(SETTINGS, key=lambda floor: float(ruled(rule, floor, tuning, CASES, focused=focused).mean()))


def like(family: str, one: Learners, seed: int) -> Learners:
    """Other learners of the family with as many slices and stages."""
    sizes = ((int(size), int(size)) for size in (one.weight.shape[1], one.stages[0], one.cases[0]))
    return draw(family, DONORS, [FRESH, seed], sizes=families.Sizes(*sizes))


def average_self(family: str, one: Learners, seed: int) -> Engineer:
    made = engineers.make("reader")
    return average(made, [run.reports for run in play(made, like(family, one, seed), seed)])


class Turning:
    """``reader`` that may turn these knobs and no others."""

    name = "reader"

    def __init__(self, *editable: str) -> None:
        self.editable, self.reader = editable, engineers.make(self.name)

    def propose(self, report: StageReport, current: BaseModel, editable: Sequence[str] | None = None) -> Proposal:
        return self.reader.propose(report, current, self.editable)


def ended(engineer: Engineer, of: Learners) -> Array:
    return np.array([run.success for run in play(engineer, of, CASES)])


def begun(family: str, roots: int) -> tuple[Learners, Learners, dict[str, Array]]:
    """Roots for tuning, fresh roots, and how the open-loop schedules that were chosen on the former end on the latter."""
    tuning, fresh = draw(family, TUNING_ROOTS, TUNING), draw(family, roots, FRESH)
    return tuning, fresh, {name: schedules.unread(*arm, fresh) for name, arm in schedules.frozen(tuning).items()}


def figures(family: str, opened: dict[str, Array], ends: dict[str, Array]) -> dict[str, Any]:
    """The ends of the open loops, and of each other arm with its difference to the best of them."""
    rows = {}
    for name in [name for name in ends if name not in opened]:
        over = gain(ends, name, list(opened))
        between = asdict(t_mean((ends[name] - ends[over.above]).tolist()))
        rows[name] = {"success": float(ends[name].mean()), "over_best_open_loop": between, "bound": over.low}
    open_loop = {name: float(end.mean()) for name, end in opened.items()}
    roots, best = len(next(iter(ends.values()))), max(open_loop, key=lambda name: open_loop[name])
    return {"family": family, "roots": roots, "best": best, "open_loop": open_loop, "rows": rows}


def study(family: str, roots: int) -> dict[str, Any]:
    tuning, fresh, opened = begun(family, roots)
    ends = dict(opened)
    floors = {name: best_floor(rule, tuning) for name, rule in RULES.items()}
    ends |= {name: ruled(RULES[name], floor, fresh, CASES) for name, floor in floors.items()}
    floors[FOCUSED] = best_floor(failure, tuning, focused=True)
    ends[FOCUSED] = ruled(failure, floors[FOCUSED], fresh, CASES, focused=True)
    ends["reader"] = ended(engineers.make("reader"), fresh)
    ends["permuted"] = ended(permuted(engineers.make("reader"), 0), fresh)
    alone = [fresh.alone(run) for run in range(roots)]
    ends["average"] = np.array([ended(average_self(family, one, run), one)[0] for run, one in enumerate(alone)])
    for part, knob in zip(PARTS, ("share", "focus"), strict=True):
        ends[part] = ended(as_engineer(Turning(f"slices.*.{knob}")), fresh)
    found = figures(family, opened, ends)
    rivals = {OPEN_LOOP: found["best"], "failure": "failure", FOCUSED: FOCUSED}
    beyond = {name: ends["reader"] - ends[rival] for name, rival in rivals.items()}
    return found | {
        "floors": floors,
        "beyond": {name: asdict(t_mean(gains.tolist())) for name, gains in beyond.items()},
        "gains": {name: gains.round(5).tolist() for name, gains in beyond.items()},
    }


def pooled(studies: Sequence[dict[str, Any]], rival: str) -> Interval:
    """The mean over the held-out families of ``reader`` over a rival: by root, each family counting alike."""
    return t_mean(np.mean([study["gains"][rival] for study in studies if study["family"] != NULL], axis=0))


def line(found: dict[str, Any]) -> str:
    """Success in percent and differences to the best open loop in points, as a row of a table."""
    best = f"{100 * found['open_loop'][found['best']]:.1f} ({schedules.in_words(found['best'])})"
    rows = (in_points(row["over_best_open_loop"]) for name, row in found["rows"].items() if name not in PARTS)
    return f"| `{found['family']}` | {' | '.join([best, *rows])} |"


def line_of_parts(found: dict[str, Any]) -> str:
    """``reader`` over each rival, and over the best open loop with one kind of knob alone, as a row of a table."""
    beyond = (in_points(interval) for interval in found["beyond"].values())
    parts = (in_points(found["rows"][part]["over_best_open_loop"]) for part in PARTS)
    return f"| `{found['family']}` | {' | '.join([*beyond, *parts])} |"


def kept(sources: Sequence[str | None], studies: dict[str, Callable[[], dict[str, Any]]]) -> list[dict[str, Any]]:
    """Each study as these very sources made it, or made now: a killed command goes on where it stopped."""
    made_by = hashlib.sha256(b"".join(Path(str(source)).read_bytes() for source in sources)).hexdigest()[:12]
    found = []
    for name, make in studies.items():
        path = KEPT / made_by / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_text(path, json.dumps(make()))
        found.append(json.loads(path.read_text(encoding="utf-8")))
        print(line(found[-1]), flush=True)
    return found


def main() -> None:
    parser = command(__doc__)
    parser.add_argument("--families", nargs="*", choices=FAMILIES, default=[*HELD_OUT, NULL])
    parser.add_argument("--roots", type=int, default=24)
    arguments = arguments_of(parser)
    modules = (families, learners, reports, schedules, causes, growth, reader, share_rules)
    sources = [*(module.__file__ for module in modules), __file__]
    made = {f"{name}-{arguments.roots}": partial(study, name, arguments.roots) for name in arguments.families}
    studies = kept(sources, made)
    for found in studies:
        print(line_of_parts(found))
    over_all = {rival: asdict(pooled(studies, rival)) for rival in studies[0]["gains"]}
    print(
        *(f"over {rival}, all families but `{NULL}`: {in_points(over)}" for rival, over in over_all.items()), sep="\n"
    )
    record_if_asked(arguments, "reader", {"over_all_families": over_all, "studies": studies})


if __name__ == "__main__":
    main()
