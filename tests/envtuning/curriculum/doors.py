"""Every door of a curriculum, driven alike: small lakes, a policy that learns next to nothing, checkpoints to continue from.

``door(name, model)(curriculum, stages, folder)`` trains for so many stages. With a ``folder`` it writes checkpoints there, and
continues from the newest. ``python doors.py DOOR FOLDER MODEL`` does so for ever, with the engineer ``rules``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

import mapf_frozenlake as mfl
from envtuning import CurriculumEnv, CurriculumParallelEnv, CurriculumVectorEnv, EngineerCurriculum, Ladder
from envtuning.curriculum.apply import config_below
from envtuning.outcomes import Outcome


def lakes(small: float) -> mfl.LakeConfig:
    """2×2 and 3×3 without a hole, where chance arrives often."""
    return mfl.LakeConfig(
        slices={2: {"share": small, "hole_ratio": 0.0}, 3: {"share": 1 - small, "hole_ratio": 0.0}}, num_agents=1
    )


START, TARGET, EDITABLE, EVERY = lakes(0.75), lakes(0.25), ["slices.*.share"], 24
ROOM: dict[str, Any] = {"config": START, "max_size": 3, "window": 3}
FILE = "curriculum.json"
ARRIVES = "success"  # what chance does often, with a step off the board on the way


class Steps(Ladder):
    """A ladder whose rungs are its stages."""

    loaded: int | None = None  # the rung of the state that it was given

    @property
    def stage(self) -> int:
        return self.rung

    def load_state_dict(self, state: dict[str, Any], renamed: Any = None) -> None:
        super().load_state_dict(state, renamed)
        self.loaded = self.rung


Staged = EngineerCurriculum | Steps


class Trained(NamedTuple):
    curriculum: Staged  # that decided: the one that was given, or the copy in RLlib's checkpoint
    began_on: list[mfl.LakeConfig]  # the config of every environment as training began or went on
    ended_on: list[mfl.LakeConfig]


Door = Callable[[Staged, int, Path | None], Trained]


def environment(curriculum: Staged, stages: int, folder: Path | None) -> Trained:
    env = CurriculumEnv(gym.make("MAPFFrozenLake-v0", **ROOM), curriculum, success_key=ARRIVES)
    rng = np.random.default_rng(0)

    def reset() -> None:
        env.reset(seed=int(rng.integers(1_000)))

    def step() -> None:
        *_, terminated, truncated, _ = env.step(rng.integers(0, 5, 1))
        if terminated or truncated:
            reset()

    return _by_hand(curriculum, stages, folder, reset, step, lambda: [env.unwrapped.get_config()])


def vector(curriculum: Staged, stages: int, folder: Path | None) -> Trained:
    envs = CurriculumVectorEnv(
        gym.make_vec("MAPFFrozenLake-v0", num_envs=4, vectorization_mode="vector_entry_point", **ROOM),
        curriculum,
        success_key=ARRIVES,
    )
    rng = np.random.default_rng(0)
    return _by_hand(
        curriculum, stages, folder, lambda: envs.reset(seed=0), lambda: envs.step(rng.integers(0, 5, (4, 1))),
        lambda: [config_below(envs.env)],
    )  # fmt: skip


def pettingzoo(curriculum: Staged, stages: int, folder: Path | None) -> Trained:
    env = CurriculumParallelEnv(mfl.parallel_env(**ROOM), curriculum, success_key=ARRIVES)
    rng = np.random.default_rng(0)

    def reset() -> None:
        env.reset(seed=int(rng.integers(1_000)))

    def step() -> None:
        env.step({agent: int(rng.integers(0, 5)) for agent in env.agents})
        if not env.agents:
            reset()

    return _by_hand(curriculum, stages, folder, reset, step, lambda: [env.unwrapped.get_config()])


def _by_hand(
    curriculum: Staged,
    stages: int,
    folder: Path | None,
    reset: Callable[[], object],
    step: Callable[[], object],
    on: Callable[[], list[mfl.LakeConfig]],
) -> Trained:
    """A loop of one's own, which saves the curriculum beside its weights."""
    if folder is not None and (folder / FILE).exists():
        curriculum.load(folder / FILE)
    reset()
    began, steps, end = on(), 0, curriculum.stage + stages
    while curriculum.stage < end:
        step()
        steps += 1
        if folder is not None and steps % 50 == 0:
            curriculum.save(folder / FILE)
    reset()
    return Trained(curriculum, began, on())


def stable_baselines3(curriculum: Staged, stages: int, folder: Path | None) -> Trained:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback

    from envtuning import SB3CurriculumCallback

    torch.set_num_threads(1)  # a tiny network is slower on many
    envs = mfl.sb3_vec_env(4, **ROOM)

    class Until(BaseCallback):
        def _on_training_start(self) -> None:
            self.began = envs.env_method("get_config")
            self.end = curriculum.stage + stages

        def _on_step(self) -> bool:
            return curriculum.stage < self.end

    until = Until()
    model = PPO("MlpPolicy", envs, n_steps=16, batch_size=32, n_epochs=1, device="cpu", seed=0)
    following = SB3CurriculumCallback(
        curriculum,
        success_key=ARRIVES,
        checkpoints=None if folder is None else CheckpointCallback(50, str(folder), "model"),
    )
    whole = [] if folder is None else list(folder.glob("model_*_steps.curriculum.json"))
    if whole:
        newest = max(whole, key=lambda path: int(path.name.split("_")[1]))
        checkpoint = newest.with_name(newest.name.replace(".curriculum.json", ".zip"))
        model = PPO.load(checkpoint, envs, device="cpu")
        following.load(checkpoint)
    model.learn(10**9, callback=[following, until], reset_num_timesteps=not whole)
    return Trained(curriculum, until.began, envs.env_method("get_config"))


def rllib(curriculum: Staged, stages: int, folder: Path | None) -> Trained:
    from ray.rllib.algorithms.ppo import PPO, PPOConfig
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    from envtuning import RLlibCurriculumCallback
    from envtuning.worlds.lakes.rllib_envs import register_lakes

    register_lakes()
    settings = (
        PPOConfig()
        .environment("lakes", env_config=ROOM)
        .env_runners(
            num_env_runners=0, num_envs_per_env_runner=4, gym_env_vectorize_mode="vector_entry_point",
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[16]))
        .training(train_batch_size_per_learner=128, minibatch_size=64, num_epochs=1)
        .callbacks(RLlibCurriculumCallback.following(curriculum, success_key=ARRIVES))
        .debugging(log_level="ERROR", seed=0)
    )  # fmt: skip
    newest = None if folder is None else max(folder.glob("*/curriculum.json"), default=None)
    if newest is None:
        algorithm = settings.build_algo()
    else:
        algorithm = PPO.from_checkpoint(str(newest.parent))
        RLlibCurriculumCallback.restore(algorithm, newest.parent)

    def on() -> list[mfl.LakeConfig]:
        return algorithm.env_runner_group.foreach_env_runner(lambda runner: config_below(runner.env))

    decides = RLlibCurriculumCallback.of(algorithm).curriculum
    assert isinstance(decides, Staged)
    if isinstance(curriculum, Recorded):
        vars(decides)["log"] = curriculum.log
    began, end = on(), decides.stage + stages
    while decides.stage < end:
        result = algorithm.train()
        if folder is not None:
            RLlibCurriculumCallback.save(algorithm, folder / f"{result['training_iteration']:06}")
    ended = on()
    algorithm.stop()
    return Trained(decides, began, ended)


def trl(curriculum: Staged, stages: int, folder: Path | None, *, model: Path) -> Trained:
    import torch
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from envtuning.curriculum.trl_callback import TRLCurriculumCallback
    from mapf_frozenlake.text.trl import LakePrompts

    torch.set_num_threads(1)
    prompts, began = LakePrompts(START, style="short"), list[mfl.LakeConfig]()
    following = TRLCurriculumCallback(prompts, curriculum)

    class Until(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            began.append(prompts.get_config())
            self.end = curriculum.stage + stages

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = curriculum.stage >= self.end

    settings: dict[str, Any] = {
        "per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 4, "use_cpu": True, "bf16": False,
        "report_to": "none", "disable_tqdm": True, "seed": 1, "max_steps": 10**6, "save_steps": 4,
    }  # fmt: skip
    trainer = GRPOTrainer(
        str(model),
        reward_funcs=following.rewards(
            lambda completions, **_: [float(at % 4 > 0) for at, _ in enumerate(completions)]
        ),
        args=GRPOConfig(
            output_dir=str(model if folder is None else folder),
            save_strategy="no" if folder is None else "steps",
            **settings,
        ),
        train_dataset=prompts.dataset,
        callbacks=[following, Until()],
    )
    whole = [] if folder is None else [path.parent for path in folder.glob("*/trainer_state.json") if is_whole(path)]
    trainer.train(
        resume_from_checkpoint=str(max(whole, key=lambda path: int(path.name.split("-")[1]))) if whole else None
    )
    return Trained(curriculum, began, [prompts.get_config()])


def is_whole(file: Path) -> bool:
    """Whether transformers had written this file before it was killed."""
    try:
        return bool(json.loads(file.read_text()))
    except ValueError:
        return False


DOORS: dict[str, Door] = {
    "environment": environment, "vector": vector, "pettingzoo": pettingzoo, "stable_baselines3": stable_baselines3,
    "rllib": rllib,
}  # fmt: skip


def door(name: str, model: Path) -> Door:
    """``model`` is for TRL: the folder of a small one."""
    return partial(trl, model=model) if name == "trl" else DOORS[name]


SAVED = "saved"


class Recorded(EngineerCurriculum):
    """Writes every call of its door to a file, and how many there were into its state; also each time that it is saved."""

    def __init__(self, *given: Any, log: Path | None = None, **options: Any) -> None:
        super().__init__(*given, **options)
        self.log, self.calls = log, 0
        self.loaded: dict[str, Any] = {}

    def _write(self, *call: Any) -> None:
        self.calls += call[0] != SAVED
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps(call) + "\n")

    def observe(self, outcome: Outcome) -> None:
        self._write("observe", outcome)
        super().observe(outcome)

    def observe_many(self, slices: Any, successes: Any, scores: Any = None, further: Any = None) -> None:
        columns = [
            [str(name) for name in slices],
            [bool(one) for one in successes],
            None if scores is None else [float(one) for one in scores],
        ]
        self._write("observe_many", *columns)
        super().observe_many(slices, successes, scores, further)

    def advance(self, *, steps: int = 0, iterations: int = 0) -> None:
        self._write("advance", steps, iterations)
        super().advance(steps=steps, iterations=iterations)

    def next(self) -> Any:
        self._write("next")
        return super().next()

    def state_dict(self) -> dict[str, Any]:
        self._write(SAVED, self.stage)
        return super().state_dict() | {"calls": self.calls}

    def load_state_dict(self, state: dict[str, Any], renamed: Any = None) -> None:
        super().load_state_dict(state, renamed)
        self.loaded, self.calls = state, int(state["calls"])


def recorded(log: Path | None = None) -> Recorded:
    return Recorded("rules", START, target=TARGET, every=EVERY, editable=EDITABLE, log=log)


def calls_of(log: Path) -> Iterator[list[Any]]:
    """What was written whole, and saves, too."""
    for line in log.read_text().splitlines(keepends=True) if log.exists() else ():
        if line.endswith("\n"):
            yield json.loads(line)


def repeat(calls: list[list[Any]], curriculum: EngineerCurriculum) -> None:
    """Make the same calls to another curriculum. The configs that it chooses are in its proposals."""
    for call, *given in calls:
        if call == "observe":
            curriculum.observe(Outcome(*given[0]))
        elif call == "observe_many":
            curriculum.observe_many(*given)
        elif call == "advance":
            curriculum.advance(steps=given[0], iterations=given[1])
        else:
            curriculum.next()


if __name__ == "__main__":
    chosen, place, small = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    door(chosen, small)(recorded(place / "calls.jsonl"), 10**9, place)
