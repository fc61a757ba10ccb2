"""The gate's runs are kept: a command that was killed goes on, and ends as it would have ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lazily import Lazy, needed

needed("torch", extra="grpo")
ROOT = Path(__file__).parents[2]
gate = Lazy("benchmarks.gate")
gate_search = Lazy("benchmarks.gate_search")


MADE = """
import sys
from dataclasses import replace
from pathlib import Path
from benchmarks import gate

def made_below(folder):
    gate.KEPT = folder
    small = replace(gate.SLOW, name="small", slices=6, lacking=2, hopeless=2, stages=2, updates=3, pretrain=4)
    runs = [gate.Run(root, arm) for root in range(COUNT // 2) for arm in ("even", "failure")]
    return gate.rows(small, runs, side_by_side=1)
"""
COUNT = 8  # runs


def kept(folder: Path) -> int:
    path = folder / "runs.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def test_a_killed_command_goes_on_and_keeps_what_there_was(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.gate.KEPT", tmp_path)  # put back at the end
    names = {"COUNT": COUNT}
    exec(MADE, names)
    made_below = names["made_below"]
    whole = made_below(tmp_path / "whole")
    folder = tmp_path / "killed"
    code = f"COUNT = {COUNT}\n{MADE}\nmade_below(Path(sys.argv[1]))"
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=ROOT)
    while process.poll() is None and not kept(folder):
        time.sleep(0.001)
    process.kill()
    process.wait()
    had = kept(folder)
    assert 0 < had < COUNT
    with (folder / "runs.jsonl").open("a") as file:
        file.write('{"key": "cut o')
    again: list[int] = []
    played = gate.play
    monkeypatch.setattr("benchmarks.gate.play", lambda variant, runs: again.append(len(runs)) or played(variant, runs))
    assert made_below(folder) == whole
    assert sum(again) == COUNT - had
    assert kept(folder) == COUNT


@pytest.mark.parametrize("name", ["even", "shares", "warm-up", "blocks"])
def test_the_search_tries_all_that_the_gate_chooses_from(name):
    def written(configs):
        return {str(config) for config in configs}

    assert written(gate.OPEN[name][1]) <= written(gate_search.TRIED[name])
    assert written(gate.SEARCHED["searched"][1]) <= written(gate_search.TRIED["blocks"])
    assert not set(gate_search.ROOTS) & {*gate.TUNE, *gate.DEVELOP, *gate.FRESH}


def test_a_policys_own_entropy_reads_no_right_answer():
    torch = pytest.importorskip("torch")
    np = pytest.importorskip("numpy")
    variant = gate.replace(gate.SLOW, slices=6, lacking=2, hopeless=2)
    tasks = [gate.Tasks(variant, 0)]
    policies = gate.Policies(tasks, [0])

    def entropy():
        return gate.own_entropy(policies, tasks, 20, [np.random.default_rng(3)])[0]

    found = entropy()
    assert ((found > 0) & (found <= 1)).all()
    tasks[0].codes = (tasks[0].codes + 1) % variant.letters[0]
    tasks[0].mixes = tasks[0].mixes[:, ::-1]
    assert (entropy() == found).all()
    with torch.no_grad():
        policies.head[:] = 0  # every letter is as likely as any other
    assert entropy() == pytest.approx(1)
