"""Played cases: grouped, averaged, counted, added up, and a few failures picked that show all there is."""

from __future__ import annotations

import pytest

from envtuning.worlds.episodes import Episode, by_slice, pooled, rates, slice_results, spread, total_cost


def episode(case, name, failure=None, **metrics):
    return Episode(case, name, failure, metrics, {"episodes": 1, "env_steps": case})


PLAYED = [
    episode(1, "10", "lost", won=0.0, speed=4.0),
    episode(2, "9", None, won=1.0, speed=8.0),
    episode(3, "10", "late", won=0.0),
    episode(4, "9", "lost", won=0.0, speed=3.0),
    episode(5, "10", None, won=1.0, speed=2.0),
    episode(6, "10", "late", won=0.0),
]


def test_slices_come_in_their_natural_order_with_the_means_of_what_is_known_and_their_failures():
    assert [(name, [one.case for one in group]) for name, group in by_slice(PLAYED).items()] == [
        ("9", [2, 4]), ("10", [1, 3, 5, 6])
    ]  # fmt: skip
    table = slice_results(PLAYED)
    assert [(row.name, row.episodes, row.metrics, list(row.failures.items())) for row in table] == [
        ("9", 2, {"won": 0.5, "speed": 5.5}, [("lost", 1)]),
        ("10", 4, {"won": 0.25, "speed": 3.0}, [("late", 2), ("lost", 1)]),
    ]
    assert rates(PLAYED) == pytest.approx({"won": 1 / 3, "speed": 4.25})
    assert [one.succeeded for one in PLAYED] == [False, True, False, False, True, False]


def test_a_pooled_rate_is_over_all_episodes_and_what_is_unknown_or_was_not_played_counts_nothing():
    table = slice_results(PLAYED)
    assert pooled(table, "won") == pytest.approx(1 / 3)
    assert pooled([], "won") == 0.0
    assert pooled([*table, table[0].model_copy(update={"metrics": {}, "episodes": 6})], "won") == pytest.approx(1 / 6)


def test_costs_are_added_up_by_unit():
    assert total_cost(PLAYED) == {"episodes": 6, "env_steps": 21}
    assert total_cost([]) == {}


@pytest.mark.parametrize(("count", "picked"), [(0, []), (1, [4]), (3, [4, 3, 1]), (4, [4, 3, 1, 6]), (9, [4, 3, 1, 6])])
def test_failures_are_picked_one_of_each_slice_and_kind_in_turn(count, picked):
    assert [one.case for one in spread(PLAYED, count)] == picked


def test_an_episode_comes_back_from_json():
    one = Episode(3, "9", "lost", {"won": 0.0}, {"episodes": 1}, trace={"actions": [1]}, note="why")
    assert Episode(**one.to_json()) == one
    assert Episode(3, "9", None, {}).to_json() == {
        "case": 3, "slice": "9", "failure": None, "trace": None, "note": None, "metrics": {}, "cost": {}
    }  # fmt: skip
