"""Stock RLlib as a trainee of somebody's own: the example keeps the loop's promises, learns, and runs by its place's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from envtuning.loop import start
from envtuning.runs.spec import load_spec
from envtuning.testing import check_trainee
from examples.own_world_mountain_car import HillsConfig, HillsWorld
from tests.lazily import needed

needed("ray", "torch", extra="rllib")

pytestmark = pytest.mark.ray

EXAMPLES = Path(__file__).parents[3] / "examples"
KIND = "examples.own_trainee_rllib:StockPPO"
SMALL = {"num_envs": 4, "train_batch_size_per_learner": 400, "minibatch_size": 100, "num_epochs": 1}
DOWNHILL = HillsConfig.model_validate({"hills": {40: {"power": 4.0}, 45: {"power": 4.0}}})


def test_it_keeps_what_the_loop_counts_on(ray_session):
    check_trainee(KIND, HillsWorld(), DOWNHILL, budget=400, per_slice=2, **SMALL)


@pytest.mark.prove
def test_a_run_trains_it_by_its_places_name(ray_session, tmp_path):
    changes = {"trainee.kind": KIND, "trainee.options": SMALL, "stages.0.budget": 3_000, "stages.1.budget": 3_000}
    changes |= {f"suites.{name}_per_slice": 2 for name in ("validation", "test", "probe")}
    spec = load_spec(EXAMPLES / "own_world_mountain_car.yaml", changes=changes).with_rounds(2)
    run = start(spec, tmp_path / "run")
    assert not run.state.incidents()
    first, second = run.state.done
    assert first.done.spent["env_steps"] > 400
    assert second.report.config != first.report.config


def test_it_is_short():
    """What a user writes to bring a trainer: the two classes and what they call."""
    lines = [line for line in (EXAMPLES / "own_trainee_rllib.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 80
