"""``check_world`` and ``check_trainee``: what keeps its promises passes, and each promise, broken alone, is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from envtuning.testing import BrokenPromise, check_trainee, check_world
from envtuning.worlds import make_world
from envtuning.worlds.episodes import Episode
from envtuning.worlds.gym_cases import GymCases
from envtuning.worlds.world import About, InfeasibleConfig
from mapf_frozenlake import LakeConfig
from tests.envtuning.gym_worlds import (
    Corridor,
    CorridorConfig,
    CorridorWorld,
    FlatConfig,
    PoleWorld,
    Walker,
    WalkerTrainee,
)

CONFIG = CorridorConfig()
LAKES = LakeConfig.model_validate({"num_agents": 2, "slices": {4: {"hole_ratio": 0.2}, 5: {"hole_ratio": 0.1}}})


def changed(episode: Episode, **changes: object) -> Episode:
    return Episode(**episode.to_json() | changes)


# Worlds


@pytest.mark.parametrize(
    ("world", "config"), [(CorridorWorld(), CONFIG), (PoleWorld(), FlatConfig()), (make_world("lakes"), LAKES)]
)
def test_worlds_that_keep_their_promises_pass(world, config):
    check_world(world, config)


class Undrawn(CorridorWorld):
    """Its environments cannot be drawn, which nobody promised."""

    def make(self, config, slice):
        env = super().make(config, slice)
        env.render_mode = "human"
        return env


def test_pictures_are_no_promise():
    with pytest.raises(NotImplementedError):
        Undrawn().make(CONFIG, "6").render()
    check_world(Undrawn(), CONFIG)


class Played(CorridorWorld):
    """Changes its first episode."""

    def change(self, episode: Episode) -> Episode:
        raise NotImplementedError

    def play(self, policy, cases, config, *, seed):
        episodes = super().play(policy, cases, config, seed=seed)
        return [self.change(episodes[0]), *episodes[1:]]


class OtherObjective(CorridorWorld):
    about = About(name="x", environment="x", objective="joy")


class Refuses(CorridorWorld):
    def check(self, config):
        raise InfeasibleConfig("too cold")


class TooFew(CorridorWorld):
    def draw(self, config, per_slice, **how):
        cases = super().draw(config, per_slice, **how)
        return GymCases(cases.config, cases.cases[1:])


class DrawsAnew(CorridorWorld):
    calls = 0

    def draw(self, config, per_slice, *, seed, purpose, exclude):
        DrawsAnew.calls += 1
        return super().draw(config, per_slice, seed=seed + DrawsAnew.calls, purpose=purpose, exclude=exclude)


class OneDraw(CorridorWorld):
    def draw(self, config, per_slice, *, seed, purpose, exclude):
        return super().draw(config, per_slice, seed=0, purpose=purpose, exclude=exclude)


class IgnoresExclude(CorridorWorld):
    def draw(self, config, per_slice, *, seed, purpose, exclude):
        return super().draw(config, per_slice, seed=seed, purpose=purpose, exclude=())


class ProbesHeldOut(CorridorWorld):
    def draw(self, config, per_slice, *, seed, purpose, exclude):
        return (
            exclude[0]
            if purpose == "probe"
            else super().draw(config, per_slice, seed=seed, purpose=purpose, exclude=exclude)
        )


class Elsewhere(GymCases):
    def save(self, path: Path) -> Path:
        return super().save(path.with_suffix(".json"))


class SavesElsewhere(CorridorWorld):
    def draw(self, config, per_slice, **how):
        cases = super().draw(config, per_slice, **how)
        return Elsewhere(cases.config, cases.cases)


class OutOfOrder(CorridorWorld):
    def play(self, *arguments, **how):
        return super().play(*arguments, **how)[::-1]


class PlaysByChance(CorridorWorld):
    rng = np.random.default_rng(0)

    def play(self, policy, cases, config, *, seed):
        episodes = super().play(policy, cases, config, seed=seed)
        return [changed(one, metrics={**one.metrics, "reward": float(self.rng.random())}) for one in episodes]


class NoUnit(Played):
    def change(self, episode):
        return changed(episode, cost={"episodes": 1})


class NoObjective(Played):
    def change(self, episode):
        return changed(episode, metrics={"reward": 1.0})


class UnknownFailure(Played):
    def change(self, episode):
        return changed(episode, failure="melted")


class NoJson(Played):
    def change(self, episode):
        return changed(episode, trace=np.zeros(2))


class TuplesInTrace(Played):
    def change(self, episode):
        return changed(episode, trace=(1, 2))


class HidesNotes(CorridorWorld):
    def explain(self, cases, episode):
        return (
            super()
            .explain(cases, changed(episode, note=None) if not hasattr(episode, "picture") else episode)
            .model_copy(update={"explanation": "it failed"})
        )


class SpeaksOfOthers(CorridorWorld):
    def behaviour(self, cases, episodes):
        return {"77": {"length": 1.0}}


class LeakyCorridor(Corridor):
    """Its time limit continues from one episode to the next."""

    def reset(self, *, seed=None, options=None):
        before = getattr(self, "left", None)
        found = super().reset(seed=seed, options=options)
        if before is not None:
            self.left = 1
        return found


class Leaky(CorridorWorld):
    def make(self, config, slice):
        return LeakyCorridor(int(slice), 10)


class OutsideItsSpace(CorridorWorld):
    def make(self, config, slice):
        env = Corridor(int(slice), 10)
        env._seen = lambda: np.array([5.0, 5.0 + env.here], np.float32)
        return env


BROKEN_WORLDS = {
    OtherObjective: "about.objective is 'joy', which is not in about.rates",
    Refuses: "check refuses this config.*too cold",
    TooFew: "draw gave 11 cases where 12 were asked for",
    DrawsAnew: "other cases for the same arguments",
    OneDraw: "same cases for two seeds",
    IgnoresExclude: "test cases are validation cases too",
    ProbesHeldOut: "12 probed cases are held out",
    SavesElsewhere: "did not write to the very path",
    OutOfOrder: "in order",
    PlaysByChance: "other episodes for the same policy, cases and seed",
    NoUnit: "without 'env_steps', the unit of budgets",
    NoObjective: "has no 'success_rate', the objective",
    UnknownFailure: "'melted' has no meaning in about.failures",
    NoJson: "case 0 is not JSON",
    TuplesInTrace: "case 0 does not come back from its JSON",
    HidesNotes: "explain leaves out an episode's note",
    SpeaksOfOthers: "behaviour speaks of slice '77'",
    Leaky: "used before deals another episode",
    OutsideItsSpace: "make returns an invalid Gymnasium environment",
}


@pytest.mark.parametrize("world", BROKEN_WORLDS, ids=lambda world: world.__name__)
def test_a_world_that_breaks_a_promise_is_told_which(world):
    with pytest.raises(BrokenPromise, match=BROKEN_WORLDS[world]):
        check_world(world(), CONFIG)


def test_a_config_of_another_world_is_refused():
    with pytest.raises(BrokenPromise, match="the config is a FlatConfig, and config_type is CorridorConfig"):
        check_world(CorridorWorld(), FlatConfig())


# Trainees


def test_trainees_that_keep_their_promises_pass():
    check_trainee(WalkerTrainee, CorridorWorld(), CONFIG)
    check_trainee("tests.envtuning.gym_worlds:WalkerTrainee", CorridorWorld(), CONFIG)
    check_trainee("scripted", make_world("lakes"), LAKES)


def test_the_trainee_of_stable_baselines3_passes():
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install 'mapf-frozenlake[sb3]'")
    check_trainee("sb3", CorridorWorld(), CONFIG, budget=300, num_envs=2, n_steps=64, n_epochs=1, report_every=100)


class OddForm(WalkerTrainee):
    form = "sings"


class SavesNothing(WalkerTrainee):
    def save(self, folder):
        pass


class SpendsNothing(WalkerTrainee):
    def train(self, *arguments, **how):
        return super().train(*arguments, **how) | {"env_steps": 0.0}


class SpeaksInTexts(WalkerTrainee):
    def train(self, *arguments, **how):
        return super().train(*arguments, **how) | {"loss": "low"}


class GivesNothing(WalkerTrainee):
    def train(self, *arguments, **how):
        super().train(*arguments, **how)


class ReportsTooMuch(WalkerTrainee):
    reports = frozenset({"success_rate", "grad_norm"})


class ByChance(WalkerTrainee):
    rng = np.random.default_rng(0)

    def train(self, config, budget, *, seed, on_iteration=None):
        return super().train(config, budget, seed=int(self.rng.integers(1000)), on_iteration=on_iteration)


class LoadsByHalves(WalkerTrainee):
    """Its memory of how often it trained is neither saved nor taken back."""

    trained = 0

    def train(self, config, budget, *, seed, on_iteration=None):
        self.trained += 1
        return super().train(config, budget, seed=seed + self.trained, on_iteration=on_iteration)


class GoesByItsFirstSeed(WalkerTrainee):
    def __init__(self, *, seed=0, **given):
        super().__init__(seed=seed, **given)
        self.own = seed

    def train(self, config, budget, *, seed, on_iteration=None):
        return super().train(config, budget, seed=seed + self.own, on_iteration=on_iteration)


class Shared(Walker):
    def __init__(self, trainee):
        super().__init__()
        self.trainee = trainee

    def act(self, observations):
        self.sense = self.trainee.sense
        return super().act(observations)


class NoCopy(WalkerTrainee):
    def policy(self):
        return Shared(self)


class RaisingPolicy(WalkerTrainee):
    def policy(self):
        return None


class RaisesOnClose(WalkerTrainee):
    def close(self):
        raise OSError("gone")


BROKEN_TRAINEES = {
    OddForm: "form is 'sings'",
    SavesNothing: "save wrote nothing",
    SpendsNothing: "reported 1,000 episodes|reported .* spent",
    SpeaksInTexts: "loss='low', which is not a number",
    GivesNothing: "NoneType as metrics",
    ReportsTooMuch: "`reports` names grad_norm",
    ByChance: "it is not where it was",
    LoadsByHalves: "it is not where it was",
    GoesByItsFirstSeed: "another of its kind .* ends elsewhere",
    NoCopy: "the policy changes while the trainee learns on",
    RaisingPolicy: "its policy raised an error: AttributeError",
    RaisesOnClose: "close raised OSError: gone",
}


@pytest.mark.parametrize("trainee", BROKEN_TRAINEES, ids=lambda trainee: trainee.__name__)
def test_a_trainee_that_breaks_a_promise_is_told_which(trainee):
    with pytest.raises(BrokenPromise, match=BROKEN_TRAINEES[trainee]):
        check_trainee(trainee, CorridorWorld(), CONFIG)
