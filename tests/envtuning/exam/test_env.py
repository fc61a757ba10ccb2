"""The exam as environments: an episode is a sitting, its text is what a model reads, and side by side each is as alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from tests.lazily import needed

needed("torch", extra="exam")

import torch  # noqa: E402

import envtuning.exam  # noqa: E402, F401  registers the id
from engineers import Completion, ModelEngineer  # noqa: E402
from envtuning.errors import SpecError  # noqa: E402
from envtuning.exam.bounds import EVEN_ENDS  # noqa: E402
from envtuning.exam.families import NAMED, Family  # noqa: E402
from envtuning.exam.session import Session  # noqa: E402
from envtuning.exam.sitting import Paper, examined, replayed, sit, trained  # noqa: E402

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
ID = "EngineerExam-v0"
ROOMY = Family(  # so many questions that none is drawn twice
    name="roomy", mastered=2, lacking=2, hopeless=1, half_right=1, coins=1, letters=20, lengths=(4,), width=16, layers=1,
    updates=12, batch=14, pretrain=6, warm=2,
)  # fmt: skip
WIDE = ROOMY.model_copy(update={"name": "wide", "width": 64, "layers": 2, "updates": 60, "rate": 1e-2})
REWARD = ROOMY.model_copy(update={"name": "reward", "learning": "reward", "lengths": (2,), "letters": 8, "replies": 4})
GIVEN = {"family": ROOMY, "decisions": 3, "roots": 2, "baseline": 0.25}
ODD = np.linspace(0.0, 1.0, ROOMY.tasks, dtype=np.float32)  # an action


@pytest.fixture(scope="module", autouse=True)
def own_folder(tmp_path_factory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENVTUNING_EXAM", str(tmp_path_factory.mktemp("roots")))
        yield


def paper(**given) -> Paper:
    return Paper(**{"engineer": "even", "family": ROOMY, "root": 1, "decisions": 3} | given)


def test_the_plain_id_is_known_after_one_import_and_that_of_the_package_does_nothing():
    code = (
        "import gymnasium, envtuning; assert 'EngineerExam-v0' not in gymnasium.registry\n"
        "import envtuning.exam, sys; assert 'torch' not in sys.modules\n"
        "env = gymnasium.make('EngineerExam-v0', family='codes-slow')\n"
        "vec = gymnasium.make_vec('EngineerExam-v0', num_envs=2, family='codes-slow')\n"
        "print(env.action_space.shape, vec.action_space.shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout.strip() == "(24,) (2, 24)"
    assert done.stderr == ""


def test_gymnasium_finds_nothing_wrong():
    check_env(gym.make(ID, **GIVEN).unwrapped, skip_render_check=True)


@pytest.mark.filterwarnings("ignore:.*(normalize|symmetric|not an image|at least 1D|flatten).*")
def test_stable_baselines3_trains_on_it():
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    from stable_baselines3.common.env_checker import check_env as sb3_check

    env = gym.make(ID, **GIVEN)
    sb3_check(env.unwrapped)
    sb3.PPO("MultiInputPolicy", env, n_steps=4, batch_size=4, n_epochs=1, device="cpu").learn(4)


def test_an_episode_is_a_sitting():
    env = gym.make(ID, **GIVEN)
    seen, info = env.reset(seed=0, options={"root": 1, "training": 0})
    assert (info["root"], info["training"]) == (1, 0)
    assert seen["answers"].sum() == 56
    sitting = sit(paper())
    for stage in (2, 3):
        seen, reward, terminated, truncated, info = env.step(np.ones(7, np.float32))
        assert seen["stage"] == stage
        assert terminated is (stage == 3)
        assert not truncated
    assert reward == pytest.approx(sitting.end - 0.25)
    assert info["success"] == sitting.end
    assert info["success_by_task"].tolist() == sitting.success
    with pytest.raises(ResetNeeded):
        env.unwrapped.step(np.ones(7))


def test_shares_of_an_action_are_trained_with():
    env = gym.make(ID, **GIVEN)
    env.reset(options={"root": 1, "training": 5})
    seen = [env.step(action) for action in (ODD, ODD[::-1])]
    assert seen[0][0]["shares"] == pytest.approx(ODD / ODD.sum())
    again = replayed(paper(training=5), [np.ones(7).tolist(), ODD.tolist(), ODD[::-1].tolist()])
    assert seen[1][4]["success_by_task"].tolist() == again


class Written:
    """A model that always answers with the shares of ``ODD``, and keeps what it was asked."""

    model = "written"

    def __init__(self):
        self.asked = []

    def complete(self, messages, schema, max_tokens):
        self.asked.append("\n\n".join(message["content"] for message in messages))
        changes = [
            {"path": f"tasks.task-{place}.share", "reason": "-", "value": share} for place, share in enumerate(ODD.tolist())
        ]  # fmt: skip
        return Completion(json.dumps({"changes": changes}), 1, 1)


def test_the_text_is_what_a_model_reads_to_the_byte():
    chat, asked = Written(), paper()
    session = Session(ROOMY, [asked.start], asked.decisions)
    trained(asked, session, examined(asked, session, None, {}, ModelEngineer(chat)))
    env = gym.make(ID, **GIVEN)
    texts = [env.reset(options={"root": 1, "training": 0})[1]["report"], env.step(ODD)[4]["report"]]
    assert texts == chat.asked
    assert "# Report of stage 1" in texts[1]


@pytest.mark.parametrize("num_threads", [1, 2])
def test_torch_has_as_many_threads_afterwards_as_before(num_threads, tmp_path, monkeypatch):
    monkeypatch.setenv("ENVTUNING_EXAM", str(tmp_path))  # a root that must be trained first
    many, before = gym.make_vec(ID, num_envs=2, num_threads=num_threads, **GIVEN), torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        many.reset(seed=0)
        assert torch.get_num_threads() == 3
        many.step(np.ones((2, 7)))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("family", [ROOMY, WIDE], ids=lambda family: family.name)
def test_side_by_side_each_is_as_alone_bit_for_bit(family, num_threads):
    given = GIVEN | {"family": family}
    many = gym.make_vec(ID, num_envs=3, num_threads=num_threads, **given)
    alone = [gym.make(ID, **given) for _ in range(3)]
    observations, infos = many.reset(seed=4)
    for place, env in enumerate(alone):
        raise_unless_same(place, (observations, infos), env.reset(seed=4 + place))
    for number, actions in enumerate(np.random.default_rng(0).random((5, 3, 7), np.float32)):
        observations, rewards, terminated, truncated, infos = many.step(actions)
        assert many.observation_space.contains(observations)
        assert not truncated.any()
        for place, env in enumerate(alone):
            if number == 2:  # the step after the last one begins new episodes
                seen, info = env.reset()
                reward = over = 0
            else:
                seen, reward, over, _, info = env.step(actions[place])
            raise_unless_same(place, (observations, infos), (seen, info))
            assert (rewards[place], terminated[place]) == (reward, over)


def raise_unless_same(place, together, apart):
    """The observation and the info of one training among several, and of the same one alone."""
    for many, one in zip(together, apart, strict=True):
        assert {name for name in many if not name.startswith("_")} == one.keys()
        for name, value in one.items():
            assert np.array_equal(many[name][place], value), name


def test_by_reward_side_by_side_is_as_alone_up_to_rounding():
    many = gym.make_vec(ID, num_envs=2, **GIVEN | {"family": REWARD})
    alone = gym.make(ID, **GIVEN | {"family": REWARD})
    many.reset(options={"root": [0, 1], "training": 3})
    alone.reset(options={"root": 1, "training": 3})
    for _ in range(2):
        together, apart = many.step(np.stack([ODD, ODD])), alone.step(ODD)
        assert (together[0]["answers"][1] == apart[0]["answers"]).all()
    assert together[1][1] == pytest.approx(apart[1], abs=0.03)


def test_a_seed_may_be_given_for_each():
    many = gym.make_vec(ID, num_envs=2, **GIVEN)
    _, first = many.reset(seed=[7, 7])
    assert first["training"][0] == first["training"][1]
    _, second = many.reset(seed=[7, None])
    assert second["training"][0] == first["training"][0] != second["training"][1]


@pytest.mark.parametrize(
    "action", [np.ones(6), np.ones((1, 7)), np.full(7, np.nan), np.full(7, np.inf), -np.ones(7), 1.0]
)
def test_an_action_that_is_no_weights_of_the_tasks_is_refused(action):
    env = gym.make(ID, **GIVEN).unwrapped
    env.reset(options={"root": 1, "training": 0})
    with pytest.raises(SpecError, match="give 7 finite weights of at least 0, one for each task"):
        env.step(action)
    assert env.step(np.zeros(7))[0]["shares"].tolist() == pytest.approx([1 / 7] * 7)  # no weight at all draws evenly


@pytest.mark.parametrize(
    "given",
    [
        {"num_envs": 0},
        {"num_envs": 2, "num_threads": 0},
        {"num_envs": 2, "num_threads": 1.5},
        {"num_envs": 2, "roots": 0},
    ],
)
def test_no_learner_no_thread_and_no_root_are_refused(given):
    with pytest.raises(SpecError, match="each must be a whole number of at least 1"):
        gym.make_vec(ID, **GIVEN | given)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rot": 7}, "options has 'rot': give 'root' and 'training' alone"),
        ({"root": -1}, r"options\['root'\]=-1: give a whole number of at least 0, or 2 of them"),
        ({"root": 1.5}, "whole number"),
        ({"training": [0, -1]}, "whole number"),
        ({"root": [0, 1, 0]}, "or 2 of them"),
        ({"root": None}, "whole number"),
        ({"root": True}, "whole number"),
    ],
)
def test_options_that_choose_no_training_are_refused(options, why):
    with pytest.raises(SpecError, match=why):
        gym.make_vec(ID, num_envs=2, **GIVEN).reset(options=options)


def test_more_or_fewer_seeds_than_trainings_are_refused():
    many = gym.make_vec(ID, num_envs=2, **GIVEN)
    for seed in ([1], [1, 2, 3], []):
        with pytest.raises(SpecError, match="give one number, or 2, one for each training"):
            many.reset(seed=seed)
    found = [many.reset(seed=seed)[1]["training"].tolist() for seed in (0, np.int64(0), [0, 1])]
    assert found[0] == found[1] == found[2]


def test_too_few_rows_of_actions_are_refused():
    many = gym.make_vec(ID, num_envs=2, **GIVEN)
    many.reset(seed=0)
    with pytest.raises(SpecError, match="give 2 rows of 7 finite weights"):
        many.step(np.ones(7))


def test_weights_may_have_any_scale():
    env = gym.make(ID, **GIVEN).unwrapped
    env.reset(options={"root": 1, "training": 0})
    assert env.step(1e6 * ODD.astype(float))[0]["shares"] == pytest.approx(ODD / ODD.sum())


def test_the_reward_is_the_gain_over_where_even_draws_are_stored_to_end():
    stored = {}
    for name in ("exam_rules", "exam_table"):
        figures = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]
        if name == "exam_rules":
            stored |= {family: found["rows"]["even"]["success"] for family, found in figures["families"].items()}
        else:
            stored |= {family: found["success"] for family, found in figures["opened"]["even"]["families"].items()}
    assert EVEN_ENDS.keys() == stored.keys() == NAMED.keys()
    for name, end in EVEN_ENDS.items():
        assert end == pytest.approx(stored[name], abs=5.1e-5), name
    assert gym.make(ID, family="coins").unwrapped.trainings.baseline == EVEN_ENDS["coins"]


@pytest.mark.parametrize("family", [ROOMY, ROOMY.model_copy(update={"name": "coins"})])
def test_a_family_without_a_stored_end_needs_a_baseline(family):
    with pytest.raises(SpecError, match="give baseline="):
        gym.make(ID, family=family, decisions=3)
