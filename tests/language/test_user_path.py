"""The path in docs/language.md, two steps of everything: pretrain, run, page; and the benchmarks' small parts."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from envtuning.cli import app
from envtuning.runs.log import RunLog
from envtuning.runs.spec import load_spec
from tests.lazily import needed

needed("trl", "llguidance", extra="grpo")

ROOT = Path(__file__).parents[2]
SMALL = {
    "trainee.options.torch_threads": 1,
    "trainee.options.grpo.per_device_train_batch_size": 8,
    "trainee.options.grpo.num_generations": 4,
    "trainee.options.grpo.max_completion_length": 16,
    "suites.validation_per_slice": 2,
    "suites.test_per_slice": 2,
    "suites.probe_per_slice": 1,
    "stages.0.budget": 20,
    "stages.1.budget": 20,
}


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_pages_commands_are_the_ones_that_exist():
    page = (ROOT / "docs" / "language.md").read_text()
    said = set(re.findall(r"^envtuning (\w+)", page, re.MULTILINE))
    assert said == {"weights", "presets", "pretrain", "run", "resume", "report", "evaluate"}
    for command in said:
        assert "--help" in invoke(command, "--help")


def test_from_nothing_to_a_report_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = invoke("pretrain", "models/miniature", "--for", "paper-in-miniature", "--samples", "512")
    assert re.search(r"model: models/miniature, taught in \d+ s", told)
    assert re.search(r"% valid rate on the 300 validation cases of paper-in-miniature, before any GRPO", told)
    again = CliRunner().invoke(app, ["pretrain", "models/miniature", "--samples", "1"])
    assert again.exit_code == 1
    assert "exists already" in again.output
    settings = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    out = invoke("run", "paper-in-miniature", "--engineer", "checkpoint", "--stages", "2", "--out", "runs/a", *settings)
    assert "report.html" in out
    run = RunLog.open("runs/a")
    assert run.state.test is not None
    assert run.state.stages[1].chosen.engineer == "checkpoint"
    page = Path("runs/a/report.html").read_text(encoding="utf-8")
    assert len(page) > 10_000
    assert "<summary>the reply</summary><pre>" in page
    assert "the reply: " in invoke("replay", "runs/a", "--stage", "0", "--seconds", "0")


def test_the_preset_takes_the_time_that_it_says():
    """Three rounds of 6,000 replies: what a run costs is bounded by its budget, validation included."""
    spec = load_spec("paper-in-miniature")
    assert spec.unit == "samples"
    assert spec.budget == 18_000
    assert len(spec.stages) == 3


def test_the_area_under_the_curve_is_the_chance_of_a_right_order():
    from benchmarks.introspection import auc

    rng = np.random.default_rng(0)
    scores, positive = rng.integers(0, 8, 60).tolist(), rng.random(60) < 0.4
    pairs = [(scores[a], scores[b]) for a, b in product(range(60), repeat=2) if positive[a] and not positive[b]]
    wins = np.mean([1.0 if high > low else 0.5 if high == low else 0.0 for high, low in pairs])
    assert auc(scores, positive) == pytest.approx(wins)
