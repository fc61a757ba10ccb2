"""``RLlibCurriculumCallback``: swap the config under any RLlib Algorithm, local and remote EnvRunners, restarted ones too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from envtuning.curriculum.wrappers import Apply, Config, Ladder, apply_config, raise_unless_all_fit, succeeded
from envtuning.extras import needs

try:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.callbacks.callbacks import RLlibCallback
except ImportError as error:
    raise needs("RLlibCurriculumCallback", error) from None

ResultCurriculum = Callable[[dict[str, Any]], Config | None]  # train()'s result → the next config, or None
OUTCOMES = ("success", "valid")  # entries of a lake's info at an episode's end; a result has their means


class RLlibCurriculumCallback(RLlibCallback):
    """Keeps every EnvRunner of an Algorithm on one config; weights, optimiser and spaces are not touched.

    ``algorithm_config.callbacks(RLlibCurriculumCallback)``, then ``RLlibCurriculumCallback.swap(algorithm, config)``
    at any time in your loop. Or ``.callbacks(RLlibCurriculumCallback.following(Ladder(configs)))`` climbs by finished training
    episodes, like ``SB3CurriculumCallback``, with the same ``success_key``. RLlib copies its config, so the ladder that climbs is
    ``RLlibCurriculumCallback.of(algorithm).curriculum``. Any other function gets each ``train()`` result.

    ``result["env_runners"]`` has the means of ``success`` and ``valid`` if the environment's infos have them. Like all metrics of
    RLlib, they are over its last episodes (``metrics_num_episodes_for_smoothing``), including episodes from before a swap. It works
    with any environment that has ``set_config`` or RLlib's ``set_task``, under any wrappers; for others pass
    ``apply=lambda env, config: …``.
    """

    def __init__(
        self,
        curriculum: Ladder | ResultCurriculum | None = None,
        apply: Apply = apply_config,
        success_key: str | None = None,
    ) -> None:
        super().__init__()
        self.curriculum, self.success_key = curriculum, success_key
        self._apply = apply
        self.config: Config | None = None  # in force on every runner; None until the first swap

    @classmethod
    def following(
        cls,
        curriculum: Ladder | ResultCurriculum | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
    ) -> Callable:
        """For ``.callbacks(…)``: a callback that reports every episode to a ``Ladder``, or calls a function after every iteration."""
        return partial(cls, curriculum, apply, success_key)

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
        callback.config = config
        for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
            if group is not None:
                group.foreach_env_runner(
                    partial(_apply_to_runner, config=config, apply=callback._apply), timeout_seconds=timeout_seconds
                )

    def on_algorithm_init(self, *, algorithm: Algorithm, **_: Any) -> None:
        """A Ladder's configs must fit the spaces, and training begins with its current config."""
        if isinstance(self.curriculum, Ladder):
            if (env := getattr(algorithm.env_runner, "env", None)) is not None:  # else they live in other processes
                raise_unless_all_fit(env, self.curriculum, self._apply)
            self.swap(algorithm, self.curriculum.config)

    def on_train_result(self, *, algorithm: Algorithm, result: dict[str, Any], **_: Any) -> None:
        if isinstance(self.curriculum, Ladder):
            told = chain.from_iterable(algorithm.env_runner_group.foreach_env_runner(_take_ended))
            config = next((climbed for success in told if (climbed := self.curriculum(success)) is not None), None)
        else:
            config = None if self.curriculum is None else self.curriculum(result)
        if config is not None:
            self.swap(algorithm, config)

    def on_episode_start(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        _notes(env_runner).begun[episode.id_] = _notes(env_runner).swaps

    def on_episode_end(self, *, episode: Any, env_runner: Any, metrics_logger: Any, **_: Any) -> None:
        """Log the episode's result, and count it for a Ladder unless the episode began before the last swap."""
        info, notes = _last_info(episode), _notes(env_runner)
        for name in OUTCOMES:
            if info.get(name) is not None:
                window = env_runner.config.metrics_num_episodes_for_smoothing
                metrics_logger.log_value(name, float(info[name]), window=window)
        in_force = notes.begun.pop(episode.id_, None) == notes.swaps
        if in_force and isinstance(self.curriculum, Ladder) and not env_runner.config.in_evaluation:
            notes.ended.append(succeeded(info, _arrived(episode), self.success_key))

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


@dataclass
class _Notes:
    """The state of one EnvRunner, which may run in another process than the Algorithm."""

    config: Config | None = None  # in force there
    swaps: int = 0
    begun: dict[str, int] = field(default_factory=dict)  # for each running episode, the number of swaps before it
    ended: list[bool] = field(default_factory=list)  # successes not yet reported to the Ladder


def _notes(env_runner: Any) -> _Notes:
    return vars(env_runner).setdefault("curriculum_notes", _Notes())


def _take_ended(env_runner: Any) -> list[bool]:
    notes = _notes(env_runner)
    taken, notes.ended = notes.ended, []
    return taken


def _last_info(episode: Any) -> dict[str, Any]:
    """The first agent's of a multi-agent episode, because its agents end together with the same outcome."""
    info = episode.get_infos(-1)
    agents = getattr(episode, "agent_episodes", None)
    return info if agents is None else next((info[agent] for agent in agents if info.get(agent)), {})


def _arrived(episode: Any) -> bool:
    """Whether it terminated (not by a time limit) with a reward above 0."""
    reward = episode.get_rewards(-1)
    return bool(episode.is_terminated and (sum(reward.values()) if isinstance(reward, dict) else reward) > 0)


def _apply_to_runner(env_runner: Any, *, config: Config, apply: Apply) -> None:
    notes = _notes(env_runner)
    notes.swaps += 1
    notes.ended.clear()
    if env_runner.env is not None:  # the local runner has no environment if remote ones sample
        notes.config = config
        apply(env_runner.env, config)


def _as_list(callbacks: Any) -> list[Any]:
    return callbacks if isinstance(callbacks, list) else [callbacks]
