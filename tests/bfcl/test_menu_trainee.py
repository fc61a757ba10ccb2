"""The menu's learner: its softmax, its gradient, what it spends; on a menu of two without the benchmark."""

import numpy as np
import pytest

from benchmarks.bfcl.menu import DONE, shown
from benchmarks.bfcl.menu_trainee import SIZE, Choice, MenuPolicy, MenuTrainee, advantages, probabilities
from envtuning.outcomes import Counts, Tally
from envtuning.worlds.world import World
from tests.envtuning.hash_seeded import assert_the_same, world


def test_probabilities_are_the_softmax_of_the_summed_weights_however_large():
    weights = np.zeros(SIZE)
    weights[[1, 2, 3]] = 1.0, 2.0, 4.0
    rows = [np.array([1, 2]), np.array([3]), np.array([5])]
    assert probabilities(weights, rows) == pytest.approx(np.exp([3, 4, 0]) / np.exp([3, 4, 0]).sum())
    assert probabilities(1_000 * weights, rows) == pytest.approx([0, 1, 0])


def test_the_policy_takes_the_likeliest_or_draws_by_the_odds_and_its_seed():
    menu = ["[cd(folder='a')]", "[ls()]", DONE]
    talks = [[{"role": "user", "content": f"User: look\n{shown(menu)}"}]] * 90
    weights = np.zeros(SIZE)
    draw = MenuPolicy(weights, draw=True)
    drawn = draw.reply(talks, seed=1)
    assert all(15 < drawn.count(line) < 45 for line in menu)
    assert drawn == draw.reply(talks, seed=1) != draw.reply(talks, seed=2)
    assert [menu[choice.taken] for choice in draw.choices] == draw.reply(talks, seed=2)
    assert (draw.choices[0].turn, draw.choices[0].paid) == (0, 0.0)  # until it was played
    features = draw.choices[0].features[1]
    assert draw.reply(talks) == draw.reply(talks, seed=0)
    weights[features] += 0.01  # a little likelier
    assert set(MenuPolicy(weights).reply(talks)) == {"[ls()]"}


def test_the_gradient_is_that_of_what_was_earned_and_of_the_distance_from_the_first_policy():
    """Against differences of the objective: advantages weigh the log-odds of what was taken, ``kl`` the divergence from even odds."""
    trainee = MenuTrainee(world=None, capacity={}, group=2, groups=2, kl=0.3)
    trainee.weights[:6] = [0.5, -0.2, 0.1, 0.0, 0.3, -0.4]
    rows = [np.array([0, 1]), np.array([2]), np.array([3, 4, 5])]
    played = [
        [Choice(rows, 0, turn=0, paid=1.0), Choice(rows[:2], 1, turn=1, paid=0.5)],
        [Choice(rows, 2, turn=0, paid=0.0)],
        [Choice(rows[1:], 0, turn=0, paid=0.0)],
        [Choice(rows[1:], 1, turn=0, paid=0.0)],
    ]
    # The first group: returns 1.5 and 0 from turn 0, .5 and 0 from turn 1; deviations .75 and .25. The second's are alike.
    advantage = {(0, 0): 0.75 / 0.8, (0, 1): 0.25 / 0.3, (1, 0): -0.75 / 0.8, (2, 0): 0.0, (3, 0): 0.0}

    def divergences(weights):
        odds = [probabilities(weights, choice.features) for choices in played for choice in choices]
        return [float(one @ np.log(one * len(one))) for one in odds]

    def objective(weights):
        earned = sum(
            advantage[episode, choice.turn] * np.log(probabilities(weights, choice.features)[choice.taken])
            for episode, choices in enumerate(played)
            for choice in choices
        )
        return (earned - 0.3 * sum(divergences(weights))) / len(played)

    gradient, kl, flat = trainee._gradient(played)
    for place in range(6):
        step = np.zeros(SIZE)
        step[place] = 1e-5
        slope = (objective(trainee.weights + step) - objective(trainee.weights - step)) / 2e-5
        assert gradient[place] == pytest.approx(slope, abs=1e-6)
    assert not gradient[6:].any()
    assert kl == pytest.approx(np.mean(divergences(trainee.weights)))
    assert flat == 0.5
    trainee.weights[2] = 1_000.0  # the others' odds are 0
    assert np.isfinite(trainee._gradient(played)[0]).all()
    assert advantages(played[:2])[0].shape == (2, 2)


class Button:
    """A world of one question: who presses it is paid, who does not is not; ``turns`` times over."""

    turns = 2
    outcome = World.outcome

    def make_env(self, config, *, exclude, capacity, seed):
        env = Button()
        env.next_task = lambda: "button"
        return env

    def reset(self, options):
        self.turn = 0
        return self._said(), {}

    def step(self, reply):
        self.turn += 1
        over, paid = self.turn == self.turns, float(reply == "[press()]")
        return self._said(), paid, over, False, self._info(paid)

    def _info(self, paid):
        told = {"turn": self.turn, "success": paid, "progress": paid / 2}
        return told | {"score": paid / 2, "slice": "base", "task": "button"}

    def _said(self):
        return "User: press\n" + shown(["[press()]", DONE])


def test_training_plays_whole_groups_adds_up_what_was_spent_and_learns():
    trainee, told = MenuTrainee(world=Button(), capacity={}, group=4, groups=2), []
    config = None
    found = trainee.train(config, 17, seed=0, on_iteration=told.append)
    assert (found["episodes"], found["env_steps"]) == (24.0, 48.0)
    assert [one["episodes"] for one in told] == [8.0] * 3
    for iteration, one in enumerate(told):
        won = 8 * one["success_rate"]
        counts = {"base": Counts(episodes=8, successes=won, score_sum=won / 2)}
        assert one["outcomes"] == (Tally(repeats=counts) if iteration else Tally(first=counts))
    for name in ("success_rate", "progress", "grad_norm"):
        assert found[name] == pytest.approx(np.mean([one[name] for one in told]))
    assert all(one["success_rate"] == 2 * one["progress"] for one in told)
    trainee.train(config, 80, seed=1)
    [reply] = trainee.policy().reply([[{"role": "user", "content": Button()._said()}]])
    assert reply == "[press()]"


def test_a_step_is_no_longer_than_the_clipped_gradient():
    for seed in range(4):
        trainee = MenuTrainee(world=Button(), capacity={}, group=4, groups=2, clip=0.01, learning_rate=0.5)
        norm = trainee.train(None, 8, seed=seed)["grad_norm"]
        assert np.linalg.norm(trainee.weights) == pytest.approx(0.5 * min(norm, 0.01))
    free = MenuTrainee(world=Button(), capacity={}, group=4, groups=2, clip=1e9, learning_rate=0.5)
    found = free.train(None, 8, seed=0)
    assert np.linalg.norm(free.weights) == pytest.approx(0.5 * found["grad_norm"])


def test_an_episode_that_is_cut_off_is_over():
    class Cut(Button):
        def step(self, reply):
            said, paid, over, _, info = super().step(reply)
            return said, paid, False, over, info

        def make_env(self, config, **_):
            env = Cut()
            env.next_task = lambda: "button"
            return env

    found = MenuTrainee(world=Cut(), capacity={}, group=2, groups=1).train(None, 2, seed=0)
    assert (found["episodes"], found["env_steps"]) == (2.0, 4.0)


def test_a_policy_that_was_given_out_does_not_learn_on(tmp_path):
    trainee = MenuTrainee(world=Button(), capacity={}, group=4, groups=2)
    first = trainee.policy()
    trainee.train(None, 8, seed=0)
    assert not first.weights.any()
    trainee.save(tmp_path)
    again = MenuTrainee(world=Button(), capacity={})
    again.load(tmp_path)
    assert (again.weights == trainee.weights).all()


def test_training_gives_the_figures_that_it_has_always_given():
    """With the defaults, and with its seeds as they were: figures that are stored stay comparable."""
    trainee, told = MenuTrainee(world=Button(), capacity={}), []
    trainee.train(None, 64, seed=3)
    assert (trainee.weights.sum(), np.linalg.norm(trainee.weights)) == pytest.approx((1.51790947, 1.01730851))
    found = trainee.train(None, 32, seed=2**61, on_iteration=told.append)
    figures = {"episodes": 32.0, "env_steps": 64.0, "success_rate": 1.0, "progress": 0.5, "grad_norm": 0.76436246}
    assert found == pytest.approx(figures)
    assert told[0].pop("outcomes").episodes == 32
    assert told == [pytest.approx(figures | {"reward": 1.90625, "kl": 0.58000849, "zero_variance": 0.25})]


def test_it_ends_the_same_whatever_the_hashes_of_words_are(v4):
    """Its features are words: they were summed in the order of a set, and differed in the last bit."""
    config = {"tool_style": "none", "slices": {"base": {}, "miss_func": {}}}
    kind = "benchmarks.bfcl.menu_trainee:MenuTrainee"
    assert_the_same((kind, world("benchmarks.bfcl.menu:MenuWorld"), config, 64, {"group": 4, "groups": 4}))
