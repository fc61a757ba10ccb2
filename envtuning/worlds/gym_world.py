"""``GymWorld``: the base class for your own Gymnasium environment. See ``docs/worlds.md``.

You write a pydantic config, ``about`` and ``make(config, slice)``, and, where the defaults are wrong, ``success``,
``fingerprint`` and ``check``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
from pydantic import BaseModel

from engineers.knobs import dump
from engineers.report import FailureCase
from envtuning.worlds.episodes import by_slice, rates
from envtuning.worlds.gym_cases import HELD_OUT_SEEDS, TRAINING_SEEDS, GymCases, apportioned, digest, draw_cases
from envtuning.worlds.gym_player import GymEpisode, play_cases
from envtuning.worlds.gym_task import GymTask
from envtuning.worlds.gym_training import TrainingEnv, close_all, make_envs
from envtuning.worlds.world import Cases, Purpose, TooFewCases, fingerprints_of

C = TypeVar("C", bound=BaseModel)


class GymWorld(GymTask[C]):
    """Any single-agent Gymnasium environment, for policies that act on observations.

    Cases are drawn by the shares of the config's slices (a map of models that have a ``share``); a config without slices is
    one slice, ``"all"``.
    All configs of a run must have the same observation and action space.
    """

    def check(self, config: C) -> None:
        """Make an environment of every slice in use. Raises ``InfeasibleConfig`` if one cannot be made, or if spaces differ."""
        with self.envs(config):
            pass

    def draw(self, config: C, per_slice: int, *, seed: int, purpose: Purpose, exclude: Sequence[Cases]) -> GymCases:
        taken, shares = fingerprints_of(exclude), self.slices(config)
        with self.envs(config) as envs:

            def fingerprint_of(name: str, number: int) -> str:
                envs[name].reset(seed=number)
                return digest(self.fingerprint(envs[name], number))

            drawn = partial(draw_cases, fingerprint_of=fingerprint_of, seed=seed)
            if purpose == "probe":
                wanted = apportioned(shares, per_slice * len(shares))
                found = drawn(wanted, seeds=TRAINING_SEEDS, taken=taken, distinct=False)
            else:
                found = drawn(dict.fromkeys(shares, per_slice), seeds=HELD_OUT_SEEDS, taken=taken, distinct=True)
                held_out = taken | {case.fingerprint for case in found}
                try:
                    drawn(dict.fromkeys(shares, 1), seeds=TRAINING_SEEDS, taken=held_out, distinct=False)
                except TooFewCases as error:
                    raise TooFewCases(f"nothing would be left to train on: {error}") from error
        return GymCases(dump(config), tuple(found))

    def load(self, path: Path) -> GymCases:
        return GymCases.load(path)

    def play(self, policy: Any, cases: GymCases, config: C, *, seed: int) -> list[GymEpisode]:
        """``policy.act(observations)`` returns one action for each, batched as in Gymnasium's vector environments.

        All random numbers come from the cases' own seeds; ``seed`` is not used.
        """
        return play_cases(self, policy, cases, config)

    def explain(self, cases: GymCases, episode: GymEpisode) -> FailureCase:
        return super().explain(cases, episode).model_copy(update={"picture": episode.picture})

    def behaviour(self, cases: GymCases, episodes: Sequence[GymEpisode]) -> dict[str, dict[str, float]]:
        """Per slice, the mean of every metric that is not a rate in the table: reward, length and others."""
        return {
            name: {key: round(mean, 3) for key, mean in rates(group).items() if key not in self.about.rates}
            for name, group in by_slice(episodes).items()
        }

    def drawn(self, config: C, cases: GymCases) -> dict[str, dict[str, float]]:
        """Per slice, its part of the probed cases."""
        names = [case.slice for case in cases]
        return {name: {"share": round(names.count(name) / len(names), 3)} for name in self.slices(config)}

    def capacity(self, configs: Sequence[C]) -> dict[str, Any]:
        """The entry ``config``, whose spaces all configs of the run must have. Raises ``InfeasibleConfig`` if they differ."""
        for config in configs[1:]:
            self.make_env(config, exclude=(), capacity={"config": configs[0]}, seed=0).close()
        return {"config": configs[0]}

    def config_in(self, capacity: Mapping[str, Any]) -> Any:
        return capacity["config"]

    def make_env(self, config: C, *, exclude: Sequence[Cases], capacity: Mapping[str, Any], seed: int) -> TrainingEnv:
        """An environment that draws a training case at every reset, its slice by the shares; see ``TrainingEnv``."""
        env = TrainingEnv(self, capacity.get("config", config), exclude=exclude, seed=seed)
        env.set_config(config)
        return env

    @contextmanager
    def envs(self, config: C) -> Iterator[dict[str, gym.Env]]:
        """An environment for every slice in use, all with the same spaces, closed at the end. Raises ``InfeasibleConfig``."""
        made = make_envs(self, config)
        try:
            yield made
        finally:
            close_all(made)
