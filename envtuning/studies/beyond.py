"""Test sets beyond a study's target: one more agent, one more size, fewer waits. Finished runs play them from their last checkpoint.

No decision of a run depends on these sets. They share no case with the run's validation and test. They are drawn once per study
and kept beside its runs; each run's results on them are kept in its folder.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from envtuning import atomic
from envtuning.loop.validation import draw_suites
from envtuning.runs import checked
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import SpecError, load_spec
from envtuning.seeds import derive
from envtuning.studies.intervals import Interval, t_mean
from envtuning.studies.outcomes import played_on
from envtuning.studies.preregistered import StudySpec
from envtuning.worlds.episodes import Rate
from envtuning.worlds.world import Cases

BEYOND_FILE = "beyond.json"  # success by the set's key


@dataclass(frozen=True)
class Further:
    """A changed target and the key of its set. Another target, size or seed gives another key."""

    target: BaseModel
    key: str


def sets(study: StudySpec) -> dict[str, Further]:
    """The study's further sets, by name."""
    found = {}
    for name, changes in study.beyond.items():
        changed = load_spec(study.preset, changes={f"target.{key}": value for key, value in changes.items()})
        target = Plan.of(changed).target
        said = [target.model_dump(mode="json"), study.beyond_per_slice, study.base.suites.seed_of_test]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:8]
        found[name] = Further(target, f"{'-'.join(name.split())}-{digest}")
    return found


def raise_unless_playable(study: StudySpec, arms: Mapping[str, Plan]) -> None:
    """Raises ``SpecError`` before the first run if an arm's trainee says that it cannot play a further set."""
    further = sets(study)
    for arm, plan in arms.items():
        for name, one in further.items():
            capacities = (plan.world.capacity([*plan.written, *more]) for more in ((), (one.target,)))
            options = plan.spec.trainee.options
            trained, played = (plan.trainee.declared.window_in(capacity, **options) for capacity in capacities)
            if trained != played:
                raise SpecError(
                    f"beyond.{name}: its boards are larger than those of the runs, so with window: null the trainee "
                    f"of arm {arm} would train with window {trained} and play with window {played}; "
                    "give trainee.options.window a number"
                )


def suites(study: StudySpec, out: Path) -> dict[str, Cases]:
    """The cases of every further test set."""
    base, found = Plan.of(study.base), {}
    for name, one in sets(study).items():
        path = out / f"beyond-{one.key}.cases"
        if not path.exists():
            held_out = draw_suites(base).held_out
            seed = derive(base.spec.suites.seed_of_test, "beyond", name)
            drawn = base.world.draw(one.target, study.beyond_per_slice, seed=seed, purpose="test", exclude=held_out)
            with atomic.new_file(path) as draft:
                drawn.save(draft)
        found[name] = base.world.load(path)
    return found


def reached(run: RunLog, further: Mapping[str, Further], cases: Mapping[str, Cases]) -> dict[str, float]:
    """Success of the run's last checkpoint on each set. Sets without a result are played now."""
    path = run.path / BEYOND_FILE
    kept = checked.figures(path, dict[str, Rate]) or {}
    missing = {name: one for name, one in further.items() if one.key not in kept}
    if missing:
        kept |= {one.key: float(np.mean(played_on(run, one.target, cases[name]))) for name, one in missing.items()}
        atomic.write_json(path, kept)
    return {name: kept[one.key] for name, one in further.items()}


def table(study: StudySpec, runs: Mapping[tuple[str, int], RunLog], out: Path) -> dict[str, dict[str, Interval]]:
    """The mean over seeds by arm and set, with its interval; empty for a study without further sets."""
    further, cases = sets(study), suites(study, out)
    found: dict[str, dict[str, list[float]]] = {}
    for (arm, _), run in runs.items():
        for name, success in reached(run, further, cases).items():
            found.setdefault(arm, {}).setdefault(name, []).append(success)
    return {arm: {name: t_mean(values) for name, values in row.items()} for arm, row in found.items()}
