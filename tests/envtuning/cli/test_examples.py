"""The scripts in examples/ run as they stand, shortened; the training page's Python runs as pasted."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.ray
def test_own_rllib(ray_session):
    assert len(load("own_rllib").main(iterations=3)) == 3


@pytest.mark.ray
def test_own_rllib_engineer(ray_session):
    curriculum, restored = load("own_rllib_engineer").main(iterations=3)
    assert curriculum.proposals, "it was asked"
    assert restored is not curriculum
    assert restored.history[: curriculum.stage] == curriculum.history


@pytest.mark.slow
@pytest.mark.ray
def test_tune_engineers(ray_session, tmp_path):
    search = load("tune_engineers")
    results = search.main(out=str(tmp_path), engineers="rules", seeds=1, stages=2, concurrent=1)
    assert len(results) == 1
    assert results.num_errors == 0
    again = search.main(out=str(tmp_path), engineers="rules", seeds=1, stages=2, concurrent=1)
    assert {result.metrics["run"] for result in again} == {result.metrics["run"] for result in results}


@pytest.mark.ray
def test_a_search_tells_of_engineers_and_not_of_the_luckiest_seed():
    pytest.importorskip("ray", reason="needs Ray: pip install 'mapf-frozenlake[rllib]'")
    found = [("rules", 0.2), ("fixed", 0.5), ("rules", 0.9), ("fixed", 0.7)]
    trials = [{"valid_rate": rate, "config": {"engineer": name}} for name, rate in found]
    assert load("tune_engineers").by_engineer(trials) == [
        "fixed: 0.600 valid, the mean of 2 trials (0.500 to 0.700)",
        "rules: 0.550 valid, the mean of 2 trials (0.200 to 0.900)",
    ]


def shortly(monkeypatch):
    """PPO of Stable-Baselines3 and of RLlib train for no more than 2,048 and 512 steps, whatever they are asked for."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from stable_baselines3 import PPO

    learn, build = PPO.learn, PPOConfig.build_algo
    small = {"train_batch_size_per_learner": 512, "num_epochs": 2}
    monkeypatch.setattr(PPOConfig, "build_algo", lambda settings: build(settings.training(**small)))
    monkeypatch.setattr(PPO, "learn", lambda model, steps, **given: learn(model, min(steps, 2_048), **given))


@pytest.mark.slow
@pytest.mark.ray
@pytest.mark.parametrize("page", ["training.md", "trainees.md"])
def test_the_pages_python_runs_as_pasted(ray_session, page, monkeypatch):
    if page != "trainees.md":
        shortly(monkeypatch)
    text = (EXAMPLES.parent / "docs" / page).read_text()
    namespace: dict = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        if "GRPOTrainer" in block:
            continue  # it names a large model: tests/language/test_trl_doors.py runs it with a small one
        exec(compile(block, f"docs/{page}", "exec", dont_inherit=True), namespace)  # a reader has no __future__
    if page == "trainees.md":
        assert namespace["table"].overall.valid > 30  # percent; who learned nothing reaches almost no goal


def test_own_sb3():
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    assert load("own_sb3").main(steps=4_000, num_lakes=8) in {3, 4, 5}


def test_own_sb3_own_env():
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    curriculum = load("own_sb3_own_env").main(steps=16_000)
    assert curriculum.incidents == []
    assert curriculum.config.distance > 2  # the engineer has gone on from there
    assert curriculum.config.wind > 0


def test_own_cleanrl():
    pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")
    assert load("own_cleanrl").main(steps=150_000)["share/5"] > 0  # the engineer has gone on from 3×3


def test_own_cleanrl_goes_on_from_its_folder(tmp_path):
    pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")
    first = load("own_cleanrl").main(steps=30_000, folder=tmp_path)
    weights = (tmp_path / "agent.pt").read_bytes()
    assert first["stage"] >= 1
    then = load("own_cleanrl").main(steps=0, folder=tmp_path)  # only read and written again
    assert then == first
    assert (tmp_path / "agent.pt").read_bytes() == weights


@pytest.mark.parametrize("name", ["own_rllib", "own_sb3", "own_sb3_own_env", "own_cleanrl"])
def test_takes_about_five_lines(name):
    marked = [line for line in (EXAMPLES / f"{name}.py").read_text().splitlines() if "# ←" in line]
    assert 3 <= len(marked) <= 5
