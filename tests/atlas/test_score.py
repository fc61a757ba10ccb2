"""Engineers, good, bad and fake, come out where they should; reliability and agreement are what their formulas say."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from itertools import product
from statistics import fmean, stdev
from types import SimpleNamespace

import numpy as np
import pytest

import engineers
from engineers.model.answer_format import AnswerFormat
from engineers.model.chat import Completion
from engineers.model.engineer import ModelEngineer
from engineers.tiers import Tier
from envtuning.atlas.distance import Distances
from envtuning.atlas.menu import as_menu, menu_at
from envtuning.atlas.rows import (
    Nearness,
    Reliability,
    Row,
    above_open_loop,
    agreement,
    alpha,
    best_path,
    greedy,
    headroom,
    leaves,
    mean_path,
    references,
    reliability,
    row_of,
    same_entry,
)
from envtuning.atlas.walk import Chooser, Writer, player_of, walk
from envtuning.runs.plan import Plan


class Replies:
    """A chat that answers by a function of the question's schema and how often it was asked."""

    model = "fake"

    def __init__(self, answer):
        self.answer = answer

    def complete(self, messages, schema, *, max_tokens):
        return Completion(json.dumps({"reasons": [], "config": self.answer(messages, schema)}), 10, 5, 0.001)


def at_random(rng):
    def answer(messages, schema):
        [(knob, said)] = schema["properties"]["config"]["properties"].items()
        return {knob: rng.choice(said["enum"])}

    return answer


def model_chooser(answer):
    return Chooser(lambda tree, stage: ModelEngineer(Replies(answer), context="informed"))


def knowing(best):
    """A model that knows the way, and finds it on the menu by what the letters stand for."""

    class Knowing:
        name = "knowing"

        def step(self, tree, path):
            menu = menu_at(tree, path)
            letter = menu.letters[best[tree.seed][len(path)]]
            return model_chooser(lambda messages, schema: {"choice": letter}).step(tree, path)

    return Knowing()


@pytest.fixture(scope="module")
def distances(spec):
    return Distances(spec.plan.world)


def test_a_model_that_is_right_gets_the_best_and_one_at_random_the_mean(trees):
    best = {tree.seed: max(leaves(tree), key=lambda path: tree.tested[path]) for tree in trees}
    row = row_of("right", trees, knowing(best))
    assert row.paths == best
    assert row.values == {tree.seed: max(tree.tested[path] for path in leaves(tree)) for tree in trees}
    assert row.tokens == 15 * 2 * len(trees)
    assert row.cost == pytest.approx(0.001 * 2 * len(trees))
    rng = random.Random(0)
    means = [row_of("random", trees, model_chooser(at_random(rng))).success.mean for _ in range(30)]
    spread = np.std([tree.tested[path] for tree in trees for path in leaves(tree)])
    assert abs(fmean(means) - mean_path(trees).success.mean) < 4 * spread / np.sqrt(len(means) * len(trees))
    assert fmean(means) < row.success.mean


def test_references_are_what_they_say(trees):
    rows = {row.name: row for row in references(trees)}
    assert set(rows) == {"best path", "one-step oracle", "target only", "mean path"}
    for tree in trees:
        others = [other for other in trees if other is not tree]
        scored = {path: fmean(other.tested[path] for other in others) for path in product(tree.spec.menu, repeat=2)}
        assert scored[best_path(trees).paths[tree.seed]] == max(scored.values())
        first = max(tree.spec.menu, key=lambda name: tree.validated((name,)))
        assert greedy(trees).paths[tree.seed][0] == first
    assert rows["target only"].paths == {tree.seed: ("target", "target") for tree in trees}
    assert {name: row.tier for name, row in rows.items()} == {
        "best path": Tier.FAMILY, "one-step oracle": Tier.HINDSIGHT, "target only": Tier.TARGET, "mean path": Tier.NOTHING,
    }  # fmt: skip


def test_headroom_of_a_tree_is_of_the_path_that_validates_best_over_the_best_that_is_the_same_for_all(trees):
    found = headroom(trees)
    own = [tree.tested[max(leaves(tree), key=tree.validated)] for tree in trees]
    fixed = [same_entry(name, trees, name) for name in trees[0].spec.menu]
    means = {row.name: fmean(row.values.values()) for row in [*fixed, best_path(trees)]}
    assert found.mean == pytest.approx(fmean(own) - max(means.values()))
    assert means[found.above] == max(means.values())
    assert (found.roots, found.training_seeds, found.oracle) == (len(trees), 1, True)
    assert found.found != "some", "the choice is made on the training that it is scored on"


@pytest.mark.parametrize("name", ["fixed", "random", "uniform", "rules", "half-success", "progress-share", "schedule"])
def test_every_engineer_without_a_model_walks(name, trees, distances):
    begin = time.process_time()
    row = row_of(name, trees, player_of(name, "menu", distances))
    assert time.process_time() - begin < 60
    assert row.paths.keys() == {tree.seed for tree in trees}
    assert len(row.nearness.distances) == 2 * len(trees)
    again = row_of(name, trees, player_of(name, "free", distances))
    assert again.paths == row.paths


def test_an_engineer_of_ones_own_that_writes_by_rules_is_taken_to_the_nearest_entry(trees, distances):
    own = row_of("own", trees, player_of("engineers.plain.rules:RulesEngineer", "menu", distances))
    assert own.paths == row_of("rules", trees, player_of("rules", "menu", distances)).paths
    assert own.nearness is not None


def test_fixed_stays_on_the_first_config_and_uniform_goes_where_it_was_drawn(trees, distances):
    assert row_of("fixed", trees, player_of("fixed", "free", distances)).values == same_entry("", trees, "easy").values
    row = row_of("fixed", trees, player_of("fixed", "free", distances))
    assert row.nearness.median == 0.0
    assert row.counts
    target = row_of("schedule", trees, player_of("schedule", "free", distances, parts=[1.0]))
    assert set(target.paths.values()) == {("target", "target")}


def test_answers_far_from_what_stands_for_them_get_no_score(trees, distances):
    class Elsewhere:
        name = "elsewhere"

        def propose(self, report, current, editable=None):
            far = {"share": 1.0, "hole_ratio": 0.0, "wait_ratio": 1.0}
            config = type(current).model_validate(current.model_dump() | {"slices": {3: far}})
            return engineers.Proposal(config=config, engineer=self.name)

    trees = [replace(tree, spec=_opened(tree.spec)) for tree in trees]
    row = row_of("elsewhere", trees, Writer(lambda tree, stage: Elsewhere(), distances))
    assert row.fallbacks == 0
    assert not row.counts


def _opened(spec):
    run = spec.run.model_copy(
        update={"editable": ("slices",), "guard": spec.run.guard.model_copy(update={"max_drop": None})}
    )
    opened = spec.model_copy()
    opened.__dict__["plan"] = Plan.of(run)
    return opened


def test_what_the_guard_refuses_falls_back_to_the_current_config(trees, distances):
    class Stranger:
        name = "stranger"

        def propose(self, report, current, editable=None):
            return engineers.Proposal(config=current.model_copy(update={"reward": "shaped"}), engineer=self.name)

    row = row_of("stranger", trees, Writer(lambda tree, stage: Stranger(), distances))
    assert row.fallbacks == 2 * len(trees)
    assert row.values == same_entry("", trees, "easy").values


def test_a_menu_tells_what_letters_stand_for_and_no_names(trees):
    tree, path = trees[0], ("crowded",)
    menu = menu_at(tree, path)
    report = as_menu(tree.report(path, "x"), menu, tree, path)
    assert report.config == {"choice": menu.letters["crowded"]}
    assert report.target == {"choice": menu.letters["target"]}
    assert [record.config for record in report.history] == [{"choice": menu.letters["easy"]}]
    form = AnswerFormat(menu.model.model_validate(report.config))
    said = form.knobs[0].extra["meanings"]
    assert sorted(form.knobs[0].schema["enum"]) == ["A", "B", "C", "D"]
    assert "5×5 100%, hole ratio 0.524, wait ratio 1" in said[menu.letters["crowded"]]  # 11 of 21 cells
    assert not any(meaning in json.dumps(form.schema) for meaning in said.values()), "once, in the prompt"
    assert report.target_words
    assert report.trainee
    assert not any(name in json.dumps(form.schema) for name in ("crowded", "easy", "uniform"))
    letters = {tuple(menu_at(one, ()).letters.values()) for one in trees}
    assert len(letters) > 1
    assert menu_at(tree, ()).letters == menu.letters


def test_alpha_is_the_reliability_that_was_built_in():
    """Paths with known variance, seeds' levels and noise: the mean of k seeds has reliability v / (v + e / k)."""
    rng = np.random.default_rng(0)
    paths, seeds, v, e = 4000, 5, 1.0, 2.0
    table = (
        rng.normal(0, np.sqrt(v), (paths, 1)) + rng.normal(0, 3, (1, seeds)) + rng.normal(0, np.sqrt(e), (paths, seeds))
    )
    assert alpha(table) == pytest.approx(v / (v + e / seeds), abs=0.02)
    assert alpha(np.ones((5, 3))) == 0.0


def test_reliability_says_how_many_seeds_would_do(trees):
    found = reliability(trees)
    assert found.seeds == len(trees)
    one, k = found.of_one_seed, found.seeds_needed
    if k is not None:
        assert k * one / (1 + (k - 1) * one) >= 0.8
        assert k == 1 or (k - 1) * one / (1 + (k - 2) * one) < 0.8


def test_agreement_counts_resolved_pairs_alone():
    real = {"a": {1: 0.5, 2: 0.52, 3: 0.51}, "b": {1: 0.1, 2: 0.12, 3: 0.1}, "c": {1: 0.2, 2: 0.9, 3: 0.1}}
    atlas = {"a": {7: 0.4}, "b": {7: 0.3}, "c": {7: 0.9}}
    found = agreement(atlas, real)
    assert (found.pairs, found.resolved, found.agree) == (3, 1, 1.0)
    assert agreement({**atlas, "b": {7: 0.6}}, real).agree == 0.0
    assert agreement({**atlas, "b": {7: 0.4}}, real).agree == 0.5


def test_distances_are_between_draws_and_not_between_knobs(spec, distances):
    first = spec.first
    unused = type(first).model_validate(
        first.model_dump() | {"slices": {**first.model_dump()["slices"], 5: {"share": 0.0, "hole_ratio": 0.9}}}
    )
    assert distances.between(first, unused) < 0.02
    entries = spec.entries(1, ())
    assert distances.nearest(first, entries) == ("easy", 0.0)
    for one, other in product(entries.values(), repeat=2):
        assert distances.between(one, other) == pytest.approx(distances.between(other, one))
        for third in entries.values():
            assert (
                distances.between(one, third) <= distances.between(one, other) + distances.between(other, third) + 1e-9
            )


def test_a_walk_is_repeatable(trees, distances):
    assert walk(trees[0], player_of("random", "free", distances)) == walk(
        trees[0], player_of("random", "free", distances)
    )


def rated(table):
    """Trees of one step whose paths were tested at these values, a row for each path and a column for each seed."""
    paths = [(str(number),) for number in range(len(table))]
    spec = SimpleNamespace(depth=1, paths=lambda depth: paths)
    columns = list(zip(*table, strict=True))
    return [
        SimpleNamespace(seed=seed, spec=spec, tested=dict(zip(paths, column, strict=True)))
        for seed, column in enumerate(columns)
    ]


def test_the_best_path_is_chosen_on_the_other_seeds_and_never_on_its_own():
    """Over all seeds the first path is best, by one lucky seed; for that seed, the others say the second."""
    row = best_path(rated([(0.9, 0.1, 0.1), (0.2, 0.3, 0.3)]))
    assert row.paths == {0: ("1",), 1: ("0",), 2: ("0",)}
    assert row.values == {0: 0.2, 1: 0.1, 2: 0.1}


def analysed(table):
    """Two-way analysis of variance, one value a cell: mean squares between rows, and of what rows and columns leave."""
    rows, columns = len(table), len(table[0])
    mean = fmean(value for row in table for value in row)
    by_row = [fmean(row) for row in table]
    by_column = [fmean(column) for column in zip(*table, strict=True)]
    between = columns * sum((one - mean) ** 2 for one in by_row) / (rows - 1)
    left = sum((table[i][j] - by_row[i] - by_column[j] + mean) ** 2 for i, j in product(range(rows), range(columns)))
    return between, left / ((rows - 1) * (columns - 1))


@pytest.mark.parametrize(("paths", "seeds"), [(4, 2), (9, 3), (16, 5)])
def test_reliability_is_that_of_the_analysis_of_variance(paths, seeds):
    """Hoyt: (between - left) / between for the mean of all seeds, the intraclass correlation for a single one."""
    rng = random.Random(paths)
    table = [
        [skill + rng.gauss(0, 0.1) + seed / 9 for seed in range(seeds)]
        for skill in (rng.random() for _ in range(paths))
    ]
    rng.shuffle(table)
    found = reliability(rated(table))
    between, left = analysed(table)
    assert found.seeds == seeds
    assert found.of_the_mean == pytest.approx((between - left) / between)
    assert found.of_one_seed == pytest.approx((between - left) / (between + (seeds - 1) * left))
    better = sorted(table, key=fmean)[paths // 2 :]
    between_better, left_better = analysed(better)
    assert found.upper_half == pytest.approx((between_better - left_better) / between_better)
    assert found.between_paths == pytest.approx(stdev(fmean(row) for row in table))
    assert found.within == pytest.approx(left**0.5)


@pytest.mark.parametrize(("one", "needed"), [(0.8, 1), (0.5, 4), (0.49, 5), (0.9, 1), (0.0, None), (-0.2, None)])
def test_the_seeds_needed_are_the_fewest_whose_mean_is_reliable(one, needed):
    assert Reliability(3, 0.0, one, 0.0, 0.0, 0.0).seeds_needed == needed


def test_a_table_ships_from_the_bound_on():
    assert Reliability(3, 0.8, 0.5, 0.0, 0.0, 0.0).ships
    assert not Reliability(3, 0.79, 0.5, 0.0, 0.0, 0.0).ships


def test_free_answers_count_up_to_half_of_the_entries_spacing():
    near = Nearness(distances=[0.1, 0.2, 0.9], spacings=[0.3, 0.4, 0.8])
    assert (near.median, near.bound, near.holds) == (0.2, 0.2, True)
    assert not Nearness([0.21], [0.4]).holds
    assert Row("x", {}, {}).counts
    assert not Row("x", {}, {}, Nearness([0.21], [0.4])).counts


def test_who_reads_is_set_against_the_best_who_does_not_and_has_a_score():
    def row(name, value, tier, **more):
        return Row(name, {1: value, 2: value + 0.1}, {}, tier=tier, **more)

    far = Nearness([0.21], [0.4])
    best, mean = row("best path", 0.6, Tier.FAMILY), row("mean path", 0.2, Tier.NOTHING)
    unscored = row("ladder", 0.9, Tier.FAMILY, nearness=far)
    reads = row("rules", 0.5, Tier.SLICE_SUCCESS)
    found = above_open_loop(reads, [best, mean, unscored, reads])
    assert (found.above, found.mean) == ("best path", pytest.approx(-0.1))
    assert above_open_loop(mean, [best, mean, reads]) is None
    assert above_open_loop(reads, [reads, unscored]) is None
    assert above_open_loop(row("model", 0.9, Tier.REPORT, nearness=far), [best, mean]) is None


def test_agreement_is_over_the_seeds_that_both_were_run_on():
    real = {"a": {1: 0.5, 2: 0.52, 3: 0.51, 4: 0.0}, "b": {1: 0.1, 2: 0.12, 3: 0.1, 5: 9.0}}
    found = agreement({"a": {7: 0.4}, "b": {7: 0.3}, "only here": {7: 0.5}}, real)
    assert (found.pairs, found.resolved, found.agree) == (1, 1, 1.0)
