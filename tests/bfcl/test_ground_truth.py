"""Ground truth through the environment, and our verdicts against the official checker's; both versions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.bfcl import agreement, ground_truth

ROOT = Path(__file__).parents[2]
FASTEST_KNOWN_FLOOR = (
    250  # episodes per CPU second; 500 on an idle machine of the project's kind, half of it on a busy one
)


def table(name: str, version: str) -> dict:
    """A table of the other version, made in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bfcl", name, "--version", version, "--no-record", "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)


def is_solved(figures: dict) -> None:
    assert figures["tasks"] == 800
    assert figures["solved"] == figures["progress_1"] == 1600  # two shuffled passes in one process
    assert figures["episodes_per_cpu_second"] > FASTEST_KNOWN_FLOOR


def agrees(figures: dict) -> None:
    assert figures["disagreements"] == []
    assert figures["departed"] == 0
    assert len(figures["official_verdicts"]) == 5  # solved, and each of the four ways to fail
    assert min(figures["official_verdicts"].values()) >= 0.05 * figures["trajectories"]


def test_v4_ground_truth_is_solved_and_paid(v4):
    is_solved(ground_truth.run("v4"))


def test_v3_ground_truth_is_solved_and_paid(v3_paper):
    is_solved(table("ground-truth", "v3-paper"))


def test_v4_verdicts_are_the_official_ones(v4):
    agrees(agreement.run("v4", n=300))


@pytest.mark.prove
@pytest.mark.parametrize("version", ["v4", "v3-paper"])
def test_2000_verdicts_are_the_official_ones(v4, v3_paper, version):
    figures = table("agreement", version)
    assert figures["trajectories"] == 2_000
    agrees(figures)
