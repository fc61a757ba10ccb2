"""An engineer behind every door of a trainer: it reads each episode that began and ended on the config in force, once."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from engineers import Engineer, Proposal
from envtuning import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv, EngineerCurriculum
from envtuning.curriculum.ended import outcome_of
from envtuning.errors import RunError

EVERY = 30


def lakes(small: float) -> mfl.LakeConfig:
    """Lakes of one size: 3×3 or 4×4."""
    return mfl.LakeConfig(slices={3: {"share": small}, 4: {"share": 1 - small}}, num_agents=2, horizon=5)


class Turns(Engineer):
    """3×3 and 4×4 by turns."""

    name = "turns"

    def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal[Any]:
        return Proposal(config=lakes(float(report.stage % 2)))


class Ended:
    """The episodes that ended, by slice, seen at the environment itself; those of a size that is not in force began before a swap."""

    def __init__(self) -> None:
        self.curriculum = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)
        self.counted: Counter[str] = Counter()

    def saw(self, names: Any) -> None:
        in_force = "3" if self.curriculum.config.slices[3].share else "4"
        self.counted.update(str(name) for name in names if str(name) == in_force)

    def check(self, stages: int = 3) -> None:
        tables = [record.training_results for record in self.curriculum.history]
        assert len(tables) >= stages
        for stage, table in enumerate(tables):
            assert [row.name for row in table] == ["4" if stage % 2 else "3"]
            assert table[0].episodes >= EVERY
        rows = [row for table in [*tables, self.curriculum.report.training_results] for row in table]
        told: Counter[str] = Counter()
        for row in rows:
            told[row.name] += row.episodes
        assert told == self.counted
        assert {record.config["slices"]["3"]["share"] for record in self.curriculum.history} == {0.0, 1.0}


def test_a_vector_environment():
    ended = Ended()
    envs = gym.make_vec(
        "MAPFFrozenLake-v0", num_envs=8, config=lakes(1.0), max_size=4, vectorization_mode="vector_entry_point"
    )
    step = envs.step

    def watched(actions):
        result = step(actions)
        done = result[2] | result[3]
        ended.saw(result[4]["slice"][done] if done.any() else ())
        return result

    envs.step = watched
    wrapped = CurriculumVectorEnv(envs, ended.curriculum, success_key="valid")
    wrapped.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(150):
        wrapped.step(rng.integers(0, 5, (8, 2)))
    ended.check()


def test_pettingzoo():
    ended = Ended()
    env = mfl.parallel_env(config=lakes(1.0), max_size=4)
    wrapped = CurriculumParallelEnv(env, ended.curriculum, success_key="valid")
    rng = np.random.default_rng(0)
    for episode in range(120):
        wrapped.reset(seed=episode)
        while env.agents:
            *_, infos = wrapped.step({agent: int(rng.integers(0, 5)) for agent in env.agents})
        ended.counted[str(next(iter(infos.values()))["slice"])] += 1  # an episode ends before the next config applies
    ended.check()


def test_a_single_environment():
    ended = Ended()
    env = CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=lakes(1.0), max_size=4), ended.curriculum)
    rng = np.random.default_rng(0)
    for episode in range(120):
        env.reset(seed=episode)
        over = False
        while not over:
            *_, terminated, truncated, info = env.step(rng.integers(0, 5, 2))
            over = terminated or truncated
        ended.counted[str(info["slice"])] += 1  # an episode ends before the next config applies
    ended.check()


def copies_warned(env: gym.Env, curriculum: EngineerCurriculum) -> CurriculumEnv:
    """Made in the process of a copy, which keeps the warnings of its first two resets."""
    made = CurriculumEnv(env, curriculum)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        made.reset(seed=0)
        made.reset(seed=1)
    made.told = [str(one.message) for one in told]
    return made


def test_a_copy_of_a_curriculum_in_another_process_is_warned_of_once():
    ended = Ended()

    def make() -> CurriculumEnv:
        return copies_warned(gym.make("mapf_frozenlake:MAPFFrozenLake-v0", config=lakes(1.0)), ended.curriculum)

    assert make().told == []
    envs = gym.vector.AsyncVectorEnv([make] * 2)
    try:
        for told in envs.get_attr("told"):
            [message] = told
            assert message.startswith("this process has a copy of the EngineerCurriculum, which counts this process's ")
    finally:
        envs.close()


class Crowds(Engineer):
    """Wants more agents than there is room for."""

    name = "crowds"

    def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal[Any]:
        return Proposal(config=current.model_copy(update={"num_agents": 3}))


def test_copies_in_other_processes_refuse_what_does_not_fit_and_live_on():
    made = partial(gym.make, "mapf_frozenlake:MAPFFrozenLake-v0", config=lakes(1.0), max_size=4)
    curriculum = EngineerCurriculum(Crowds(), lakes(1.0), every=10, editable=["*"], background=True)
    envs = CurriculumVectorEnv(gym.vector.AsyncVectorEnv([made] * 2), curriculum)
    try:
        envs.reset(seed=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            while len(curriculum.incidents) < 2:
                envs.step(envs.action_space.sample())
        assert "beyond max_agents=2" in curriculum.incidents[1].message
        with pytest.raises(mfl.LakeError, match="make the env with max_size=6"):
            envs.set_config(mfl.LakeConfig.single(6, 2))
        envs.set_config(lakes(0.0))
        assert envs.env.call("get_config") == (lakes(0.0),) * 2
    finally:
        envs.close()
    bare = gym.vector.AsyncVectorEnv([partial(gym.make, "CartPole-v1")])
    with pytest.raises(TypeError, match="neither AsyncVectorEnv nor an environment that it wraps has set_config"):
        CurriculumVectorEnv(bare, curriculum)
    bare.close()


@pytest.mark.parametrize("interface", ["lakes", "agents", "copies", "processes"])
def test_stable_baselines3(interface, tmp_path):
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import CheckpointCallback
    from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

    from envtuning import SB3CurriculumCallback

    room = {"config": lakes(1.0), "max_size": 4, "window": 3}
    made = {
        "lakes": lambda: mfl.sb3_vec_env(4, **room),
        "agents": lambda: mfl.sb3_vec_env(4, per_agent=True, **room),
        "copies": lambda: DummyVecEnv([lambda: gym.make("MAPFFrozenLake-v0", flat=True, **room)] * 4),
        "processes": lambda: SubprocVecEnv(
            [partial(gym.make, "mapf_frozenlake:MAPFFrozenLake-v0", flat=True, **room)] * 2
        ),
    }
    ended, envs = Ended(), made[interface]()
    step_wait, rows = envs.step_wait, getattr(envs, "rows_per_lake", 1)

    def watched():
        result = step_wait()
        ended.saw(info["slice"] for info, done in list(zip(result[3], result[2], strict=True))[::rows] if done)
        return result

    envs.step_wait = watched
    model = PPO("MlpPolicy", envs, n_steps=8, batch_size=32, n_epochs=1, device="cpu", seed=0)
    callback = SB3CurriculumCallback(
        ended.curriculum, success_key="valid", checkpoints=CheckpointCallback(100, str(tmp_path), "model")
    )
    model.learn(1_200, callback=callback)
    if interface == "processes":  # nobody can say on what config the first episodes began, so they are left out
        ended.counted["3"] -= envs.num_envs
    ended.check()
    checkpoint = sorted(tmp_path.glob("model_*_steps.zip"), key=lambda path: int(path.stem.split("_")[1]))[-1]
    again = SB3CurriculumCallback(EngineerCurriculum(Turns(), lakes(1.0), every=EVERY), success_key="valid")
    again.load(checkpoint)
    stage = again.curriculum.stage
    assert stage >= 2
    other = made["lakes"]()
    PPO("MlpPolicy", other, n_steps=8, batch_size=32, n_epochs=1, device="cpu").learn(400, callback=again)
    assert again.curriculum.stage > stage
    assert other.get_config() == again.curriculum.config
    envs.close()


@pytest.mark.ray
@pytest.mark.parametrize("runners", [0, 2])
def test_rllib(ray_session, runners, tmp_path):
    pytest.importorskip("ray", reason="needs Ray: pip install 'mapf-frozenlake[rllib]'")
    from ray import cloudpickle
    from ray.rllib.algorithms.ppo import PPOConfig

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # remote runners know no tests
    from envtuning import RLlibCurriculumCallback
    from envtuning.curriculum.apply import config_below
    from envtuning.worlds.lakes.rllib_envs import register_lakes

    register_lakes()
    curriculum = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)
    settings = (
        PPOConfig()
        .environment("lakes", env_config={"config": lakes(1.0), "max_size": 4, "window": 3})
        .env_runners(
            num_env_runners=runners, num_envs_per_env_runner=4, num_cpus_per_env_runner=0.5,
            gym_env_vectorize_mode="vector_entry_point",
        )
        .training(train_batch_size_per_learner=128, minibatch_size=64, num_epochs=1)
        .callbacks(RLlibCurriculumCallback.following(curriculum, success_key="valid"))
        .debugging(log_level="ERROR")
    )  # fmt: skip
    algorithm = settings.build_algo()
    for _ in range(6):
        algorithm.train()
    assert RLlibCurriculumCallback.of(algorithm).curriculum is curriculum
    tables = [record.training_results for record in curriculum.history]
    assert len(tables) >= 3
    assert [[row.name for row in table] for table in tables] == [
        ["4" if stage % 2 else "3"] for stage in range(len(tables))
    ]
    folder = RLlibCurriculumCallback.save(algorithm, tmp_path / "checkpoint")
    state = curriculum.state_dict()
    algorithm.stop()
    again = type(algorithm).from_checkpoint(str(folder))
    restored = RLlibCurriculumCallback.of(again).curriculum
    assert restored is not curriculum
    assert restored.state_dict() == state  # RLlib has pickled it

    def configs_on_runners():
        on = again.env_runner_group.foreach_env_runner(
            lambda runner: None if runner.env is None else config_below(runner.env)
        )
        return {config for config in on if config is not None}

    assert configs_on_runners() == {restored.config}
    RLlibCurriculumCallback.restore(again, folder)
    assert restored.state_dict() == state
    assert configs_on_runners() == {restored.config}
    for _ in range(3):
        again.train()
    assert restored.stage > state["stage"]
    again.stop()


class Points(gym.Env):
    """One step, and a score that is no part of the credit."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,), np.float32), gym.spaces.Discrete(2)

    def set_config(self, config: Any) -> None:
        pass

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        return np.zeros(1, np.float32), 1.0, True, False, {"slice": "3", "is_success": True, "score": 5.0}


@pytest.mark.parametrize("interface", ["environment", "vector", "stable_baselines3"])
def test_points_in_place_of_a_score_are_refused_by_the_entrys_name(interface):
    curriculum = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)

    def trains() -> None:
        if interface == "environment":
            env = CurriculumEnv(Points(), curriculum)
            env.reset()
            env.step(0)
        elif interface == "vector":  # arrays are looked at when the stage is summed
            envs = CurriculumVectorEnv(gym.vector.SyncVectorEnv([Points] * EVERY), curriculum)
            envs.reset()
            envs.step(np.zeros(EVERY, int))
        else:
            pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
            from stable_baselines3 import PPO

            from envtuning import SB3CurriculumCallback

            model = PPO("MlpPolicy", Points(), n_steps=8, batch_size=8, device="cpu")
            model.learn(1, callback=SB3CurriculumCallback(curriculum))

    with pytest.raises(ValueError, match=r"""score=5.0 in the slice '3': .* the last info\["score"\]: scale it"""):
        trains()


class Step(gym.Env):
    """Two slices of one step; whoever takes action 1 arrives. It takes a config by ``set_config`` and knows nothing of lakes."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, env_config: Any) -> None:
        self.config, self.log = env_config["config"], env_config.get("log")

    def set_config(self, config: Any) -> None:
        self.config = config

    def get_config(self) -> Any:
        return self.config

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        small = self.np_random.random() < self.config.slices[3].share
        self.slice = "3" if small else "4"
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        if self.log is not None and (self.slice == "3") == bool(
            self.config.slices[3].share
        ):  # else begun before a swap
            with open(self.log, "a") as file:
                file.write(f"{self.slice} {int(action)}\n")
        return np.zeros(1, np.float32), float(action), True, False, {"slice": self.slice, "is_success": bool(action)}


@pytest.fixture
def own_env(ray_session):
    """An Algorithm on an environment class of a script, unregistered, and the curriculum that it follows."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'mapf-frozenlake[rllib]'")
    from ray import cloudpickle
    from ray.rllib.algorithms.ppo import PPOConfig

    from envtuning import RLlibCurriculumCallback

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # remote runners know no tests
    built = []

    def build(runners: int, curriculum: EngineerCurriculum, log: str | None = None, **following: Any) -> Any:
        settings = (
            PPOConfig()
            .environment(Step, env_config={"config": lakes(1.0), "log": log})
            .env_runners(num_env_runners=runners, num_envs_per_env_runner=2, num_cpus_per_env_runner=0.5)
            .training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
            .callbacks(RLlibCurriculumCallback.following(curriculum, **following))
            .debugging(log_level="ERROR")
        )
        built.append(settings.build_algo())
        return built[-1]

    yield build
    for algorithm in built:
        algorithm.stop()


@pytest.mark.ray
@pytest.mark.parametrize("runners", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_rllib_counts_what_ended_on_its_runners(own_env, runners, tmp_path):
    curriculum = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)
    algorithm = own_env(runners, curriculum, log=str(tmp_path / "ended"))
    for _ in range(4):
        algorithm.train()
    assert curriculum.stage >= 3
    ended: dict[str, list[bool]] = {"3": [], "4": []}
    for line in (tmp_path / "ended").read_text().splitlines():
        name, arrived = line.split()
        ended[name].append(arrived == "1")
    told: dict[str, list[tuple[int, float]]] = {"3": [], "4": []}
    for record in [*curriculum.history, curriculum.report]:
        for row in record.training_results:
            told[row.name].append((row.episodes, row.metrics["success_rate"]))
    for name, arrived in ended.items():
        assert sum(episodes for episodes, _ in told[name]) == len(arrived) > 0
        assert round(sum(episodes * rate for episodes, rate in told[name])) == sum(arrived)


@pytest.mark.ray
@pytest.mark.parametrize("runners", [0, pytest.param(1, marks=pytest.mark.prove)])  # test_rllib has remote ones
def test_rllib_pickles_a_curriculum_that_goes_on_by_from_checkpoint_alone(own_env, runners, tmp_path):
    """With no remote runner, the environments live in the process whose curriculum RLlib pickles."""
    from envtuning import RLlibCurriculumCallback
    from envtuning.curriculum.apply import config_below

    curriculum = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)
    algorithm = own_env(runners, curriculum)
    for _ in range(3):
        algorithm.train()
    assert curriculum.stage == len(curriculum.proposals) >= 2
    algorithm.save_to_path(str(tmp_path / "theirs"))
    state = curriculum.state_dict()
    again = type(algorithm).from_checkpoint(str(tmp_path / "theirs"))
    restored = RLlibCurriculumCallback.of(again).curriculum
    assert restored is not curriculum
    assert restored.state_dict() == state
    on = again.env_runner_group.foreach_env_runner(
        lambda runner: None if runner.env is None else config_below(runner.env)
    )
    assert {config for config in on if config is not None} == {curriculum.config}
    again.train()
    assert (restored.stage, curriculum.stage) == (state["stage"] + 1, state["stage"])
    again.stop()


@pytest.mark.ray
def test_rllib_restores_into_a_new_algorithm_and_refuses_a_curriculum_of_another(own_env, tmp_path):
    from envtuning import RLlibCurriculumCallback

    curriculum = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)
    algorithm = own_env(0, curriculum)
    for _ in range(2):
        algorithm.train()
    folder = RLlibCurriculumCallback.save(algorithm, tmp_path / "ours")
    state = curriculum.state_dict()
    fresh = EngineerCurriculum(Turns(), lakes(1.0), every=EVERY)
    again = own_env(0, fresh)

    def goes_on_from_there() -> None:
        again.restore_from_path(str(folder))
        RLlibCurriculumCallback.restore(again, folder)
        assert fresh.state_dict() == state
        again.train()
        assert fresh.stage == state["stage"] + 1

    again.restore_from_path(str(folder))
    with pytest.raises(
        RunError, match="this Algorithm has trained for 2 iterations, and its curriculum has counted 0: "
    ):
        again.train()
    goes_on_from_there()
    again.train()
    again.restore_from_path(str(folder))  # a rollback in the middle of a training
    with pytest.raises(RunError, match=r"for 2 iterations, and its curriculum has counted 4: .*Callback\.restore\("):
        again.train()
    goes_on_from_there()
    with pytest.raises(
        RunError, match=r"for 0 iterations, and its curriculum has counted 2: .* give a new Algorithm a new "
    ):
        own_env(0, curriculum).train()


class Undrawable(Engineer):
    """An agent alone never has to wait, so no board has this wait ratio."""

    name = "undrawable"

    def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal[Any]:
        return Proposal(config=mfl.LakeConfig.single(3, num_agents=1, horizon=5, wait_ratio=0.5))


def by_sb3(config: mfl.LakeConfig, curriculum: EngineerCurriculum) -> None:
    pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
    from stable_baselines3 import PPO

    from envtuning import SB3CurriculumCallback

    model = PPO("MlpPolicy", mfl.sb3_vec_env(4, config=config), n_steps=32, batch_size=64, device="cpu")
    model.learn(256, callback=SB3CurriculumCallback(curriculum))


def by_a_vector_environment(config: mfl.LakeConfig, curriculum: EngineerCurriculum, **how: Any) -> None:
    envs = CurriculumVectorEnv(gym.make_vec("MAPFFrozenLake-v0", num_envs=4, config=config, **how), curriculum)
    envs.reset(seed=0)
    for _ in range(60):
        envs.step(np.ones((4, 1), int))


def by_one_environment(config: mfl.LakeConfig, curriculum: EngineerCurriculum) -> None:
    env = CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=config), curriculum)
    for _ in range(40):
        env.reset()
        for _ in range(5):
            if any(env.step(np.ones(1, int))[2:4]):
                break


@pytest.mark.parametrize(
    "train",
    [
        by_sb3,
        partial(by_a_vector_environment, vectorization_mode="vector_entry_point"),
        partial(by_a_vector_environment, vectorization_mode="sync"),
        by_one_environment,
    ],
)
def test_a_config_of_lakes_that_cannot_be_drawn_is_an_incident_and_training_goes_on(train):
    config = mfl.LakeConfig.single(3, num_agents=1, horizon=5)
    curriculum = EngineerCurriculum(Undrawable(), config, every=10)
    with pytest.warns(UserWarning, match="an agent alone never needs to wait"):
        train(config, curriculum)
    assert curriculum.config == config
    assert [incident.kind for incident in curriculum.incidents] == ["refused_proposal"] * curriculum.stage
    assert curriculum.stage >= 2


class Kinds(gym.Wrapper):
    """Counts how its failed episodes failed."""

    def __init__(self, env: gym.Env, seen: Counter[str]) -> None:
        super().__init__(env)
        self.seen = seen

    def step(self, action):
        *rest, info = self.env.step(action)
        if rest[2] or rest[3]:
            self.seen.update([info["failure"]] if info["failure"] is not None else [])
        return *rest, info


@pytest.mark.parametrize("by", ["one environment", "Stable-Baselines3"])
def test_the_report_has_the_kinds_of_failures(by):
    config, seen = mfl.LakeConfig.single(3, num_agents=1, horizon=5), Counter[str]()
    curriculum = EngineerCurriculum("rules", config, target=config, every=10**6)
    env = Kinds(gym.make("mapf_frozenlake:MAPFFrozenLake-v0", flat=True, config=config), seen)
    if by == "one environment":
        env = CurriculumEnv(env, curriculum)
        env.reset(seed=0)
        rng = np.random.default_rng(0)
        for _ in range(300):
            if any(env.step(rng.integers(0, 5, 1))[2:4]):
                env.reset()
    else:
        pytest.importorskip("stable_baselines3", reason="needs Stable-Baselines3: pip install stable-baselines3")
        from stable_baselines3 import PPO

        from envtuning import SB3CurriculumCallback

        PPO("MlpPolicy", env, n_steps=64, seed=0, device="cpu").learn(256, callback=SB3CurriculumCallback(curriculum))
    [row] = curriculum.report.training_results
    assert row.failures == seen
    assert len(seen) >= 2


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ({"success": False, "failure": "hole"}, "hole"),
        ({"success": True, "failure": "hole"}, ""),
        ({"success": False, "failure": True}, ""),
        ({"success": False, "failure": "x" * 200}, "x" * 100),
        ({"success": False}, ""),
    ],
)
def test_a_kind_of_failure_is_a_text_of_a_failed_episode(info, kind):
    assert outcome_of(info, lambda: False).failure == kind
