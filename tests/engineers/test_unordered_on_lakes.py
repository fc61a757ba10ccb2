"""Where an order is declared, ``reader``, ``rising`` and ``steady`` answer as ``rules`` does: on random reports of lakes, and on all that are stored here."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

import engineers
from engineers import SliceResult, StageRecord, StageReport
from engineers.knobs import dump
from envtuning.runs.spec import load_spec
from mapf_frozenlake import LakeConfig

TESTS = Path(__file__).parents[1]
STUDIES = TESTS.parent / "benchmarks" / "preregistered"
FAILURES = ("hole", "conflict", "goal_missed", "illegal_move")


def answers(report: StageReport, current: BaseModel, editable: Any = None, **options: Any) -> list[dict[str, Any]]:
    """The engineers' configs, reasons and refusals; not their names."""
    told = [
        engineers.make(name, **options).propose(report, current, editable)
        for name in ("reader", "rising", "steady", "rules")
    ]
    return [proposal.model_dump(mode="json", exclude={"engineer"}) for proposal in told]


def alike(*asked: Any, **options: Any) -> bool:
    """Whether they answered the same; the value says whether they changed anything."""
    *others, rules = answers(*asked, **options)
    assert others == [rules] * 3
    return bool(rules["reasons"])


def rows(rng: random.Random, names: list[str]) -> list[SliceResult]:
    made = []
    for name in rng.sample(names, rng.randint(0, len(names))):
        metrics = {} if rng.random() < 0.1 else {"valid_rate": rng.choice([0.0, 1.0, rng.random()])}
        failures = {kind: rng.randint(0, 30) for kind in FAILURES if rng.random() < 0.5}
        made.append(SliceResult(name=name, episodes=rng.randint(0, 99), metrics=metrics, failures=failures))
    return made


def drawn_report(rng: random.Random, config: Any, target: dict[str, Any], names: list[str]) -> StageReport:
    """Of a run whose configs ``config()`` draws."""
    records = [
        StageRecord(
            stage=stage,
            config=config(),
            results=rows(rng, names),
            training_results=rows(rng, names),
            cost={"env_steps": rng.uniform(1, 9)} if rng.random() < 0.5 else {},
        )
        for stage in range(rng.randint(1, 6))
    ]
    last = records.pop()
    return StageReport(
        objective="valid_rate",
        target=target if rng.random() < 0.8 else {},
        rounds_left=rng.choice([None, 0, 1, 5]),
        history=records,
        **last.model_dump(exclude={"engineer", "training"}),
    )


def lake(rng: random.Random, sizes: list[int]) -> dict[str, Any]:
    shares = {size: rng.choice([0.0, rng.random()]) for size in sizes}
    shares[rng.choice(sizes)] = 1.0
    knobs = {
        size: {
            "share": share,
            "hole_ratio": rng.uniform(0, 0.5),
            "wait_ratio": rng.choice([None, rng.random()]),
            "min_distance": rng.randint(1, size),
        }
        for size, share in shares.items()
    }
    return dump(LakeConfig.model_validate({"slices": knobs, "num_agents": 2}))


@pytest.mark.parametrize("count", [60, pytest.param(2_000, marks=pytest.mark.prove)])
def test_on_random_reports_of_lakes(count):
    changed = 0
    for seed in range(count):
        rng = random.Random(seed)
        sizes = sorted(rng.sample(range(3, 11), rng.randint(1, 6)))
        report = drawn_report(
            rng, lambda rng=rng, sizes=sizes: lake(rng, sizes), lake(rng, sizes), list(map(str, sizes))
        )
        current = LakeConfig.model_validate(report.config)
        editable = rng.choice([None, ["*"], ["slices.*.hole_ratio"], ["slices.*.share"]])
        changed += alike(report, current, editable)
    assert changed > count / 2


class Climb(BaseModel):
    """A config without slices."""

    slope: float = Field(0.1, ge=0, le=1, description="Steepness.")
    wind: float = Field(0.0, ge=0, le=20, description="Wind.")
    ground: str = Field("grass", description="What is underfoot.")


def test_on_random_reports_of_a_config_that_has_neither_order_nor_slices():
    changed = 0
    for seed in range(60):
        rng = random.Random(seed)

        def climb(rng: random.Random = rng) -> dict[str, Any]:
            return {"slope": rng.random(), "wind": rng.uniform(0, 20), "ground": rng.choice(["grass", "sand"])}

        report = drawn_report(rng, climb, climb(), ["all", "steep"])
        changed += alike(report, Climb.model_validate(report.config))
    assert changed > 20


def of_recorded_runs() -> Iterator[StageReport]:
    """Of the preset `scripted`, under six engineers; what was not recorded is as the preset has it."""
    told = {"objective": "valid_rate", "target": dump(LakeConfig.model_validate(load_spec("scripted").target))}
    for run in json.loads(gzip.decompress((TESTS / "envtuning/fixtures/scripted.json.gz").read_bytes())).values():
        history: list[StageRecord] = []
        for stage, recorded in enumerate(run["stages"]):
            left = len(run["stages"]) - stage - 1
            report = StageReport(**recorded["report"], **told, stage=stage, history=history, rounds_left=left)
            yield report
            history = report.records()


def of_studies() -> Iterator[StageReport]:
    """The mean reports of development runs of `rules`, and one run's."""
    for path in sorted((STUDIES / "average").glob("*.json")):
        yield from map(StageReport.model_validate, json.loads(path.read_text())["reports"])
    yield StageReport.model_validate_json((STUDIES.parent / "prompts" / "lakes.json").read_text())


@pytest.mark.parametrize("stored", [of_recorded_runs, of_studies])
def test_on_the_reports_of_stored_runs(stored):
    told = [(report, LakeConfig.model_validate(report.config)) for report in stored()]
    space = {"slices.*.wait_ratio": (0.0, 1.0)}
    changed = sum(alike(*asked, space=space) for asked in told)
    assert changed > len(told) / 2
