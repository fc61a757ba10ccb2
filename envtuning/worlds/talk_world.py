"""``TalkWorld``: the base class for environments whose observations and actions are texts.

You write the same methods as for a ``GymWorld``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack, closing
from typing import Any, TypeVar

import gymnasium as gym
from pydantic import BaseModel

from envtuning.worlds.gym_cases import GymCases
from envtuning.worlds.gym_player import GymEpisode
from envtuning.worlds.gym_world import GymWorld
from envtuning.worlds.text_player import Conversation, converse
from envtuning.worlds.world import Form

C = TypeVar("C", bound=BaseModel)

AT_ONCE = 256  # conversations played together


class TalkWorld(GymWorld[C]):
    """Any Gymnasium environment of strings, for policies that reply. An episode's last ``info`` may name its ``failure``."""

    forms: frozenset[Form] = frozenset({"replies"})
    reports = frozenset({"success_rate", "reward", "turns"})

    def failure(self, reward: float, terminated: bool, info: Mapping[str, Any]) -> str:
        return str(info.get("failure") or super().failure(reward, terminated, info))

    def play(self, policy: Any, cases: GymCases, config: C, *, seed: int) -> list[GymEpisode]:
        """Play all conversations in step, with one call of the policy per turn; ``seed`` is passed to the policy."""
        episodes: list[GymEpisode] = []
        for begin in range(0, len(cases), AT_ONCE):
            together = cases.cases[begin : begin + AT_ONCE]
            with ExitStack() as opened:
                envs = [opened.enter_context(closing(self.make(config, case.slice))) for case in together]
                talks = converse(envs, policy, seeds=[case.seed for case in together], seed=seed + begin)
                for number, (case, env, talk) in enumerate(zip(together, envs, talks), begin):
                    episodes.append(self._episode(number, case.slice, env, talk))
        return episodes

    def _episode(self, number: int, name: str, env: gym.Env, talk: Conversation) -> GymEpisode:
        failure = self._failure(talk)
        reward = sum(talk.rewards)
        return GymEpisode(
            case=number,
            slice=name,
            failure=failure,
            metrics={"success_rate": float(failure is None), "reward": reward, "turns": float(talk.turns)},
            cost={"samples": 1, "tokens": talk.tokens, "episodes": 1},
            trace={"replies": [reply.text for reply in talk.replies]},
            note=talk.error,
            picture="" if failure is None else self.picture(env),
        )

    def _failure(self, talk: Conversation) -> str | None:
        if talk.error is not None:
            return "policy_error"
        last = (talk.rewards[-1], talk.terminated, talk.infos[-1])
        if self.success(*last):
            return None
        return "truncated" if talk.truncated_reply else self.failure(*last)
