"""Environment engineering as an environment: its checker, its seeds, its speed, and that it is the run that engineers are asked about."""

from __future__ import annotations

import subprocess
import sys
import time

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import engineers
from envtuning.atlas.published import load
from envtuning.dynamics.families import DEVELOPMENT, FAMILIES, HELD_OUT, NULL
from envtuning.dynamics.learners import KINDS, step, value
from envtuning.dynamics.reports import as_arrays
from envtuning.errors import SpecError
from envtuning.gym import ENV_ID, MENU_ID
from envtuning.gym.pool import families_of
from envtuning.gym.single import config_of
from envtuning.gym.vector import COLUMNS, GLOBALS

IDS = [(ENV_ID, {}), (ENV_ID, {"family": "causes"}), (MENU_ID, {}), (MENU_ID, {"tree": "weak-waits"})]


def column(observation, name):
    return observation["slices"][..., COLUMNS.index(name)]


def of_run(observation, name):
    return observation["run"][..., GLOBALS.index(name)]


@pytest.mark.parametrize(("name", "options"), IDS)
@pytest.mark.filterwarnings("error::UserWarning")
def test_gymnasium_s_checker_passes(name, options):
    check_env(gymnasium.make(name, render_mode="ansi", **options).unwrapped)


def episode(env, seed, actions):
    """All that one episode showed."""
    observation, _ = env.reset(seed=seed)
    found, over = [observation], False
    while not over:
        observation, reward, over, _, _ = env.step(next(actions))
        found += [observation, reward]
    return found


@pytest.mark.parametrize(("name", "options"), IDS)
def test_the_same_seed_is_the_same_episode_and_another_is_another(name, options):
    def played(seed):
        env = gymnasium.make(name, **options)
        env.action_space.seed(3)
        drawn = [env.action_space.sample() for _ in range(12)]
        return repr(episode(env, seed, iter(drawn)))

    assert played(5) == played(5)
    assert len({played(seed) for seed in range(6)}) > 1


def test_splits_are_by_family_and_the_null_is_neither():
    assert families_of("development") == DEVELOPMENT
    assert families_of("held-out") == HELD_OUT
    assert not {*DEVELOPMENT, NULL} & set(HELD_OUT)
    assert families_of(["rates", "null"]) == ("rates", "null")
    for wrong in ("nobody", ["rates", "nobody"], []):
        with pytest.raises(SpecError, match="is unknown: give one of development, held-out, rates"):
            families_of(wrong)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_episode_s_reward_is_how_far_it_ends_above_even_draws(family):
    """Followed by hand: the learner of the episode, trained with the shares of the actions and with even ones."""
    env = gymnasium.make(ENV_ID, family=family).unwrapped
    observation, _ = env.reset(seed=2)
    learner, rng = env.runs.learners.alone(0), np.random.default_rng(1)
    mine = even = step(learner, learner.start, learner.even())
    total, over = 0.0, False
    while not over:
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        shares, focus = as_arrays(config_of(action, env.telling.names), env.telling.names, learner)
        mine, even = step(learner, mine, shares, focus), step(learner, even, learner.even())
        observation, reward, over, _, _ = env.step(action)
        total += reward
    assert total == pytest.approx(float((value(learner, mine) - value(learner, even))[0]), abs=1e-6)
    assert of_run(observation, "rounds left") == 0
    if family == NULL:
        assert total == pytest.approx(0.0, abs=0.01)


def test_even_draws_are_worth_nothing_and_knowing_is_worth_something():
    env = gymnasium.make(ENV_ID, family="ceilings").unwrapped
    gained = {"even": 0.0, "knowing": 0.0}
    for name in gained:
        for seed in range(8):
            env.reset(seed=seed)
            learner, over = env.runs.learners.alone(0), False
            while not over:
                action = np.zeros(env.action_space.shape, np.float32)
                if name == "knowing":
                    action[: learner.ceiling.shape[1], 0] = 2 * (learner.ceiling[0] * (env.runs.rate[0, : learner.ceiling.shape[1]] < 0.95)) - 1  # fmt: skip
                _, reward, over, _, _ = env.step(action)
                gained[name] += reward
    assert gained["even"] == pytest.approx(0.0)
    assert gained["knowing"] > 0.2


def test_what_is_seen_is_what_the_report_says():
    env = gymnasium.make(ENV_ID, family="transfer+causes").unwrapped
    env.reset(seed=4)
    action = np.linspace(-1, 1, env.action_space.shape[0] * 4, dtype=np.float32).reshape(-1, 4)
    observation, *_ = env.step(action)
    report, slices = env.report, len(env.telling.names)
    assert [row.metrics["success_rate"] for row in report.results] == pytest.approx(
        column(observation, "validated")[:slices].tolist()
    )
    probed = {row.name: row.metrics["success_rate"] for row in report.training_results}
    assert list(probed.values()) == pytest.approx(
        column(observation, "probed")[: len(probed) + 1][-len(probed) :].tolist()
    )
    for place, row in enumerate(report.results):
        assert sum(row.failures.values()) == round(row.episodes * (1 - row.metrics["success_rate"]))
        probe = next((other for other in report.training_results if other.name == row.name), None)
        both = np.array([row.failures.get(kind, 0) + (probe.failures.get(kind, 0) if probe else 0) for kind in KINDS])
        assert (both / max(both.sum(), 1)).tolist() == pytest.approx(
            observation["slices"][place, -3:].tolist(), abs=1e-6
        )
    assert report.rounds_left == of_run(observation, "rounds left")
    assert len(report.records()) == of_run(observation, "rounds done") == 2
    assert env.report == report, "asked twice, it says the same"
    assert not observation["slices"][slices:].any()
    assert column(observation, "dose").sum() == pytest.approx(slices, abs=1e-4)


def test_an_engineer_plays_by_its_report():
    env = gymnasium.make(ENV_ID, family="rates").unwrapped
    gained = 0.0
    for seed in range(6):
        env.reset(seed=seed)
        engineer, over = engineers.make("reader"), False
        while not over:
            action = env.action(engineer.propose(env.report, env.config).config)
            _, reward, over, _, _ = env.step(action)
            gained += reward
    assert gained / 6 > 0.03


def test_a_batch_has_the_learners_of_its_environments_alone_and_begins_the_next_by_itself():
    batch = gymnasium.make_vec(ENV_ID, num_envs=5)
    observations, _ = batch.reset(seed=7)
    alone = gymnasium.make(ENV_ID).unwrapped
    for place in range(5):
        alone.reset(seed=7 + place)
        assert (batch.learners.weight[place] == alone.runs.learners.weight[0]).all()
    rng, ended = np.random.default_rng(0), np.zeros(5, bool)
    for _ in range(30):
        before = of_run(observations, "rounds left")
        actions = rng.uniform(-1, 1, batch.action_space.shape).astype(np.float32)
        observations, rewards, over, cut, _ = batch.step(actions)
        left = of_run(observations, "rounds left")
        assert (left[~ended] == before[~ended] - 1).all()
        assert (of_run(observations, "rounds done")[ended] == 1).all()
        assert (rewards[ended] == 0).all()
        assert (over == (left == 0)).all()
        assert not cut.any()
        assert batch.observation_space.contains(observations)
        ended = over
    assert batch.episodes.min() >= 1


def test_at_least_some_thousand_episodes_a_second():
    """Of processor time; 5,000 where nothing else runs (``benchmarks.engineering_gym``), half of that here."""
    batch = gymnasium.make_vec(ENV_ID, num_envs=256)
    batch.reset(seed=0)
    action = batch.action_space.sample()
    batch.step(action)
    began, ended = time.process_time(), 0
    for _ in range(60):
        ended += int(batch.step(action)[2].sum())
    assert ended / (time.process_time() - began) > 2500


def test_a_walk_through_a_tree_is_paid_by_validation_and_not_by_the_test():
    env = gymnasium.make(MENU_ID, tree="corridors").unwrapped
    _, info = env.reset(seed=0)
    [tree] = [one for one in load("corridors").seeds if one.seed == info["seed"]]
    entries = list(tree.spec.menu)
    path = ("middle", "target", "target")
    rewards = [env.step(np.int64(entries.index(name)))[1] for name in path]
    assert sum(rewards) == pytest.approx(tree.validated(path) - tree.validated(("uniform",) * 3))
    assert env.path == path
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.int64(0))
    env.reset(seed=0)
    assert sum(env.step(np.int64(entries.index("uniform")))[1] for _ in range(3)) == pytest.approx(0.0)


def test_the_prompt_is_there_on_request():
    env = gymnasium.make(ENV_ID, render_mode="ansi")
    env.reset(seed=0)
    assert "skill-0" in env.render()
    menu = gymnasium.make(MENU_ID, render_mode="ansi")
    menu.reset(seed=0)
    assert "choice" in menu.render()


def test_importing_the_package_imports_no_gymnasium():
    code = "import sys, envtuning; assert 'gymnasium' not in sys.modules and 'envtuning.gym' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys, envtuning.gym; assert not {'torch', 'numba', 'envtuning.gym.vector', 'mapf_frozenlake'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
