"""A curriculum for your own training: swaps the config under a running trainer at the next reset, without other changes.

``CurriculumEnv`` (Gymnasium), ``CurriculumVectorEnv`` (Gymnasium's vector interface) and ``CurriculumParallelEnv`` (PettingZoo)
wrap any environment that has ``set_config``; for others pass ``apply=lambda env, config: …``. The spaces do not change, so the
trainer keeps its weights and its optimiser. Your training loop swaps the config by ``env.set_config(config)``, or the
environment itself does by ``curriculum=EngineerCurriculum(engineer, config)`` or ``curriculum=Ladder(configs)``.

An episode's slice is its last info's ``slice`` (lakes set it), or what ``slice_of(info)`` returns; an environment that has neither
is one slice. Its score is its last info's ``score``, if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from pettingzoo.utils import BaseParallelWrapper

from envtuning.curriculum.apply import Apply, all_below, apply_config, fits_of, raise_unless_fits, setters
from envtuning.curriculum.by_reward import ByReward
from envtuning.curriculum.curriculum import Config, Curriculum, applying, as_curriculum, warn_of_a_copy
from envtuning.curriculum.ended import SliceOf, outcome_of, outcomes_of_rows, succeeded
from envtuning.curriculum.old_episodes import OldEpisodes
from envtuning.errors import SpecError
from envtuning.outcomes import Outcome

COUNTED = ("episodes", "steps")  # by a wrapper, which knows nothing of the trainer's iterations
Given = Curriculum | Callable[[bool], Config | None]  # a curriculum, or a function of each episode's success


class SpacesChanged(ValueError):
    """A config needs other spaces than those that the trainer was built for."""


def attached(given: Given | None, env: Any, apply: Apply, counts: Sequence[str] | None = None) -> Curriculum | None:
    """The curriculum of these environments, at a door that ``counts`` these units, or all. Raises the environment's error for a config that does
    not fit its spaces, TypeError if it takes none, and ``SpecError`` if episodes would count twice."""
    if given is None:
        return None
    curriculum = as_curriculum(given)
    raise_if_told_below(curriculum, env)
    if counts is not None:
        curriculum.raise_unless_counted(counts)
    if apply is apply_config:
        if curriculum.config is not None:
            setters(env)
        curriculum.attach(fits_of(env))
    return curriculum


def raise_if_told_below(curriculum: Curriculum, env: Any) -> None:
    for layer in all_below(env):
        if isinstance(layer, _WRAPPERS) and layer.curriculum is curriculum:
            raise SpecError(
                f"episodes would count twice, as a {type(layer).__name__} below has the same {type(curriculum).__name__}: give it to one of the two"
            )


class _Open:
    """Whether an environment is in use: from its first reset until it is closed. With a curriculum's last one, training ends."""

    def __init__(self) -> None:
        self.curriculum: Curriculum | None = None

    def begin(self, curriculum: Curriculum | None) -> None:
        if self.curriculum is None and curriculum is not None:
            self.curriculum = curriculum
            curriculum.open_envs += 1

    def close(self) -> None:
        curriculum, self.curriculum = self.curriculum, None
        if curriculum is None:
            return
        curriculum.open_envs -= 1
        if not curriculum.open_envs and not sys.is_finalizing():  # as Gymnasium closes vector environments at exit
            curriculum.training_ended()


def first_in_force(curriculum: Curriculum | None) -> tuple[int, int]:
    """What is in force in an environment before its first reset: nothing, if the curriculum has a config to begin with."""
    return (-1, 0) if curriculum is None or curriculum.config is not None else curriculum.in_force


class _Swap:
    """A pending config: kept until the next reset and then applied; its spaces must equal those of the trainer."""

    def __init__(self, env: Any, curriculum: Given | None, apply: Apply, spaces: Any) -> None:
        self.curriculum = attached(curriculum, env, apply, COUNTED)
        self.env, self.apply, self.spaces = env, apply, spaces
        self.open = _Open()
        self.next: Config | None = None
        self.current: Config | None = None  # None until the first swap
        self._in_force = first_in_force(self.curriculum)  # of the config with which the running episode began

    def to(self, config: Config) -> None:
        """Apply it at the next reset; a config that cannot be applied then is refused now."""
        self._raise_unless_fits(config)
        self.next = config

    def _raise_unless_fits(self, config: Config) -> None:
        with applying(config, self.curriculum):
            if self.apply is apply_config:
                raise_unless_fits(self.env, config)

    def at_reset(self, spaces: Callable[[], Any]) -> None:
        self.open.begin(self.curriculum)
        if self.curriculum is not None:
            warn_of_a_copy(self.curriculum)
        if self.curriculum is not None and self._in_force != self.curriculum.in_force:  # or another environment swapped
            self._in_force = self.curriculum.in_force
            self.next = self.curriculum.config if self.next is None else self.next
        config, self.next = self.next, None
        if config is not None:
            with applying(config, self.curriculum):
                self.apply(self.env, config)
                _same_spaces(self.spaces, spaces(), config)
            self.current = config

    def at_end(self, outcome: Callable[[], Outcome]) -> None:
        if self.curriculum is None:
            return
        if self._in_force == self.curriculum.in_force:  # else the episode began on an earlier config
            self.curriculum.observe(outcome())
        config = self.curriculum.next()
        if config is not None:
            self._raise_unless_fits(config)
            self.next = None  # the reset asks the curriculum, which may have gone back by then

    def stepped(self) -> None:
        if self.curriculum is not None:
            self.curriculum.advance(steps=1)


class CurriculumEnv(gym.Wrapper):
    """Swaps configs at the next reset. ``curriculum`` gets every finished episode and may return a config to swap to.

    An episode is a success by its last info's entry ``success_key``. Without a key, lakes count by ``valid``, as the suites do, and
    other environments by ``info["is_success"]`` (``info["success"]``), or else if they terminated with a reward above 0.
    """

    def __init__(
        self,
        env: gym.Env,
        curriculum: Given | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
        slice_of: SliceOf | None = None,
    ) -> None:
        _raise_unless_wraps(type(self), env, isinstance(env, gym.Env))
        super().__init__(env)
        self._success_key, self._slice_of, self._by_reward = success_key, slice_of, ByReward()
        self._swap = _Swap(env, curriculum, apply, self._current_spaces())
        self.curriculum = self._swap.curriculum

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
        self._swap.stepped()
        if terminated or truncated:
            by_reward = partial(self._by_reward.won, bool(terminated), float(reward))
            self._swap.at_end(lambda: outcome_of(info, by_reward, self._success_key, self._slice_of))
        elif self._by_reward.looks:
            self._by_reward.saw(float(reward))
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        super().close()
        self._swap.open.close()

    def _current_spaces(self) -> tuple[gym.Space, gym.Space]:
        return self.env.observation_space, self.env.action_space


class CurriculumVectorEnv(gym.vector.VectorWrapper):
    """Swaps configs under a vector environment; each copy takes the new config at its own next reset.

    ``curriculum`` gets only episodes that began with the config in force; those that end in the step of a swap belong to the old one.
    The copies' ``set_config`` must wait for the reset, as the lake's does; wrap others in ``CurriculumEnv`` one by one.
    """

    def __init__(
        self,
        env: gym.vector.VectorEnv,
        curriculum: Given | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
        slice_of: SliceOf | None = None,
    ) -> None:
        _raise_unless_wraps(type(self), env, isinstance(env, gym.vector.VectorEnv))
        super().__init__(env)
        self._open = _Open()
        self.curriculum = attached(curriculum, env, apply, COUNTED)
        self._apply = apply
        self._success_key, self._slice_of, self._by_reward = success_key, slice_of, ByReward()
        self._config: Config | None = None
        self._spaces = (env.single_observation_space, env.single_action_space)
        at_once = env.metadata.get("autoreset_mode") == AutoresetMode.SAME_STEP
        self._old_episodes = OldEpisodes(env.num_envs, reset_later=not at_once)
        self._in_force = first_in_force(self.curriculum)
        self._follow()

    def set_config(self, config: Config) -> None:
        """Use this config from each copy's next reset on."""
        with applying(config, self.curriculum):
            if self._apply is apply_config:
                raise_unless_fits(self.env, config)
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
        self._open.begin(self.curriculum)
        mask = (options or {}).get("reset_mask")  # Gymnasium's own interfaces take it out of the options
        if mask is None:
            self._follow()  # a state may have been loaded since
        result = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]  # as its interfaces take it
        self._old_episodes.begun(mask)
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        curriculum = self.curriculum
        if curriculum is not None:
            curriculum.advance(steps=self.num_envs)
            over = np.logical_or(terminated, truncated)  # which some environments tell as 0 and 1
            rows = self._old_episodes.ended(over)
            if self._by_reward.looks:
                self._by_reward.saw(rewards[~over])
            if len(rows):
                # At once: arrays that are kept for later leave the core's cache, which costs more than numpy's calls.
                curriculum.observe_many(
                    *outcomes_of_rows(
                        infos,
                        rows,
                        lambda: self._by_reward.won(terminated[rows], rewards[rows]),
                        self._success_key,
                        self._slice_of,
                    )
                )
            curriculum.next()
            self._follow()
        return observations, rewards, terminated, truncated, infos

    def close(self, **kwargs: Any) -> None:
        super().close(**kwargs)
        self._open.close()

    def _follow(self) -> None:
        """Set the curriculum's config, if it is a new one."""
        if self.curriculum is not None and self._in_force != self.curriculum.in_force:
            self._in_force = self.curriculum.in_force
            if self.curriculum.config is not None:
                self.set_config(self.curriculum.config)


class CurriculumParallelEnv(BaseParallelWrapper):
    """``CurriculumEnv`` for PettingZoo's parallel API. An episode is a success if every agent's last info says so.

    Without infos, it is a success if all agents terminated with a reward above 0. An agent may leave before the others. The episode's
    slice and score are those in the info of an agent that was done last.
    """

    def __init__(
        self,
        env: Any,
        curriculum: Given | None = None,
        *,
        apply: Apply = apply_config,
        success_key: str | None = None,
        slice_of: SliceOf | None = None,
    ) -> None:
        _raise_unless_wraps(type(self), env, hasattr(env, "possible_agents"))
        super().__init__(env)
        self._success_key, self._slice_of, self._by_reward = success_key, slice_of, ByReward()
        self._swap = _Swap(env, curriculum, apply, self._current_spaces())
        self.curriculum = self._swap.curriculum
        self._won: dict[Any, bool] = {}  # of this episode's agents that are done
        self._info: dict[str, Any] = {}  # of the agent that was done last

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
            self._swap.stepped()
            for agent in terminated:
                if (terminated[agent] or truncated[agent]) and agent not in self._won:
                    paid = partial(self._by_reward.won, bool(terminated[agent]), float(rewards[agent]))
                    self._info = infos.get(agent, {})
                    self._won[agent] = succeeded(self._info, paid, self._success_key)
            if self._by_reward.looks:
                self._by_reward.saw(
                    [rewards[agent] for agent in terminated if not (terminated[agent] or truncated[agent])]
                )
            if terminated and not self.env.agents:
                self._swap.at_end(self._outcome)
        return observations, rewards, terminated, truncated, infos

    def close(self) -> None:
        super().close()
        self._swap.open.close()

    def _outcome(self) -> Outcome:
        """Every agent has to succeed; an info without a score has that of the success."""
        success = all(self._won.values())
        told = outcome_of(self._info, lambda: success, None, self._slice_of)
        return told._replace(success=success, score=told.score if "score" in self._info else float(success))

    def _current_spaces(self) -> tuple[list, list]:
        agents = self.env.possible_agents
        return [self.env.observation_space(a) for a in agents], [self.env.action_space(a) for a in agents]


_WRAPPERS = (CurriculumEnv, CurriculumVectorEnv, CurriculumParallelEnv)


def _raise_unless_wraps(wrapper: type, env: Any, fits: bool) -> None:
    if not fits:
        raise TypeError(
            f"{wrapper.__name__} does not wrap a {type(env).__name__}: use CurriculumEnv for a gymnasium.Env, "
            "CurriculumVectorEnv for a gymnasium.vector.VectorEnv, CurriculumParallelEnv for PettingZoo's ParallelEnv, and for "
            "Stable-Baselines3's VecEnv pass callback=SB3CurriculumCallback(curriculum) to learn()"
        )


def _same_spaces(before: Any, after: Any, config: Config) -> None:
    if before != after:
        raise SpacesChanged(
            f"the config {config!r} changed the spaces from {before} to {after}: make the environment with spaces that "
            "hold every stage (for lakes: max_size, max_agents, window, hints)"
        )
