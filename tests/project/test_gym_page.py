"""What the page on the engineering gym says of ``learnt`` and of its speed is what is stored."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest

from benchmarks import reader
from benchmarks._record import RESULTS
from benchmarks.dynamics import in_points
from benchmarks.learnt import RUNS, STEPS
from benchmarks.learnt_seeds import SEED, SEEDS
from engineers.plain.learnt import SHAPES
from envtuning.dynamics.families import DEVELOPMENT, HELD_OUT, SIZES

PAGE = " ".join((RESULTS.parents[1] / "docs" / "engineering_gym.md").read_text(encoding="utf-8").split())


def stored(name: str) -> Any:
    return json.loads(Path(RESULTS / f"{name}.json").read_text(encoding="utf-8"))


COMPARED = stored("learnt")["figures"]
SEEDED = stored("learnt_seeds")
LESS = COMPARED["less"]
ROWS = {
    "best open loop": "best open loop",
    "failure": "failure rule",
    "give-up": "give-up rule",
    "blind": "blind twin",
}


def mean_of(lead: dict[str, float]) -> str:
    return f"{100 * lead['mean']:+.1f}"


@pytest.mark.parametrize("study", COMPARED["studies"], ids=lambda study: study["family"])
def test_the_row_of_a_family_is_what_is_stored(study):
    assert reader.line(study) in PAGE


@pytest.mark.parametrize(
    "said",
    [
        f"ends {in_points(LESS['blind'])} points above its blind twin, and {in_points(LESS['permuted'])} above itself",
        f"ends {in_points(LESS['best open loop'])} above the best open loop, {in_points(LESS['failure'])} above the failure rule and "
        f"{in_points(LESS['give-up'])} above the give-up rule",
        f"nothing there: {in_points(LESS['memoryless'])} against the memoryless twin",
        f"ends {in_points(LESS['reader, shares alone'])} points from `reader` with shares alone, and {in_points(LESS['reader'])} points from",
    ],
)  # fmt: skip
def test_what_learnt_gains_over_the_held_out_families(said):
    assert said in PAGE


@pytest.mark.parametrize("rival", ROWS)
def test_the_lead_over_five_trainings_is_the_preregistered_mean(rival):
    found = SEEDED["figures"]["pooled"][rival]
    by_seed = {int(seed): lead for seed, lead in found["by_seed"].items()}
    assert list(by_seed) == [SEED, *SEEDS]
    four = sorted((by_seed[seed] for seed in SEEDS), key=lambda lead: lead["mean"])
    spread = f"{mean_of(four[0])} to {mean_of(four[-1])}"
    cells = (in_points(found["over_trainings"]), mean_of(by_seed[SEED]), spread)
    assert f"| {ROWS[rival]} | {' | '.join(cells)} | {100 * found['between_trainings']:.1f} |" in PAGE
    assert all(lead["mean"] > 0 for lead in by_seed.values())
    if rival != "blind":
        assert all(lead["low"] < 0 for lead in four)


def test_the_package_s_training_is_the_best_of_five_in_three_leads():
    pooled = SEEDED["figures"]["pooled"].values()
    best = [max(found["by_seed"], key=lambda seed: found["by_seed"][seed]["mean"]) for found in pooled]
    assert best.count(str(SEED)) == 3


def test_every_training_ends_below_even_draws_where_skills_are_required_and_forgotten():
    family = "prerequisites+forgetting"
    (study,) = [one for one in COMPARED["studies"] if one["family"] == family]
    ends = [one["learnt"] for one in SEEDED["figures"]["studies"] if one["family"] == family]
    assert len(ends) == 5
    assert max(ends) < study["open_loop"]["even 0.0"]


def test_how_learnt_was_trained():
    assert f"{STEPS} steps on {RUNS * len(DEVELOPMENT)} fresh learners each" in PAGE
    assert f"a network of {sum(map(prod, SHAPES.values())):,} numbers" in PAGE
    assert (len(SEEDS), len(HELD_OUT)) == (4, 6)
    assert f"Eight such trainings with their scores took {SEEDED['cpu_minutes']} CPU minutes" in PAGE


def test_how_long_and_how_wide_an_episode_is():
    (fewest, most), (_, slices) = SIZES.stages, SIZES.slices
    assert f"has {fewest - 1} to {most - 1} steps" in PAGE  # the first stage is over when it begins
    assert f"has {slices} rows of numbers" in PAGE


def test_a_batch_plays_the_episodes_a_second_that_the_page_says():
    speed = stored("engineering_gym")["figures"]
    assert speed["environments"] == 256
    least = min(one["episodes"] for one in speed["per_cpu_second"].values())
    assert f"A batch of 256 plays more than {1000 * int(least / 1000):,} episodes a second on one core" in PAGE
