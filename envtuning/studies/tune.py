"""Runs of the loop as Ray Tune trials. Engineers, seeds and hyper-parameters form the search space. An interrupted search
continues where it stopped, and so does each run in it.

    tuner = tune.Tuner(
        trainable,
        param_space={"preset": "engineer", "engineer": tune.grid_search(["rules", "fixed"]), "seed": tune.randint(0, 100),
                     "trainee": {"lr": tune.loguniform(1e-4, 3e-3)}, "runs": "/shared/runs"},
        tune_config=tune.TuneConfig(metric="valid_rate", mode="max", num_samples=4))
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ray import tune

from envtuning.loop import run as loop
from envtuning.loop.observer import Observer
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, SpecError, load_spec
from envtuning.runs.state import Stage

KEYS = ("preset", "engineer", "seed", "stages", "trainee", "runs", "trust")
NEEDED = {"preset": "a preset's name or a run's file", "runs": "the folder for the trials' run folders"}


def trainable(config: dict[str, Any]) -> None:
    """Do one run. After each stage, report the validation's metrics, ``stage`` and the run's cost by unit.

    ``config`` has ``preset``, a preset's name or a run's file, and ``runs``, the folder for the trials' run folders. That folder must
    outlive the trials, and be the same after a restore. Optional: ``engineer``, ``seed``, ``stages`` (their number), ``trainee`` (a
    mapping of the trainee's options) and ``trust`` (as in ``load_spec``). A trial that is started again continues its run.
    """
    spec = spec_of(config)
    run = loop.start(spec, run_folder(config, tune.get_context().get_trial_id()), _Reporter())
    tune.report(_results(run, run.state.done[-1]))  # a restored trial may have nothing left to do


def spec_of(config: dict[str, Any]) -> RunSpec:
    """The spec at a point of the search space."""
    unknown = sorted(set(config) - set(KEYS))
    if unknown:
        raise SpecError(f"unknown key {unknown[0]!r} in the search space: known are {', '.join(KEYS)}")
    for needed, what in NEEDED.items():
        if needed not in config:
            raise SpecError(f"the search space has no {needed!r}: give {what}")
    given: dict[str, Any] = {"seed": int(config["seed"])} if "seed" in config else {}
    given |= {f"trainee.options.{name}": value for name, value in config.get("trainee", {}).items()}
    spec = load_spec(config["preset"], changes=given, trust=config.get("trust", ()))
    if "engineer" in config:
        spec = spec.model_copy(update={"engineer": spec.engineer.replaced_by(config["engineer"])})
    return spec.with_rounds(config["stages"]) if "stages" in config else spec


def run_folder(config: dict[str, Any], trial_id: str) -> Path:
    """The folder of a trial's run."""
    return Path(config["runs"]).expanduser().resolve() / trial_id


class _Reporter(Observer):
    def run_began(self, run: RunLog) -> None:
        self.run = run

    def stage_ended(self, stage: Stage) -> None:
        tune.report(_results(self.run, stage))


def _results(run: RunLog, stage: Stage) -> dict[str, Any]:
    assert stage.done is not None, "reported when a stage has ended"
    return {**stage.done.metrics, "stage": stage.number, **run.state.spent, "run": str(run.path)}
