"""Plays a policy on cases of a Gymnasium world: many copies at once, with one call of the policy per step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from envtuning.worlds.episodes import Episode
from envtuning.worlds.gym_cases import GymCases
from envtuning.worlds.gym_task import GymTask

COPIES = 64  # environments that are open at once


@dataclass(frozen=True)
class GymEpisode(Episode):
    """Also has the environment's picture at the end of a failed episode, in memory only."""

    picture: str = field(default="", compare=False, repr=False)


class PolicyError(Exception):
    """The policy raised an error, or returned a wrong action."""


@dataclass
class Copy:
    """One environment on its way through one case."""

    env: gym.Env
    case: int  # its place among the cases
    observation: Any
    actions: list[Any] = field(default_factory=list)
    reward: float = 0.0  # the sum so far


def play_cases(world: GymTask[Any], policy: Any, cases: GymCases, config: Any) -> list[GymEpisode]:
    """One judged episode per case, in order; at most ``COPIES`` environments of a slice are open at once."""
    played: dict[int, GymEpisode] = {}
    for name in dict.fromkeys(case.slice for case in cases):
        numbers = [number for number, case in enumerate(cases) if case.slice == name]
        with ExitStack() as opened:
            envs = [opened.enter_context(closing(world.make(config, name))) for _ in range(min(COPIES, len(numbers)))]
            for begin in range(0, len(numbers), COPIES):
                together = numbers[begin : begin + COPIES]
                copies = [
                    Copy(env, number, env.reset(seed=cases[number].seed)[0]) for env, number in zip(envs, together)
                ]
                played |= {episode.case: episode for episode in _in_step(world, policy, copies, name)}
    return [played[number] for number in range(len(cases))]


def _in_step(world: GymTask[Any], policy: Any, going: list[Copy], name: str) -> Iterator[GymEpisode]:
    """Step all copies until each has ended; yields every finished episode."""
    while going:
        asked, going = going, []
        for copy, action in zip(asked, actions_of(policy, asked)):
            if isinstance(action, PolicyError):
                yield _episode(copy, name, "policy_error", note=str(action))
            elif (episode := _step(world, copy, name, action)) is not None:
                yield episode
            else:
                going.append(copy)


def _step(world: GymTask[Any], copy: Copy, name: str, action: Any) -> GymEpisode | None:
    """One step of one copy; returns its episode if this was the last step."""
    copy.observation, reward, terminated, truncated, info = copy.env.step(action)
    copy.actions.append(_plain(action))
    copy.reward += float(reward)
    if not (terminated or truncated or len(copy.actions) >= world.max_steps):
        return None
    last = (float(reward), bool(terminated), info)
    failure = None if world.success(*last) else world.failure(*last)
    return _episode(copy, name, failure, picture="" if failure is None else world.picture(copy.env))


def _episode(copy: Copy, name: str, failure: str | None, *, note: str | None = None, picture: str = "") -> GymEpisode:
    steps = len(copy.actions)
    return GymEpisode(
        case=copy.case,
        slice=name,
        failure=failure,
        metrics={"success_rate": float(failure is None), "reward": copy.reward, "episode_length": float(steps)},
        cost={"env_steps": max(1, steps), "episodes": 1},
        trace={"actions": copy.actions},
        note=note,
        picture=picture,
    )


def _plain(action: Any) -> Any:
    """An action as JSON."""
    if isinstance(action, Mapping):
        return {name: _plain(part) for name, part in action.items()}
    if isinstance(action, tuple | list):
        return [_plain(part) for part in action]
    return action.tolist() if isinstance(action, np.ndarray | np.generic) else action


def actions_of(policy: Any, copies: Sequence[Copy]) -> list[Any]:
    """An action for each copy, in one call. If it raises, each copy gets a call of its own, so that only a bad case fails."""
    env = copies[0].env
    try:
        return [_checked(action, env.action_space) for action in _ask(policy, copies, env)]
    except Exception as error:  # a third party's policy may raise any error
        if len(copies) == 1:
            return [error if isinstance(error, PolicyError) else PolicyError(f"{type(error).__name__}: {error}")]
    return [action for copy in copies for action in actions_of(policy, [copy])]


def _ask(policy: Any, copies: Sequence[Copy], env: gym.Env) -> list[Any]:
    """The policy's actions for the copies' observations, batched as Gymnasium's vector environments batch both."""
    count, space = len(copies), env.observation_space
    observations = concatenate(space, [copy.observation for copy in copies], create_empty_array(space, count))
    given = policy.act(observations)
    actions = list(iterate(batch_space(env.action_space, count), given))
    if len(actions) != count:
        raise PolicyError(f"the policy returned {len(actions)} actions for {count} observations: return one for each")
    return actions


def _checked(action: Any, space: gym.Space) -> Any:
    """The action as the space's own type. Raises ``PolicyError`` if it is not in the space."""
    if isinstance(space, gym.spaces.Box):
        action = np.asarray(action, dtype=space.dtype)
    if not space.contains(action):
        raise PolicyError(f"the policy's action {action!r:.60} is not in {space}")
    return action
