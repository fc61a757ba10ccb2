"""A new reward and a new layer of the observation: one entry in a table and one kernel each, and nothing anywhere else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from mapf_frozenlake.kernel_cache import PACKAGE

REWARD = """
@subkernel
def _pay_goals(state, e, success):
    on_goals = 0
    for i in range(state.episode[e].num_agents):
        on_goals += state.distance[e, i, state.cells[e, i]] == 0
    return _pay_all(state, e, 0.25 * on_goals)


"""
REWARD_ENTRY = """
    "on-goals": Reward("a quarter for each agent on its goal", _pay_goals, needs_distance=True),
"""
LAYER = """

@subkernel
def see_anybody(state, e, i, sight, out, at):
    corner = state.cells[e, i] - (sight.window // 2) * (state.stride + 1)
    for k in range(sight.window * sight.window):
        cell = corner + k // sight.window * state.stride + k % sight.window
        out[at + k] = sight.one if state.occupant[e, cell] > 0 else 0
"""
LAYER_ENTRY = """
        Layer({"anybody": "1: an agent"}, WINDOW, observe.see_anybody),
"""
PLAYED = """
import json
import numpy as np
import mapf_frozenlake as mfl
from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.text.rewards import plan_reward

config = LakeConfig.single(5, 3, hole_ratio=0.0, reward="on-goals")
batch = mfl.LakeBatch(config, 16, window=3, pool_size=64, certify="reachable")
batch.seed(np.arange(16))
batch.reset()
paid, rng = [], np.random.default_rng(0)
for _ in range(20):
    result = batch.step(rng.integers(0, 5, (16, 3)))
    planes, features = batch.layout.split(result.observation)
    somebody = planes[:, :, batch.layout.planes.index("others")] > 0
    somebody[:, :, 1, 1] = True  # the agent itself
    np.testing.assert_array_equal(planes[:, :, batch.layout.planes.index("anybody")], somebody)
    np.testing.assert_array_equal(batch.layout.action_mask(result.observation) > 0, batch.action_masks())
    np.testing.assert_array_equal(features[..., 2], (batch.positions == batch.goals).all(-1))
    arrived = (batch.positions == batch.goals).all(-1).sum(axis=1)
    stepped = batch.step_count > 0
    np.testing.assert_array_equal(result.rewards, np.where(stepped, 0.25 * arrived, 0.0)[:, None].repeat(3, axis=1))
    np.testing.assert_array_equal(batch.team_reward, np.where(stepped, 0.25 * arrived, 0.0))
    paid.append(result.rewards.max())
reward = LakeConfig.model_json_schema()["properties"]["reward"]
lake = batch.instance()
try:
    plan_reward("on-goals", lake, [[], [], []], mfl.judge(lake, [[], [], []]))
except mfl.LakeError:
    print(json.dumps([max(paid), reward["enum"], reward["description"], mfl.__file__]))
"""


def insert(file: Path, before: str, text: str) -> None:
    written = file.read_text()
    assert written.count(before) == 1
    file.write_text(written.replace(before, text + before))


def test_a_reward_and_a_layer_are_added_by_one_entry_each(tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    rewards, layers, observe = (copy / "world" / f"{name}.py" for name in ("rewards", "layers", "observe"))
    insert(rewards, "# A new reward is one entry here", REWARD)
    insert(rewards, '    "legal": Reward(', REWARD_ENTRY)
    insert(layers, '        Layer(_each_action("mask"', LAYER_ENTRY)
    observe.write_text(observe.read_text() + LAYER)
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    run = subprocess.run(
        [sys.executable, "-c", PLAYED], env=environment | {"PYTHONPATH": str(copy.parent)}, cwd=tmp_path, text=True,
        capture_output=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    paid, names, description, file = json.loads(run.stdout)
    assert Path(file).parent == copy
    assert paid >= 0.5
    assert names == ["sparse", "progress", "shaped", "on-goals", "legal"]
    assert "on-goals: a quarter for each agent on its goal." in description
