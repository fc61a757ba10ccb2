"""A run with a language model: the loop, its engineers on the model itself, kills, and what the report says of replies."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from engineers.report import StageReport
from envtuning.errors import SpecError
from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, TraineeSpec
from envtuning.runs.tasks import next_task
from tests.envtuning.loop.test_runs_kill import KILLED, KillableRuns
from tests.language.conftest import QUICK
from tests.lazily import needed

needed("trl", "llguidance", extra="grpo")

SIZES = {3: {"share": 0.5, "hole_ratio": 0.2}, 4: {"share": 0.5, "hole_ratio": 0.1}}


def make_spec(model: Path, engineer: str = "checkpoint", rounds: int = 2, **changed: Any) -> RunSpec:
    config = {"num_agents": 2, "reward": "shaped", "slices": SIZES}
    given: dict[str, Any] = {
        "name": "tiny",
        "seed": 1,
        "world": {"name": "lakes", "options": {"style": "short"}},
        "unit": "samples",
        "target": config,
        "trainee": {"kind": "grpo", "options": {"model": str(model), "grpo": QUICK, "torch_threads": 1}},
        "engineer": {"name": engineer, "options": {"max_tokens": 1200} if engineer in ("checkpoint", "base") else {}},
        "suites": {
            "validation_per_slice": 8,
            "test_per_slice": 6,
            "probe_per_slice": 4,
            "validate": "every 16",
            "failure_cases": 2,
        },
        "guard": {"max_drop": None},
        "stages": [{"name": "default", "budget": 80, "config": config}, *([{"budget": 60}] * (rounds - 1))],
    }
    return RunSpec.model_validate(given | changed)


def figures(folder: Path) -> dict[str, Any]:
    """All that a run ends with, times and drafts apart."""
    run = RunLog.open(folder)
    assert next_task(run.plan, run.state) is None
    found: dict[str, Any] = {"test": run.state.test.model_dump() if run.state.test else None}
    for stage in run.state.done:
        found[f"config {stage.number}"] = chosen = stage.chosen.model_dump(mode="json")
        if chosen["proposal"] is not None:
            chosen["proposal"]["usage"]["seconds"] = 0
        found[f"metrics {stage.number}"] = stage.metrics()
        found[f"episodes {stage.number}"] = stage.episodes()
        found[f"report {stage.number}"] = stage.report.model_dump(mode="json") | {"run": ""}
        found[f"done {stage.number}"] = stage.done.model_dump() | {"seconds": 0}
        found[f"asked {stage.number}"] = [line["messages"] for line in stage.transcript()]
    return found


@pytest.fixture(scope="module")
def runs():
    server = KillableRuns(
        "envtuning.trainees.language.learner", "llguidance.torch", "engineers.model.structured.processor"
    )
    yield server
    server.close()


@pytest.fixture(scope="module")
def undisturbed(runs, foreign, tmp_path_factory):
    folder, log = tmp_path_factory.mktemp("undisturbed") / "run", tmp_path_factory.mktemp("log") / "operations"
    assert runs.run(folder, make_spec(foreign), log=str(log))["code"] == 0
    return figures(folder), log.read_text().splitlines(), folder


pytestmark = pytest.mark.timeout(900)  # real processes, which wait for each other on a busy machine
KINDS = ("inside", "transcript", "proposal", "checkpoint", "report", "metrics")
SIX = ("inside", "inside", "transcript", "proposal", "checkpoint", "metrics")


def moments(operations: list[str], kinds: tuple[str, ...], seed: int) -> list[int]:
    """For each kind of file the number of one storage operation on such a file."""
    by_kind: dict[str, list[int]] = {}
    for moment, label in enumerate(operations):
        by_kind.setdefault(next((kind for kind in KINDS if kind in label), "other"), []).append(moment)
    draw = random.Random(seed)
    return [draw.choice(by_kind[kind]) for kind in kinds]


def killed_and_resumed(runs: KillableRuns, spec: RunSpec, folder: Path, moment: int) -> dict[str, Any]:
    folder.parent.mkdir()
    assert runs.run(folder, spec, kill_at=moment)["code"] == KILLED
    assert runs.run(folder, spec)["code"] == 0
    return figures(folder)


def test_a_run_that_is_killed_while_its_checkpoint_answers_ends_the_same(runs, foreign, undisturbed, tmp_path):
    expected, operations, _ = undisturbed
    [moment] = moments(operations, ("transcript",), seed=0)
    assert killed_and_resumed(runs, make_spec(foreign), tmp_path / "a" / "run", moment) == expected, operations[moment]


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_six_kills_at_other_moments_change_nothing_and_nobody_is_asked_twice(runs, foreign, undisturbed, tmp_path):
    expected, operations, _ = undisturbed
    for number, moment in enumerate(moments(operations, SIX, seed=0)):
        folder = tmp_path / f"{number}" / "run"
        assert killed_and_resumed(runs, make_spec(foreign), folder, moment) == expected, operations[moment]


def test_what_the_run_is_made_of(undisturbed):
    found, operations, folder = undisturbed
    run = RunLog.open(folder)
    assert any("inside-" in label for label in operations)  # long stages are saved at their validations …
    assert not list(folder.rglob("inside-*"))  # … and the finished ones are not kept
    kept = sorted(path.parent.parent.name for path in folder.rglob("optimizer.pt") if path.parent.name == "checkpoint")
    assert kept == ["01"]  # the optimiser's state is kept for the last stage only
    assert (run.state.stages[0].checkpoint / "model.safetensors").exists()
    done = run.state.stages[0].done
    assert done.trained["samples"] > 0
    assert done.validated["samples"] > 0  # validation is charged
    assert done.trained["tokens"] > done.trained["samples"]
    answer = run.state.stages[1].chosen
    assert answer.proposal.engineer == "checkpoint"
    assert answer.proposal.usage.completion_tokens > 0
    assert not answer.proposal.fallback
    assert {"truncated_rate", "parse_error_rate", "equal_groups", "entropy"} <= found["report 0"]["training"].keys()
    assert "truncated" in found["report 0"]["failure_meanings"]


def test_replies_that_are_cut_are_in_the_table_that_the_engineer_reads(foreign, tmp_path):
    spec = make_spec(foreign, "fixed", rounds=1)
    never_ended = {"max_completion_length": 2, "generation_kwargs": {"min_new_tokens": 2}}
    short = spec.trainee.options | {"grpo": QUICK | never_ended}
    spec = spec.model_copy(update={"trainee": TraineeSpec(kind=spec.trainee.kind, options=short)})
    report = loop.start(spec, tmp_path / "run").state.stages[0].report
    assert isinstance(report, StageReport)
    assert all(row.failures == {"truncated": row.episodes} for row in report.results)
    assert report.training["truncated_rate"] == 1.0
    assert report.training["equal_groups"] == 1.0


def test_a_budget_in_steps_is_refused_at_the_start(foreign, tmp_path):
    with pytest.raises(SpecError, match="counts samples and tokens, and the run's budgets are in env_steps"):
        loop.start(make_spec(foreign, unit="env_steps"), tmp_path / "run")


def test_wrong_options_are_refused_at_the_start(foreign, tmp_path):
    for options, message in (
        ({"model": str(foreign), "grpo": {"seed": 1}}, "grpo\\.seed"),
        ({"model": str(foreign), "grpo": {"num_generations": 7}}, "into whole groups of num_generations=7"),
        ({}, "model"),
    ):
        with pytest.raises(SpecError, match=message):
            loop.start(make_spec(foreign, trainee={"kind": "grpo", "options": options}), tmp_path / "run")


@pytest.mark.parametrize(
    "name",
    ["base", pytest.param("rules", marks=pytest.mark.prove)],
)
def test_other_engineers_run_in_the_same_command(foreign, tmp_path, name):
    run = loop.start(make_spec(foreign, name), tmp_path / "run")
    answer = run.state.stages[1].chosen
    assert answer.proposal is not None
    assert json.loads((run.path / "stages" / "01" / "config.json").read_text())
