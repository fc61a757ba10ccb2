"""Real runs of a tree's root, depth and budgets: how far the atlas orders engineers as these do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from envtuning.atlas.roster import ROSTER
from envtuning.atlas.spec import AtlasSpec
from envtuning.runs.log import RunLog
from envtuning.runs.sections import EngineerSpec
from envtuning.studies.study import Arms, folder_name
from envtuning.worlds.episodes import pooled

Real = dict[str, dict[int, float]]  # success on the test, by engineer and seed


def real_arms(spec: AtlasSpec, chosen: Sequence[str]) -> Arms:
    """The run of the tree, once for each engineer: of the roster, or as a run's file names it."""
    run = spec.run
    common = run.engineer.common_options
    made = {name: ROSTER.get(name, (name, {})) for name in chosen}
    return {
        name: run.model_copy(update={"engineer": EngineerSpec(name=engineer, options=common | options)})
        for name, (engineer, options) in made.items()
    }


def real_success(arms: Mapping[str, object], seeds: Sequence[int], out: Path) -> Real:
    """Success on the test after the last stage, of what is finished."""
    found: Real = {}
    for name in arms:
        for seed in seeds:
            folder = out / folder_name(name) / f"seed{seed}"
            if (folder / "test.json").exists():
                run = RunLog.open(folder)
                assert run.state.test is not None
                found.setdefault(name, {})[seed] = pooled(run.state.test.last, run.plan.world.about.objective)
    return found
