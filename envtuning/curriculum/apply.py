"""Give a config to environments, under any wrappers and vectorisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from pydantic import BaseModel, ValidationError

from engineers.shared.sentences import in_sentences
from envtuning.curriculum.curriculum import Config, Fits
from envtuning.errors import SpecError

Apply = Callable[[Any, Config], None]

# Attributes in which the wrappers of Gymnasium, PettingZoo, RLlib and SB3 keep the wrapped environment.
# They are looked up in ``vars``: SB3's wrappers would give those of what they wrap, past the wrappers between.
_INNER = ("env", "par_env", "venv", "lakes")
_SETTERS = ("set_config", "set_task")  # the latter is RLlib's


def apply_config(env: Any, config: Config) -> None:
    """Give ``config`` to the environments with ``set_config`` (or RLlib's ``set_task``) under wrappers and vectorisation.

    Takes effect at each environment's next reset. Nobody checks that it does: until then ``get_config`` may show the earlier config, and
    many environments have none. Raises TypeError if no environment there takes a config.
    """
    for setter in setters(env):
        setter(config)


def setters(env: Any) -> list[Callable[[Config], object]]:
    """What gives these environments a config. Raises TypeError if one of them takes none."""
    for layer in _layers(env):
        for name in _SETTERS:
            if hasattr(type(layer), name):
                return [getattr(layer, name)]
        if copies := vars(layer).get("envs"):
            return [setter for copy in copies for setter in setters(copy)]
        if (ask := _asks_elsewhere(layer)) is not None:
            for name in _SETTERS:
                if all(ask("has_wrapper_attr", name)):  # a worker that has no such method would die of the call
                    return [partial(ask, name)]
    raise TypeError(
        f"neither {type(env).__name__} nor an environment that it wraps has set_config: give "
        "apply=lambda env, config: …, a function that sets the config (SB3's callback gives it the VecEnv; RLlib's gives it the vector "
        "environment, whose copies are in env.unwrapped.envs)"
    )


def _asks_elsewhere(layer: Any) -> Callable[..., Sequence[Any]] | None:
    """What calls a method of every copy, if these live in other processes."""
    if hasattr(type(layer), "call"):  # Gymnasium's AsyncVectorEnv
        return layer.call
    if hasattr(type(layer), "env_method") and "venv" not in vars(layer):  # SB3's SubprocVecEnv
        return layer.env_method
    return None


def config_below(env: Any) -> Config:
    """The current config of the first environment with ``get_config`` under wrappers and vectorisation."""
    for layer in _layers(env):
        if hasattr(type(layer), "get_config"):
            return layer.get_config()
        if copies := vars(layer).get("envs"):
            return config_below(copies[0])
    raise TypeError(f"neither {type(env).__name__} nor an environment that it wraps has get_config")


def all_below(env: Any) -> Iterator[Any]:
    """The environment, those that it wraps, and those of every copy in this process."""
    for layer in _layers(env):
        yield layer
        copies = vars(layer).get("envs")
        for copy in copies if isinstance(copies, list | tuple) else ():
            yield from all_below(copy)


def raise_unless_fits(env: Any, config: Config) -> None:
    """Raises ``SpecError`` for a config of a wrong type, and the environment's own error for one that does not fit its spaces.

    The type is known of environments whose ``get_config()`` or ``config`` is a pydantic model. The spaces are checked if the
    environment has ``raise_unless_fits`` (lakes do). In other processes only lakes' are, because a worker dies of an error.
    A wrapper with ``set_config`` may take configs of its own type: these are not checked against what it wraps.
    """
    fits_of(env)(config)


def fits_of(env: Any) -> Fits:
    """``raise_unless_fits`` of this environment. Copies in other processes are asked now and never again.

    An engineer may check a config in a thread of its own, while the trainer talks to these processes.
    """
    asked = env
    for layer in _layers(env):
        if vars(layer).get("envs") or any(hasattr(type(layer), name) for name in _SETTERS):
            break
        if (ask := _asks_elsewhere(layer)) is not None:
            asked = _Elsewhere(layer, ask)
    return lambda config: _raise_unless_fits(asked, config, current=None, wrapper_takes=False)


class _Elsewhere:
    """Stands for copies in other processes: a wrapper with their config, around a lake's limits if they are lakes."""

    def __init__(self, layer: Any, ask: Callable[..., Sequence[Any]]) -> None:
        def has(name: str) -> bool:
            return all(ask("has_wrapper_attr", name))

        self.config = layer.get_attr("config")[0] if has("config") else None
        if self.config is None and has("get_config"):
            self.config = ask("get_config")[0]
        is_lake = has("batch") and has("env_kwargs")
        self.env = SimpleNamespace(batch=layer.get_attr("batch")[0]) if is_lake else None

    def set_config(self, config: Config) -> None:
        self.config = config


def _raise_unless_fits(env: Any, config: Config, current: Config, wrapper_takes: bool) -> None:
    """``current`` is the config of the wrappers around this environment, and ``wrapper_takes`` says whether one of them takes configs."""
    for layer in _layers(env):
        room = vars(layer).get("batch", layer)  # lakes have their limits in their batch
        if hasattr(type(room), "raise_unless_fits"):
            known = type(room.get_config())
            if wrapper_takes and not isinstance(current, known) and not isinstance(config, known):
                break  # the wrapper makes a config for the lake out of its own
            room.raise_unless_fits(_as_the_lake_reads_it(config, known))
            return
        if current is None:
            current = layer.get_config() if hasattr(type(layer), "get_config") else getattr(layer, "config", None)
        wrapper_takes = wrapper_takes or any(hasattr(type(layer), name) for name in _SETTERS)
        copies = vars(layer).get("envs")
        if copies:
            for copy in copies:
                _raise_unless_fits(copy, config, current, wrapper_takes)
            return
    if isinstance(current, BaseModel) and not isinstance(config, BaseModel):
        raise _wrong_type(config, type(current))


def _as_the_lake_reads_it(given: Config, known: type[BaseModel]) -> BaseModel:
    if not isinstance(given, Mapping | known):
        raise _wrong_type(given, known)
    try:
        return known.model_validate(given)
    except ValidationError as error:
        raise SpecError(f"the config is no {known.__name__}: {in_sentences(error, of=known)}") from error


def _wrong_type(given: Config, known: type[BaseModel]) -> SpecError:
    remedy = f"{known.__name__}(**…)" if isinstance(given, Mapping) else "one"
    return SpecError(
        f"the config {given!r:.100} is of type {type(given).__name__}, and the environment takes a {known.__name__}: give {remedy}"
    )


def _layers(env: Any) -> Iterator[Any]:
    """The environment and the environments that it wraps, outermost first."""
    while env is not None:
        yield env
        env = next((inner for name in _INNER if (inner := vars(env).get(name)) is not None), None)
