"""Sums of outcomes by slice, against plain loops over lists of outcomes."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from pydantic import ValidationError

from engineers.report import wilson
from envtuning.outcomes import Arriving, Outcome, Tally, further_replies, slice_results, total

NAMES = ("9", "10", "first", "episodes")  # two of them are also words of the stored form


def drawn(seed: int, count: int) -> list[Outcome]:
    """Scores are multiples of 1/8, so that sums of floats are exact in any order."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        success = rng.random() < 0.4
        failure = "" if success else rng.choice(("hole", "conflict", ""))
        found.append(Outcome(rng.choice(NAMES), success, rng.randrange(9) / 8, failure, rng.random() < 0.3))
    return found


def tally_of(outcomes):
    tally = Tally()
    for outcome in outcomes:
        tally.observe(outcome)
    return tally


def expected(outcomes, name):
    """A slice's row, counted from the list."""
    fresh = [one for one in outcomes if one.slice == name and not one.repeat]
    kinds = sorted({one.failure for one in fresh if one.failure})
    return {
        "episodes": len(fresh),
        "succeeded": sum(one.success for one in fresh),
        "score": sum(Fraction(one.score) for one in fresh) / len(fresh) if fresh else None,
        "failures": {kind: [one.failure for one in fresh].count(kind) for kind in kinds},
    }


def test_rows_are_those_of_a_count_by_hand_with_halves_and_repeats_apart():
    stretches = [drawn(seed, 40) for seed in range(5)]
    rows = {row.name: row for row in slice_results([tally_of(part) for part in stretches], "valid_rate")}
    assert list(rows) == ["9", "10", "episodes", "first"]
    everything = [*chain(*stretches)]
    for name, row in rows.items():
        want = expected(everything, name)
        assert (row.episodes, row.failures) == (want["episodes"], want["failures"])
        assert row.metrics == {"valid_rate": want["succeeded"] / want["episodes"], "score": float(want["score"])}
        for half, part in zip(row.halves, ([*chain(*stretches[:2])], [*chain(*stretches[2:])]), strict=True):
            counted = expected(part, name)
            assert (half.episodes, half.succeeded) == (counted["episodes"], counted["succeeded"])
            assert half.score == float(counted["score"])
        again = [one for one in everything if one.slice == name and one.repeat]
        assert (row.repeats.episodes, row.repeats.succeeded) == (len(again), sum(one.success for one in again))


def test_a_half_without_episodes_is_none_and_one_iteration_has_no_halves():
    early, late = tally_of([Outcome("a", True, 1.0)]), tally_of([Outcome("b", False, 0.5)])
    a, b = slice_results([early, late], "success_rate")
    assert a.halves[1] is None
    assert a.halves[0].model_dump() == {"episodes": 1, "succeeded": 1, "score": 1.0}
    assert b.halves[0] is None
    assert slice_results([early], "success_rate")[0].halves == []
    assert slice_results([], "success_rate") == []


def test_a_slice_that_was_only_repeated_has_the_rate_of_its_repeats():
    (row,) = slice_results([tally_of([Outcome("a", True, 1.0, repeat=True)])], "success_rate")
    assert (row.episodes, row.rate("success_rate"), row.score) == (1, 1.0, 1.0)
    assert (row.played, row.repeats, row.all_repeats) == (1, None, True), "counted once"
    assert row.model_dump()["all_repeats"]


def test_a_slice_with_a_first_visit_is_not_one_of_repeats_alone():
    first, again = Outcome("a", True, 1.0), Outcome("a", False, 0.0, repeat=True)
    (row,) = slice_results([tally_of([again]), tally_of([first])], "success_rate")
    assert (row.episodes, row.played, row.all_repeats) == (1, 2, False)
    assert "all_repeats" not in row.model_dump()


def test_arrays_count_as_single_outcomes_do():
    fresh = [one._replace(failure="", repeat=False) for one in drawn(1, 300)]
    many = Tally()
    many.observe_many(
        [o.slice for o in fresh], np.array([o.success for o in fresh]), np.array([o.score for o in fresh])
    )
    assert many == tally_of(fresh)
    without = Tally()
    without.observe_many([o.slice for o in fresh], [o.success for o in fresh])
    assert without == tally_of([one._replace(score=float(one.success)) for one in fresh])
    without.observe_many([], [], [])
    assert without.episodes == 300


@pytest.mark.parametrize("unnamed", ["", None])
def test_arrays_with_kinds_and_repeats_count_as_single_outcomes_do(unnamed):
    played = drawn(2, 300)
    many = Tally()
    for some in (played[:120], played[120:], []):
        many.observe_many(
            [o.slice for o in some],
            [o.success for o in some],
            [o.score for o in some],
            failures=[o.failure or unnamed for o in some],
            repeats=[o.repeat for o in some],
        )
    single = tally_of(played)
    assert any(counts.failures for counts in single.first.values())
    assert any(counts.failures for counts in single.repeats.values())
    assert many.episodes == 300
    for part, expected in ((many.first, single.first), (many.repeats, single.repeats)):
        assert part.keys() == expected.keys()
        for name, counts in part.items():
            assert counts.model_dump() == expected[name].model_dump() | {
                "score_sum": pytest.approx(expected[name].score_sum)
            }


def test_a_success_has_no_kind_of_failure_in_arrays_either():
    tally = Tally()
    tally.observe_many(["a", "a"], [True, False], failures=["hole", "hole"])
    assert dict(tally.first["a"].failures) == {"hole": 1}


@pytest.mark.parametrize("column", [list, np.array, lambda names: np.array(names, object)])
@pytest.mark.parametrize("name", [str, int])
def test_outcomes_that_arrive_in_columns_of_any_kind_count_as_single_ones_do(column, name):
    rng, arriving, single = np.random.default_rng(3), Arriving(), Tally()
    for length in (7, 0, 40, 1):
        sizes, won, scores = rng.integers(2, 12, length), rng.random(length) < 0.5, rng.random(length)
        arriving.observe_many(column([name(size) for size in sizes.tolist()]), won, scores)
        for size, success, score in zip(sizes.tolist(), won.tolist(), scores.tolist()):
            single.observe(Outcome(str(size), success, score))
    assert arriving.episodes == 48
    read = arriving.read()
    assert read.model_dump() == {
        "first": {
            key: one | {"score_sum": pytest.approx(one["score_sum"])}
            for key, one in single.model_dump()["first"].items()
        },
        "repeats": {},
    }
    assert list(read.first) == sorted(single.first)


@pytest.mark.parametrize("kind", [np.array, list])
def test_columns_that_their_caller_fills_again_count_as_they_were(kind):
    names, won, scores, further = (kind(column) for column in (["a", "b"], [True, False], [1.0, 0.5], [False, True]))
    arriving = Arriving()
    arriving.observe_many(names, won, scores, further)
    names[0], won[1], scores[1], further[1] = "b", True, 1.0, False
    sums = arriving.read().first
    assert {name: (one.episodes, one.successes, one.score_sum, one.further) for name, one in sums.items()} == {
        "a": (1, 1, 1.0, 0),
        "b": (1, 0, 0.5, 1),
    }


@pytest.mark.parametrize("names", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("new", [True, False])
def test_names_count_by_what_they_say_whether_or_not_they_are_one_object(names, new):
    rng, arriving, single = np.random.default_rng(4), Arriving(), Tally()
    known = np.array([f"slice {number}" for number in range(names)], object)
    for _ in range(30):
        drawn, won = rng.integers(0, names, 400), rng.random(400) < 0.5
        column = np.array([f"slice {number}" for number in drawn], object) if new else known[drawn]
        arriving.observe_many(column, won)
        for number, success in zip(drawn.tolist(), won.tolist(), strict=True):
            single.observe(Outcome(f"slice {number}", success, float(success)))
    assert arriving.read().model_dump() == single.model_dump()


def test_json_keeps_every_bit_and_sums_repeat():
    rng = random.Random(3)
    parts = [
        tally_of([Outcome("a", False, rng.random(), "hole", rng.random() < 0.5) for _ in range(50)]) for _ in range(4)
    ]
    restored = [Tally.model_validate(json.loads(json.dumps(part.dump()))) for part in parts]
    assert restored == parts
    assert total(restored).dump() == total(parts).dump() == (parts[0] + parts[1] + parts[2] + parts[3]).dump()
    assert parts[0].episodes == 50, "a sum changes none of its parts"
    assert Tally.model_validate(tally_of(drawn(5, 90)).dump()) == tally_of(drawn(5, 90))


def test_a_dict_of_slices_alone_is_read():
    told = {"first": {"episodes": 4, "successes": 1, "score_sum": 2.5, "failures": {"hole": 2}}}
    read = Tally.model_validate(told)
    assert (read.first["first"].score_sum, read.repeats) == (2.5, {})
    assert Tally.model_validate({}) == Tally()


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"episodes": 2, "successes": 3}, "3 successes of 2 episodes: give at most one an episode"),
        ({"episodes": 2, "score_sum": 2.5}, "score_sum is 2.5 for 2 episodes: give at most 1 an episode"),
        ({"episodes": 2, "successes": 1, "failures": {"hole": 2}}, "of 1 failed episodes: count each failed one once"),
        ({"episodes": 2, "further": 3}, "further is 3 of 2 episodes: leave out a question's first reply"),
        ({"episodes": -1}, "greater than or equal to 0"),
        ({"episodes": 1, "score_sum": float("nan")}, "finite number"),
        ({"episodes": 1, "wins": 1}, "wins"),
    ],
)
def test_counts_that_do_not_fit_together_are_refused(counts, said):
    with pytest.raises(ValidationError, match=said):
        Tally.model_validate({"a": counts})


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_score_outside_of_0_to_1_is_refused(score):
    said = f"score={score} in the slice 'b': give the score of an episode as a number from 0 to 1"
    with pytest.raises(ValueError, match=said):
        Tally().observe(Outcome("b", False, score))
    with pytest.raises(ValueError, match=said):
        Tally().observe_many(["a", "b", "c"], [True, False, True], [1.0, score, 1.0])
    with pytest.raises(ValueError, match=said):
        Arriving().observe_many(["a", "b", "c"], [True, False, True], [1.0, score, 1.0])


@pytest.mark.parametrize("success", ["yes", None, 0.5, float("nan")])
def test_a_success_that_is_neither_true_nor_false_is_refused(success):
    for counted in (Tally(), Arriving()):
        with pytest.raises(ValueError, match=f"success={success!r} in the slice 'b': give True or False"):
            counted.observe(Outcome("b", success, 0.5))
    for fine in (True, np.True_, 1, 1.0):
        counted.observe(Outcome("b", fine, 0.5))
    assert counted.read().first["b"].successes == 4


def test_arrays_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 slices, 1 successes, 1 scores: give one of each for every episode"):
        Tally().observe_many(["a", "b"], [True])


def test_replies_sampled_together_are_told_apart_by_their_questions():
    assert further_replies(["a", "a", "b", "a", "b", "c"]) == [False, True, False, True, True, False]
    assert further_replies([]) == []
    assert further_replies([None, None, "a"]) == [False] * 3, "who tells no question has one of its own"


def groups(rng, chances, replies):
    """Of each question its replies; a question is answered right with its own chance."""
    return rng.random((len(chances), replies)) < np.asarray(chances)[:, None]


def tally_of_groups(won, name="a"):
    tally, further = Tally(), np.broadcast_to(np.arange(won.shape[1]) > 0, won.shape)
    tally.observe_many([name] * won.size, won.ravel(), further=further.ravel())
    return tally


def test_questions_are_counted_beside_episodes_however_they_are_observed():
    won = groups(np.random.default_rng(0), np.full(30, 0.5), 16)
    whole = tally_of_groups(won)
    single, arriving = Tally(), Arriving()
    for question in won:
        for number, success in enumerate(question.tolist()):
            single.observe(Outcome("a", success, float(success), further=number > 0))
        arriving.observe_many(["a"] * 16, question, further=np.arange(16) > 0)
    arriving.observe_many(["a", "b"], [True, True])  # each with a question of its own
    assert whole == single
    assert total([single, tally_of_groups(won[:2])]).first["a"].questions == 32
    read = arriving.read()
    assert (read.first["a"].episodes, read.first["a"].questions, read.first["b"].questions) == (481, 31, None)
    (row,) = slice_results([Tally.model_validate(json.loads(json.dumps(whole.dump())))], "success_rate")
    assert (row.episodes, row.questions, row.observations) == (480, 30, 30)


def test_a_question_of_its_own_for_each_episode_leaves_no_trace():
    """Nor do sums and rows from before: they say nothing of questions."""
    before = {"first": {"a": {"episodes": 4, "successes": 1, "score_sum": 2.5}}}
    assert Tally.model_validate(before).dump() == before
    (row,) = slice_results([Tally.model_validate(before)], "success_rate")
    assert (row.questions, row.observations) == (None, 4)
    assert "questions" not in row.model_dump()


def test_arrays_with_flags_for_too_few_episodes_are_refused():
    with pytest.raises(ValueError, match="2 slices, 2 successes, 2 scores, 1 further: give one of each"):
        Tally().observe_many(["a", "b"], [True, False], further=[True])
    with pytest.raises(ValueError, match="2 scores, 1 failures, 3 repeats: give one of each"):
        Tally().observe_many(["a", "b"], [True, False], failures=[None], repeats=[True] * 3)


@pytest.mark.parametrize("questions", [8, 30, 100])
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.1), (0.5, 0.5), (1.0, 2.0), (6.0, 2.0)])
def test_the_interval_of_grouped_replies_has_the_true_rate_as_often_as_it_says(questions, alpha, beta):
    """Questions differ in difficulty, by a Beta distribution, whose mean is the true rate."""
    rng, true = np.random.default_rng(1), alpha / (alpha + beta)
    by_question, by_episode = [], []
    for _ in range(400):
        tally = tally_of_groups(groups(rng, rng.beta(alpha, beta, questions), 16))
        (row,) = slice_results([tally], "success_rate")
        low, high = row.interval("success_rate")
        by_question.append(low <= true <= high)
        low, high = wilson(row.metrics["success_rate"], row.episodes)
        by_episode.append(low <= true <= high)
    assert np.mean(by_question) >= 0.9
    assert np.mean(by_episode) < np.mean(by_question)
    if alpha + beta <= 1:  # a question is nearly always answered in the same way
        assert np.mean(by_episode) < 0.6


def test_sixteen_replies_to_one_question_show_little():
    (row,) = slice_results([tally_of_groups(np.ones((1, 16), bool))], "success_rate")
    assert row.interval("success_rate") == wilson(1.0, 1)
    assert row.interval("success_rate")[0] < 0.25
