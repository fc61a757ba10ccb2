"""``RLlibCurriculumCallback``: swap the config under any RLlib Algorithm, local and remote EnvRunners, restarted ones too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from envtuning.curriculum.wrappers import Apply, Config, apply_config
from envtuning.extras import needs

try:
    from ray.rllib.algorithms.algorithm import Algorithm
    from ray.rllib.callbacks.callbacks import RLlibCallback
except ImportError as error:
    raise needs("RLlibCurriculumCallback", error) from None

ResultCurriculum = Callable[[dict[str, Any]], Config | None]  # train()'s result → the config to go on with, or None

_CURRENT = "curriculum_config"  # where a runner remembers the config in force


class RLlibCurriculumCallback(RLlibCallback):
    """Keeps every EnvRunner of an Algorithm on one config; weights, optimiser and spaces are not touched.

    ``algorithm_config.callbacks(RLlibCurriculumCallback)``, then ``RLlibCurriculumCallback.swap(algorithm, config)``
    whenever your loop decides; or let it decide from each ``train()`` result:
    ``.callbacks(RLlibCurriculumCallback.following(curriculum))``. RLlib's result averages over its last episodes
    (``metrics_num_episodes_for_smoothing``), those begun before a swap too: wait for as many before you judge the new config by
    it. Any environment with ``set_config`` or RLlib's ``set_task`` will do, under any wrappers; for others give
    ``apply=lambda env, config: …``.
    """

    def __init__(self, curriculum: ResultCurriculum | None = None, apply: Apply = apply_config) -> None:
        super().__init__()
        self._curriculum = curriculum
        self._apply = apply
        self.config: Config | None = None  # in force on every runner; None until the first swap

    @classmethod
    def following(cls, curriculum: ResultCurriculum | None = None, *, apply: Apply = apply_config) -> Callable:
        """For ``.callbacks(…)``: a callback that asks ``curriculum`` after every iteration."""
        return partial(cls, curriculum, apply)

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

        A runner that is lost with its node may wait for a place for ever; with ``timeout_seconds`` nobody waits for it longer.
        """
        callback = cls.of(algorithm)
        callback.config = config
        for group in (algorithm.env_runner_group, algorithm.eval_env_runner_group):
            if group is not None:
                group.foreach_env_runner(
                    partial(_apply_to_runner, config=config, apply=callback._apply), timeout_seconds=timeout_seconds
                )

    def on_train_result(self, *, algorithm: Algorithm, result: dict[str, Any], **_: Any) -> None:
        if self._curriculum is not None and (config := self._curriculum(result)) is not None:
            self.swap(algorithm, config)

    def on_environment_created(self, *, env_runner: Any, **_: Any) -> None:
        """A failed environment is rebuilt inside its runner, from the first config as well."""
        if (config := getattr(env_runner, _CURRENT, None)) is not None:
            self._apply(env_runner.env, config)

    def on_env_runners_recreated(self, *, env_runner_group: Any, env_runner_indices: list[int], **_: Any) -> None:
        """A restarted runner is built from the Algorithm's first config: bring it to the current one."""
        if self.config is not None:
            env_runner_group.foreach_env_runner(
                partial(_apply_to_runner, config=self.config, apply=self._apply),
                remote_worker_ids=env_runner_indices,
                local_env_runner=False,
            )


def _apply_to_runner(env_runner: Any, *, config: Config, apply: Apply) -> None:
    if env_runner.env is not None:  # the local runner has no environment where remote ones sample
        setattr(env_runner, _CURRENT, config)
        apply(env_runner.env, config)


def _as_list(callbacks: Any) -> list[Any]:
    return callbacks if isinstance(callbacks, list) else [callbacks]
