"""SIGKILL at random moments of runs on several worlds (lakes, Gymnasium, words in one turn and in several): ``resume`` ends the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, load_spec
from tests.envtuning.loop.test_runs_kill import KILLED, KillableRuns, killed_at_a_time, outcome

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3_000)]

HERE = Path(__file__).parents[1]
SUITES = {"validation_per_slice": 6, "test_per_slice": 6, "probe_per_slice": 3, "failure_cases": 2}


def gym_run(trainee: dict[str, Any], budget: int) -> dict[str, Any]:
    stages = [{"config": {"slices": {6: {}, 9: {"share": 0.0}, 12: {"share": 0.0}}}, "budget": budget}]
    return {
        "world": "gym_worlds:CorridorWorld",
        "target": {"slices": {9: {"tightness": 1.0}, 12: {"tightness": 1.0}}},
        "stages": [*stages, {"budget": budget}, {"budget": budget}],
        "trainee": trainee,
        "suites": SUITES | {"validate": f"every {budget // 2}"},
    }


SB3 = {"algorithm": "PPO", "num_envs": 2, "n_steps": 32, "n_epochs": 1, "report_every": 100}
TEXT = {
    "world": "text_worlds:GuessWorld",
    "target": {"pieces": {40: {"turns": 6}, 80: {"turns": 6}}},
    "stages": [{"config": {"pieces": {40: {"turns": 8}, 80: {"turns": 8}}}, "budget": 400}, {"budget": 400}],
    "trainee": {"kind": "text_worlds:BisectingTrainee"},
    "suites": SUITES,
}

SMALL = {"width": 16, "layers": 1, "heads": 2, "batch": 16, "max_tokens": 8}


def supervised(world: Any, config: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {
        "world": world,
        "target": config,
        "stages": [{"config": config, "budget": 300}, {"budget": 300}],
        "unit": "samples",
        "trainee": {"kind": "lm", "options": SMALL | options},
        "suites": SUITES,
    }


def specs() -> dict[str, RunSpec]:
    lakes = load_spec("scripted").with_rounds(2).model_dump() | {"suites": SUITES}
    described = {
        "lakes": lakes,
        "gym": gym_run({"kind": "gym_worlds:WalkerTrainee"}, 1_000),
        "sb3": gym_run({"kind": "sb3", "options": SB3}, 600),
        "text": TEXT,
        "lm": supervised("examples.five_tasks:world", {"tasks": {"copy": {}, "double": {}}}),
        "lm-lakes": supervised(
            {"name": "lakes", "options": {"style": "short"}},
            {"num_agents": 2, "slices": {3: {"hole_ratio": 0.2}, 4: {"hole_ratio": 0.2}}},
            tokens="words",
        ),
    }
    return {name: RunSpec.model_validate(data) for name, data in described.items()}


@pytest.fixture(scope="module")
def runs() -> Iterator[KillableRuns]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))  # the worlds by the names that the runs' files have
        patch.setenv("OMP_NUM_THREADS", "1")
        slow_to_import = ["envtuning.trainees.sb3"] if find_spec("stable_baselines3") else []
        slow_to_import += ["envtuning.trainees.language.small", "transformers"] if find_spec("transformers") else []
        server = KillableRuns("gym_worlds", "text_worlds", *slow_to_import)
        yield server
        server.close()


@pytest.mark.parametrize(
    ("world", "kills"),
    [
        ("gym", 2),
        ("text", 2),
        ("lm", 1),
        pytest.param("lakes", 10, marks=pytest.mark.prove),
        pytest.param("gym", 10, marks=pytest.mark.prove),
        pytest.param("sb3", 10, marks=pytest.mark.prove),
        pytest.param("text", 10, marks=pytest.mark.prove),
        pytest.param("lm", 10, marks=pytest.mark.prove),
        pytest.param("lm-lakes", 10, marks=pytest.mark.prove),
    ],
)
def test_a_killed_run_resumes_to_the_same_end(runs, world, kills, tmp_path):
    if world == "sb3":
        pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mapf-frozenlake[sb3]'")
    if world.startswith("lm"):
        pytest.importorskip("transformers", reason="needs transformers: pip install 'mapf-frozenlake[grpo]'")
    spec, log = specs()[world], tmp_path / "operations"
    undisturbed = tmp_path / "undisturbed" / "run"  # its folder's name stands in the reports
    undisturbed.parent.mkdir()
    runs.run(
        tmp_path / "warm", spec, here=world in ("lakes", "gym", "text")
    )  # a process that has trained with torch cannot be forked
    ended = runs.run(undisturbed, spec, log=str(log))
    assert ended["code"] == 0
    expected, operations = outcome(undisturbed), len(log.read_text().splitlines())
    draw = random.Random(f"{world} {kills}")
    for number in range(kills):
        place = tmp_path / f"kill-{number}"
        if number % 2:
            folder = killed_at_a_time(runs, spec, place, ended["seconds"] * draw.uniform(0.1, 0.7))
        else:
            folder = place / "run"
            place.mkdir()
            assert runs.run(folder, spec, kill_at=draw.randrange(operations))["code"] == KILLED
        if (folder / "run.json").exists():
            for stage in RunLog.open(folder).state.stages:
                stage.chosen, stage.metrics(), stage.episodes(), stage.report, stage.trained_on
        assert runs.run(folder, spec)["code"] == 0
        assert outcome(folder) == expected
