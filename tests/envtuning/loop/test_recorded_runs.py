"""Runs of the `scripted` preset end as they did before the loop knew other worlds than lakes: compared number by number.

What the engineers answered then is answered again: engineers have become better since, and what is compared is the loop.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from engineers import Engineer, Proposal
from envtuning import loop
from envtuning.runs.log import RunLog
from envtuning.runs.spec import EngineerSpec, Fade, RunSpec, load_spec
from envtuning.runs.transitions import Reached, Spent
from envtuning.worlds.episodes import Episode
from mapf_frozenlake import LakeConfig

RECORDED = json.loads(gzip.decompress((Path(__file__).parents[1] / "fixtures" / "scripted.json.gz").read_bytes()))
CALLED_NOW = {"learnability": "half-success", "bandit": "progress-share"}
RENAMED = {"own_config_results": "training_results"}
SAME = ("config", "results", "own_config_results", "failure_cases", "behaviour", "environment_stats", "incidents")


def spec_of(name: str) -> RunSpec:
    base = load_spec("scripted")
    if name == "rules-and-hints":
        stages = (
            base.stages[0].model_copy(update={"fade": Fade(knob="hint_strength", over=0.5), "redraw": True}),
            base.stages[1].model_copy(update={"advance_when": Reached(value=0.3)}),
            base.stages[2].model_copy(update={"advance_when": Spent(amount=3000)}),
        )
        return base.model_copy(update={"seed": 3, "stages": stages, "engineer": EngineerSpec(name="rules")})
    engineer, _, seed = name.rpartition("-")
    return base.model_copy(
        update={"seed": int(seed), "engineer": EngineerSpec(name=CALLED_NOW.get(engineer, engineer))}
    )


def as_then(episode: Episode) -> dict:
    """An episode in the form of that time."""
    optimal, gap = episode.metrics.get("optimal_rate"), episode.metrics.get("makespan_gap")
    return {
        "case": episode.case,
        "size": int(episode.slice),
        "moves": episode.trace["moves"],
        "steps": episode.cost["env_steps"],
        "valid": bool(episode.metrics["valid_rate"]),
        "optimal": None if optimal is None else bool(optimal),
        "failure": episode.failure,
        "gap": None if gap is None else int(gap),
        "note": episode.note,
    }


def drawn_as_then(report: dict, then: dict) -> dict:
    """How much there was of each slice was the probe's at that time, and is training's now."""
    trained = {row["name"]: row["episodes"] for row in report["training_results"]}
    for name, row in report["environment_stats"].items():
        if name in trained:
            assert row.pop("episodes") == trained[name]
            assert row["share"] == trained[name] / sum(trained.values())
            row["share"] = then[name]["share"]
    return report["environment_stats"]


def behaviour_as_then(report: dict, then: dict) -> dict:
    """What was told at that time; splits were part of it, and idle steps were called waits."""
    found = {}
    for piece, row in report["behaviour"].items():
        parts = {
            f"valid_where_{name}": part["succeeded"] / part["episodes"]
            for name, part in report["splits"].get(piece, {}).items()
        }
        named = {"waits": row["idle_steps"], **row, **{name: round(rate, 3) for name, rate in parts.items()}}
        found[piece] = {name: named[name] for name in then[piece]}
    return found


def compare(run: RunLog, then: dict) -> None:
    for stage, old in zip(run.state.done, then["stages"], strict=True):
        done, report = stage.done, stage.report.model_dump(mode="json")
        chosen = stage.chosen.model_dump(mode="json", exclude={"proposal": {"usage"}})
        assert run.plan.spec.stage(stage.number).name == old["config"]["name"]
        assert {name: chosen[name] for name in ("config", "engineer")} == {
            name: old["config"][name] for name in ("config", "engineer")
        }
        if stage.number:  # an answer was then kept with the stage that it was about
            answer = then["stages"][stage.number - 1]["answer"]
            assert {name: chosen[name] for name in answer} == answer
        report["behaviour"] = behaviour_as_then(report, old["report"]["behaviour"])
        report["environment_stats"] = drawn_as_then(report, old["report"]["environment_stats"])
        assert {name: report[name] for name in SAME} == {name: old["report"][RENAMED.get(name, name)] for name in SAME}
        assert done.reason == old["done"]["reason"]
        assert done.metrics == old["done"]["metrics"]
        assert (done.spent["env_steps"], done.trained["env_steps"], done.validated["env_steps"], done.attempts) == (
            old["done"]["env_steps"], old["done"]["train_steps"], old["done"]["validation_steps"], old["done"]["attempts"]
        )  # fmt: skip
        lines = [{name: value for name, value in line.items() if name != "outcomes"} for line in stage.metrics()]
        assert lines == old["metrics"]
        without_makespan = [{key: value for key, value in one.items() if key != "makespan"} for one in old["episodes"]]
        assert [as_then(episode) for episode in stage.episodes()] == without_makespan
    assert run.state.test.model_dump(mode="json") == then["test"]


class AsThen(Engineer):
    """Answers each report with what was answered then."""

    name = "as then"

    def __init__(self, stages: list[dict]) -> None:
        self.stages = stages

    def propose(self, report, current, editable=None):
        return Proposal[LakeConfig].model_validate(self.stages[report.stage]["answer"]["proposal"])


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_a_run_ends_as_it_did(name, tmp_path, monkeypatch):
    stages = RECORDED[name]["stages"]
    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: AsThen(stages))
    compare(loop.start(spec_of(name), tmp_path / "run"), RECORDED[name])
