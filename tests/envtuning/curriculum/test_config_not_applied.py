"""A ``set_config`` of a user's own raises an error: it stays visible, and the curriculum goes on with the config before."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from pydantic import BaseModel, Field

from engineers import Engineer, Proposal
from envtuning import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv, EngineerCurriculum, Ladder
from envtuning.curriculum.curriculum import Curriculum
from tests.lazily import needed

BROKEN = "broken"


class Brittle(gym.Env):
    """Every episode is one step long and a success. One config is more than its ``set_config`` can do."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def __init__(self) -> None:
        self.given: list[Any] = []

    def set_config(self, config: Any) -> None:
        if config == BROKEN:
            raise ZeroDivisionError("no such mountain")
        self.given.append(config)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, 1.0, True, False, {"success": True}


class BrittleParallel:
    """The same for PettingZoo."""

    possible_agents, metadata = ["a"], {}

    def __init__(self) -> None:
        self.one, self.agents = Brittle(), ["a"]
        self.set_config = self.one.set_config

    def set_config(self, config: Any) -> None: ...

    def observation_space(self, agent: str) -> gym.Space:
        return self.one.observation_space

    action_space = observation_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        self.agents = ["a"]
        return {"a": 0}, {"a": {}}

    def step(self, actions: Any) -> tuple[dict, ...]:
        self.agents = []
        return {"a": 0}, {"a": 1.0}, {"a": True}, {"a": False}, {"a": {"success": True}}


Played = tuple[list[Brittle], Callable[[], object], Callable[[], object]]  # goes on, and begins again


def alone(curriculum: Curriculum) -> Played:
    env = Brittle()
    wrapped = CurriculumEnv(env, curriculum)
    return [env], lambda: (wrapped.step(0), wrapped.reset()), wrapped.reset


def in_parallel(curriculum: Curriculum) -> Played:
    env = BrittleParallel()
    wrapped = CurriculumParallelEnv(env, curriculum)
    return [env.one], lambda: (wrapped.step({"a": 0}), wrapped.reset()), wrapped.reset


def two_copies(curriculum: Curriculum) -> Played:
    envs = [Brittle(), Brittle()]
    wrapped = CurriculumVectorEnv(SyncVectorEnv([lambda env=env: env for env in envs]), curriculum)
    return envs, lambda: wrapped.step(np.zeros(2, int)), wrapped.reset


def stable_baselines3(curriculum: Curriculum) -> Played:
    needed("stable_baselines3", extra="sb3")
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    from envtuning import SB3CurriculumCallback

    env = Brittle()
    model = PPO("MlpPolicy", DummyVecEnv([lambda: env]), n_steps=8, batch_size=8, n_epochs=1, device="cpu")
    callback = SB3CurriculumCallback(curriculum)
    return [env], lambda: model.learn(8, callback=callback), lambda: None


def language(curriculum: Curriculum) -> Played:
    needed("trl", extra="grpo")
    from envtuning.curriculum.trl_callback import TRLCurriculumCallback

    prompts, state = Brittle(), SimpleNamespace(is_world_process_zero=True, global_step=0)
    callback = TRLCurriculumCallback(prompts, curriculum)
    pay = callback.rewards(lambda **_: [1.0] * 4)

    def step() -> None:
        pay(completions=[""] * 4)
        callback.on_step_end(None, state, None)

    return [prompts], step, lambda: callback.on_train_begin(SimpleNamespace(), state, None)


def rllib(curriculum: Curriculum) -> Played:
    needed("ray", extra="rllib")
    from envtuning.curriculum.rllib_callback import RLlibCurriculumCallback

    callback, runner = RLlibCurriculumCallback.following(curriculum)(), SimpleNamespace(env=Brittle())
    group = SimpleNamespace(foreach_env_runner=lambda do, **_: [do(runner)])
    algorithm = SimpleNamespace(
        callbacks=callback, env_runner_group=group, eval_env_runner_group=None, env_runner=runner
    )
    trained, logger = [0], SimpleNamespace(log_value=lambda *_, **__: None)

    def train() -> None:
        trained[0] += 1
        for name in range(4):
            episode = SimpleNamespace(id_=name, get_infos=lambda at: {"is_success": True})
            callback.on_episode_start(episode=episode, env_runner=runner)
            callback.on_episode_end(episode=episode, env_runner=runner, metrics_logger=logger)
        callback.on_train_result(algorithm=algorithm, result={"training_iteration": trained[0]})

    runner.config = SimpleNamespace(in_evaluation=False, metrics_num_episodes_for_smoothing=1)
    return [runner.env], train, lambda: callback.on_algorithm_init(algorithm=algorithm)


def times(count: int, do: Callable[[], object]) -> None:
    for _ in range(count):
        do()


DOORS = [alone, in_parallel, two_copies, stable_baselines3, language, pytest.param(rllib, marks=pytest.mark.ray)]


@pytest.mark.parametrize("door", DOORS)
def test_the_error_says_which_config_and_the_curriculum_goes_on_with_the_one_before(door):
    ladder = Ladder(["plain", BROKEN, "steep"], threshold=1.0, window=4)
    envs, go_on, begin = door(ladder)
    begin()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as told:
            times(5, go_on)
        assert told.value.__notes__ == ["the config 'broken' could not be applied"]
        assert (ladder.config, ladder.rung, ladder.state_dict()["rung"]) == ("plain", 0, 0)
        begin()
        for env in envs:
            assert set(env.given) == {"plain"}
    ladder.configs[1] = "better"  # the error is mended
    times(5, go_on)
    begin()
    assert [env.given[-1] for env in envs] == [ladder.config] * len(envs)
    assert ladder.rung >= 1


class Slope(BaseModel):
    share: float = Field(1.0, ge=0, le=1, description="Part of the data.")
    angle: float = Field(0.1, ge=0, le=1, description="Steepness.")


class Steeper(Engineer):
    name = "steeper"

    def propose(self, report, current, editable=None):
        return Proposal(config=current.model_copy(update={"angle": round(current.angle + 0.1, 1)}), engineer=self.name)


class UpTo(Brittle):
    def set_config(self, config: Any) -> None:
        if config.angle > 0.2:
            raise ZeroDivisionError("no such mountain")
        self.given.append(config)


def test_the_engineers_question_counts_as_refused():
    curriculum = EngineerCurriculum(Steeper(), Slope(), every=4)
    env = CurriculumEnv(UpTo(), curriculum)
    with pytest.raises(ZeroDivisionError):
        times(9, lambda: (env.reset(), env.step(0)))
    last, [refused] = curriculum.proposals[-1], curriculum.incidents
    assert curriculum.config == last.config == Slope(angle=0.2)
    assert last.fallback
    assert (refused.kind, refused.stage) == ("refused_proposal", 1)
    assert refused.message.startswith(
        "steeper's config could not be applied (ZeroDivisionError: no such mountain (test_config_not_applied.py, line "
    )
    assert "stage 1: 4 episodes, success all 1; no change (refused proposal, in `incidents`)" in str(curriculum)
    again = EngineerCurriculum(Steeper(), Slope(), every=4)
    again.load_state_dict(curriculum.state_dict())
    env = CurriculumEnv(UpTo(), again)
    env.reset()
    assert env.get_config() == Slope(angle=0.2)


def test_an_environment_that_shares_a_curriculum_follows_back():
    ladder = Ladder(["plain", BROKEN], threshold=1.0, window=1)
    first, second = Brittle(), Brittle()
    one, other = CurriculumEnv(first, ladder), CurriculumEnv(second, ladder)
    one.reset()
    other.reset()
    one.step(0)  # its next reset would be on the next rung
    with pytest.raises(ZeroDivisionError):
        other.reset()
    one.reset()
    assert first.given == ["plain", "plain"]


def test_a_first_config_that_cannot_be_applied_is_kept():
    ladder = Ladder([BROKEN, "plain"])
    with pytest.raises(ZeroDivisionError) as told:
        CurriculumEnv(Brittle(), ladder).reset()
    assert told.value.__notes__ == ["the config 'broken' could not be applied"]
    assert (ladder.config, ladder.version) == (BROKEN, 0)
