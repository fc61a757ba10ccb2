"""``SB3CurriculumCallback`` swaps configs under a running SB3 algorithm, on the native interface and on SB3's own."""

from __future__ import annotations

import json
import linecache
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EveryNTimesteps
from stable_baselines3.common.logger import configure
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnvWrapper, VecNormalize

import engineers
import mapf_frozenlake as mfl
from envtuning import CurriculumEnv, CurriculumVectorEnv, EngineerCurriculum, Ladder, Pools, SB3CurriculumCallback
from envtuning.curriculum.apply import apply_config
from envtuning.errors import SpecError

EASY = mfl.LakeConfig.single(3, num_agents=1, hole_ratio=0.0, horizon=4)
HARD = mfl.LakeConfig.single(5, num_agents=2, hole_ratio=0.2, horizon=6)
ROOM = {"config": EASY, "max_size": 5, "max_agents": 2, "window": 3}


def single():
    return gym.make("MAPFFrozenLake-v0", **ROOM)


INTERFACES = {
    "lakes": lambda: mfl.sb3_vec_env(4, **ROOM),
    "agents": lambda: mfl.sb3_vec_env(4, per_agent=True, **ROOM),
    "copies": lambda: DummyVecEnv([single] * 4),
    "wrapped": lambda: VecNormalize(mfl.sb3_vec_env(4, **ROOM)),
    "wrapped copies": lambda: VecNormalize(DummyVecEnv([single] * 4)),
}


def learn(envs, curriculum, steps=64, **options):
    model = PPO("MlpPolicy", envs, n_steps=8, batch_size=32, n_epochs=1, device="cpu", seed=0)
    callback = SB3CurriculumCallback(curriculum, **options)
    model.learn(steps, callback=callback)
    return callback


def test_slices_that_have_other_names_now_are_mapped(tmp_path):
    def sampler(*sizes):
        return Pools(mfl.LakeConfig(slices={size: {"share": size / 10} for size in sizes}, num_agents=1))

    sampler(3, 4).save(tmp_path / "model_8_steps.curriculum.json")
    callback = SB3CurriculumCallback(sampler(3, 5))
    callback.load(tmp_path / "model_8_steps.zip", renamed={"4": "5"})
    assert callback.curriculum.config.slices[5].share == 0.4


def test_names_that_its_table_would_cut_alike_are_in_the_other_logs_alone(tmp_path):
    """A table of SB3 cuts them at 36 characters, and refuses two that are alike then."""
    long = "knob/the_waves_of_the_northern_sea."
    told = {f"{long}height": 2.0, f"{long}length": 3.0, "knob/wind": 0.5, "stage": 1.0}
    curriculum = EngineerCurriculum("fixed", EASY)
    curriculum.metrics = told.copy
    model = PPO("MlpPolicy", mfl.sb3_vec_env(4, **ROOM), n_steps=8, batch_size=32, n_epochs=1, device="cpu")
    model.set_logger(configure(str(tmp_path), ["log", "json"]))
    model.learn(32, callback=SB3CurriculumCallback(curriculum))
    logged = json.loads((tmp_path / "progress.json").read_text().splitlines()[0])
    assert {name: logged[f"curriculum/{name}"] for name in told} == told
    (table,) = tmp_path.glob("*.txt")
    assert "knob/wind" in table.read_text()
    assert "northern" not in table.read_text()


@pytest.mark.parametrize("interface", INTERFACES)
def test_it_hears_once_of_each_episode(interface):
    envs, heard, ended = INTERFACES[interface](), [], [0]
    step_wait, rows = envs.step_wait, getattr(envs, "rows_per_lake", 1)

    def counted():
        result = step_wait()
        ended[0] += result[2].sum() // rows
        return result

    envs.step_wait = counted

    learn(envs, heard.append)
    assert len(heard) == ended[0] > 5


@pytest.mark.parametrize("interface", INTERFACES)
def test_it_swaps_when_told(interface):
    envs, heard = INTERFACES[interface](), []

    def after_five(success):
        heard.append(success)
        return HARD if len(heard) == 5 else None

    callback = learn(envs, after_five)
    assert callback.config == HARD
    assert envs.env_method("get_config") == [HARD] * envs.num_envs


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_ladder_beyond_the_room_is_refused_before_anything_is_learnt(interface):
    envs = INTERFACES[interface]()
    with pytest.raises(mfl.LakeError, match="make the env with max_size=6"):
        learn(envs, Ladder([EASY, mfl.LakeConfig.single(6)]))


def test_training_starts_on_the_ladders_rung_and_goes_on_there():
    envs, ladder = mfl.sb3_vec_env(2, **ROOM), Ladder([HARD, EASY])
    learn(envs, ladder)
    assert envs.get_config() == HARD


def test_copies_in_other_processes_take_the_config():
    envs = SubprocVecEnv([single], start_method="fork")
    try:
        apply_config(envs, HARD)
        assert envs.env_method("get_config") == [HARD]
    finally:
        envs.close()


class Translates(VecEnvWrapper):
    """Takes configs of its own, and makes one for the lakes out of each."""

    config = None

    def set_config(self, config):
        self.config = config
        self.venv.env_method("set_config", EASY if config == "easy" else HARD)

    def get_config(self):
        return self.config

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        return self.venv.step_wait()


def test_a_wrapper_between_that_takes_configs_is_not_passed_over():
    copies = DummyVecEnv([single] * 4)
    envs = VecNormalize(Translates(copies))
    learn(envs, Ladder(["hard"]), steps=32)
    assert envs.venv.config == "hard"
    assert {env.unwrapped.get_config() for env in copies.envs} == {HARD}


class Crowds(engineers.Engineer):
    """Wants more agents than there is room for."""

    name = "crowds"

    def propose(self, report, current, editable=None):
        return engineers.Proposal(config=current.model_copy(update={"num_agents": 3}))


def processes(copies):
    return SubprocVecEnv(copies, start_method="fork")


@pytest.mark.parametrize("kind", [DummyVecEnv, processes])
def test_a_config_beyond_the_room_is_an_incident_in_any_process(kind):
    envs = kind([single] * 2)
    try:
        curriculum = EngineerCurriculum(Crowds(), EASY, every=5, editable=["*"])
        with pytest.warns(UserWarning, match="beyond max_agents=2"):
            learn(envs, curriculum, steps=96)
        assert len(curriculum.incidents) >= 2
        said = (
            "a config of 3 agents is beyond max_agents=2: make the env with max_agents=3); the current config is kept"
        )
        assert all(one.message.endswith(said) for one in curriculum.incidents)
        assert envs.env_method("get_config") == [EASY] * 2
        with pytest.raises(mfl.LakeError, match="make the env with max_size=6"):
            learn(envs, Ladder([EASY, mfl.LakeConfig.single(6)]))
        learn(envs, Ladder([HARD]))  # nobody has died of it
        assert envs.env_method("get_config") == [HARD] * 2
    finally:
        envs.close()


@pytest.mark.parametrize("kind", [DummyVecEnv, processes])
def test_an_environment_without_set_config_is_refused_before_training_in_any_process(kind):
    envs = kind([lambda: Step(1.0)] * 2)
    try:
        with pytest.raises(TypeError, match=r"nor an environment that it wraps has set_config: give apply=lambda"):
            learn(envs, Ladder([EASY]))
        learn(envs, lambda success: None)  # whose processes live, and which nobody gives a config
    finally:
        envs.close()


SOLVED_BLINDLY = mfl.LakeConfig.single(2, num_agents=1, hole_ratio=0.0, horizon=30)
UNSOLVABLE = mfl.LakeConfig.single(5, num_agents=1, hole_ratio=0.0, min_distance=6, horizon=1)


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("begins_on", [EASY, SOLVED_BLINDLY])
def test_episodes_begun_on_the_rung_before_say_nothing_of_the_next(interface, begins_on):
    envs, ladder = INTERFACES[interface](), Ladder([SOLVED_BLINDLY, *[UNSOLVABLE] * 3], threshold=1.0, window=2)
    apply_config(envs, begins_on)
    learn(envs, ladder, steps=256, success_key="success")
    assert ladder.rung == 1


def test_episodes_begun_before_the_first_rung_was_applied_say_nothing_of_it():
    envs = mfl.sb3_vec_env(64, **ROOM | {"config": SOLVED_BLINDLY})
    ladder = Ladder([UNSOLVABLE, EASY], threshold=1.0, window=2)
    learn(envs, ladder, steps=64 * 16, success_key="success")
    assert ladder.rung == 0


@pytest.mark.parametrize("interface", INTERFACES)
def test_a_lake_that_is_solved_after_bumps_is_no_success_unless_asked(interface):
    """As the suites count: thirty random steps from corner to corner arrive, but not without a step off the board."""
    heard = {}
    for key in (None, "success", "valid"):
        envs, told = INTERFACES[interface](), []
        apply_config(envs, SOLVED_BLINDLY)
        learn(envs, told.append, steps=256, success_key=key)
        heard[key] = told
    assert heard[None] == heard["valid"] != heard["success"]
    assert sum(heard[None]) < sum(heard["success"])


class Step(gym.Env):
    """Somebody else's environment without a word of success: one step, which ends it or, at ``limit``, cuts it off."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,), np.float32), gym.spaces.Discrete(2)

    def __init__(self, reward, limit=False):
        self.reward, self.limit = reward, limit

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), self.reward, not self.limit, self.limit, {}


def test_without_a_word_of_success_it_is_ending_with_a_reward():
    heard, applied = [], []
    envs = DummyVecEnv([lambda: Step(1.0), lambda: Step(0.0), lambda: Step(1.0, limit=True)])

    def curriculum(success):
        heard.append(success)
        return "next" if len(heard) == 3 else None

    learn(envs, curriculum, steps=3, apply=lambda vec_env, config: applied.append((vec_env, config)))
    assert heard[:3] == [True, False, False]
    assert applied == [(envs, "next")]


def test_ends_may_be_told_as_zeros_and_ones():
    """As SuperSuit's environments for Stable-Baselines3 do."""

    class Numbers(VecEnvWrapper):
        def reset(self):
            return self.venv.reset()

        def step_wait(self):
            observations, rewards, dones, infos = self.venv.step_wait()
            return observations, rewards, dones.astype(np.uint8), infos

    ladder = Ladder([1, 2], threshold=0.5, window=4)
    envs = Numbers(DummyVecEnv([partial(gym.make, "CartPole-v1")] * 4))
    with pytest.warns(UserWarning, match="as other steps pay, too"):
        learn(envs, ladder, steps=1_200, apply=lambda env, config: None)
    assert ladder.rung == 1


def ppo(envs):
    return PPO("MlpPolicy", envs, n_steps=8, batch_size=32, n_epochs=1, device="cpu", seed=0)


@pytest.mark.parametrize("beside", [lambda one: one, lambda one: EveryNTimesteps(8, one)])
def test_a_checkpoint_callback_that_would_run_twice_a_step_is_refused_before_training(beside, tmp_path):
    saves, model = CheckpointCallback(8, str(tmp_path)), ppo(mfl.sb3_vec_env(4, **ROOM))
    following = SB3CurriculumCallback(Ladder([EASY, HARD]), checkpoints=saves)
    for callbacks in ([following, beside(saves)], [beside(saves), following]):
        with pytest.raises(SpecError, match="give it to SB3CurriculumCallback alone"):
            model.learn(64, callback=callbacks)
    assert model.num_timesteps == 0
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_callback_that_saves_no_state_of_the_curriculum_is_told_of(tmp_path):
    model, saves = ppo(mfl.sb3_vec_env(4, **ROOM)), CheckpointCallback(8, str(tmp_path))
    with pytest.warns(UserWarning, match=r"saves no state of the curriculum: give it as SB3CurriculumCallback") as told:
        model.learn(32, callback=[saves, SB3CurriculumCallback(Ladder([EASY, HARD]))])
    assert len(told) == 1


def test_checkpoints_that_are_no_callback_are_refused_at_once():
    with pytest.raises(SpecError, match=r"^checkpoints is a str: give stable_baselines3's CheckpointCallback"):
        SB3CurriculumCallback(Ladder([EASY]), checkpoints="folder")


def test_two_callbacks_on_one_curriculum_are_refused_together_and_not_one_after_the_other():
    ladder, model = Ladder([EASY, HARD]), ppo(mfl.sb3_vec_env(4, **ROOM))
    one, other = SB3CurriculumCallback(ladder), SB3CurriculumCallback(ladder)
    for callbacks in ([one, other], [one, one]):
        with pytest.raises(SpecError, match=r"would count twice, .* on one curriculum: leave one of them out"):
            model.learn(32, callback=callbacks)
    for callback in (one, other, [one, SB3CurriculumCallback(Ladder([EASY]))]):
        model.learn(32, callback=callback, reset_num_timesteps=False)


def test_a_callback_above_wrappers_with_its_curriculum_is_refused_before_training():
    ladder = Ladder([EASY, HARD])
    model = ppo(DummyVecEnv([lambda: CurriculumEnv(single(), ladder)] * 4))
    with pytest.raises(SpecError, match="would count twice, as a CurriculumEnv below has the same Ladder"):
        model.learn(32, callback=SB3CurriculumCallback(ladder))
    model.learn(32)
    model.learn(32, callback=SB3CurriculumCallback(Ladder([EASY])))


@pytest.mark.parametrize("wrapper", [CurriculumEnv, CurriculumVectorEnv])
def test_the_gymnasium_wrappers_name_the_callback(wrapper):
    with pytest.raises(TypeError, match="pass callback=SB3CurriculumCallback"):
        wrapper(mfl.sb3_vec_env(1, **ROOM), Ladder([EASY]))


def test_in_cartpole_each_fall_counts_as_a_success_and_is_doubted():
    with pytest.warns(UserWarning, match=r"of the first \d+, as other steps pay, too") as told:
        learn(
            gym.make("CartPole-v1"),
            Ladder([1, 2], threshold=1.0, window=1_000),
            steps=800,
            apply=lambda env, config: None,
        )
    assert len([one for one in told if "as other steps pay, too" in str(one.message)]) == 1


def test_the_end_of_training_says_that_the_engineer_was_never_asked():
    with pytest.warns(UserWarning, match=r"training ended after \d+ of 5,000 episodes") as told:
        learn(mfl.sb3_vec_env(4, **ROOM), EngineerCurriculum("rules", EASY, target=EASY, every=5_000))
    assert len(told) == 1


def test_a_warning_in_training_points_at_the_call_of_learn():
    class Broken(engineers.Engineer):
        name = "broken"

        def propose(self, report, current, editable=None):
            raise OSError("no such host")

    curriculum = EngineerCurriculum(Broken(), EASY, every=5)
    model = PPO("MlpPolicy", mfl.sb3_vec_env(4, **ROOM), n_steps=8, batch_size=32, n_epochs=1, device="cpu", seed=0)
    with pytest.warns(UserWarning, match="broken failed") as told:
        model.learn(32, callback=SB3CurriculumCallback(curriculum))
    assert told[0].filename == __file__
    assert linecache.getline(__file__, told[0].lineno).strip().startswith("model.learn(32, ")
