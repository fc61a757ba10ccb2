"""``check_world``: tests the promises of a world that the loop relies on."""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from engineers.knobs import dump, validated
from envtuning.testing.promises import SEED, BrokenPromise, promised
from envtuning.worlds.episodes import Episode
from envtuning.worlds.gym_cases import TRAINING_SEEDS, Case
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import FORMS, Cases, InfeasibleConfig, World

MANY = 4  # number of cases from which on a success in all of them is suspicious
MOST_STEPS = 25  # of the actions that a Gymnasium world's environments are compared on
RESETS = 200  # training episodes whose beginnings are compared with those of held-out ones
WAYS = 5  # sequences of actions under which two episodes are alike


def check_world(world: World[Any], config: Any, *, per_slice: int = 4, policy: Callable[[], Any] | None = None) -> None:
    """Draws, saves, plays and explains ``per_slice`` cases of each slice of the config, and checks the results.

    ``policy()`` makes a policy, the same at every call; by default one that acts at random, or replies with empty texts.
    """
    _check_words(world, config)
    validation, test, probe = _check_draws(world, config, per_slice)
    _check_file(world, validation)
    make_policy = policy or (lambda: _any_policy(world, config))
    episodes = _check_play(world, config, validation, make_policy)
    _check_explanations(world, config, validation, probe, episodes)
    if isinstance(world, GymWorld):
        if policy is None and len(episodes) >= MANY and all(episode.succeeded for episode in episodes):
            warnings.warn(
                f"random actions succeed in all {len(episodes)} cases: is that a success? By default an episode is one that ends "
                "terminated with a reward above 0, which on environments that pay for every step is a fall; override success",
                stacklevel=2,
            )
        _check_environments(world, config, validation)
        _check_apart(world, config, [*validation, *test])
        _check_training(world, config, (validation, test))


def _check_words(world: World[Any], config: Any) -> None:
    about = world.about
    wrong = (
        f"the config is a {type(config).__name__}, and config_type is {world.config_type.__name__}: give one of those"
    )
    promised(isinstance(config, world.config_type), wrong)
    again = validated(world.config_type, dump(config))
    promised(again == config, "the config does not come back from its JSON: what engineers read is not what there is")
    promised(
        about.objective in about.rates,
        f"about.objective is {about.objective!r}, which is not in about.rates ({', '.join(about.rates)}): name it there",
    )
    promised(
        bool(world.forms) and world.forms <= FORMS.keys(),
        f"forms is {set(world.forms)}: give some of {', '.join(FORMS)}",
    )
    try:
        world.check(config)
    except InfeasibleConfig as error:
        raise BrokenPromise(f"check refuses this config, so nothing can be checked on it: {error}") from error


def _check_draws(world: World[Any], config: Any, per_slice: int) -> tuple[Any, Any, Any]:
    """Validation, test and probe."""

    def draw(purpose: Any, seed: int, *exclude: Cases) -> Any:
        return world.draw(config, per_slice, seed=seed, purpose=purpose, exclude=exclude)

    validation, again = draw("validation", SEED), draw("validation", SEED)
    needed = per_slice * len(world.slices(config))
    promised(
        len(validation) == needed,
        f"draw gave {len(validation)} cases where {needed} were asked for: give as many of each slice",
    )
    same = validation.fingerprints() == again.fingerprints()
    promised(same, "draw gave other cases for the same arguments: let all chance in it come from `seed`")
    other = draw("validation", SEED + 1).fingerprints() != validation.fingerprints()
    promised(
        other,
        "draw gave the same cases for two seeds: it does not use `seed`, or the world has no more cases than these",
    )
    test = draw("test", SEED, validation)
    shared = len(validation.fingerprints() & test.fingerprints())
    promised(not shared, f"{shared} test cases are validation cases too: leave out what is in `exclude`")
    probe = draw("probe", SEED, validation, test)
    shared = len(probe.fingerprints() & (validation.fingerprints() | test.fingerprints()))
    promised(not shared, f"{shared} probed cases are held out: leave out what is in `exclude`")
    return validation, test, probe


def _check_file(world: World[Any], cases: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "validation.cases"
        cases.save(path)
        promised(path.is_file(), f"save did not write to the very path that it was given ({path.name})")
        loaded = world.load(path)
    same = len(loaded) == len(cases) and loaded.fingerprints() == cases.fingerprints()
    promised(same, "load gave other cases than were saved")


def _check_play(world: World[Any], config: Any, cases: Any, make_policy: Callable[[], Any]) -> Sequence[Episode]:
    about = world.about
    episodes = world.play(make_policy(), cases, config, seed=SEED)
    numbers = [episode.case for episode in episodes]
    promised(
        numbers == list(range(len(cases))),
        f"play gave the cases {numbers}: give one episode for each of 0 … {len(cases) - 1}, in order",
    )
    for episode in episodes:
        _check_episode(world, config, episode)
    again = world.play(make_policy(), cases, config, seed=SEED)
    same = [one.to_json() for one in again] == [one.to_json() for one in episodes]
    promised(
        same, "play gave other episodes for the same policy, cases and seed: let chance come from the case and `seed`"
    )
    failed = world.play(_Raises(), cases, config, seed=SEED)
    told = all(one.failure == "policy_error" and one.note and "no idea" in one.note for one in failed)
    promised(told, "a policy that raised did not fail its cases as 'policy_error' with the error as note")
    promised(
        about.unit in episodes[0].cost,
        f"an episode's cost is {dict(episodes[0].cost)}, without {about.unit!r}, the unit of budgets",
    )
    return episodes


def _check_episode(world: World[Any], config: Any, episode: Episode) -> None:
    about, slices = world.about, world.slices(config)
    promised(
        episode.slice in slices,
        f"case {episode.case} is of slice {episode.slice!r}, and the config's are {', '.join(slices)}",
    )
    promised(
        about.objective in episode.metrics,
        f"case {episode.case} has no {about.objective!r}, the objective, among its metrics",
    )
    for name, value in episode.metrics.items():
        promised(
            world.reports is None or name in world.reports,
            f"case {episode.case} has {name!r} among its metrics, and `reports` does not name it",
        )
        promised(math.isfinite(value), f"case {episode.case} has {name}={value}: leave out what is not known")
        if name in about.rates:
            promised(0 <= value <= 1, f"case {episode.case} has {name}={value}, and rates are from 0 to 1")
    for unit, amount in episode.cost.items():
        whole = isinstance(amount, int) and amount >= (unit == about.unit)
        promised(
            whole, f"case {episode.case} cost {unit}={amount!r}: give whole numbers, of the budget's unit at least 1"
        )
    if episode.failure is not None:
        promised(
            episode.failure in about.failures,
            f"the failure {episode.failure!r} has no meaning in about.failures: add a sentence",
        )
    try:
        same = Episode(**json.loads(json.dumps(episode.to_json()))).to_json() == episode.to_json()
    except (TypeError, ValueError) as error:
        raise BrokenPromise(
            f"case {episode.case} is not JSON ({error}): keep plain numbers, texts and lists in its trace"
        ) from error
    promised(
        same,
        f"case {episode.case} does not come back from its JSON: keep lists for tuples and texts for keys in its trace",
    )


def _check_explanations(world: World[Any], config: Any, cases: Any, probe: Any, episodes: Sequence[Episode]) -> None:
    for episode in world.play(_Raises(), cases, config, seed=SEED)[:1]:
        promised("no idea" in world.explain(cases, episode).explanation, "explain leaves out an episode's note")
    for name, table in (("behaviour", world.behaviour(cases, episodes)), ("drawn", world.drawn(config, probe))):
        for piece, row in table.items():
            promised(piece in world.slices(config), f"{name} speaks of slice {piece!r}, which is not in use")
            finite = all(math.isfinite(value) for value in row.values())
            promised(finite, f"{name} has {row} for slice {piece}: leave out what is not known")
    for piece, parts in world.splits(cases, episodes).items():
        promised(piece in world.slices(config), f"splits speaks of slice {piece!r}, which is not in use")
        odd = [name for name, part in parts.items() if part.succeeded > part.episodes]
        promised(not odd, f"splits has more successes than episodes in {odd} of slice {piece}")


class _Raises:
    """A policy of any form that raises."""

    env_kwargs: Mapping[str, Any] = {}

    def __call__(self, case: Any) -> Any:
        raise RuntimeError("no idea")

    def act(self, observations: Any) -> Any:
        raise RuntimeError("no idea")

    def reply(self, conversations: Any, *, seed: int) -> Any:
        raise RuntimeError("no idea")


class _Silent:
    """Replies with empty texts."""

    def reply(self, conversations: Sequence[Any], *, seed: int) -> list[str]:
        return [""] * len(conversations)


class _AtRandom:
    """Acts at random, the same for the same questions."""

    def __init__(self, space: Any) -> None:
        self.space = _drawn_from(space, SEED)

    def act(self, observations: Any) -> Any:
        from gymnasium.vector.utils import concatenate, create_empty_array

        count = len(next(iter(observations.values())) if isinstance(observations, dict) else observations)
        drawn = [self.space.sample() for _ in range(count)]
        return concatenate(self.space, drawn, create_empty_array(self.space, count))


def _any_policy(world: World[Any], config: Any) -> Any:
    if isinstance(world, GymWorld) and "acts" in world.forms:
        with world.envs(config) as envs:
            return _AtRandom(next(iter(envs.values())).action_space)
    if "replies" in world.forms:
        return _Silent()
    raise ValueError(
        f"check_world has no policy for the world {world.about.name!r}: pass policy=…, a function that makes one"
    )


# Gymnasium worlds


def _check_environments(world: GymWorld[Any], config: Any, cases: Any) -> None:
    """A case is always the same episode, in any environment and after any other episode; and different cases differ."""
    for name in world.slices(config):
        own = [case for case in cases if case.slice == name]
        used, first = world.make(config, name), []
        for case in own:
            fresh = world.make(config, name)
            played = _trajectory(fresh, case.seed)
            fresh.close()
            promised(
                played == _trajectory(used, case.seed),
                f"slice {name}: reset(seed={case.seed}) of an environment that was used before deals another episode than of a "
                "fresh one: let reset set everything, from its seed alone",
            )
            first.append(played)
        used.close()
        promised(
            len(own) < 2 or any(played != first[0] for played in first),
            f"slice {name}: {len(own)} cases with different fingerprints are one and the same episode: use the seed in reset, "
            "or override fingerprint",
        )


def _check_apart(world: GymWorld[Any], config: Any, held_out: Sequence[Case]) -> None:
    """By the default fingerprint, every seed is another case: then no training seed may give the episode of a held-out one.

    A world's own fingerprint defines equal cases, so two different cases may begin alike.
    """
    if type(world).fingerprint is not GymWorld.fingerprint:
        return
    seeds = np.random.default_rng(SEED).integers(TRAINING_SEEDS.stop, size=RESETS).tolist()
    with world.envs(config) as envs:
        for name, env in envs.items():
            beginnings = {repr(env.reset(seed=case.seed)[0]): case.seed for case in held_out if case.slice == name}
            for trained in seeds:
                other = beginnings.get(repr(env.reset(seed=trained)[0]))
                promised(
                    other is None or not _alike(env, trained, other),
                    f"slice {name}: the training seed {trained} deals the very episode of the held-out seed {other}, so what is "
                    "held out is trained on: override fingerprint, and return what tells cases apart",
                )


def _alike(env: Any, one: int, other: int) -> bool:
    """Whether two seeds give the same episode under any actions."""
    return all(_trajectory(env, one, way) == _trajectory(env, other, way) for way in range(WAYS))


def _trajectory(env: Any, seed: int, way: int = SEED) -> list[str]:
    """Observations and rewards of an episode's first steps, always with the same actions."""
    seen = [repr(env.reset(seed=seed)[0])]
    actions = _drawn_from(env.action_space, way)
    for _ in range(MOST_STEPS):
        observation, reward, terminated, truncated, _ = env.step(actions.sample())
        seen.append(repr((observation, float(reward), bool(terminated), bool(truncated))))
        if terminated or truncated:
            break
    return seen


def _drawn_from(space: Any, seed: int) -> Any:
    """A copy to draw from: an environment may seed its own space, or renew it at each reset."""
    copied = deepcopy(space)
    copied.seed(seed)
    return copied


def _check_training(world: GymWorld[Any], config: Any, held_out: Sequence[Cases]) -> None:
    from gymnasium.utils.env_checker import check_env

    env = world.make_env(config, exclude=held_out, capacity=world.capacity([config]), seed=SEED)
    try:
        check_env(env, skip_render_check=True)
    except AssertionError as error:
        raise BrokenPromise(f"make returns an invalid Gymnasium environment: {error}") from error
    finally:
        env.close()
