"""``GymWorld``: cases that are kept apart, policies that are asked in batches, training that never meets a held-out case."""

from __future__ import annotations

from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from envtuning.worlds.gym_cases import apportioned
from envtuning.worlds.world import InfeasibleConfig, TooFewCases
from tests.envtuning.gym_worlds import Corridor, CorridorConfig, CorridorWorld, FlatConfig, PoleWorld, Walker

WORLD, POLE = CorridorWorld(), PoleWorld()


def config_of(**shares: float) -> CorridorConfig:
    """``config_of(_6=1.0, _9=3.0)``"""
    return CorridorConfig.model_validate({"slices": {name[1:]: {"share": share} for name, share in shares.items()}})


def held_out(world, config, count=5):
    validation = world.draw(config, count, seed=1, purpose="validation", exclude=())
    return validation, world.draw(config, count, seed=2, purpose="test", exclude=(validation,))


@pytest.fixture
def suites():
    return held_out(WORLD, CorridorConfig())


# Cases


def test_validation_and_test_are_even_and_a_probe_goes_by_shares(suites):
    config = CorridorConfig.model_validate({"slices": {6: {"share": 0.75}, 9: {"share": 0.25}, 12: {"share": 0.0}}})
    validation = WORLD.draw(config, 5, seed=1, purpose="validation", exclude=())
    assert Counter(case.slice for case in validation) == {"6": 5, "9": 5}
    probe = WORLD.draw(config, 6, seed=1, purpose="probe", exclude=suites)
    assert Counter(case.slice for case in probe) == {"6": 9, "9": 3}


def test_the_fingerprint_is_what_the_seed_really_deals(suites):
    for case in suites[0]:
        env = Corridor(int(case.slice), 0)
        env.reset(seed=case.seed)
        assert case.fingerprint == f"{case.slice} {env.here} {env.flag}"


def test_drawing_is_a_function_of_its_arguments():
    one, same, other = (WORLD.draw(CorridorConfig(), 5, seed=s, purpose="validation", exclude=()) for s in (1, 1, 2))
    assert one == same != other


def test_a_world_too_small_is_refused_with_its_count():
    config = config_of(_6=1.0)  # 6 × 5 ways to stand
    with pytest.raises(TooFewCases, match=r"slice 6: a set needs 31 different cases\b.*\bonly 30 were found"):
        WORLD.draw(config, 31, seed=1, purpose="validation", exclude=())
    validation = WORLD.draw(config, 20, seed=1, purpose="validation", exclude=())
    with pytest.raises(TooFewCases, match=r"only 10 were found besides the 20 that"):
        WORLD.draw(config, 11, seed=1, purpose="test", exclude=(validation,))
    with pytest.raises(TooFewCases, match="nothing would be left to train on"):
        WORLD.draw(config, 10, seed=1, purpose="test", exclude=(validation,))


def test_apportioning_meets_the_count_and_every_share_within_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        weights = rng.dirichlet(np.ones(rng.integers(1, 8)))
        count = int(rng.integers(1, 50))
        dealt = apportioned({str(i): float(w) for i, w in enumerate(weights)}, count)
        assert sum(dealt.values()) == count
        assert all(abs(dealt[str(i)] - w * count) < 1 for i, w in enumerate(weights))


# Playing


def test_who_walks_to_the_flag_succeeds_and_who_walks_away_does_not(suites):
    good = WORLD.play(Walker(), suites[0], CorridorConfig(), seed=0)
    bad = WORLD.play(Walker(-1.0), suites[0], CorridorConfig(), seed=0)
    assert [one.case for one in good] == list(range(len(suites[0])))
    assert all(one.failure is None and one.metrics["success_rate"] == 1.0 for one in good)
    assert {one.failure for one in bad} == {"out_of_time"}
    for one, case in zip(good, suites[0], strict=True):
        _, here, flag = map(int, case.fingerprint.split())
        assert one.cost == {"env_steps": abs(here - flag), "episodes": 1}
        assert one.slice == case.slice


def test_a_failure_is_explained_with_its_picture(suites):
    bad = WORLD.play(Walker(-1.0), suites[0], CorridorConfig(), seed=0)
    shown = WORLD.explain(suites[0], bad[0])
    assert shown.kind == "out_of_time"
    assert "limit of steps" in shown.explanation
    assert set(shown.picture) == {"A", "F", "."}
    assert set(WORLD.behaviour(suites[0], bad)["6"]) == {"reward", "episode_length"}


def test_an_episode_is_what_playing_its_case_alone_gives(suites, monkeypatch):
    together = WORLD.play(Walker(), suites[0], CorridorConfig(), seed=0)
    monkeypatch.setattr("envtuning.worlds.gym_player.COPIES", 2)
    assert WORLD.play(Walker(), suites[0], CorridorConfig(), seed=0) == together
    for number, case in enumerate(suites[0]):
        env = WORLD.make(CorridorConfig(), case.slice)
        observation, _ = env.reset(seed=case.seed)
        actions, over = [], False
        while not over:
            actions.append(int(Walker().act(observation[None])[0]))
            observation, _, terminated, truncated, _ = env.step(actions[-1])
            over = terminated or truncated
        assert together[number].trace == {"actions": actions}


class AfraidOf(Walker):
    """Raises, or gives what is no action, where it sees its flag to the right at once."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def act(self, observations):
        if (observations[:, 1] > 0.5).any():
            return self.answer(observations)
        return super().act(observations)


def raise_something(observations):
    raise RuntimeError("too far")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (raise_something, "RuntimeError: too far"),
        (lambda seen: np.full(len(seen), 7), "7"),
        (lambda seen: np.zeros(len(seen) + 1, int), "2 actions for 1 observation"),
        (lambda seen: None, "None"),
    ],
)
def test_a_policy_that_fails_on_one_case_fails_that_case_alone(answer, said):
    cases = WORLD.draw(config_of(_12=1.0), 30, seed=1, purpose="validation", exclude=())
    episodes = WORLD.play(AfraidOf(answer), cases, config_of(_12=1.0), seed=0)
    flags = [(int(f) - int(h)) / 12 > 0.5 for _, h, f in (case.fingerprint.split() for case in cases)]
    assert 0 < sum(flags) < 30
    assert [one.failure == "policy_error" for one in episodes] == flags
    assert all(said in one.note for one in episodes if one.failure)


class DictEnv(gym.Env):
    observation_space = spaces.Dict(
        {"where": spaces.Discrete(3), "pair": spaces.Tuple((spaces.Box(0, 1, (2,)), spaces.Discrete(2)))}
    )
    action_space = spaces.Dict({"push": spaces.Box(-1, 1, (1,)), "side": spaces.Discrete(2)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.where = int(self.np_random.integers(3))
        return self._seen(), {}

    def _seen(self):
        return {"where": self.where, "pair": (np.zeros(2, np.float32), 1)}

    def step(self, action):
        right = action["side"] == self.where % 2
        return self._seen(), float(right), True, False, {"success": bool(right)}


def test_nested_observations_and_actions_are_batched_as_gymnasium_batches_them():
    class Nested(PoleWorld):
        def make(self, config, slice):
            return DictEnv()

    class Policy:
        def act(self, observations):
            assert observations["pair"][0].shape == (len(observations["where"]), 2)
            return {"push": np.zeros((len(observations["where"]), 1), np.float32), "side": observations["where"] % 2}

    class World(Nested):
        success = CorridorWorld.success

    world = World()
    cases = world.draw(FlatConfig(), 6, seed=1, purpose="validation", exclude=())
    episodes = world.play(Policy(), cases, FlatConfig(), seed=0)
    assert [one.failure for one in episodes] == [None] * 6
    assert episodes[0].to_json()["trace"]["actions"]


# Training


def test_no_training_episode_is_a_held_out_case_and_all_others_occur():
    config = config_of(_6=1.0)
    suites = held_out(WORLD, config, 10)
    env = WORLD.make_env(config, exclude=suites, capacity={}, seed=3)
    met = set()
    for number in range(600):
        env.reset(seed=number)
        met.add(WORLD.fingerprint(env.current, 0))
    everything = {f"6 {here} {flag}" for here in range(6) for flag in range(6) if here != flag}
    assert met == everything - suites[0].fingerprints() - suites[1].fingerprints()


def test_slices_are_dealt_by_their_shares():
    env = WORLD.make_env(config_of(_6=0.25, _9=0.75, _12=0.0), exclude=(), capacity={}, seed=0)
    dealt = Counter(env.reset()[1]["slice"] for _ in range(2000))
    assert set(dealt) == {"6", "9"}
    assert 0.21 < dealt["6"] / 2000 < 0.29  # four standard deviations


def test_the_training_environment_keeps_gymnasiums_rules():
    check_env(WORLD.make_env(CorridorConfig(), exclude=(), capacity={}, seed=0), skip_render_check=True)
    check_env(POLE.make_env(FlatConfig(), exclude=(), capacity={}, seed=0), skip_render_check=True)


def test_a_seed_deals_the_same_sequence_whatever_was_dealt_before():
    one, other = (WORLD.make_env(CorridorConfig(), exclude=(), capacity={}, seed=seed) for seed in (0, 1))
    for _ in range(7):
        other.reset()
    first = [one.reset(seed=5 if number == 0 else None)[0].tolist() for number in range(20)]
    assert first == [other.reset(seed=5 if number == 0 else None)[0].tolist() for number in range(20)]


def test_a_config_goes_into_force_at_the_next_reset():
    env = WORLD.make_env(config_of(_6=1.0), exclude=(), capacity={}, seed=0)
    env.reset(seed=0)
    env.set_config(config_of(_12=1.0))
    assert env.step(0)[4]["slice"] == "6"
    assert env.get_config() == config_of(_12=1.0)
    assert env.reset()[1]["slice"] == "12"


def test_success_stands_in_the_last_steps_info():
    env = WORLD.make_env(config_of(_6=1.0), exclude=(), capacity={}, seed=0)
    observation, _ = env.reset(seed=0)
    over = False
    while not over:
        observation, _, terminated, truncated, info = env.step(int(observation[1] > 0))
        over = terminated or truncated
        assert ("is_success" in info) == over
    assert info["is_success"] is True


# Configs


class Growing(CorridorWorld):
    """A picture as long as the corridor: other spaces for other slices."""

    def make(self, config, slice):
        env = Corridor(int(slice), 10)
        env.observation_space = spaces.Box(-1, 1, (int(slice),), np.float32)
        return env


def test_spaces_that_change_are_refused_in_a_sentence():
    world = Growing()
    said = r"slice 9 has the observation space Box\(-1.0, 1.0, \(9,\).* policy was made for Box\(-1.0, 1.0, \(6,\)"
    with pytest.raises(InfeasibleConfig, match=said):
        world.check(config_of(_6=1.0, _9=1.0))
    world.check(config_of(_6=1.0))
    with pytest.raises(InfeasibleConfig, match=said):
        world.capacity([config_of(_6=1.0), config_of(_9=1.0)])
    env = world.make_env(config_of(_6=1.0), exclude=(), capacity={}, seed=0)
    with pytest.raises(InfeasibleConfig, match=said):
        env.set_config(config_of(_9=1.0))
    assert env.reset()[1]["slice"] == "6"


def test_a_config_that_nothing_can_be_made_of_is_refused_in_a_sentence():
    class Broken(CorridorWorld):
        def make(self, config, slice):
            raise KeyError("no such lamp")

    with pytest.raises(
        InfeasibleConfig, match=r"slice 6: its environment cannot be made \(KeyError.*test_gym_world\.py, line"
    ):
        Broken().check(CorridorConfig())
    with pytest.raises(InfeasibleConfig, match="no slice has a share"):
        WORLD.check(config_of(_6=0.0))
