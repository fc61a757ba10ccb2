"""What a report says of a stage's training: counts, levels, and curves of few points."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from envtuning.loop.attempt import Attempt
from envtuning.loop.report import bookkeeping, thinned
from tests.envtuning.counting_world import CountConfig


def ended(iterations=(), validations=(), unit: str = "env_steps", total: int | None = None, **changes) -> Attempt:
    """An attempt at stage 1 of a run of three stages."""
    plan = SimpleNamespace(world=SimpleNamespace(about=SimpleNamespace(objective="valid_rate")), unit=unit)
    session = SimpleNamespace(
        plan=plan,
        spec=SimpleNamespace(stages=(1, 2, 3), total=total),
        stage=SimpleNamespace(number=1),
        trainee=SimpleNamespace(late_rates=("entropy", "kl")),
    )
    spent = {"trained": {"env_steps": 70, "tokens": 5}, "validated": {"env_steps": 7, "episodes": 1}}
    measured = {"iterations": list(iterations), "validations": list(validations)}
    return Attempt(session=session, config=CountConfig(), reason="because", **(spent | measured | changes))


def told(*given, **changes) -> dict:
    return bookkeeping(ended(*given, **changes))


PLAIN = {
    "round": 1, "rounds": 3, "trained_env_steps": 70, "validated_env_steps": 7, "iterations": 0, "why_it_ended": "because"
}  # fmt: skip


def test_what_a_stage_spent_is_training_and_validation_unit_by_unit():
    assert ended().cost == {"env_steps": 77, "tokens": 5, "episodes": 1}


def test_counts_are_in_the_runs_unit_and_0_where_nothing_was_spent():
    assert told() == PLAIN
    found = told(trained={}, validated={}, unit="tokens")
    assert (found["trained_tokens"], found["validated_tokens"]) == (0, 0)
    assert "rounds" not in told(total=100)  # nobody knows how many there will be


def test_gradient_norms_are_told_by_their_level_and_variation():
    found = told([{"grad_norm": 1.0}, {"loss": 1.0}, {"grad_norm": 2.00005}])
    assert (found["iterations"], found["grad_norm"], found["grad_norm_variation"]) == (3, 1.5, 0.333)
    assert found["grad_norm_curve"] == [1.0, 2.0]
    assert told([{"grad_norm": 0.0}])["grad_norm_variation"] == 0.0


def test_what_is_counted_of_replies_is_the_mean_of_the_last_ten_iterations():
    iterations = [{"entropy": 9.0}] + [{"entropy": 1.0}] * 9 + [{}, {"entropy": 1.33333}]
    found = told(iterations)
    assert found["entropy"] == 1.0333
    assert "kl" not in found


@pytest.mark.parametrize(("count", "points"), [(1, 1), (20, 20), (21, 20), (400, 20)])
def test_a_curve_has_at_most_twenty_points(count, points):
    found = told([{"success_rate": 0.123456}] * count)
    assert found["success_rate_curve"] == [0.1235] * points


def test_validations_are_told_by_the_objective_alone():
    found = told(validations=[{"valid_rate": 0.123456}, {"other": 1.0}, {"valid_rate": 1.0}])
    assert found["valid_rate_curve"] == [0.1235, 1.0]
    assert "other_curve" not in found


def test_thinning_keeps_what_is_few_and_takes_means_of_equal_stretches_of_what_is_many():
    assert thinned([1, 2, 3], 3) == [1, 2, 3]
    assert thinned([1, 2, 3, 4], 2) == [1.5, 3.5]
    assert thinned([1, 2, 3, 4, 5], 2) == [2.0, 4.5]
