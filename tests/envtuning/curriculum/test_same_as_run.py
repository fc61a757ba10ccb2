"""An engineer in a user's own script and in ``envtuning run`` proposes the same, if training shows the same."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from envtuning import EngineerCurriculum, run
from envtuning.runs.spec import load_spec

SPEC = {
    "world": "lakes",
    "target": {"slices": {3: {}, 4: {}, 5: {}}, "num_agents": 1, "reward": "shaped"},
    "stages": [{"config": {"slices": {3: {}, 4: {}, 5: {}}, "num_agents": 1, "reward": "shaped"}, "budget": 4_000}] + [{"budget": 4_000}] * 4,
    "trainee": {"kind": "sb3", "options": {"num_envs": 8, "n_steps": 32, "batch_size": 64, "n_epochs": 4, "learning_rate": 1e-3}},
    "editable": ["slices.*.share"],
    "suites": {"validate": "last", "validation_per_slice": 5, "test_per_slice": 5, "probe_per_slice": 0},
    "guard": {"max_drop": None},
    "seed": 5,
}  # fmt: skip


@pytest.mark.parametrize("engineer", ["rules", "learnability"])
def test_the_same_outcomes_give_the_same_proposals(tmp_path, engineer):
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    (tmp_path / "it.yaml").write_text(yaml.safe_dump(SPEC | {"engineer": engineer}))
    log = run(load_spec(tmp_path / "it.yaml"), tmp_path / "run")
    stages = log.state.stages
    lines = [
        [one for line in (stage.path / "metrics.jsonl").read_text().splitlines() if (one := json.loads(line))["kind"] == "iteration"]
        for stage in stages
    ]  # fmt: skip
    first = stages[0].trained_on
    curriculum = EngineerCurriculum(
        engineer, first, target=log.plan.target, every=1_000_000, unit="iterations", editable=SPEC["editable"],
        max_questions=len(stages) - 1, seed=5,
    )  # fmt: skip
    for iterations in lines[:-1]:
        curriculum.every = len(iterations)
        for one in iterations:
            for name, counts in one["outcomes"]["first"].items():
                episodes, won = counts["episodes"], counts.get("successes", 0)
                rest = (counts.get("score_sum", 0.0) - won) / max(1, episodes - won)
                success = np.arange(episodes) < won
                curriculum.observe_many([name] * episodes, success, np.where(success, 1.0, np.clip(rest, 0, 1)))
            curriculum.advance(iterations=1)
            curriculum.next()
    proposed = [stage.trained_on for stage in stages[1:]]
    assert [proposal.config for proposal in curriculum.proposals] == proposed
    assert len({config.model_dump_json() for config in proposed}) >= 3
    assert curriculum.report.rounds_left == 0
