"""``check_trainee``: tests the promises of a trainee that the loop relies on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from envtuning.loop.contract import (
    TraineeFailed,
    amounts_in,
    as_trainee_failed,
    raise_unless_spent,
    read_metrics,
    save_checkpoint,
)
from envtuning.testing.promises import SEED, BrokenPromise, promised
from envtuning.trainees import make_trainee
from envtuning.trainees.base import Metrics, Trainee
from envtuning.worlds.world import FORMS, World


def check_trainee(
    kind_or_factory: Any,
    world: World[Any],
    config: Any,
    *,
    budget: int = 1_000,
    unit: str = "env_steps",
    per_slice: int = 4,
    **options: Any,
) -> None:
    """Makes two trainees of the kind (a name, ``package.module:Class``, or the class itself), trains them alike, and compares them."""
    suite = world.draw(config, per_slice, seed=SEED, purpose="validation", exclude=())
    made: list[Trainee] = []
    try:
        try:
            _check_trainee(kind_or_factory, world, config, suite, budget, unit, made, options)
        finally:
            failures = _closed(made)
        if failures:
            raise failures[0]
    except TraineeFailed as error:
        raise BrokenPromise(str(error)) from error


def _closed(made: list[Trainee]) -> list[TraineeFailed]:
    """Closes all, and gives the failures of those that cannot be closed, so that an earlier error is told first."""
    failures: list[TraineeFailed] = []
    for trainee in made:
        try:
            with as_trainee_failed("close"):
                trainee.close()
        except TraineeFailed as error:
            failures.append(error)
    return failures


def _check_trainee(
    kind: Any,
    world: World[Any],
    config: Any,
    suite: Any,
    budget: int,
    unit: str,
    made: list[Trainee],
    options: dict[str, Any],
) -> None:
    def make(seed: int) -> Trainee:
        given = {"world": world, "capacity": world.capacity([config]), "exclude": (suite,), "seed": seed, **options}
        made.append(make_trainee(kind, **given) if isinstance(kind, str) else kind(**given))
        return made[-1]

    def play(policy: Any) -> list[Any]:
        with as_trainee_failed("policy"):
            return [episode.to_json() for episode in world.play(policy, suite, config, seed=SEED)]

    one, other = make(SEED), make(SEED + 1)
    form = one.form
    promised(form in FORMS, f"form is {form!r}: declare one of {', '.join(FORMS)}")
    promised(
        form in world.forms, f"its policy is of form {form!r}, and the world plays {', '.join(sorted(world.forms))}"
    )
    with tempfile.TemporaryDirectory() as place:
        start = Path(place)
        save_checkpoint(one.save, start)
        untrained = one.policy()
        before = play(untrained)
        wrong = next((row["note"] for row in before if row["failure"] == "policy_error"), None)
        promised(wrong is None, f"its policy raised an error: {wrong}")

        def from_the_start(trainee: Trainee) -> tuple[Metrics, list[Any]]:
            with as_trainee_failed("load"):
                trainee.load(start)
            metrics = _trained(trainee, config, budget, unit)
            return metrics, play(trainee.policy())

        first = from_the_start(one)
        promised(play(untrained) == before, "the policy changes while the trainee learns on: let policy() give a copy")
        promised(
            _same(from_the_start(one), first),
            "after load and train with the same seed it is not where it was: let load take back everything, random state and counters included, or let train begin from its seed",
        )
        promised(
            _same(from_the_start(other), first),
            "another of its kind that loads the same checkpoint and trains with the same seed ends elsewhere: save everything that training goes by, and let train draw from its seed alone",
        )


def _trained(trainee: Trainee, config: Any, budget: int, unit: str) -> Metrics:
    """One call of ``train``, and its metrics."""
    told: list[Metrics] = []
    with as_trainee_failed("train"):
        given = trainee.train(config, budget, seed=SEED, on_iteration=lambda metrics: told.append(dict(metrics)))
    metrics, odd = read_metrics(given, "train")
    promised(not odd, "; ".join(odd))
    for one in told:
        odd = read_metrics(one, "on_iteration")[1]
        promised(not odd, "; ".join(odd))
    spent = amounts_in(metrics, "train")
    raise_unless_spent(spent, unit, budget)
    by_iterations = sum(amounts_in(one, "on_iteration").get(unit, 0) for one in told)
    promised(
        by_iterations <= spent[unit],
        f"train told on_iteration of {by_iterations:,} {unit} and returned {spent[unit]:,}: return all that it spent",
    )
    missing = set(trainee.reports or ()) - {name for one in (metrics, *told) for name in one}
    promised(
        not missing,
        f"`reports` names {', '.join(sorted(missing))}, and no metrics had it: leave out what it does not have",
    )
    return metrics


def _same(one: tuple[Metrics, list[Any]], other: tuple[Metrics, list[Any]]) -> bool:
    """Metrics and episodes, a NaN equal to a NaN."""
    return repr(one) == repr(other)
