"""Give a config to environments, under any wrappers and vectorisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from envtuning.curriculum.curriculum import Config
from envtuning.errors import SpecError

Apply = Callable[[Any, Config], None]

# Attributes in which the wrappers of Gymnasium, PettingZoo, RLlib and SB3 keep the wrapped environment.
_INNER = ("env", "par_env", "venv", "lakes")


def apply_config(env: Any, config: Config) -> None:
    """Give ``config`` to the environments with ``set_config`` (or RLlib's ``set_task``) under wrappers and vectorisation.

    Takes effect at each environment's next reset. Raises TypeError if no environment there takes a config.
    """
    for layer in _layers(env):
        for name in ("set_config", "set_task"):
            setter = getattr(type(layer), name, None)
            if setter is not None:
                setter(layer, config)
                return
        copies = getattr(layer, "envs", None)
        if copies:
            for copy in copies:
                apply_config(copy, config)
            return
        if hasattr(type(layer), "call"):  # Gymnasium's AsyncVectorEnv: the copies live in other processes
            layer.call("set_config", config)
            return
        if hasattr(type(layer), "env_method") and "venv" not in vars(layer):  # SB3's SubprocVecEnv: likewise
            layer.env_method("set_config", config)
            return
    raise TypeError(
        f"neither {type(env).__name__} nor an environment that it wraps has set_config: give "
        "apply=lambda env, config: …, a function that sets the config (SB3's callback gives it the VecEnv)"
    )


def config_below(env: Any) -> Config:
    """The current config of the first environment with ``get_config`` under wrappers and vectorisation."""
    for layer in _layers(env):
        if hasattr(type(layer), "get_config"):
            return layer.get_config()
        if getattr(layer, "envs", None):
            return config_below(layer.envs[0])
    raise TypeError(f"neither {type(env).__name__} nor an environment that it wraps has get_config")


def raise_unless_fits(env: Any, config: Config) -> None:
    """Raises the environment's own error for a config that does not fit its spaces, if it has ``raise_unless_fits`` (lakes do).

    Other environments, and those in other processes, are not checked before the config is applied.
    """
    for layer in _layers(env):
        room = getattr(layer, "batch", layer)  # lakes have their limits in their batch
        if hasattr(type(room), "raise_unless_fits"):
            known = type(room.get_config())
            given = known.model_validate(config) if isinstance(config, Mapping) else config
            if not isinstance(given, known):
                raise SpecError(
                    f"the curriculum gave {config!r:.100}, and the environment takes a {known.__name__}: give one"
                )
            room.raise_unless_fits(given)
            return
        for copy in getattr(layer, "envs", None) or ():
            raise_unless_fits(copy, config)


def _layers(env: Any) -> Iterator[Any]:
    """The environment and the environments that it wraps, outermost first."""
    while env is not None:
        yield env
        env = next((inner for name in _INNER if (inner := vars(env).get(name)) is not None), None)
