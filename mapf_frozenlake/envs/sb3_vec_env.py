"""Stable-Baselines3's vector interface, native: one kernel call instead of the processes of a ``SubprocVecEnv``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.envs.controller import CONTROLLER
from mapf_frozenlake.envs.gym_env import understand_reset
from mapf_frozenlake.envs.options import Sizes, given_among, raise_unless_known
from mapf_frozenlake.envs.parallel_vec_env import MAPFFrozenLakeAgentsVectorEnv
from mapf_frozenlake.envs.vector_env import MAPFFrozenLakeVectorEnv
from mapf_frozenlake.errors import LakeError, UnknownArgument
from mapf_frozenlake.map_families import MapFamily
from mapf_frozenlake.types import Certificate, Collisions, Instance, OnGoal
from mapf_frozenlake.world.given import raise_unless_one_of
from mapf_frozenlake.world.layers import ObservationName
from mapf_frozenlake.world.rewards import RewardFunction

SUCCESS_KEYS = ("success", "valid", "optimal")
Indices = int | Sequence[int] | None


class MAPFFrozenLakeSB3VecEnv(VecEnv):
    """``num_envs`` lakes as an SB3 ``VecEnv``; with ``per_agent`` every agent slot is an env with ``Discrete(5)`` actions.

    Other arguments are those of ``gym.make("MAPFFrozenLake-v0")``: ``size``, ``num_agents``, ``config``, ``reward``,
    ``window``, ``hints`` … (``help(gym.make("MAPFFrozenLake-v0").unwrapped)`` lists them).

    Row i with seed s plays what a single env with seed s + i plays (per agent: its lake's). The info of an episode's last
    step has ``terminal_observation``, ``TimeLimit.truncated``, ``is_success``, Gymnasium's other entries, and the ``episode``
    of SB3's Monitor; other infos are empty.

    ``success_key``  the meaning of ``is_success``, and so of SB3's success rate: "success" (all agents on their goals, also
                     after collisions), "valid" (and no violation on the way, as the suites count) or "optimal".
    ``per_agent``    the agents of a lake begin and end together, so each episode is reported ``rows_per_lake`` times, with one
                     ``is_success``: EvalCallback's ``n_eval_episodes=256`` with 4 agents are 64 boards. Where numbers of
                     agents vary, ``active`` is False in the rows of empty slots: they see zeros, may only WAIT and get reward 0.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        per_agent: bool = False,
        success_key: str = "success",
        copy: bool = True,
        render_mode: str | None = None,
        flat: bool = False,
        discrete: bool = False,
        size: Sizes | None = None,
        num_agents: int | Mapping[int, float] | None = None,
        hole_ratio: float | None = None,
        wait_ratio: float | None = None,
        min_distance: int | None = None,
        map_family: MapFamily | None = None,
        loops: float | None = None,
        room_size: int | None = None,
        shelf_length: int | None = None,
        aisle: int | None = None,
        config: LakeConfig | Mapping[str, Any] | str | None = None,
        desc: str | Sequence[str] | None = None,
        instance: Instance | Mapping[str, Any] | str | None = None,
        is_slippery: bool | None = None,
        success_rate: float | None = None,
        on_goal: OnGoal | None = None,
        collisions: Collisions | None = None,
        horizon: int | None = None,
        reward: str | RewardFunction | None = None,
        feedback: bool | None = None,
        hint_strength: float | None = None,
        observation: ObservationName = "ego",
        dtype: str = "float32",
        max_size: int | None = None,
        max_agents: int | None = None,
        window: int | None = None,
        hints: bool = False,
        pool_size: int | None = None,
        certify: Certificate | None = None,
        exclude: Any = None,
        num_threads: int | None = 1,
        **unknown: Any,
    ) -> None:
        given = given_among(locals())
        raise_unless_one_of("success_key", success_key, SUCCESS_KEYS)
        self._success_key = success_key
        kind = MAPFFrozenLakeAgentsVectorEnv if per_agent else MAPFFrozenLakeVectorEnv
        if "autoreset_mode" in unknown:
            raise UnknownArgument("autoreset_mode: Stable-Baselines3 always resets within the step; leave it out")
        raise_unless_known(unknown, also=("per_agent", "success_key", "copy", "render_mode", *CONTROLLER))
        if flat or discrete or not per_agent:
            given |= {"flat": flat, "discrete": discrete}
        self.lakes = kind(num_envs, autoreset_mode=AutoresetMode.SAME_STEP, copy=copy, render_mode=render_mode, **given)
        self.render_mode = self.lakes.render_mode
        super().__init__(self.lakes.num_envs, self.lakes.single_observation_space, self.lakes.single_action_space)
        self.rows_per_lake = self.num_envs // num_envs
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)
        self._began = time.time()
        self._actions: NDArray | None = None

    def reset(self) -> NDArray:
        """Begin an episode in every lake. Seeds from ``seed`` and options from ``set_options`` are used once.

        Options: ``instance``, the same or another for each lake, and ``config``, which the lakes share.
        """
        seeds = self._seeds[:: self.rows_per_lake]
        given = None if all(seed is None for seed in seeds) else seeds
        observation, _ = self.lakes.reset(seed=given, options=self._options_of_lakes())
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0.0, 0
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        return observation

    def _options_of_lakes(self) -> dict[str, Any]:
        """One reset's options of all lakes, taken from SB3's options of each row."""
        by_lake = self._options[:: self.rows_per_lake]
        if any(options != by_lake[row // self.rows_per_lake] for row, options in enumerate(self._options)):
            raise LakeError("the options differ between the rows of a lake: give all rows of a lake the same options")
        instances, configs = zip(*(understand_reset(options) for options in by_lake))
        if any(config != configs[0] for config in configs):
            raise LakeError("the options have different configs, but the lakes share one: give the same config to all")
        given = [instance for instance in instances if instance is not None]
        if len(given) not in (0, len(instances)):
            raise LakeError(
                f"the options have an instance for {len(given)} of {len(instances)} lakes: give all lakes one, or none"
            )
        return {"instance": given or None, "config": configs[0]}

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Lake i gets seed + i at the next reset. Returns the seed of every row."""
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
        self._seeds = [seed + row // self.rows_per_lake for row in range(self.num_envs)]
        return self._seeds

    def step_async(self, actions: NDArray) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[NDArray, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        assert self._actions is not None, "step_wait before step_async"
        observation, rewards, terminated, truncated, info = self.lakes.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        over = terminated | truncated
        if over.any():
            for row in np.flatnonzero(over).tolist():
                infos[row] = self._last_info(row, info, bool(truncated[row] and not terminated[row]))
            self._returns[over], self._lengths[over] = 0.0, 0
        return observation, rewards.astype(np.float32), over, infos

    def _last_info(self, row: int, info: dict[str, Any], cut_off: bool) -> dict[str, Any]:
        """SB3's info of a finished episode."""
        final = info["final_info"]
        outcome = {name: final[name][row] for name in SUCCESS_KEYS}
        outcome["is_success"] = outcome[self._success_key]
        outcome |= {"slice": final["slice"][row], "failure": final["failure"][row]}
        outcome["score"] = float(final["score"][row])
        if "throughput" in final and final["_throughput"][row]:
            outcome["throughput"] = float(final["throughput"][row])
        elapsed = round(time.time() - self._began, 6)
        return outcome | {
            "terminal_observation": info["final_obs"][row],
            "TimeLimit.truncated": cut_off,
            "episode": {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": elapsed},
        }

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[num_envs, …, 5], for sb3-contrib's MaskablePPO."""
        return self.lakes.action_masks()

    @property
    def active(self) -> NDArray[np.bool_]:
        """bool[num_envs]: False in the rows of empty slots, to leave them out of means; belongs to the observation."""
        return self.lakes.batch.active.reshape(self.num_envs, -1)[:, 0]  # agents fill the slots from the first on

    def set_config(self, config: LakeConfig | Mapping[str, Any]) -> None:
        """Use this config from each lake's next reset on; the spaces stay."""
        self.lakes.set_config(config)

    def get_config(self) -> LakeConfig:
        return self.lakes.get_config()

    def close(self) -> None:
        self.lakes.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """The same value for each row, because the lakes share every attribute."""
        value = self.lakes.render_mode if attr_name == "render_mode" else getattr(self.lakes, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set it for all lakes, which share every attribute. An unknown attribute is refused."""
        if not hasattr(self.lakes, attr_name):
            raise AttributeError(
                f"the lakes have no attribute {attr_name!r}; a config is changed by set_config(config)"
            )
        setattr(self.lakes, attr_name, value)

    def env_method(self, method_name: str, *args: Any, indices: Indices = None, **kwargs: Any) -> list[Any]:
        """Call the method once for all lakes. Each row gets its own masks; other results are the same for all rows."""
        result = getattr(self.lakes, method_name)(*args, **kwargs)
        rows = self._get_indices(indices)
        return [result[row] for row in rows] if method_name == "action_masks" else [result for _ in rows]

    def env_is_wrapped(self, wrapper_class: type, indices: Indices = None) -> list[bool]:
        """True for Monitor, because the infos have its ``episode``."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[NDArray | None]:
        return list(self.lakes.render() or ()) if self.render_mode == "rgb_array" else [None] * self.num_envs
