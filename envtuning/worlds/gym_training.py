"""``TrainingEnv``: one environment to train on a Gymnasium world's config; no episode is a held-out case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym

from engineers.shared.places import with_place
from envtuning.worlds.gym_cases import PATIENCE, TRAINING_SEEDS, digest
from envtuning.worlds.gym_task import GymTask
from envtuning.worlds.world import Cases, InfeasibleConfig, fingerprints_of


class TrainingEnv(gym.Env):
    """Every reset draws a slice by its share and a training seed for its case; the sequence depends only on the seed.

    ``set_config`` takes effect at the next reset. A step's ``info`` has the ``slice``, and at the end ``is_success``, ``score``, the
    ``failure`` of an episode that failed, and the ``case``, which is equal for cases that are the same to a learner.
    """

    def __init__(self, world: GymTask[Any], config: Any, *, exclude: Iterable[Cases], seed: int) -> None:
        self.world, self.config = world, deepcopy(config)  # the caller may change its own later
        self.held_out = fingerprints_of(exclude)
        self.envs = make_envs(world, self.config)
        self._next: tuple[Any, dict[str, gym.Env]] | None = None
        self._shares = world.slices(self.config)
        self._slice = next(iter(self.envs))
        self._steps, self._case = 0, ""  # of the episode
        self.observation_space, self.action_space = spaces_of(self.current)
        super().reset(seed=seed)

    @property
    def current(self) -> gym.Env:
        """The environment of the slice that is being played."""
        return self.envs[self._slice]

    @property
    def render_mode(self) -> str | None:  # type: ignore[override]  # a plain attribute in Gymnasium
        return self.current.render_mode

    def get_config(self) -> Any:
        """A copy of the config in force, or of the pending one."""
        return deepcopy(self._latest)

    @property
    def _latest(self) -> Any:
        return self.config if self._next is None else self._next[0]

    def set_config(self, config: Any) -> None:
        """Use this config from the next reset on. Raises ``InfeasibleConfig`` if its spaces differ."""
        if config == self._latest:
            return
        config = deepcopy(config)
        envs = make_envs(self.world, config)
        try:
            raise_unless_same_spaces(envs, (self.observation_space, self.action_space))
        except InfeasibleConfig:
            close_all(envs)
            raise
        if self._next is not None:
            close_all(self._next[1])
        self._next = config, envs

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if self._next is not None:
            close_all(self.envs)
            self.config, self.envs = self._next
            self._next, self._shares = None, self.world.slices(self.config)
        self._steps = 0
        names = list(self._shares)
        self._slice = names[int(self.np_random.choice(len(names), p=list(self._shares.values())))]
        for _ in range(PATIENCE):
            number = int(self.np_random.integers(TRAINING_SEEDS.stop))
            observation, info = self.current.reset(seed=number, options=options)
            self._case = digest(self.world.fingerprint(self.current, number))
            if self._case not in self.held_out:
                return observation, info | {"slice": self._slice}
        raise InfeasibleConfig(
            f"slice {self._slice}: {PATIENCE:,} seeds in a row gave only held-out cases, so there is nothing to train on: "
            "hold out fewer cases, or let the config vary more from seed to seed"
        )

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.current.step(action)
        self._steps += 1
        truncated = truncated or self._steps >= self.world.max_steps
        info = info | {"slice": self._slice}
        if terminated or truncated:
            last = (float(reward), bool(terminated), info)
            success = self.world.success(*last)
            info |= {"is_success": success, "score": self.world.score(*last), "case": self._case}
            if not success:
                info["failure"] = self.world.failure(*last)
        return observation, float(reward), bool(terminated), bool(truncated), info

    def render(self) -> Any:
        return self.current.render()

    def close(self) -> None:
        close_all(self.envs)
        if self._next is not None:
            close_all(self._next[1])


Spaces = tuple[gym.Space, gym.Space]


def spaces_of(env: gym.Env) -> Spaces:
    return env.observation_space, env.action_space


def make_envs(world: GymTask[Any], config: Any) -> dict[str, gym.Env]:
    """An environment for every slice in use. Raises ``InfeasibleConfig`` if one cannot be made or has other spaces."""
    envs: dict[str, gym.Env] = {}
    try:
        for name in world.slices(config):
            try:
                envs[name] = world.make(config, name)
            except Exception as error:  # a third party's environment may raise any error about its arguments
                raise InfeasibleConfig(f"slice {name}: its environment cannot be made ({with_place(error)})") from error
        if not envs:
            raise InfeasibleConfig("no slice has a share of the data: give at least one a share above 0")
        raise_unless_same_spaces(envs, spaces_of(next(iter(envs.values()))))
    except InfeasibleConfig:
        close_all(envs)
        raise
    return envs


def raise_unless_same_spaces(envs: Mapping[str, gym.Env], spaces: Spaces) -> None:
    for name, env in envs.items():
        for what, own, needed in zip(("observation", "action"), spaces_of(env), spaces):
            if own != needed:
                raise InfeasibleConfig(
                    f"slice {name} has the {what} space {own}, and the policy was made for {needed}: pad or wrap it in `make`, "
                    "so that all slices of all configs have the same"
                )


def close_all(envs: Mapping[str, gym.Env]) -> None:
    for env in envs.values():
        env.close()
