"""Transitions are pure functions of the history: what they decide, why, and that they stay in step with brute arithmetic."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from envtuning.runs.transitions import (
    All,
    AnyOf,
    Converged,
    GradNormStable,
    History,
    Reached,
    Rule,
    Spent,
)

CONVERGED_AND_STABLE = All(rules=(Converged(), GradNormStable()))  # Environment Tuning's


def history(*, valid=(), norms=(), steps=0) -> History:
    return History(
        iterations=[{"grad_norm": value} for value in norms],
        validations=[{"valid_rate": value} for value in valid],
        spent=steps,
        objective="valid_rate",
    )


@pytest.mark.parametrize(
    ("valid", "advance"),
    [
        ([], False),
        ([0.5], False),  # one window is no comparison
        ([0.5, 0.5, 0.5], False),
        ([0.2, 0.3, 0.5, 0.6], False),
        ([0.5, 0.6, 0.55, 0.56], True),
        ([0.9, 0.9, 0.1, 0.1], True),  # falling is not rising
        ([0.0, 0.1, 0.5, 0.5, 0.5, 0.5], True),  # only the last two windows count
    ],
)
def test_validation_has_converged_when_the_last_window_is_hardly_above_the_one_before(valid, advance):
    decision = Converged(window=2, min_gain=0.02).decide(history(valid=valid))
    assert decision.advance is advance
    assert "valid_rate" in decision.reason


def test_two_windows_of_two_validations_are_compared_by_default():
    assert not Converged().decide(history(valid=[0.5] * 3)).advance
    assert Converged().decide(history(valid=[0.5] * 4)).advance


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.integers(1, 4), st.floats(0, 0.5))
def test_converged_agrees_with_the_means_of_the_two_windows(values, window, min_gain):
    decision = Converged(window=window, min_gain=min_gain).decide(history(valid=values))
    if len(values) < 2 * window:
        assert not decision.advance
    else:
        tail = values[len(values) - 2 * window :]
        gain = sum(tail[window:]) / window - sum(tail[:window]) / window
        if abs(gain - min_gain) > 1e-9:
            assert decision.advance == (gain < min_gain)


def test_healthy_gradient_norms_are_stable_and_spikes_trends_and_short_histories_are_not():
    healthy = [1.0, 1.2, 0.8, 1.1, 0.9, 1.25, 0.75, 1.0, 1.15, 0.85]  # variation 0.16
    assert GradNormStable().decide(history(norms=healthy)).advance
    assert not GradNormStable().decide(history(norms=healthy[:9])).advance
    assert not GradNormStable().decide(history(norms=[*healthy[:9], 8.0])).advance
    falling = [2.0, 1.9, 1.8, 1.7, 1.6, 1.2, 1.1, 1.0, 0.9, 0.8]  # little scatter, much drift
    assert statistics.pstdev(falling) / statistics.fmean(falling) < 0.45
    assert not GradNormStable().decide(history(norms=falling)).advance


@given(st.lists(st.floats(0.5, 2), min_size=10, max_size=30), st.integers(-8, 8))
def test_gradient_stability_does_not_depend_on_the_unit(norms, exponent):
    plain = GradNormStable().decide(history(norms=norms))
    scaled = GradNormStable().decide(history(norms=[value * 2.0**exponent for value in norms]))  # exact in floats
    assert plain == scaled


def test_a_gradient_of_zero_is_stable_and_says_that_nothing_is_left():
    decision = GradNormStable().decide(history(norms=[0.0] * 10))
    assert decision.advance
    assert "nothing is left to learn" in decision.reason


def test_iterations_without_a_norm_are_left_out():
    entries = History(iterations=[{"success_rate": 0.5}] * 20 + [{"grad_norm": 1.0}] * 9)
    assert not GradNormStable().decide(entries).advance


def test_environment_tunings_rule_needs_both_and_names_what_holds_it_back():
    stable, rising = [1.0] * 10, [0.1, 0.1, 0.6, 0.6]
    decision = CONVERGED_AND_STABLE.decide(history(valid=rising, norms=stable))
    assert not decision.advance
    assert "still rises" in decision.reason
    assert "gradient" not in decision.reason
    assert CONVERGED_AND_STABLE.decide(history(valid=[0.6] * 4, norms=stable)).advance


@given(st.booleans(), st.booleans())
def test_all_and_any_are_conjunction_and_disjunction(first, second):
    entries = history(valid=[0.5], steps=100)
    rules = (Reached(value=0.4 if first else 0.6), Spent(amount=100 if second else 101))
    assert All(rules=rules).decide(entries).advance == (first and second)
    assert AnyOf(rules=rules).decide(entries).advance == (first or second)


def test_reached_looks_at_the_latest_validation_only():
    assert not Reached(value=0.5).decide(history(valid=[0.9, 0.4])).advance
    assert Reached(value=0.5).decide(history(valid=[0.4, 0.5])).advance
    assert not Reached(value=0.0).decide(history()).advance


def test_deciding_changes_nothing_and_repeats():
    entries = history(valid=[0.5] * 4, norms=[1.0] * 10, steps=7)
    before = repr(entries)
    assert CONVERGED_AND_STABLE.decide(entries) == CONVERGED_AND_STABLE.decide(entries)
    assert repr(entries) == before


def test_rules_survive_json_and_unknown_ones_are_refused():
    adapter = TypeAdapter(Rule)
    rule = AnyOf(rules=(CONVERGED_AND_STABLE, Reached(metric="optimal_rate", value=0.9), Spent(amount=10)))
    assert adapter.validate_json(adapter.dump_json(rule)) == rule
    with pytest.raises(ValidationError, match="rule"):
        adapter.validate_python({"rule": "moonphase"})


def two_metrics(**values) -> History:
    """Validations with two rates each, by name."""
    lists = [[(name, value) for value in series] for name, series in values.items()]
    return History(objective="valid_rate", validations=[dict(entry) for entry in zip(*lists, strict=True)])


def test_a_rule_with_a_metric_of_its_own_looks_at_that_one_and_without_at_the_objective():
    entries = two_metrics(valid_rate=[0.1, 0.2, 0.6, 0.7], optimal_rate=[0.5, 0.5, 0.5, 0.5])
    assert not Converged(window=2).decide(entries).advance
    assert Converged(window=2, metric="optimal_rate").decide(entries).advance
    assert Reached(value=0.6).decide(entries).advance
    assert not Reached(value=0.6, metric="optimal_rate").decide(entries).advance
    entries.objective = "optimal_rate"
    assert Converged(window=2).decide(entries).advance
    assert not Reached(value=0.6).decide(entries).advance
    assert Reached(value=0.6, metric="valid_rate").decide(entries).advance


def test_validations_without_the_metric_are_passed_over():
    entries = History(
        objective="valid_rate", validations=[{"valid_rate": 0.5}, {"other": 1.0}, {"valid_rate": 0.5}, {"other": 0.0}]
    )
    assert Converged(window=1).decide(entries).advance
    assert Reached(value=0.5).decide(entries).advance


def test_gradient_norms_are_judged_by_the_last_window_and_no_more():
    calm, wild = [1.0] * 10, [9.0, 0.1] * 5
    assert GradNormStable().decide(history(norms=wild + calm)).advance
    assert not GradNormStable().decide(history(norms=calm + wild)).advance
    assert not GradNormStable().decide(history(norms=[*calm, 9.0])).advance  # the newest counts


def test_scatter_alone_and_drift_alone_make_a_gradient_unstable():
    scattered = [0.1, 1.9] * 6  # variation .9; both halves have the same mean
    assert not GradNormStable(window=12, max_drift=9.0).decide(history(norms=scattered)).advance
    assert GradNormStable(window=12, max_variation=0.91).decide(history(norms=scattered)).advance
    drifting = [1.2] * 5 + [0.9] * 5  # variation .14, drift .29
    assert not GradNormStable(max_variation=9.0).decide(history(norms=drifting)).advance
    assert GradNormStable(max_drift=0.3).decide(history(norms=drifting)).advance


def test_a_rule_says_which_training_metrics_it_cannot_do_without():
    norms = GradNormStable()
    assert norms.needs() == {"grad_norm"}
    assert All(rules=(norms, Spent(amount=1))).needs() == {"grad_norm"}
    assert AnyOf(rules=(norms, Spent(amount=1))).needs() == frozenset()
    assert AnyOf(rules=(norms, All(rules=(norms,)))).needs() == {"grad_norm"}


@pytest.mark.parametrize(
    ("rule", "entries", "advance"),
    [
        (Converged(window=1, min_gain=0.25), history(valid=[0.5, 0.75]), True),  # at most this much
        (Converged(window=1, min_gain=0.25), history(valid=[0.5, 0.875]), False),
        (GradNormStable(max_variation=0.5, max_drift=9.0), history(norms=[0.5, 1.5] * 5), True),
        (GradNormStable(max_variation=9.0, max_drift=0.5), history(norms=[1.25] * 5 + [0.75] * 5), True),
        # Halves are compared, not thirds: both have a mean of 1.2.
        (GradNormStable(max_drift=0.1), history(norms=[1.0] * 3 + [1.5] * 2 + [1.2] * 5), True),
        (Reached(value=0.5), history(valid=[0.5]), True),
        (Spent(amount=7), history(steps=7), True),
        (Spent(amount=1), History(), False),
    ],
)
def test_a_bound_itself_counts_as_met(rule, entries, advance):
    assert rule.decide(entries).advance is advance


def test_what_a_rule_asks_for_where_the_file_does_not_say():
    assert Converged().model_dump() == {
        "rule": "converged",
        "on": "validation",
        "metric": None,
        "window": 2,
        "min_gain": 0.02,
    }
    norms = {"rule": "grad_norm_stable", "window": 10, "max_variation": 0.45, "max_drift": 0.25}
    assert GradNormStable().model_dump() == norms


@pytest.mark.parametrize(
    ("lowest", "below"),
    [
        ({"rule": "converged", "window": 1}, {"window": 0}),
        ({"rule": "converged", "min_gain": 0.0}, {"min_gain": -0.01}),
        ({"rule": "grad_norm_stable", "window": 4}, {"window": 3}),
        ({"rule": "grad_norm_stable", "max_variation": 0.01}, {"max_variation": 0.0}),
        ({"rule": "grad_norm_stable", "max_drift": 0.01}, {"max_drift": 0.0}),
        ({"rule": "spent", "amount": 1}, {"amount": 0}),
        ({"rule": "all", "rules": [{"rule": "spent", "amount": 1}]}, {"rules": []}),
        ({"rule": "any", "rules": [{"rule": "spent", "amount": 1}]}, {"rules": []}),
        ({"rule": "reached", "value": 0.5}, {"valeu": 0.5}),
    ],
)
def test_a_rule_out_of_bounds_is_refused_in_one_fault_and_at_its_bound_it_is_taken(lowest, below):
    adapter = TypeAdapter(Rule)
    rule = adapter.validate_python(lowest)
    with pytest.raises(ValidationError, match="frozen"):
        rule.rule = "other"
    with pytest.raises(ValidationError) as refused:
        adapter.validate_python(lowest | below)
    assert refused.value.error_count() == 1  # of the rule that was named, not of each rule that it is not
