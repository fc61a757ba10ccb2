"""A knob that neither the config nor the target sets stays open through a run: training and test draw alike."""

from __future__ import annotations

import pytest
import yaml

from envtuning import run
from envtuning.runs.spec import load_spec

SPEC = {
    "world": "lakes",
    "target": {"slices": {3: {"hole_ratio": 0.2}}, "num_agents": 2},
    "stages": [
        {"config": {"slices": {3: {"hole_ratio": 0.0}}, "num_agents": 2, "reward": "shaped"}, "budget": 3_000},
        {"budget": 3_000},
        {"budget": 3_000},
    ],
    "trainee": {"kind": "ppo", "options": {"num_envs": 16, "rollout": 16}},
    "engineer": "rules",
    "suites": {"validation_per_slice": 10, "test_per_slice": 10},
}


def test_rules_leaves_the_waits_open_that_nobody_asked_for(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "it.yaml").write_text(yaml.safe_dump(SPEC))
    log = run(load_spec(tmp_path / "it.yaml"), tmp_path / "run")
    configs = [stage.trained_on for stage in log.state.stages]
    assert len({config.slices[3].hole_ratio for config in configs}) >= 2  # the engineer was at work
    assert {config.slices[3].wait_ratio for config in configs} == {None}
