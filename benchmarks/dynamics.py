"""What knowing the learner, reading and not reading are worth on simulated learners: ``python -m benchmarks.dynamics``.

On tuning roots every open-loop arm has six configurations. Even draws and the three best of all are then played on fresh roots,
beside a reader that knows the family (attainable), one that knows the learner (full information), and engineers that read reports.
Every setting is kept in ``runs/dynamics``: after a kill, the same command continues.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import engineers
from benchmarks._command import arguments_of, command, record_if_asked
from envtuning import atomic
from envtuning.dynamics import families, learners, plans, reports
from envtuning.dynamics.families import DEVELOPMENT, FAMILIES, Sizes, draw
from envtuning.dynamics.learners import KINDS, Array, Learners, step, value
from envtuning.dynamics.plans import attainable, best_on_menu, informed
from envtuning.dynamics.reports import play
from envtuning.studies.closed_loop import freeze, gain
from envtuning.studies.intervals import t_mean

KEPT = Path(__file__).parents[1] / "runs" / "dynamics"
TUNING, FRESH = 1, 2  # seeds of roots
ROOTS, TUNING_ROOTS, SEEDS = 32, 12, 2  # seeds: of the cases that reports are counted on
SETTINGS = {name: (name, False) for name in FAMILIES} | {f"{name}, outside": (name, True) for name in DEVELOPMENT}
ENGINEERS = ("rules", "half-success", "progress-share")  # uniform and fixed are even draws here
FLOORS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)  # of failure-share

Study = Callable[[], dict[str, Any]]
Arm = Callable[[Any, Learners, int], tuple[Array, Array | None]]  # shares and focus of a stage, unread


def shares(power: float, of: Learners, stage: int) -> tuple[Array, None]:
    """Fixed, by the target's weights."""
    return np.where(of.present, np.maximum(of.weight, 1e-12) ** power, 0.0), None


def blocks(config: tuple[int, float], of: Learners, stage: int) -> tuple[Array, None]:
    """One part of the slices after the other, with replay of all."""
    parts, replay = config
    at = (stage - 1) * parts // np.maximum(of.stages - 1, 1) % parts
    chosen = of.present & (np.arange(of.weight.shape[1]) % parts == at[:, None])
    return replay * of.even() + (1 - replay) * chosen / np.maximum(chosen.sum(1, keepdims=True), 1), None


def drop(config: tuple[float, float], of: Learners, stage: int) -> tuple[Array, None]:
    """From some time on, the slices that weigh least are left out."""
    part, after = config
    rank = (of.weight[:, None] > of.weight[:, :, None]).sum(2)  # how many weigh more
    kept = rank < np.ceil((1 - part) * of.present.sum(1))[:, None]
    return np.where((stage > after * of.stages)[:, None], kept, True) * of.even(), None


def focus(config: tuple[int, ...], of: Learners, stage: int) -> tuple[Array, Array]:
    """Even draws, against one kind of failure after the other."""
    kind = config[(stage - 1) % len(config)]
    return of.even(), np.broadcast_to(np.eye(len(KINDS))[kind], of.cause.shape)


OPEN: dict[str, tuple[Arm, tuple]] = {
    "even": (shares, (0.0,)),
    "shares": (shares, (0.25, 0.5, 1.0, 1.5, 2.0, 3.0)),
    "blocks": (blocks, tuple((parts, replay) for parts in (2, 3, 4) for replay in (0.1, 0.4))),
    "drop": (drop, tuple((part, after) for part in (0.25, 0.5, 0.75) for after in (0.0, 0.5))),
    "focus": (focus, ((0,), (1,), (2,), (0, 1, 2), (0, 1), (0, 0, 1, 1, 2, 2))),
}


def unread(arm: str, config: Any, of: Learners) -> Array:
    """Each run's end under a schedule."""
    practice, ends = step(of, of.start, of.even()), np.zeros(len(of))
    for stage in range(1, int(of.stages.max()) + 1):
        ends = np.where(of.stages == stage, value(of, practice), ends)
        practice = step(of, practice, *OPEN[arm][0](config, of, stage))
    return ends


def asked(name: str, of: Learners, **options: Any) -> Array:
    """Ends under an engineer, [runs, seeds]."""
    found = [[run.success for run in play(engineers.make(name, **options), of, seed)] for seed in range(SEEDS)]
    return np.array(found).T


def frozen(tuning: Learners) -> dict[str, tuple[str, Any]]:
    """The schedules that go on to fresh roots, by name: even draws, and the three best of all on the tuning roots."""
    tried = {f"{arm} {config}": (arm, config) for arm, (_, configs) in OPEN.items() for config in configs}
    developed = {name: unread(arm, config, tuning) for name, (arm, config) in tried.items()}
    even = next(iter(tried))
    return {name: tried[name] for name in freeze(developed, [even], [name for name in tried if name != even])}


def study(setting: str) -> dict[str, Any]:
    family, outside = SETTINGS[setting]
    tuning, fresh = draw(family, TUNING_ROOTS, TUNING), draw(family, ROOTS, FRESH, outside=outside)
    opened = frozen(tuning)
    floor = max(FLOORS, key=lambda floor: float(asked("failure-share", tuning, floor=floor).mean()))
    ends = {name: np.repeat(unread(*arm, fresh)[:, None], SEEDS, axis=1) for name, arm in opened.items()}
    alone = [fresh.alone(run) for run in range(ROOTS)]
    known = np.array([informed(one, run) for run, one in enumerate(alone)])
    seeds = range(SEEDS)
    read = [[attainable(family, one, [k, run], outside=outside) for k in seeds] for run, one in enumerate(alone)]
    ends |= {"full information": np.repeat(known[:, None], SEEDS, axis=1), "attainable": np.array(read)}
    ends |= {name: asked(name, fresh) for name in ENGINEERS}
    ends["failure-share"] = asked("failure-share", fresh, floor=floor)
    rows = {name: {"success": asdict(t_mean(found.mean(1)))} for name, found in ends.items()}
    for name in ends.keys() - opened.keys():
        over = gain(ends, name, list(opened))
        between = t_mean((ends[name] - ends[over.above]).mean(1))
        rows[name] |= {"over_best_open_loop": asdict(between), "which": over.above, "lower_bound": over.low}
    described = {"setting": setting, "roots": ROOTS, "open_loop": list(opened), "floor": floor}
    return described | {"rows": rows, "menu": on_menu(family)}


def on_menu(family: str) -> dict[str, Any]:
    """On four slices and at most six stages: the exact best of a menu of even draws and each slice alone, beside the best found."""
    few = draw(family, ROOTS, FRESH, sizes=Sizes((4, 4), (3, 6)))
    alone = [few.alone(run) for run in range(ROOTS)]
    exact = np.array([best_on_menu(one, np.vstack([one.even(), np.eye(4)])) for one in alone])
    found = np.array([informed(one, run) for run, one in enumerate(alone)])
    rows = {"even": unread("even", 0.0, few), "exact": exact, "found": found}
    return {name: asdict(t_mean(row)) for name, row in rows.items()}


def speed() -> dict[str, float]:
    """CPU milliseconds of a run of twelve stages, and of one whose reports an engineer is asked by."""
    longest = Sizes((32, 32), (12, 12))
    one, many = draw("transfer", 1, 0, sizes=longest), draw("transfer", 1000, 0, sizes=longest)
    timed = {
        "a run": (lambda: unread("even", 0.0, one), 200),
        "a run of a thousand at once": (lambda: unread("even", 0.0, many), 3000),
        "a run with reports, under fixed": (lambda: play(engineers.make("fixed"), one, 0), 20),
    }
    found = {}
    for name, (run, times) in timed.items():
        began = time.process_time()
        for _ in range(max(1, times // (1000 if "thousand" in name else 1))):
            run()
        found[name] = 1000 * (time.process_time() - began) / times
    return found


def kept(
    below: Path, sources: Sequence[str | None], studies: dict[str, Study], line: Callable[[dict[str, Any]], str]
) -> list[dict[str, Any]]:
    """Each study as these very sources made it, or made now: a killed command goes on where it stopped."""
    made_by = hashlib.sha256(b"".join(Path(str(source)).read_bytes() for source in sources)).hexdigest()[:12]
    found = []
    for name, make in studies.items():
        path = below / made_by / f"{name}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write_text(path, json.dumps(make()))
        found.append(json.loads(path.read_text(encoding="utf-8")))
        print(line(found[-1]), flush=True)
    return found


def main() -> None:
    arguments = arguments_of(command(__doc__))
    sources = [*(module.__file__ for module in (families, learners, plans, reports)), __file__]
    studies = kept(KEPT, sources, {setting: partial(study, setting) for setting in SETTINGS}, line)
    record_if_asked(arguments, "dynamics", {"studies": studies, "milliseconds": speed()})


def in_words(schedule: str) -> str:
    """A schedule's name with its configuration, for a table."""
    return schedule.replace("(", "").replace(")", "")


def in_points(found: dict[str, float]) -> str:
    mean, low, high = (100 * found[key] for key in ("mean", "low", "high"))
    return f"{mean:+.1f} ({low:+.1f}, {high:+.1f})"


def line(figures: dict[str, Any]) -> str:
    """Ends in percent, and differences to the best open loop in points, as a row of the page."""
    rows = figures["rows"]
    best = max(figures["open_loop"], key=lambda name: rows[name]["success"]["mean"])
    cells = [f"`{figures['setting']}`", f"{100 * rows['even 0.0']['success']['mean']:.1f}"]
    cells.append(f"{100 * rows[best]['success']['mean']:.1f} ({in_words(best)})")
    for name in ("full information", "attainable", "failure-share", *ENGINEERS):
        cells.append(in_points(rows[name]["over_best_open_loop"]))
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
