"""The promises of worlds and trainees at their edges: what is just kept passes, and what is just broken is told."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from envtuning.testing import BrokenPromise, check_trainee, check_world
from envtuning.testing.trainees import _trained
from envtuning.testing.worlds import _any_policy, _AtRandom, _check_episode, _check_file, _check_words, _trajectory
from envtuning.worlds.episodes import Episode
from envtuning.worlds.gym_cases import GymCases
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.world import FORMS, About
from tests.envtuning.counting_world import CountConfig, CountTrainee, CountWorld
from tests.envtuning.gym_worlds import Corridor, CorridorConfig, CorridorWorld, WalkerTrainee

CONFIG = CorridorConfig()
SMALL = CorridorConfig.model_validate({"slices": {6: {}}})


# An episode


def episode(**changes: Any) -> Episode:
    return Episode(**Episode(0, "6", None, {"success_rate": 1.0}, {"env_steps": 1, "episodes": 0}).to_json() | changes)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metrics": {"success_rate": 0.0, "reward": -7.5}},  # a rate's edges; what is no rate may be anything finite
        {"failure": next(iter(CorridorWorld().about.failures))},
        {"slice": "12"},
    ],
)
def test_an_episode_that_just_keeps_its_promises_passes(changes):
    _check_episode(CorridorWorld(), CONFIG, episode(**changes))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"metrics": {"success_rate": 1.01}}, "success_rate=1.01, and rates are from 0 to 1"),
        ({"metrics": {"success_rate": -0.01}}, "success_rate=-0.01, and rates are from 0 to 1"),
        ({"metrics": {"success_rate": 1.0, "reward": math.nan}}, "reward=nan: leave out"),
        ({"metrics": {"success_rate": 1.0, "reward": math.inf}}, "reward=inf: leave out"),
        ({"cost": {"env_steps": 1.5}}, "cost env_steps=1.5: give whole numbers"),
        ({"cost": {"env_steps": 0}}, "cost env_steps=0: give whole numbers, of the budget's unit at least 1"),
        ({"cost": {"env_steps": 1, "tokens": -1}}, "cost tokens=-1"),
        ({"slice": "7"}, "is of slice '7', and the config's are 6, 9, 12"),
    ],
)
def test_an_episode_that_just_breaks_one_is_told(changes, says):
    with pytest.raises(BrokenPromise, match=says):
        _check_episode(CorridorWorld(), CONFIG, episode(**changes))


# Words


def with_forms(*forms: str) -> CorridorWorld:
    return type("Formed", (CorridorWorld,), {"forms": frozenset(forms)})()


def test_a_world_plays_some_of_the_forms_that_there_are():
    _check_words(with_forms(*FORMS), CONFIG)
    for forms in ((), ("acts", "sings")):
        with pytest.raises(BrokenPromise, match="give some of acts, replies, plans"):
            _check_words(with_forms(*forms), CONFIG)


def test_a_config_comes_back_from_its_json():
    class Forgetful(CorridorConfig):
        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = None

    world = type("Forgets", (CorridorWorld,), {"config_type": Forgetful})()
    with pytest.raises(BrokenPromise, match="the config does not come back from its JSON"):
        _check_words(world, Forgetful())


# Files


class Prints:
    """Cases with these fingerprints."""

    def __init__(self, *prints: str) -> None:
        self.prints = prints

    def __len__(self) -> int:
        return len(self.prints)

    def fingerprints(self) -> frozenset[str]:
        return frozenset(self.prints)

    def save(self, path: Any) -> None:
        path.touch()


@pytest.mark.parametrize(
    ("loaded", "kept"), [(Prints("b", "a"), True), (Prints("a", "c"), False), (Prints("a", "b", "b"), False)]
)
def test_a_file_holds_as_many_cases_as_were_saved_and_the_same(loaded, kept):
    world = SimpleNamespace(load=lambda path: loaded)
    if kept:
        _check_file(world, Prints("a", "b"))
        return
    with pytest.raises(BrokenPromise, match="load gave other cases than were saved"):
        _check_file(world, Prints("a", "b"))


# Playing


class BySeed(CorridorWorld):
    """Its rewards come from the seed that it is played with, as it may be."""

    def play(self, policy: Any, cases: Any, config: Any, *, seed: int) -> list[Episode]:
        found = super().play(policy, cases, config, seed=seed)
        return [replace(one, metrics={**one.metrics, "reward": float(seed)}) for one in found]


def test_chance_may_come_from_the_seed():
    check_world(BySeed(), SMALL)


@pytest.mark.parametrize("told", [{"note": None}, {"note": "something else"}, {"failure": "failed"}])
def test_a_policy_that_raises_fails_its_cases_by_that_name_and_with_its_error(told):
    class Hides(CorridorWorld):
        def play(self, *arguments: Any, **how: Any) -> list[Episode]:
            found = super().play(*arguments, **how)
            return [Episode(**one.to_json() | told) if one.failure == "policy_error" else one for one in found]

    with pytest.raises(BrokenPromise, match="a policy that raised did not fail its cases as 'policy_error'"):
        check_world(Hides(), SMALL)


def test_a_table_of_what_is_not_known_is_told():
    class Unknown(CorridorWorld):
        def drawn(self, config: Any, cases: Any) -> dict[str, dict[str, float]]:
            return {"6": {"length": math.nan}}

    with pytest.raises(BrokenPromise, match=r"drawn has .* for slice 6: leave out what is not known"):
        check_world(Unknown(), SMALL)


class SeedlessCorridor(Corridor):
    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        return super().reset(seed=1, options=options)


class Seedless(CorridorWorld):
    """Its cases have names of their own and are the same."""

    def fingerprint(self, env: Any, seed: int) -> str:
        return str(seed)

    def make(self, config: Any, slice: str) -> Any:
        return SeedlessCorridor(int(slice), 10)


def test_one_case_may_be_as_it_is_and_two_may_not_be_the_same():
    check_world(Seedless(), SMALL, per_slice=1)
    with pytest.raises(
        BrokenPromise, match="slice 6: 2 cases with different fingerprints are one and the same episode"
    ):
        check_world(Seedless(), SMALL, per_slice=2)


@pytest.mark.parametrize(("per_slice", "doubted"), [(3, False), (4, True)])
def test_random_success_is_doubted_where_it_says_something_and_nobody_chose_the_policy(recwarn, per_slice, doubted):
    class Easy(CorridorWorld):
        def success(self, *_: Any) -> bool:
            return True

    check_world(Easy(), SMALL, per_slice=per_slice)
    assert any("random actions succeed" in str(one.message) for one in recwarn) == doubted
    recwarn.clear()
    check_world(Easy(), SMALL, per_slice=4, policy=lambda: _AtRandom(Corridor.action_space))
    check_world(CorridorWorld(), SMALL)  # not all of them succeed
    assert not [one for one in recwarn if "random actions" in str(one.message)]


def test_environments_are_closed_and_compared_up_to_their_end():
    closed: list[int] = []

    class Closing(Corridor):
        def close(self) -> None:
            closed.append(1)

    class World(CorridorWorld):
        def make(self, config: Any, slice: str) -> Any:
            made.append(1)
            return Closing(int(slice), 10)

    made: list[int] = []
    check_world(World(), SMALL, per_slice=1)
    assert len(closed) >= len(made) > 0


class Counted(gym.Env):
    """Ends after this many steps in this way, and says what it was asked."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length: int, *, truncates: bool = False) -> None:
        self.length, self.truncates = length, truncates

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> Any:
        self.steps = 0
        return seed, {}

    def step(self, action: int) -> Any:
        self.steps += 1
        over = self.steps >= self.length
        return self.steps, 0.5, over and not self.truncates, over and self.truncates, {}


@pytest.mark.parametrize(("length", "truncates", "seen"), [(3, False, 4), (3, True, 4), (99, False, 26)])
def test_an_episode_is_compared_from_its_first_observation_to_its_end_or_25_steps(length, truncates, seen):
    found = _trajectory(Counted(length, truncates=truncates), 7)
    assert len(found) == seen
    assert found[:2] == ["7", repr((1, 0.5, False, False))]


def test_a_policy_at_random_acts_for_each_copy_whatever_they_see():
    act = _AtRandom(gym.spaces.Discrete(50)).act
    assert len(act(np.zeros((3, 2)))) == 3
    assert len(act({"a": np.zeros((4, 2)), "b": np.zeros((4, 1))})) == 4
    again = [_AtRandom(gym.spaces.Discrete(50)).act(np.zeros((5, 1))).tolist() for _ in range(2)]
    assert again[0] == again[1]


class Renewing(Corridor):
    """Makes its action space anew at each reset, as highway-env's base class does."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.action_space = gym.spaces.Discrete(2)
        return super().reset(seed=seed, options=options)


def test_an_environment_may_renew_its_action_space_at_each_reset():
    class World(CorridorWorld):
        def make(self, config: Any, slice: str) -> Any:
            return Renewing(int(slice), 10)

    check_world(World(), CONFIG)


class Four(Corridor):
    """Of all seeds only the last two bits count."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=None if seed is None else seed % 4, options=options)


class FourCases(CorridorWorld):
    fingerprint = GymWorld.fingerprint  # the seed

    def make(self, config: Any, slice: str) -> Any:
        return Four(int(slice), 10)


def test_held_out_episodes_that_training_deals_too_are_told():
    with pytest.raises(
        BrokenPromise,
        match=r"slice 6: the training seed \d+ deals the very episode of the held-out seed \d+.*override fingerprint",
    ):
        check_world(FourCases(), SMALL, per_slice=4)


def test_episodes_that_only_begin_alike_are_told_apart():
    """Where everything is seen only later, or chance decides later, the seed is fingerprint enough."""

    class Dark(Corridor):
        def _seen(self) -> np.ndarray:
            return np.array([0.0, self.np_random.random() if self.left < 8 else 0.0], np.float32)

    class World(FourCases):
        def make(self, config: Any, slice: str) -> Any:
            return Dark(int(slice), 10)

    check_world(World(), CONFIG)


# Worlds without Gymnasium


def test_a_world_for_plans_needs_a_policy_and_one_for_replies_is_answered_nothing():
    with pytest.raises(ValueError, match="check_world has no policy for the world 'counting': pass policy="):
        _any_policy(CountWorld(), CountConfig())

    class Talking(CountWorld):
        forms = frozenset({"replies"})
        about = About(name="talk", environment="", failures={"missed": "no"})

        def play(self, policy: Any, cases: Any, config: Any, *, seed: int) -> list[Episode]:
            replies.append(policy.reply(["a", "b", "c"], seed=0))
            raise ZeroDivisionError

    replies: list[list[str]] = []
    with pytest.raises(ZeroDivisionError):
        Talking().play(_any_policy(Talking(), CountConfig()), None, CountConfig(), seed=0)
    assert replies == [["", "", ""]]


# Trainees


def test_a_call_of_train_returns_all_that_it_told_of_and_no_less():
    def trainee(returned: float, *told: float, **changes: Any) -> Any:
        def train(config: Any, budget: int, *, seed: int, on_iteration: Any) -> dict[str, float]:
            for amount in told:
                on_iteration({"env_steps": amount} | changes)
            return {"env_steps": returned}

        return SimpleNamespace(train=train, reports=frozenset())

    assert _trained(trainee(10.0, 4.0, 6.0), None, 10, "env_steps") == {"env_steps": 10.0}
    assert _trained(trainee(10.0, 4.0), None, 10, "env_steps") == {"env_steps": 10.0}
    with pytest.raises(
        BrokenPromise, match="told on_iteration of 11 env_steps and returned 10: return all that it spent"
    ):
        _trained(trainee(10.0, 5.0, 6.0), None, 10, "env_steps")
    with pytest.raises(BrokenPromise, match="on_iteration gave mood='x', which is not a number"):
        _trained(trainee(10.0, 5.0, mood="x"), None, 10, "env_steps")


def test_both_trainees_that_were_made_are_closed_and_given_what_a_run_gives():
    made: list[Any] = []

    class Kept(WalkerTrainee):
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.given, self.closed, self.budgets = given, 0, []
            made.append(self)

        def train(self, config: Any, budget: int, **how: Any) -> Any:
            self.budgets.append(budget)
            return super().train(config, budget, **how)

        def close(self) -> None:
            self.closed += 1

    check_trainee(Kept, CorridorWorld(), CONFIG)
    assert [one.closed for one in made] == [1, 1]
    assert [one.budgets for one in made] == [[1000, 1000], [1000]]
    assert made[0].given["seed"] != made[1].given["seed"]
    assert len(made[0].given["exclude"][0]) == 4 * len(CONFIG.slices)
    assert isinstance(made[0].given["exclude"][0], GymCases)


@pytest.mark.parametrize(("form", "says"), [("plans", "form 'plans'"), ("acts", "close raised OSError: gone")])
def test_all_trainees_are_closed_whatever_is_broken_and_the_first_is_told(form, says):
    made: list[Any] = []

    class Stuck(WalkerTrainee):
        closed = 0

        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.form = form
            made.append(self)

        def close(self) -> None:
            self.closed += 1
            raise OSError("gone")

    with pytest.raises(BrokenPromise, match=says):
        check_trainee(Stuck, CorridorWorld(), SMALL)
    assert [one.closed for one in made] == [1, 1]


def test_a_trainee_of_plans_is_checked_in_a_world_that_plays_them():
    with pytest.raises(BrokenPromise, match="its policy is of form 'plans', and the world plays acts"):
        check_trainee(type("Planner", (WalkerTrainee,), {"form": "plans"}), CorridorWorld(), SMALL)
    check_trainee(CountTrainee, CountWorld(), CountConfig())
