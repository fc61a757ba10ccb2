"""A run that trains adapters with refill is killed in mid-training: what it ends with is what was to be, bit for bit."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec
from tests.envtuning.loop.test_runs_kill import KILLED, KillableRuns, outcome
from tests.language.conftest import QUICK
from tests.lazily import needed

needed("trl", "peft", extra="grpo")

pytestmark = pytest.mark.timeout(900)  # real processes, which wait for each other on a busy machine

HERE = Path(__file__).parent
BOTH = {"tasks": {"dull": {}, "some": {}}}


def spec_of(model: Path) -> RunSpec:
    options = {
        "model": str(model),
        "grpo": QUICK | {"beta": 0.0, "max_completion_length": 6},
        "lora": {"r": 4, "target_modules": "all-linear", "lora_dropout": 0.1},  # dropout reads the random state too
        "refill": 2,
        "torch_threads": 1,
    }
    return RunSpec.model_validate(
        {
            "name": "adapters",
            "seed": 1,
            "world": "half_dull:WORLD",
            "unit": "samples",
            "target": BOTH,
            "trainee": {"kind": "grpo", "options": options},
            "engineer": "reader",
            "editable": ["tasks.*.share"],
            "guard": {"max_drop": None},
            "suites": {"validation_per_slice": 4, "test_per_slice": 4, "probe_per_slice": 0, "validate": "every 48"},
            "stages": [{"config": BOTH, "budget": 96}, {"budget": 96}, {"budget": 96}],
        }
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("log") / "played"


@pytest.fixture(scope="module")
def runs(played):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))  # the world by the name that the run's file has, here and in the other process
        patch.setenv("PYTHONPATH", os.pathsep.join((str(HERE), *sys.path)))
        patch.setenv("PLAYED", str(played))
        server = KillableRuns("envtuning.trainees.language.learner", "half_dull")
        yield server
        server.close()


def lines_of(played: Path) -> list[str]:
    """What was played since the last call."""
    lines = played.read_text(encoding="utf-8").splitlines()
    played.unlink()
    return lines


@pytest.fixture(scope="module")
def undisturbed(runs, played, foreign, tmp_path_factory):
    place = tmp_path_factory.mktemp("undisturbed")
    assert runs.run(place / "run", spec_of(foreign), log=str(place / "operations"))["code"] == 0
    return place / "run", (place / "operations").read_text().splitlines(), lines_of(played)


def figures(folder: Path) -> dict[str, Any]:
    """All files of the run, the last checkpoint's adapters and moments among them, and what the engineer said."""
    found: dict[str, Any] = outcome(folder)
    for stage in RunLog.open(folder).state.stages:
        found[f"{stage.number}/said"] = [line["messages"] for line in stage.transcript()]
    return found


def steps_of(operations: list[str], stage: int) -> list[list[int]]:
    """The storage operations that log a stage's optimiser steps and validations, for each stretch between two of its checkpoints."""
    found: list[list[int]] = [[]]
    for moment, label in enumerate(operations):
        if label == f"fsync stages/{stage:02}/metrics.jsonl":
            found[-1].append(moment)
        elif label == f"os.rename stages/{stage:02}/.inside-{len(found)}.draft":
            found.append([])
    return found


def test_the_undisturbed_run_has_all_that_a_kill_could_lose(undisturbed):
    folder, operations, lines = undisturbed
    stages = RunLog.open(folder).state.stages
    last = {path.name for path in stages[-1].checkpoint.iterdir()}
    assert {"adapter_model.safetensors", "optimizer.pt", "visited.npy"} <= last
    assert "model.safetensors" not in last
    adapters = [(stage.checkpoint / "adapter_model.safetensors").read_bytes() for stage in stages]
    assert len(set(adapters)) == len(stages)
    assert len({stage.chosen.config.model_dump_json() for stage in stages}) > 1  # the engineer has turned the shares
    assert [len(stretch) >= 3 for stretch in steps_of(operations, 1)] == [True, True]
    steps = [step for stage in stages for step in stage.metrics() if step["kind"] == "iteration"]
    batch = QUICK["per_device_train_batch_size"] * QUICK["steps_per_generation"]
    assert any(step["samples"] > batch for step in steps)  # refill has played more than a batch, and dropped it
    assert sum(step["samples"] for step in steps) < len(lines)  # what was played for validation is in the log, too


@pytest.mark.parametrize("stretch", [0, 1], ids=["before its first checkpoint", "after one"])
def test_a_stage_that_is_killed_between_two_steps_of_a_batch_ends_the_same(
    runs, played, foreign, undisturbed, tmp_path, stretch
):
    expected, operations, in_order = undisturbed
    moment = steps_of(operations, 1)[stretch][1]
    assert runs.run(tmp_path / "run", spec_of(foreign), kill_at=moment)["code"] == KILLED
    before = lines_of(played)
    assert runs.run(tmp_path / "run", spec_of(foreign))["code"] == 0
    after = lines_of(played)
    assert before == in_order[: len(before)]
    assert after == in_order[-len(after) :]  # the same questions, and the same replies, dropped ones too
    assert len(before) + len(after) > len(in_order)  # the stretch was played once more
    assert figures(tmp_path / "run") == figures(expected)
