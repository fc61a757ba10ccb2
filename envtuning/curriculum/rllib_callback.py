"""``RLlibCurriculumCallback``: swap the config under any RLlib Algorithm, local and remote EnvRunners, restarted ones too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from engineers.shared.extras import needs
from envtuning.curriculum.apply import Apply, apply_config, raise_unless_fits, setters
from envtuning.curriculum.by_reward import ByReward
from envtuning.curriculum.curriculum import Config, Curriculum, applying, as_curriculum
from envtuning.curriculum.ended import SliceOf, outcome_of
from envtuning.curriculum.wrappers import raise_if_told_below
from envtuning.errors import RunError, SpecError
from envtuning.outcomes import Outcome

try:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.callbacks.callbacks import RLlibCallback
except ImportError as error:
    raise needs("RLlibCurriculumCallback", error) from None

ResultCurriculum = Callable[[dict[str, Any]], Config | None]  # train()'s result → the next config, or None
STATE = "curriculum.json"  # in a checkpoint's folder
ITERATIONS = "rllib_iterations"  # this door's note on a curriculum, which a pickle takes along
OUTCOMES = ("success", "valid")  # entries of a lake's info at an episode's end; a result has their means


class RLlibCurriculumCallback(RLlibCallback):
    """Keeps every EnvRunner of an Algorithm on one config; weights, optimiser and spaces are not touched.

    ``algorithm_config.callbacks(RLlibCurriculumCallback)``, then ``RLlibCurriculumCallback.swap(algorithm, config)``
    at any time in your loop. Or ``.callbacks(RLlibCurriculumCallback.following(EngineerCurriculum("rules", config)))`` decides by
    finished training episodes, like ``SB3CurriculumCallback``, with the same ``success_key`` and ``slice_of``. The curriculum that
    decides is ``RLlibCurriculumCallback.of(algorithm).curriculum``: the one that you gave, or after ``from_checkpoint`` and inside a
    trial of Tune a copy of it. A function gets each ``train()`` result. RLlib does not tell a callback that training has ended, so
    nothing warns of an engineer that was never asked, as elsewhere: call ``curriculum.training_ended()`` after ``algorithm.stop()``.

    ``result["env_runners"]`` has the means of ``success`` and ``valid`` if the environment's infos have them. Like all metrics of
    RLlib, they are over its last episodes (``metrics_num_episodes_for_smoothing``), including episodes from before a swap. It works
    with any environment that has ``set_config`` or RLlib's ``set_task``, under any wrappers; for others pass
    ``apply=lambda env, config: …``.
    """

    def __init__(
        self,
        curriculum: Curriculum | ResultCurriculum | None = None,
        apply: Apply = apply_config,
        success_key: str | None = None,
        slice_of: SliceOf | None = None,
    ) -> None:
        super().__init__()
        self.curriculum, self.success_key, self.slice_of = curriculum, success_key, slice_of
        self._apply, self._by_reward = apply, ByReward()
        self.config: Config | None = None  # in force on every runner; None until the first swap

    @classmethod
    def following(
        cls,
        curriculum: Curriculum | ResultCurriculum | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
        slice_of: SliceOf | None = None,
    ) -> Callable:
        """For ``.callbacks(…)``: reports every episode to a curriculum, or calls a function after every iteration."""
        if curriculum is not None:
            as_curriculum(curriculum)  # type: ignore[arg-type]  # refuses what is neither
        return _Following(cls, curriculum, apply, success_key, slice_of)

    @staticmethod
    def of(algorithm: Algorithm) -> RLlibCurriculumCallback:
        """The callback that this Algorithm was built with."""
        for callback in _as_list(algorithm.callbacks):
            if isinstance(callback, RLlibCurriculumCallback):
                return callback
        raise LookupError(
            "this Algorithm was built without the curriculum: add .callbacks(RLlibCurriculumCallback) to its config, "
            "or a restarted EnvRunner would come back with its first config"
        )

    @classmethod
    def swap(cls, algorithm: Algorithm, config: Config, *, timeout_seconds: float | None = None) -> None:
        """Every environment of every runner takes ``config`` at its next reset. Returns when all runners have it.

        A runner that is lost with its node may wait for a place for ever; ``timeout_seconds`` limits the wait.
        """
        callback = cls.of(algorithm)
        with applying(config, callback.curriculum if isinstance(callback.curriculum, Curriculum) else None):
            for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
                if group is not None:
                    group.foreach_env_runner(
                        partial(_apply_to_runner, config=config, apply=callback._apply), timeout_seconds=timeout_seconds
                    )
        callback.config = config

    @classmethod
    def save(cls, algorithm: Algorithm, path: str | Path) -> Path:
        """``algorithm.save_to_path(path)``, with the curriculum's state in the same folder."""
        folder = Path(algorithm.save_to_path(str(path)))
        cls._curriculum_of(algorithm).save(folder / STATE)
        return folder

    @classmethod
    def restore(cls, algorithm: Algorithm, path: str | Path, renamed: Mapping[str, str] | None = None) -> None:
        """After ``restore_from_path(path)``: the curriculum goes on as it was when ``save`` wrote the folder. ``renamed`` maps slices.

        ``from_checkpoint(path)`` alone brings the curriculum, too, as RLlib has pickled it with its config.
        """
        curriculum = cls._curriculum_of(algorithm)
        curriculum.load(Path(path) / STATE, renamed)
        _set_iterations(curriculum, algorithm.iteration)
        if curriculum.config is not None:
            cls.swap(algorithm, curriculum.config)

    @classmethod
    def _curriculum_of(cls, algorithm: Algorithm) -> Curriculum:
        curriculum = cls.of(algorithm).curriculum
        if not isinstance(curriculum, Curriculum):
            raise SpecError(
                f"this Algorithm follows a {type(curriculum).__name__}, which has no state: swap configs by hand"
            )
        return curriculum

    def on_algorithm_init(self, *, algorithm: Algorithm, **_: Any) -> None:
        """The configs must fit the spaces, and training begins with the curriculum's current config."""
        if isinstance(self.curriculum, Curriculum):
            raise_if_told_below(self.curriculum, getattr(algorithm.env_runner, "env", None))  # others have copies
            if self._apply is apply_config:
                self.curriculum.attach(partial(_raise_unless_all_take, algorithm.env_runner_group))
            if self.curriculum.config is not None:
                self.swap(algorithm, self.curriculum.config)

    def on_train_result(self, *, algorithm: Algorithm, result: dict[str, Any], **_: Any) -> None:
        if isinstance(self.curriculum, Curriculum):
            self._raise_unless_of(int(result["training_iteration"]))
            for outcome in chain.from_iterable(algorithm.env_runner_group.foreach_env_runner(_take_ended)):
                self.curriculum.observe(outcome)
            self.curriculum.advance(steps=_new_steps(result), iterations=1)
            config = self.curriculum.next()
            result["curriculum"] = self.curriculum.metrics()
        else:
            config = None if self.curriculum is None else self.curriculum(result)
        if config is not None:
            self.swap(algorithm, config)

    def _raise_unless_of(self, iteration: int) -> None:
        """The curriculum has counted what the Algorithm has trained, also after a rollback in the middle of a training."""
        assert isinstance(self.curriculum, Curriculum)
        counted, trained = _iterations(self.curriculum), iteration - 1
        if counted != trained:
            raise RunError(
                f"this Algorithm has trained for {trained} iterations, and its curriculum has counted {counted}: call "
                "RLlibCurriculumCallback.restore(algorithm, path) after restore_from_path(path), and give a new Algorithm a new curriculum"
            )
        _set_iterations(self.curriculum, iteration)

    def on_episode_start(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        _notes(env_runner).begun[episode.id_] = _notes(env_runner).swaps

    def on_episode_end(self, *, episode: Any, env_runner: Any, metrics_logger: Any, **_: Any) -> None:
        """Log the episode's result, and count it for the curriculum unless the episode began before the last swap."""
        info, notes = _last_info(episode), _notes(env_runner)
        for name in OUTCOMES:
            if info.get(name) is not None:
                window = env_runner.config.metrics_num_episodes_for_smoothing
                metrics_logger.log_value(name, float(info[name]), window=window)
        in_force = notes.begun.pop(episode.id_, None) == notes.swaps
        if in_force and isinstance(self.curriculum, Curriculum) and not env_runner.config.in_evaluation:
            notes.ended.append(outcome_of(info, lambda: self._arrived(episode), self.success_key, self.slice_of))

    def _arrived(self, episode: Any) -> bool:
        """Whether it terminated (not by a time limit) with a reward above 0."""
        reward = episode.get_rewards(-1)
        paid = sum(reward.values()) if isinstance(reward, dict) else reward
        won: bool = self._by_reward.won(bool(episode.is_terminated), paid)
        if self._by_reward.looks:
            self._by_reward.saw(_paid_before_the_end(episode))
        return won

    def on_environment_created(self, *, env_runner: Any, **_: Any) -> None:
        """Set the current config in a failed environment that its runner rebuilds from the first config."""
        notes = _notes(env_runner)
        notes.begun.clear()
        if notes.config is not None:
            self._apply(env_runner.env, notes.config)

    def on_env_runners_recreated(self, *, env_runner_group: Any, env_runner_indices: list[int], **_: Any) -> None:
        """Set the current config in a restarted runner, which is built from the Algorithm's first config."""
        if self.config is not None:
            env_runner_group.foreach_env_runner(
                partial(_apply_to_runner, config=self.config, apply=self._apply),
                remote_worker_ids=env_runner_indices,
                local_env_runner=False,
            )


class _Following(partial[RLlibCurriculumCallback]):
    """Makes the callbacks of an Algorithm and of its runners.

    RLlib copies its config for each Algorithm. It copies all but this, so the curriculum that decides is the one that the script
    has. A pickle (in a checkpoint, for a remote runner or a trial of Tune) has a curriculum of its own.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


@dataclass
class _Notes:
    """The state of one EnvRunner, which may run in another process than the Algorithm."""

    config: Config | None = None  # in force there
    swaps: int = 0
    begun: dict[str, int] = field(default_factory=dict)  # for each running episode, the number of swaps before it
    ended: list[Outcome] = field(default_factory=list)  # not yet reported to the curriculum


def _notes(env_runner: Any) -> _Notes:
    return vars(env_runner).setdefault("curriculum_notes", _Notes())


def _iterations(curriculum: Curriculum) -> int:
    """Of an Algorithm, counted by this curriculum: a checkpoint with another number is not its own."""
    return int(vars(curriculum).get(ITERATIONS, 0))


def _set_iterations(curriculum: Curriculum, iterations: int) -> None:
    vars(curriculum)[ITERATIONS] = iterations


def _new_steps(result: dict[str, Any]) -> int:
    """The environment steps of this iteration."""
    return int(result.get("env_runners", {}).get("num_env_steps_sampled", 0))


def _take_ended(env_runner: Any) -> list[Outcome]:
    notes = _notes(env_runner)
    taken, notes.ended = notes.ended, []
    return taken


def _last_info(episode: Any) -> dict[str, Any]:
    """The first agent's of a multi-agent episode, because its agents end together with the same outcome."""
    info = episode.get_infos(-1)
    agents = getattr(episode, "agent_episodes", None)
    return info if agents is None else next((info[agent] for agent in agents if info.get(agent)), {})


def _paid_before_the_end(episode: Any) -> Any:
    """The rewards of the last step but one, if there was one."""
    rewards = episode.get_rewards(slice(-2, -1))
    return np.hstack([[], *rewards.values()]) if isinstance(rewards, dict) else rewards


def _raise_unless_all_take(group: Any, config: Config) -> None:
    """Raises the error of the first runner whose environments cannot take this config."""
    for refusal in group.foreach_env_runner(partial(_refusal, config=config)):
        if refusal is not None:
            raise refusal


def _refusal(env_runner: Any, *, config: Config) -> Exception | None:
    """The error as a value: RLlib would count one that is raised as the runner's death."""
    try:
        if env_runner.env is not None:
            setters(env_runner.env)
            raise_unless_fits(env_runner.env, config)
    except Exception as error:
        return error
    return None


def _apply_to_runner(env_runner: Any, *, config: Config, apply: Apply) -> None:
    notes = _notes(env_runner)
    notes.swaps += 1
    notes.ended.clear()
    if env_runner.env is not None:  # the local runner has no environment if remote ones sample
        apply(env_runner.env, config)
        notes.config = config


def _as_list(callbacks: Any) -> list[Any]:
    return callbacks if isinstance(callbacks, list) else [callbacks]
