"""Runs of the loop under Ray Tune: the search space reaches the run, and an interrupted search continues."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import SpecError, load_spec
from envtuning.runs.tasks import next_task
from tests.lazily import Lazy, needed

needed("ray", extra="rllib")
search = Lazy("envtuning.studies.tune")

pytestmark = pytest.mark.ray


def test_search_space_reaches_the_spec():
    spec = search.spec_of(
        {"preset": "scripted", "engineer": "fixed", "seed": 7, "stages": 2, "trainee": {"speed": 0.9}, "runs": "x"}
    )
    assert (spec.engineer.name, spec.seed, len(spec.stages)) == ("fixed", 7, 2)
    assert spec.trainee.options["speed"] == 0.9


def test_an_engineer_of_the_search_space_gets_the_options_that_concern_everybody():
    own = load_spec("corridors").engineer
    searched = search.spec_of({"preset": "corridors", "engineer": "uniform", "runs": "x"}).engineer
    assert (searched.options, searched.timeout) == ({"space": own.options["space"]}, own.timeout)
    assert search.spec_of({"preset": "corridors", "engineer": own.name, "runs": "x"}).engineer == own


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_that_no_run_can_have_is_refused(seed):
    with pytest.raises(SpecError, match="seed"):
        search.spec_of({"preset": "scripted", "seed": seed, "runs": "x"})


def test_unknown_key_is_refused():
    with pytest.raises(SpecError, match="'seeds'"):
        search.spec_of({"preset": "scripted", "seeds": 3, "runs": "x"})
    with pytest.raises(SpecError, match="the search space has no 'runs': give the folder"):
        search.spec_of({"preset": "scripted"})
    with pytest.raises(SpecError, match="the search space has no 'preset': give a preset's name"):
        search.spec_of({"runs": "x"})


def test_the_last_report_is_of_the_stage_that_the_run_ended_with(tmp_path, monkeypatch):
    """Ray takes it as the trial's result; with a ``total`` there are more stages than the file lists."""
    few = {f"suites.{name}_per_slice": 2 for name in ("validation", "test", "probe")}
    spec = load_spec("scripted", changes=few).with_rounds(2)
    stages = [stage.model_copy(update={"budget": 4000, "advance_when": None}) for stage in spec.stages]
    spec = spec.model_copy(update={"stages": tuple(stages), "total": 13_000})
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(spec.model_dump(mode="json")))
    told = []
    monkeypatch.setattr(search.tune, "get_context", lambda: SimpleNamespace(get_trial_id=lambda: "trial"))
    monkeypatch.setattr(search.tune, "report", lambda results: told.append(results["stage"]))
    search.trainable({"preset": str(tmp_path / "small.yaml"), "runs": str(tmp_path)})
    assert told == [*range(told[-1] + 1), told[-1]]
    assert told[-1] > 1


@pytest.mark.slow
def test_interrupted_search_goes_on_inside_its_runs(ray_session, tmp_path):
    from ray import tune

    from envtuning.studies.tune import run_folder, spec_of, trainable

    def dies_once(config):
        """A trial that loses its power after its first stage, once."""
        folder = run_folder(config, tune.get_context().get_trial_id())
        if not folder.exists():
            loop.continue_run(RunLog.create(folder, Plan.of(spec_of(config))), stages=1)
            raise RuntimeError("the power went")
        trainable(config)

    few = {f"suites.{name}_per_slice": 3 for name in ("validation", "test", "probe")}
    small = tmp_path / "small.yaml"
    small.write_text(yaml.safe_dump(load_spec("scripted", changes=few).model_dump(mode="json")))
    space = {
        "preset": str(small),
        "engineer": tune.grid_search(["rules"]),
        "stages": 2,
        "runs": str(tmp_path / "runs"),
    }
    run_config = tune.RunConfig(name="search", storage_path=str(tmp_path), verbose=0)
    goal = tune.TuneConfig(metric="valid_rate", mode="max")
    failed = tune.Tuner(dies_once, param_space=space, tune_config=goal, run_config=run_config).fit()
    assert failed.num_errors == 1
    first_stages = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/stages/00/done.json")}
    assert len(first_stages) == 1

    restored = tune.Tuner.restore(str(tmp_path / "search"), dies_once, resume_errored=True, param_space=space)
    results = restored.fit()
    assert results.num_errors == 0
    assert {path: path.stat().st_mtime_ns for path in first_stages} == first_stages, "a finished stage was run again"
    for result in results:
        run = RunLog.open(result.metrics["run"])
        assert next_task(run.plan, run.state) is None
        assert result.metrics["valid_rate"] == run.state.stages[1].done.metrics["valid_rate"]
    assert results.get_best_result().metrics["valid_rate"] == max(result.metrics["valid_rate"] for result in results)
