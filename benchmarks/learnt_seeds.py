"""How much of ``learnt``'s figures is the seed of its training: ``python -m benchmarks.learnt_seeds``.

The engineer in the package was trained once, with one seed. Here it and its blind twin are trained with four more seeds, by the
same steps, and all are scored on the held-out families, on the roots and cases of ``benchmarks.learnt compare``. The package's
weights stay as they are. Every training and every score is kept in ``runs/learnt``: after a kill, the same command goes on.

Written down before the run: the seeds are 12 to 15, none is left out, and none is added afterwards. The figures are ``learnt`` less the best
open loop, less the failure rule, less the give-up rule and less the blind twin of the same seed, each as a mean over roots with each
family counting alike, for every seed; then their mean over the five trainings with its 95 % interval (t, over trainings), and their
standard deviation between trainings. Expected: ``learnt`` ends above its blind twin in all five. The package's leads of a point over open
loop and rules are of the size that the seed changes, so that at least one training ends below a rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from statistics import stdev
from typing import Any

import numpy as np

import engineers
from benchmarks import dynamics, learnt, reader
from benchmarks._command import arguments_of, command, record_if_asked
from benchmarks.dynamics import in_points
from benchmarks.learnt import KEPT, SEED, STEPS, WEIGHTS
from engineers.plain import learnt as engineer
from engineers.plain import share_rules
from engineers.plain.learnt import LearntEngineer
from envtuning.dynamics import families, learners, reports
from envtuning.dynamics.families import HELD_OUT
from envtuning.dynamics.learners import Array
from envtuning.studies.intervals import t_mean

SEEDS = (12, 13, 14, 15)
TWINS = ("learnt", "blind")
RULES = ("failure", "give-up")
ROOTS = 24


def weights_of(twin: str, seed: int) -> Mapping[str, Array]:
    """The package's for its own seed; others are trained, or read where they were."""
    if seed == SEED:
        return engineer.stored(twin)
    path = KEPT / f"{twin}-{STEPS}-seed{seed}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **learnt.trained(twin, STEPS, seed=seed))
    with np.load(path) as found:
        return dict(found)


def made(twin: str, seed: int) -> LearntEngineer:
    one: LearntEngineer = engineers.make("learnt", twin=twin)
    one.weights = weights_of(twin, seed)
    return one


def ended(family: str, seed: int) -> dict[str, Any]:
    """What one training ends at on a family, less each rival, by root."""
    tuning, fresh, opened = reader.begun(family, ROOTS)
    ends = {twin: reader.ended(made(twin, seed), fresh) for twin in TWINS}
    rivals = {"best open loop": max(opened.values(), key=lambda end: float(end.mean())), "blind": ends["blind"]}
    for name in RULES:
        rule = reader.RULES[name]
        rivals[name] = reader.ruled(rule, reader.best_floor(rule, tuning), fresh, reader.CASES)
    return {
        "family": family,
        "seed": seed,
        "learnt": float(ends["learnt"].mean()),
        "less": {name: (ends["learnt"] - end).round(5).tolist() for name, end in rivals.items()},
    }


def pooled(studies: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By rival: ``learnt``'s lead of each training over the families, and what trainings have in common."""
    found = {}
    for rival in studies[0]["less"]:
        leads = {
            seed: t_mean(np.mean([one["less"][rival] for one in of_seed(studies, seed)], axis=0))
            for seed in (SEED, *SEEDS)
        }
        means = [lead.mean for lead in leads.values()]
        found[rival] = {
            "by_seed": {str(seed): asdict(lead) for seed, lead in leads.items()},
            "over_trainings": asdict(t_mean(means)),
            "between_trainings": stdev(means),
        }
    return found


def of_seed(studies: Sequence[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    return [one for one in studies if one["seed"] == seed]


def line(one: dict[str, Any]) -> str:
    leads = ", ".join(f"{name} {100 * np.mean(less):+.1f}" for name, less in one["less"].items())
    return f"seed {one['seed']}, {one['family']}: {100 * one['learnt']:.1f} %, less {leads}"


def main() -> None:
    arguments = arguments_of(command(__doc__))
    modules = (dynamics, reader, families, learners, reports, engineer, share_rules, learnt)
    sources = [*(module.__file__ for module in modules), str(WEIGHTS), __file__]
    wanted = {f"{family}-seed{seed}": partial(ended, family, seed) for seed in (SEED, *SEEDS) for family in HELD_OUT}
    studies = dynamics.kept(KEPT, sources, wanted, line)
    figures = pooled(studies)
    for rival, found in figures.items():
        over = in_points(found["over_trainings"])
        print(f"less {rival}: {over} over trainings, standard deviation {100 * found['between_trainings']:.1f} points")
    record_if_asked(arguments, "learnt_seeds", {"package": SEED, "steps": STEPS, "pooled": figures, "studies": studies})


if __name__ == "__main__":
    main()
