"""``LakeBatch``: many lakes stepped by one kernel call. Every other form of the environment is a thin adapter over it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.generator.pool import InstancePool
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.types import MAX_SIZE, NUM_ACTIONS, Certificate, Instance
from mapf_frozenlake.world import kernels, rewards
from mapf_frozenlake.world.boards import Boards, boards_of, raise_on_unfit, raise_on_unreachable
from mapf_frozenlake.world.episode import first_bad_action
from mapf_frozenlake.world.layout import DTYPES, OBSERVATIONS, EgoLayout, ObservationName, agent_shape, checked_window
from mapf_frozenlake.world.observe import Sight, see_masks
from mapf_frozenlake.world.rng import pool_rows
from mapf_frozenlake.world.snapshot import Snapshot
from mapf_frozenlake.world.state import FAR, FRESH, OVER, RUNNING, UNBORN, make_state

Autoreset = Literal["next_step", "same_step", "disabled"]
AUTORESETS: tuple[Autoreset, ...] = ("next_step", "same_step", "disabled")


class StepResult(NamedTuple):
    """What a step gives back. Observation, rewards and events are the batch's own arrays: the next step overwrites them."""

    observation: NDArray  # [n, A, …], see layout
    rewards: NDArray[np.float64]  # [n, A]: 0 in empty slots
    terminated: NDArray[np.bool_]  # [n]
    truncated: NDArray[np.bool_]  # [n]
    events: NDArray[np.int8]  # [n, A]: Event codes


class LakeBatch:
    """``num_envs`` lakes in one struct of arrays.

    Env e with seed s plays, as its k-th episode, row hash(s, k) of a pool fixed by the config: the same in any process,
    batch size and thread count; with ``instance``, every episode is played on that one. ``max_size``, ``max_agents``, ``window`` and ``hints`` fix the shapes for good; configs
    change within them.
    """

    def __init__(
        self,
        config: LakeConfig | None = None,
        num_envs: int = 1,
        *,
        observation: ObservationName = "ego",
        reward: rewards.RewardFunction | None = None,
        max_size: int | None = None,
        max_agents: int | None = None,
        window: int | None = None,
        hints: bool = False,
        autoreset: Autoreset = "next_step",
        dtype: str = "float32",
        threads: int = 1,
        pool_size: int | None = None,
        exclude: Any = None,
        certify: Certificate | None = None,
        instance: Instance | None = None,
    ) -> None:
        config = config if config is not None else LakeConfig()
        if num_envs < 1:
            raise LakeError(f"num_envs={num_envs}: give at least 1")
        if threads < 1:
            raise LakeError(f"threads={threads}: give at least 1")
        _raise_unless_one_of("observation", observation, OBSERVATIONS)
        _raise_unless_one_of("autoreset", autoreset, AUTORESETS)
        _raise_unless_one_of("dtype", dtype, tuple(DTYPES))
        self.num_envs, self.observation_name, self.autoreset, self.dtype = num_envs, observation, autoreset, dtype
        self.max_size = config.max_size if max_size is None else max_size
        self.max_agents = config.max_agents if max_agents is None else max_agents
        if not 2 <= self.max_size <= MAX_SIZE or not 1 <= self.max_agents <= MAX_SIZE:
            raise LakeError(
                f"max_size={self.max_size}, max_agents={self.max_agents}: "
                f"give 2 to {MAX_SIZE} a side and 1 to {MAX_SIZE} agents"
            )
        self.layout = EgoLayout(checked_window(window, self.max_size), hints)
        self.reward = reward
        self._pool_options = {"exclude": exclude, "certify": certify} | (
            {} if pool_size is None else {"size": pool_size}
        )
        self._threads = min(threads, num_envs)
        self._workers: ThreadPoolExecutor | None = None
        self._seeds = np.zeros(num_envs, np.int64)
        self._numbers = np.zeros(num_envs, np.int64)  # of each env's next episode
        self._over = 0  # envs whose episode is over and not yet reset
        self._unborn = num_envs
        self._masks = np.zeros((num_envs, self.max_agents, NUM_ACTIONS), np.bool_)
        self._instance = instance
        self.final_observation: NDArray | None = None  # [n, A, …]: rows of envs that ended in the last same-step step

        pad = max(1, self.layout.window // 2) if observation == "ego" else 1
        self._wants_distance = hints and observation == "ego"
        self._state = make_state(num_envs, self.max_agents, self.max_size, pad, with_distance=self._wants_distance)
        shape = agent_shape(observation, self.layout, self.max_size)
        kind = np.int16 if observation == "compact" else np.dtype(dtype).type
        self._observation = np.zeros((num_envs, self.max_agents, *shape), kind)
        one = DTYPES[dtype]  # what stands for 1.0
        tails: dict[str, tuple[Any, ...]] = {
            "compact": (self._observation,),
            "grid": (one, self._observation),
            "ego": (Sight(self.layout.window, hints, self.max_size, kind(one), kind(one / 2)), self._observation),
        }
        self._tail = tails[observation]
        self._step_kernel = getattr(kernels, f"step_{observation}")
        self._look_kernel = getattr(kernels, f"look_{observation}")
        self.seed(np.random.SeedSequence().generate_state(1, np.uint32).astype(np.int64)[0] + np.arange(num_envs))
        self.set_config(config)

    # -- config and seeds -------------------------------------------------------------------------------------------

    def get_config(self) -> LakeConfig:
        return self._config

    def set_config(self, config: LakeConfig) -> None:
        """Draw and rule by ``config`` from each env's next reset on; shapes stay as they are."""
        if config.max_size > self.max_size:
            raise LakeError(f"a config of size {config.max_size} is beyond max_size={self.max_size}: raise max_size")
        if config.max_agents > self.max_agents:
            raise LakeError(
                f"a config of {config.max_agents} agents is beyond max_agents={self.max_agents}: raise max_agents"
            )
        self._config = config
        self._pool: Any = None  # made when a reset first asks for it
        ahead = config.success_rate if config.is_slippery else 1.0
        self._rules = (
            ahead, config.horizon or 0, rewards.NAMES.index(config.reward), config.collisions == "end",
            config.hint_strength,
        )  # fmt: skip
        if config.reward in rewards.NEEDS_DISTANCE and not self._wants_distance:
            self._wants_distance = True
            self._grow_distance()

    def _grow_distance(self) -> None:
        """Carry distances from each env's next reset on; running episodes began under a reward that asks for none."""
        area = self._state.terrain.shape[1]
        room = np.full((self.num_envs, self.max_agents, area), FAR, np.int16)
        self._state = self._state._replace(distance=room)

    def seed(self, seeds: NDArray[np.int64] | Sequence[int], mask: NDArray[np.bool_] | None = None) -> None:
        """Give every env (or those in ``mask``) its seed; its next episode is its first."""
        seeds = np.asarray(seeds, dtype=np.int64)
        if seeds.shape != (self.num_envs,):
            raise LakeError(f"seeds of shape {seeds.shape}: give one integer for each of the {self.num_envs} envs")
        chosen = slice(None) if mask is None else self._checked_mask(mask)
        self._seeds[chosen] = seeds[chosen]
        self._numbers[chosen] = 0

    # -- episodes ---------------------------------------------------------------------------------------------------

    def reset(
        self,
        mask: NDArray[np.bool_] | None = None,
        *,
        instances: Instance | InstanceSet | Sequence[Instance] | None = None,
        config: LakeConfig | None = None,
    ) -> NDArray:
        """Begin the next episode of every env (or those in ``mask``): from the pool, or on the given instances.

        ``instances`` is one for all, or one for each env that is reset, in order. ``config`` is set first.
        """
        if config is not None:
            self.set_config(config)
        envs = np.arange(self.num_envs) if mask is None else np.flatnonzero(self._checked_mask(mask))
        statuses = self._state.episode["status"][envs]
        self._begin(envs, RUNNING, instances)
        self._unborn -= int((statuses == UNBORN).sum())
        self._over -= int((statuses == OVER).sum())
        return self._observation

    def _begin(
        self, envs: NDArray[np.int64], status: int, instances: Instance | InstanceSet | Sequence[Instance] | None = None
    ) -> None:
        instances = instances if instances is not None else self._instance
        if instances is None:
            rows = pool_rows(self._seeds[envs], self._numbers[envs], self.pool.size)
            self.pool.ensure(rows)
            boards = boards_of(self.pool.arrays)
        else:
            boards, rows = self._given(instances, len(envs))
        kernels.begin_envs(self._state, envs, rows, boards, self._seeds, self._numbers, self._rules, status)
        if instances is None:  # the next episodes' boards are drawn while these are played
            self.pool.prefetch(pool_rows(self._seeds[envs], self._numbers[envs], self.pool.size))
        self._look_kernel(self._state, envs, *self._tail)

    def _given(
        self, instances: Instance | InstanceSet | Sequence[Instance], count: int
    ) -> tuple[Boards, NDArray[np.int64]]:
        given = [instances] if isinstance(instances, Instance) else instances
        for one in given if not isinstance(given, InstanceSet) else ():
            if not isinstance(one, Instance):
                raise LakeError(
                    f"instance of type {type(one).__name__}: give an Instance, a sequence of them or an InstanceSet"
                )
        these = given if isinstance(given, InstanceSet) else InstanceSet.from_instances(given)
        if len(these) not in (1, count):
            raise LakeError(f"{len(these)} instances for {count} envs: give one for all, or one for each")
        raise_on_unfit(these, self.max_size, self.max_agents)
        raise_on_unreachable(these)
        rows = np.zeros(count, np.int64) if len(these) == 1 else np.arange(count)
        return boards_of(these), rows

    @property
    def pool(self) -> Any:
        """Where episodes of the current config come from."""
        if self._pool is None:
            self._pool = InstancePool.shared(
                self._config, max_size=self.max_size, max_agents=self.max_agents, **self._pool_options
            )
        return self._pool

    def step(self, actions: NDArray[np.integer]) -> StepResult:
        """Everybody moves at once: ``actions`` int[n, A], 0 to 4 in every slot. Finished envs follow the autoreset mode."""
        actions = self._checked_actions(actions)
        if self._unborn or self._over:
            self._prepare_finished()
        over = self._step_range(actions)
        state = self._state
        if self.reward is not None:
            self._pay_callable(actions)
        episode = state.episode
        result = StepResult(
            self._observation, state.rewards, episode["terminated"].copy(), episode["truncated"].copy(), state.events
        )
        self._over = over
        if over and self.autoreset == "same_step":
            self._reset_at_once()
        return result

    def _step_range(self, actions: NDArray[np.int64]) -> int:
        if self._threads == 1:
            return self._step_kernel(self._state, actions, 0, self.num_envs, *self._tail)
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._threads)
        bounds = [self.num_envs * t // self._threads for t in range(self._threads + 1)]
        parts = [
            self._workers.submit(self._step_kernel, self._state, actions, low, high, *self._tail)
            for low, high in itertools.pairwise(bounds)
        ]
        return sum(part.result() for part in parts)

    def _prepare_finished(self) -> None:
        if self._unborn:
            raise LakeError(
                f"step before reset: {self._unborn} of {self.num_envs} envs have no episode; call reset first"
            )
        finished = np.flatnonzero(self.finished)
        if self.autoreset == "disabled":
            raise LakeError(f"the episode of env {finished[0]} is over: reset it before the next step")
        self._begin(finished, FRESH)

    def _reset_at_once(self) -> None:
        finished = np.flatnonzero(self.finished)
        if self.final_observation is None:
            self.final_observation = np.zeros_like(self._observation)
        self.final_observation[finished] = self._observation[finished]
        self._begin(finished, RUNNING)
        self._over = 0

    def _pay_callable(self, actions: NDArray[np.int64]) -> None:
        episode = self._state.episode
        transition = rewards.Transition(
            before=self._places(self._state.before), positions=self.positions, goals=self.goals, actions=actions,
            events=self._state.events, active=self.active, stepped=episode["step"] > 0,
            success=episode["success"] & episode["terminated"],
            step=episode["step"], horizon=episode["horizon"],
        )  # fmt: skip
        assert self.reward is not None
        paid = np.asarray(self.reward(transition), dtype=np.float64)
        if paid.shape != self._state.rewards.shape:
            raise LakeError(f"the reward function returned shape {paid.shape}: it must be {self._state.rewards.shape}")
        self._state.rewards[:] = np.where(transition.active & transition.stepped[:, None], paid, 0.0)

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[n, A, 5]: False where an action leaves the board. In an empty slot only WAIT is True."""
        see_masks(self._state, self._masks)
        return self._masks

    # -- what is the case -------------------------------------------------------------------------------------------

    @property
    def observation(self) -> NDArray:
        """[n, A, …]: what agents see now."""
        return self._observation

    @property
    def rewards(self) -> NDArray[np.float64]:
        """[n, A]: of the last step; 0 in empty slots."""
        return self._state.rewards

    @property
    def episode(self) -> NDArray:
        """[n]: every env's scalars, see ``state.EPISODE``."""
        return self._state.episode

    @property
    def positions(self) -> NDArray[np.int16]:
        """[n, A, 2]: row, col; -1 in empty slots."""
        return self._places(self._state.cells)

    @property
    def goals(self) -> NDArray[np.int16]:
        """[n, A, 2]: row, col; -1 in empty slots."""
        return self._places(self._state.goals)

    @property
    def active(self) -> NDArray[np.bool_]:
        """[n, A]: False in empty slots."""
        return np.arange(self.max_agents) < self._state.episode["num_agents"][:, None]

    @property
    def step_count(self) -> NDArray[np.int32]:
        """[n]: steps taken in the current episode."""
        return self._state.episode["step"]

    @property
    def horizon(self) -> NDArray[np.int32]:
        """[n]: steps after which the current episode is truncated."""
        return self._state.episode["horizon"]

    @property
    def finished(self) -> NDArray[np.bool_]:
        """[n]: whether the episode is over and not yet reset."""
        return self._state.episode["status"] == OVER

    @property
    def success(self) -> NDArray[np.bool_]:
        """[n]: whether the last finished episode ended with all agents on their goals."""
        return self._state.episode["success"]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """[n]: whether it was a success without any violation."""
        return self._state.episode["valid"]

    @property
    def optimal(self) -> NDArray[np.int8]:
        """[n]: 1 valid at the certified makespan, 0 not, -1 where that is unknown or the world slips."""
        return self._state.episode["optimal"]

    def snapshot(self, env: int = 0, actions: NDArray | None = None) -> Snapshot:
        """One env as it stands, for a renderer; ``actions`` [A] are those of the step just taken."""
        count = int(self._state.episode["num_agents"][env])
        state = self._state
        return Snapshot(
            holes=self.holes(env),
            positions=self.positions[env, :count],
            goals=self.goals[env, :count],
            starts=self._places(state.starts)[env, :count],
            actions=None if actions is None else np.asarray(actions, np.int8)[:count],
            events=None if actions is None else state.events[env, :count].copy(),
            step=int(self.step_count[env]),
            horizon=int(self.horizon[env]),
        )

    def holes(self, env: int) -> NDArray[np.bool_]:
        """[height, width]: the board of one env."""
        state, episode = self._state, self._state.episode[env]
        board = state.terrain[env].reshape(state.stride, state.stride)
        pad = state.pad
        return board[pad : pad + episode["height"], pad : pad + episode["width"]] == 1

    def _places(self, cells: NDArray[np.int32]) -> NDArray[np.int16]:
        stride, pad = self._state.stride, self._state.pad
        places = np.stack(np.divmod(cells, stride), axis=-1).astype(np.int16) - np.int16(pad)
        places[~self.active] = -1
        return places

    # -- checks -----------------------------------------------------------------------------------------------------

    def _checked_actions(self, actions: NDArray[np.integer]) -> NDArray[np.int64]:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs, self.max_agents):
            raise LakeError(
                f"actions of shape {actions.shape}: give ({self.num_envs}, {self.max_agents}), one per env and agent slot"
            )
        if actions.dtype != np.int64 and actions.dtype.kind not in "iu":
            raise LakeError(f"actions of type {actions.dtype}: give integers from 0 to {NUM_ACTIONS - 1}")
        joint = np.ascontiguousarray(actions, dtype=np.int64)
        bad = first_bad_action(joint)
        if bad >= 0:
            env, agent = divmod(bad, self.max_agents)
            raise LakeError(
                f"action {joint[env, agent]} of agent {agent} in env {env}: actions are 0 to {NUM_ACTIONS - 1}"
            )
        return joint

    def _checked_mask(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        mask = np.asarray(mask)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise LakeError(f"mask of {mask.dtype}{mask.shape}: give bool({self.num_envs},), True for the envs meant")
        return mask

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_workers": None, "_pool": None}


def _raise_unless_one_of(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise LakeError(f"{name}={value!r}: give one of {', '.join(map(repr, known))}")
