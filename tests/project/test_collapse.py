"""The benchmark of collapse: one long stage in pieces, and the rule of what a collapse is, on histories with a known end."""

from pathlib import Path

import pytest

from benchmarks.collapse import BETAS, PIECE, STEPS, collapsed_at, history, row, spec_of, table
from envtuning.loop.run import start
from envtuning.runs.spec import load_spec
from tests.bfcl.test_language import WholeBatches


def test_the_weights_differ_in_nothing_else_and_train_on_the_last_stage_alone():
    specs = [spec_of(beta, Path("model")) for beta in BETAS]
    last = load_spec("tools-in-miniature").stages[-1]
    for beta, spec in zip(BETAS, specs):
        assert spec.trainee.options["grpo"]["beta"] == beta
        assert all(stage.config == last.config for stage in spec.stages)
        assert len(spec.stages) == STEPS / PIECE
    assert all(spec.model_copy(update={"trainee": specs[0].trainee}) == specs[0] for spec in specs)


def steps(rewards, entropy=(1.0,), norm=(1.0,)):
    def at(values, place):
        return values[min(place, len(values) - 1)]

    return [
        {"reward": reward, "entropy": at(entropy, place), "grad_norm": at(norm, place)}
        for place, reward in enumerate(rewards)
    ]


@pytest.mark.parametrize(
    ("given", "at"),
    [
        (steps([0.4] * 60), None),
        (steps([0.4] * 5), None),  # too few to tell
        (steps([0.1] * 10 + [0.4] * 30), None),  # rises
        (steps([0.4] * 20 + [0.0] * 20), 26),  # four of ten are left: .16 is below a half
        (steps([0.4] * 20 + [0.25] * 40), None),  # falls, by less than half
        (steps([0.4] * 60, [1.0] * 30 + [0.05], [1.0] * 30 + [9.0]), 35),  # five steps without entropy
        (steps([0.4] * 60, [1.0] * 30 + [0.05]), None),  # learnt: the gradient is calm
    ],
)
def test_the_first_step_of_a_collapse(given, at):
    assert collapsed_at(given) == at


class Steps(WholeBatches):
    """Whole batches, told one by one, with what the table shows."""

    def train(self, config, budget, *, seed, on_iteration):
        count = -(-budget // self.batch)
        for _ in range(count):
            outcomes = {str(next(iter(config.slices))): {"episodes": self.batch}}
            on_iteration(
                {
                    "samples": self.batch,
                    "loss": 0.0,
                    "grad_norm": 1.0,
                    "reward": 0.5,
                    "entropy": 1.0,
                    "outcomes": outcomes,
                }
            )
        return {"samples": count * self.batch}


def test_pieces_are_ten_steps_each_and_the_row_has_all_of_them(tmp_path, monkeypatch):
    from envtuning.trainees import KINDS, Known
    from tests.bfcl.conftest import need

    need("v4")
    monkeypatch.setitem(KINDS, "grpo", Known(f"{__name__}:Steps", "replies"))
    (tmp_path / "model").mkdir()
    run = start(spec_of(0.1, tmp_path / "model", steps=2 * PIECE), tmp_path / "run")
    assert len(history(run)) == 2 * PIECE
    found = row(0.1, run)
    assert found["collapsed at"] is None
    assert len(found["reward"]) == found["steps"] == 2 * PIECE
    assert table({"rows": [found]}).splitlines()[1].split()[:4] == ["0.1", "20", "not", "seen"]
