"""A curriculum for your own training: swaps the config under a running trainer at the next reset, without other changes.

``CurriculumEnv`` (Gymnasium), ``CurriculumVectorEnv`` (Gymnasium's vector interface) and ``CurriculumParallelEnv`` (PettingZoo)
wrap any environment that has ``set_config``; for others pass ``apply=lambda env, config: …``. The spaces do not change, so the
trainer keeps its weights and its optimiser. Your training loop swaps the config by ``env.set_config(config)``, or the
environment itself does by ``curriculum=Ladder(configs)``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from pettingzoo.utils import BaseParallelWrapper

Config = Any  # a LakeConfig, or whatever your environment's configs are
Curriculum = Callable[[bool], Config | None]  # gets each episode's success; returns the next config, or None
Apply = Callable[[Any, Config], None]

# Attributes in which the wrappers of Gymnasium, PettingZoo, RLlib and SB3 keep the wrapped environment.
_INNER = ("env", "par_env", "venv", "lakes")


class SpacesChanged(ValueError):
    """A config needs other spaces than those that the trainer was built for."""


class Ladder:
    """A curriculum of given configs: one rung up when ``threshold`` of the last ``window`` episodes succeeded.

    It starts on the first config and ends on the last. Every ``curriculum`` argument takes it. Several ``CurriculumEnv`` (or
    ``CurriculumParallelEnv``) of one process may share one: each takes the current rung at its own next reset.
    """

    def __init__(self, configs: Sequence[Config], *, threshold: float = 0.8, window: int = 100) -> None:
        if not configs:
            raise ValueError("a Ladder of 0 configs: give at least one")
        if not 0 < threshold <= 1 or window < 1:
            raise ValueError(f"threshold={threshold}, window={window}: give 0 < threshold ≤ 1 and window ≥ 1")
        self.configs = list(configs)
        self.threshold = threshold
        self.rung = 0
        self._successes: deque[bool] = deque(maxlen=window)

    @property
    def config(self) -> Config:
        return self.configs[self.rung]

    def __call__(self, success: bool) -> Config | None:
        """The next config if the rung is mastered, else None."""
        self._successes.append(success)
        full = len(self._successes) == self._successes.maxlen
        mastered = full and sum(self._successes) >= self.threshold * len(self._successes)
        if not mastered or self.rung + 1 == len(self.configs):
            return None
        self.rung += 1
        self._successes.clear()
        return self.config


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
        "apply=lambda env, config: …, a function that sets the config"
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
            room.raise_unless_fits(
                type(room.get_config()).model_validate(config) if isinstance(config, Mapping) else config
            )
            return
        for copy in getattr(layer, "envs", None) or ():
            raise_unless_fits(copy, config)


def _layers(env: Any) -> Iterator[Any]:
    """The environment and the environments that it wraps, outermost first."""
    while env is not None:
        yield env
        env = next((inner for name in _INNER if (inner := vars(env).get(name)) is not None), None)


class _Swap:
    """A pending config: kept until the next reset and then applied; its spaces must equal those of the trainer."""

    def __init__(self, env: Any, curriculum: Curriculum | None, apply: Apply, spaces: Any) -> None:
        raise_unless_all_fit(env, curriculum, apply)
        self.env, self.curriculum, self.apply, self.spaces = env, curriculum, apply, spaces
        self.next: Config | None = first_config(curriculum)
        self.current: Config | None = None  # None until the first swap
        self._rung = self._rung_now  # the Ladder's rung when this environment last looked

    @property
    def _rung_now(self) -> int | None:
        return getattr(self.curriculum, "rung", None)

    def to(self, config: Config) -> None:
        """Apply it at the next reset; a config that cannot be applied then is refused now."""
        if self.apply is apply_config:
            raise_unless_fits(self.env, config)
        self.next = config

    def at_reset(self, spaces: Callable[[], Any]) -> None:
        if self._rung != self._rung_now:  # another environment that shares the Ladder climbed it
            self._rung = self._rung_now
            self.next = first_config(self.curriculum) if self.next is None else self.next
        if self.next is not None:
            self.apply(self.env, self.next)
            _same_spaces(self.spaces, spaces(), self.next)
            self.current, self.next = self.next, None

    def at_end(self, success: Callable[[], bool]) -> None:
        if self.curriculum is None or self._rung != self._rung_now:  # the episode began on an earlier rung
            return
        config = self.curriculum(success())
        if config is not None:
            self._rung = self._rung_now
            self.to(config)


class OldEpisodes:
    """Tracks environments that are still finishing an episode from the previous config.

    ``reset_later``: a copy begins its next episode after the step that ends one, so a config set in between applies.
    """

    def __init__(self, copies: int, *, reset_later: bool) -> None:
        self.copies = copies
        self._reset_later = reset_later
        self._behind = np.zeros(copies, np.bool_)
        self._between = np.ones(copies, np.bool_)  # whose next episode has not begun

    def begun(self, mask: NDArray[np.bool_] | None = None) -> None:
        """All copies, or those in ``mask``, were reset."""
        which = slice(None) if mask is None else np.asarray(mask, np.bool_)
        self._behind[which] = self._between[which] = False

    def swapped(self) -> None:
        self._behind = ~self._between

    def tell(self, curriculum: Curriculum, over: NDArray[np.bool_], success: Callable[[int], bool]) -> Config | None:
        """Report the episodes that this step ended to the curriculum, except for old ones, until it returns a config."""
        self._between = over & self._reset_later
        for copy in np.flatnonzero(over).tolist():
            if self._behind[copy]:
                self._behind[copy] = False
            elif (config := curriculum(success(copy))) is not None:
                return config
        return None


class CurriculumEnv(gym.Wrapper):
    """Swaps configs at the next reset. ``curriculum`` gets every finished episode and may return a config to swap to.

    An episode is a success by its last info's entry ``success_key``; without a key by ``info["is_success"]``
    (``info["success"]``), or else if it terminated with a reward above 0. The suites count ``success_key="valid"``.
    """

    def __init__(
        self,
        env: gym.Env,
        curriculum: Curriculum | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
    ) -> None:
        _raise_unless_wraps(type(self), env, isinstance(env, gym.Env))
        super().__init__(env)
        self._success_key = success_key
        self._swap = _Swap(env, curriculum, apply, self._current_spaces())

    def set_config(self, config: Config) -> None:
        """Takes effect at the next reset; the running episode keeps its config. A config that cannot be applied is refused now."""
        self._swap.to(config)

    def get_config(self) -> Config | None:
        """The config in force; None until the first swap."""
        return self._swap.current

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._swap.at_reset(self._current_spaces)
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            self._swap.at_end(lambda: succeeded(info, bool(terminated and float(reward) > 0), self._success_key))
        return observation, reward, terminated, truncated, info

    def _current_spaces(self) -> tuple[gym.Space, gym.Space]:
        return self.env.observation_space, self.env.action_space


class CurriculumVectorEnv(gym.vector.VectorWrapper):
    """Swaps configs under a vector environment; each copy takes the new config at its own next reset.

    ``curriculum`` gets only episodes that began with the config in force. The copies' ``set_config`` must wait for the reset,
    as the lake's does; wrap others in ``CurriculumEnv`` one by one.
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv,
        curriculum: Curriculum | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
    ) -> None:
        _raise_unless_wraps(type(self), env, isinstance(env, gym.vector.VectorEnv))
        super().__init__(env)
        raise_unless_all_fit(env, curriculum, apply)
        self._curriculum = curriculum
        self._apply = apply
        self._success_key = success_key
        self._config: Config | None = None
        self._spaces = (env.single_observation_space, env.single_action_space)
        at_once = env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP
        self._old_episodes = OldEpisodes(env.num_envs, reset_later=not at_once)
        if (first := first_config(curriculum)) is not None:
            self.set_config(first)

    def set_config(self, config: Config) -> None:
        """Use this config from each copy's next reset on."""
        self._apply(self.env, config)
        _same_spaces(self._spaces, (self.env.single_observation_space, self.env.single_action_space), config)
        self._config = config
        self._old_episodes.swapped()

    def get_config(self) -> Config | None:
        """The config last set; None until the first swap."""
        return self._config

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        mask = (options or {}).get("reset_mask")  # Gymnasium's own interfaces take it out of the options
        result = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # as its interfaces take it
        self._old_episodes.begun(mask)
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if self._curriculum is not None:

            def success(copy: int) -> bool:
                return succeeded(infos, bool(terminated[copy] and rewards[copy] > 0), self._success_key, copy)

            config = self._old_episodes.tell(self._curriculum, terminated | truncated, success)
            if config is not None:
                self.set_config(config)
        return observations, rewards, terminated, truncated, infos


class CurriculumParallelEnv(BaseParallelWrapper):
    """``CurriculumEnv`` for PettingZoo's parallel API. An episode is a success if every agent's last info says so.

    Without infos, it is a success if all agents terminated with a reward above 0. An agent may leave before the others.
    """

    def __init__(
        self,
        env: Any,
        curriculum: Curriculum | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
    ) -> None:
        _raise_unless_wraps(type(self), env, hasattr(env, "possible_agents"))
        super().__init__(env)
        self._success_key = success_key
        self._swap = _Swap(env, curriculum, apply, self._current_spaces())
        self._won: dict[Any, bool] = {}  # of this episode's agents that are done

    def set_config(self, config: Config) -> None:
        """Takes effect at the next reset; the running episode keeps its config. A config that cannot be applied is refused now."""
        self._swap.to(config)

    def get_config(self) -> Config | None:
        """The config in force; None until the first swap."""
        return self._swap.current

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        self._swap.at_reset(self._current_spaces)
        self._won.clear()
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: dict[Any, Any]) -> tuple[dict, dict, dict, dict, dict]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        if self._swap.curriculum is not None:
            for agent in terminated:
                if (terminated[agent] or truncated[agent]) and agent not in self._won:
                    paid = bool(terminated[agent] and rewards[agent] > 0)
                    self._won[agent] = succeeded(infos.get(agent, {}), paid, self._success_key)
            if terminated and not self.env.agents:
                self._swap.at_end(lambda: all(self._won.values()))
        return observations, rewards, terminated, truncated, infos

    def _current_spaces(self) -> tuple[list, list]:
        agents = self.env.possible_agents
        return [self.env.observation_space(a) for a in agents], [self.env.action_space(a) for a in agents]


def _raise_unless_wraps(wrapper: type, env: Any, fits: bool) -> None:
    if not fits:
        raise TypeError(
            f"{wrapper.__name__} does not wrap a {type(env).__name__}: use CurriculumEnv for a gymnasium.Env, "
            "CurriculumVectorEnv for a gymnasium.vector.VectorEnv, CurriculumParallelEnv for PettingZoo's ParallelEnv, and for "
            "Stable-Baselines3's VecEnv pass callback=SB3CurriculumCallback(curriculum) to learn()"
        )


def first_config(curriculum: Curriculum | None) -> Config | None:
    """The curriculum's first config, if it names one (a Ladder does)."""
    return getattr(curriculum, "config", None)


def raise_unless_all_fit(env: Any, curriculum: Curriculum | None, apply: Apply) -> None:
    """Refuse a ladder with a config that cannot be applied, before the training begins."""
    if apply is apply_config:
        for config in reversed(getattr(curriculum, "configs", ())):  # the last is likely to need the most room
            raise_unless_fits(env, config)


def succeeded(info: dict[str, Any], otherwise: bool, success_key: str | None = None, index: int | None = None) -> bool:
    """The success in the info, under ``success_key`` if there is one; in the vector interface at ``index``, where the entry is set."""
    info = info.get("final_info", info)  # same-step autoreset keeps the finished episode's info apart
    for key in ("is_success", "success") if success_key is None else (success_key,):
        value = info.get(key)
        if value is None:
            continue
        if index is None:
            return bool(value)
        if f"_{key}" not in info or info[f"_{key}"][index]:
            return bool(value[index])
    if success_key is not None:
        raise ValueError(f"success_key={success_key!r} is not in an episode's last info: its keys are {sorted(info)}")
    return otherwise


def _same_spaces(before: Any, after: Any, config: Config) -> None:
    if before != after:
        raise SpacesChanged(
            f"the config {config!r} changed the spaces from {before} to {after}: make the environment with spaces that "
            "hold every stage (for lakes: max_size, max_agents, window, hints)"
        )
