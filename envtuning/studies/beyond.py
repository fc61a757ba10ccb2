"""Test sets beyond a study's target: one more agent, one more size, fewer waits. Finished runs play them from their last checkpoint.

No decision of a run ever saw these sets. They have no case in common with the run's validation and test; they are drawn once
per study and kept beside its runs, and what a run reached is kept in its folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from envtuning.loop.validation import draw_suites
from envtuning.runs import atomic, checked
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.seeds import derive
from envtuning.runs.spec import SpecError, load_spec
from envtuning.studies.intervals import Interval, t_mean
from envtuning.studies.outcomes import played_on
from envtuning.studies.preregistered import StudySpec
from envtuning.worlds.episodes import Rate

BEYOND_FILE = "beyond.json"  # success by the set's key


def targets(study: StudySpec) -> dict[str, Any]:
    """The changed targets, by name."""
    return {
        name: Plan.of(
            load_spec(study.preset, changes={f"target.{key}": value for key, value in changes.items()})
        ).target
        for name, changes in study.beyond.items()
    }


def keys(study: StudySpec) -> dict[str, str]:
    """What each set is kept under, by name: another target, size or seed is another set, whatever its name."""
    found = {}
    for name, target in targets(study).items():
        said = [target.model_dump(mode="json"), study.beyond_per_slice, study.base.suites.seed_of_test]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:8]
        found[name] = f"{'-'.join(name.split())}-{digest}"
    return found


def raise_unless_playable(study: StudySpec, arms: Mapping[str, Plan]) -> None:
    """Find out before the first run whether what an arm learns can play the further sets, where its trainee can tell."""
    further = targets(study)
    for arm, plan in arms.items():
        for name, target in further.items():
            capacities = (plan.world.capacity([*plan.written, *more]) for more in ((), (target,)))
            options = plan.spec.trainee.options
            trained, played = (plan.trainee.declared.window_in(capacity, **options) for capacity in capacities)
            if trained != played:
                raise SpecError(
                    f"beyond.{name}: its boards are larger than those of the runs, and the trainee of arm {arm} has window: null, "
                    f"which is {trained} there and {played} here; give trainee.options.window a number"
                )


def suites(study: StudySpec, out: Path) -> dict[str, Any]:
    """The cases of every further test set."""
    base, found, named = Plan.of(study.base), {}, keys(study)
    for name, target in targets(study).items():
        path = out / f"beyond-{named[name]}.cases"
        if not path.exists():
            held_out = draw_suites(base).held_out
            seed = derive(base.spec.suites.seed_of_test, "beyond", name)
            drawn = base.world.draw(target, study.beyond_per_slice, seed=seed, purpose="test", exclude=held_out)
            with atomic.new_file(path) as draft:
                drawn.save(draft)
        found[name] = base.world.load(path)
    return found


def reached(
    run: RunLog, wanted: Mapping[str, Any], named: Mapping[str, str], cases: Mapping[str, Any]
) -> dict[str, float]:
    """Success of the run's last checkpoint on each set; what was not played yet is played now."""
    path = run.path / BEYOND_FILE
    kept: dict[str, float] = checked.figures(path, dict[str, Rate]) or {}
    missing = {name: target for name, target in wanted.items() if named[name] not in kept}
    if missing:
        kept |= {named[name]: float(np.mean(played_on(run, target, cases[name]))) for name, target in missing.items()}
        atomic.write_json(path, kept)
    return {name: kept[named[name]] for name in cases}


def table(study: StudySpec, runs: Mapping[tuple[str, int], RunLog], out: Path) -> dict[str, dict[str, Interval]]:
    """By arm and set the mean over seeds, with its interval; empty for a study without further sets."""
    cases = suites(study, out) if study.beyond else {}
    wanted, named = targets(study), keys(study)
    found: dict[str, dict[str, list[float]]] = {}
    for (arm, _), run in runs.items():
        for name, success in reached(run, wanted, named, cases).items():
            found.setdefault(arm, {}).setdefault(name, []).append(success)
    return {arm: {name: t_mean(values) for name, values in row.items()} for arm, row in found.items()}
