"""``LakeBatch``: many lakes stepped by one kernel call. Every other interface of the environment is a thin adapter over it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.generator.generate import check_config, excluded_keys
from mapf_frozenlake.generator.pool import InstancePool
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.threads import thread_count
from mapf_frozenlake.types import COLLISIONS, MAX_SIZE, NUM_ACTIONS, ON_GOAL, Certificate, Instance
from mapf_frozenlake.world import kernels, rewards
from mapf_frozenlake.world.boards import boards_of, given_boards
from mapf_frozenlake.world.episode import Rules
from mapf_frozenlake.world.given import as_actions, as_mask, as_seeds, raise_unless_counts, raise_unless_one_of
from mapf_frozenlake.world.layers import LAYERS, OBSERVATIONS, ObservationName
from mapf_frozenlake.world.layout import DTYPES, EgoLayout, agent_shape, checked_window
from mapf_frozenlake.world.state import FAR, FRESH, NOWHERE, OVER, UNBORN, make_state
from mapf_frozenlake.world.table import table_of_boards, table_of_state
from mapf_frozenlake.world.turns import ALONE, Unowned, share, unowned
from mapf_frozenlake.world.view import LakeView

Autoreset = Literal["next_step", "same_step", "disabled"]
AUTORESETS: tuple[Autoreset, ...] = ("next_step", "same_step", "disabled")
_INT64 = np.dtype(np.int64)
MOST_ENVS = 10_000_000
_NOBODY = np.zeros(0, np.bool_)
Instances = Instance | InstanceSet | Sequence[Instance]


@lru_cache(maxsize=64)
def _raise_unless_drawable(config: LakeConfig, certify: Certificate | None, excluded: bytes) -> None:
    """Many batches of one lake ask about the same config: each is tried once."""
    check_config(config, certify=certify, exclude=np.frombuffer(excluded, np.uint64))


def _flat(observation: NDArray) -> NDArray:
    """[n, A, numbers]: the same memory."""
    return observation if observation.ndim == 3 else observation.reshape(*observation.shape[:2], -1)


class StepResult(NamedTuple):
    """The result of a step. Observation, rewards and events are the batch's own arrays, which the next step overwrites."""

    observation: NDArray  # [n, A, …], see layout
    rewards: NDArray[np.float64]  # [n, A]: 0 in empty slots
    terminated: NDArray[np.bool_]  # [n]
    truncated: NDArray[np.bool_]  # [n]
    events: NDArray[np.int8]  # [n, A]: Event codes


class LakeBatch(LakeView):
    """``num_envs`` lakes in one struct of arrays.

    The k-th episode of an env with seed s is row hash(s, k) of a pool that the config fixes: the same in any process,
    batch size and thread count. With ``instance``, every episode is played on that instance.
    ``max_size``, ``max_agents``, ``window`` and ``hints`` fix the shapes for good; configs change within them.
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
        num_threads: int | None = 1,
        pool_size: int | None = None,
        exclude: Any = None,
        certify: Certificate | None = None,
        instance: Instance | None = None,
    ) -> None:
        config = config if config is not None else LakeConfig()
        raise_unless_counts(max_size=max_size, max_agents=max_agents, window=window)
        raise_unless_counts(least=1, num_envs=num_envs)
        if num_envs > MOST_ENVS:
            raise LakeError(f"num_envs={num_envs}: give at most {MOST_ENVS:,}")
        raise_unless_one_of("observation", observation, OBSERVATIONS)
        raise_unless_one_of("autoreset", autoreset, AUTORESETS)
        raise_unless_one_of("dtype", dtype, tuple(DTYPES))
        raise_unless_one_of("certify", certify, (None, *get_args(Certificate)))
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
        self._pool_options: dict[str, Any] = {"exclude": excluded_keys(exclude), "certify": certify}
        if pool_size is not None:
            self._pool_options["size"] = pool_size
        self._threads = min(thread_count(num_threads), num_envs)
        self._instance = instance
        self._unborn, self._over = num_envs, 0  # number of envs without a first episode; number of envs to reset
        self.num_ended = 0  # episodes that the last step ended
        # [num_ended, A, …]: the last observations of the envs that ended in the last same-step step; never written again
        self.final_observation: NDArray | None = None

        pad = max(1, self.layout.window // 2) if observation in ("ego", "pogema") else 1
        sees_distance = any(layer.needs_distance and layer.is_shown(hints) for layer in LAYERS[observation])
        self._state = make_state(
            num_envs, self.max_agents, self.max_size, pad, with_distance=sees_distance, with_lakes=False
        )
        kind = np.int16 if observation == "compact" else np.dtype(dtype).type
        shape = agent_shape(observation, self.layout, self.max_size)
        self._observation = np.zeros((num_envs, self.max_agents, *shape), kind)
        self._has_other_rules = False  # whether an episode may have other rules than the lake's own; stays True
        self._bind()
        first = int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
        self.seed(np.arange(first, first + num_envs))
        self.set_config(config)

    def _bind(self) -> None:
        """Look up the addresses, kernels and constant arguments of every call."""
        self._table = table_of_state(self._state)
        self._everybody = np.arange(self.num_envs)
        self._rows = np.zeros(self.num_envs, np.int64)
        self._pool: InstancePool | None = None
        self._boards: NDArray[np.int64] | None = None  # addresses of the pool's arrays
        name = self.observation_name
        self._step_kernel = getattr(kernels, f"step_{name}_by_every_rule" if self._has_other_rules else f"step_{name}")
        self._look_up_fields()
        self._unowned = Unowned()
        self._nothing = np.zeros((self.num_envs, self.max_agents), np.int64)
        self._tail: tuple[Any, ...] = (_flat(self._observation),)
        if name != "compact":
            sight = np.array([self.layout.window, self.layout.hints, self.max_size, DTYPES[self.dtype]], np.int64)
            self._tail = (sight, *self._tail)

    def __getstate__(self) -> dict[str, Any]:
        rebound = (
            "_table",
            "_everybody",
            "_rows",
            "_pool",
            "_pool_arrays",
            "_boards",
            "_step_kernel",
            "_nothing",
            "_tail",
            "_fields",
            "_unowned",
        )
        return {name: value for name, value in self.__dict__.items() if name not in rebound}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._bind()

    # -- config and seeds -------------------------------------------------------------------------------------------

    def get_config(self) -> LakeConfig:
        return self._config

    def raise_unless_fits(self, config: LakeConfig) -> None:
        """Raises ``LakeError`` for a config whose boards or agent counts exceed the spaces, or whose boards cannot be drawn."""
        self._raise_unless_room(config)
        if self._instance is None:
            _raise_unless_drawable(config, self._pool_options["certify"], self._pool_options["exclude"].tobytes())

    def _raise_unless_room(self, config: LakeConfig) -> None:
        if config.max_size > self.max_size:
            raise LakeError(
                f"a config of size {config.max_size} is beyond max_size={self.max_size}: "
                f"make the env with max_size={config.max_size}"
            )
        if config.max_agents > self.max_agents:
            raise LakeError(
                f"a config of {config.max_agents} agents is beyond max_agents={self.max_agents}: "
                f"make the env with max_agents={config.max_agents}"
            )

    def set_config(self, config: LakeConfig) -> None:
        """Use ``config`` from each env's next reset on; shapes stay as they are."""
        self._raise_unless_room(config)
        self._config = config
        self._pool = None  # made at the first reset that needs it
        rules = Rules(
            ahead=config.success_rate if config.is_slippery else 1.0,
            horizon=config.horizon or 0,
            reward=list(rewards.REWARDS).index(config.reward),
            collisions=COLLISIONS.index(config.collisions),
            hint=config.hint_strength,
            on_goal=ON_GOAL.index(config.on_goal),
        )
        self._rules = np.array(rules, np.float64)
        if not self._has_other_rules and (config.on_goal != "wait" or config.collisions not in ("block", "end")):
            self._has_other_rules = True
            self._step_kernel = getattr(kernels, f"step_{self.observation_name}_by_every_rule")
        if rewards.REWARDS[config.reward].needs_distance and self._state.distance.shape[2] == 0:
            self._carry(distance=np.full((*self._state.cells.shape, self._state.terrain.shape[1]), FAR, np.int16))
        if config.on_goal == "next" and self._state.lake.shape[1] == 0:
            self._carry(lake=np.zeros(self._state.terrain.shape, np.int16))

    def _carry(self, **arrays: NDArray) -> None:
        """Allocate arrays. They are filled from each env's next reset on, because no running episode needs them."""
        queue = np.zeros(self._state.terrain.shape, np.int32)
        self._state = self._state._replace(**arrays, queue=queue)  # type: ignore[arg-type]
        self._table = table_of_state(self._state)

    def seed(self, seeds: NDArray[np.int64] | Sequence[int], mask: NDArray[np.bool_] | None = None) -> None:
        """Give every env (or those in ``mask``) its seed; its next episode is its first."""
        seeds = as_seeds(seeds)
        if seeds.shape != (self.num_envs,):
            raise LakeError(f"seeds of shape {seeds.shape}: give one integer for each of the {self.num_envs} envs")
        chosen = slice(None) if mask is None else as_mask(mask, self.num_envs)
        self._state.episode["seed"][chosen] = seeds[chosen]
        self._state.episode["number"][chosen] = 0

    # -- episodes ---------------------------------------------------------------------------------------------------

    def reset(
        self,
        mask: NDArray[np.bool_] | None = None,
        *,
        instances: Instances | None = None,
        config: LakeConfig | None = None,
    ) -> NDArray:
        """Begin the next episode of every env (or those in ``mask``): from the pool, or on the given instances.

        ``instances`` is one for all, or one for each env that is reset, in order. ``config`` is set first.
        """
        if config is not None:
            self.set_config(config)
        if mask is None:
            self._begin(self._everybody, instances)
            self._unborn = self._over = 0
        else:
            envs = np.flatnonzero(as_mask(mask, self.num_envs))
            self._begin(envs, instances)
            status = self._state.episode["status"]
            self._unborn, self._over = int((status == UNBORN).sum()), int((status == OVER).sum())
        self._show(kernels.BEGUN)
        return self._observation

    def _begin(self, envs: NDArray[np.int64], instances: Instances | None = None) -> None:
        rows = self._rows if len(envs) == self.num_envs else self._rows[: len(envs)]
        instances = instances if instances is not None else self._instance
        if instances is None:
            pool = self._pool if self._pool is not None else self.pool
            boards = self._boards
            if self._threads > 1:
                kernels.choose_rows(self._table, envs, rows, pool.size)
            elif kernels.begin_envs(self._table, envs, rows, boards, self._rules, ALONE, pool.size, pool.ready) == 0:
                return  # rows chosen and envs begun by one call
            pool.ensure(rows)
        else:
            given = given_boards(instances, len(envs), self.max_size, self.max_agents)
            boards = table_of_boards(given)
            rows[:] = 0 if len(given.heights) == 1 else np.arange(len(envs))
        arguments = (self._table, envs, rows, boards, self._rules)
        share(kernels.begin_envs, arguments, (0, _NOBODY), len(envs), self._threads)

    def _show(self, whom: int) -> None:
        self._play(self._nothing, whom)

    def _play(self, actions: NDArray[np.int64], whom: int) -> int:
        if self._threads == 1:
            return self._step_kernel(self._table, actions, ALONE, whom, *self._tail)
        after = (whom, *self._tail[:-1], self._unowned(self._observation))
        return share(self._step_kernel, (self._table, actions), after, self.num_envs, self._threads)

    def write_to(self, observation: NDArray) -> None:
        """Write observations to this C-contiguous array from the next step or reset on; its shape is that of ``observation``.

        A step and a reset of all envs write every row; ``show`` writes all rows at any time.
        """
        self._observation = observation
        self._tail = (*self._tail[:-1], _flat(observation))

    def show(self) -> NDArray:
        """Write all agents' observations again."""
        self._show(kernels.ALL)
        return self._observation

    @property
    def pool(self) -> InstancePool:
        """The pool of the current config's episodes."""
        if self._pool is None:
            self._pool = InstancePool.shared(
                self._config, max_size=self.max_size, max_agents=self.max_agents, **self._pool_options
            )
            # Kept alive, because the table has its addresses.
            self._pool_arrays = boards_of(self._pool.arrays, drawn=True)
            self._boards = table_of_boards(self._pool_arrays)
        return self._pool

    def step(self, actions: NDArray[np.integer]) -> StepResult:
        """All agents move at once: ``actions`` int[n, A], 0 to 4 in every slot. Finished envs follow the autoreset mode."""
        self.advance(actions)
        terminated, truncated = self._fields["terminated"].copy(), self._fields["truncated"].copy()
        if self.num_ended and self.autoreset == "same_step":
            self._reset_at_once()
        return StepResult(self._observation, self._state.rewards, terminated, truncated, self._state.events)

    def advance(self, actions: NDArray[np.integer]) -> None:
        """``step`` without a result and without a same-step reset; the results are in the batch's arrays."""
        plain = type(actions) is np.ndarray and actions.dtype is _INT64 and actions.flags.c_contiguous
        joint: NDArray[Any] = actions if plain else as_actions(actions)
        if joint.shape != self._state.cells.shape:
            raise LakeError(
                f"actions of shape {joint.shape}: give {self._state.cells.shape}, one per env and agent slot"
            )
        if self._unborn or self._over:
            self._prepare_finished()
        over = self._play(joint, kernels.MOVE)
        if over < 0:
            self._refuse_action(joint, -1 - over)
        self._over = self.num_ended = over
        if self.reward is not None:
            self._pay_callable(joint)

    def _prepare_finished(self) -> None:
        if self._unborn:
            raise LakeError(
                f"step before reset: {self._unborn} of {self.num_envs} envs have no episode; call reset first"
            )
        finished = self.finished.nonzero()[0]
        if self.autoreset == "disabled":
            raise LakeError(f"the episode of env {finished[0]} is over: reset it before the next step")
        self._begin(finished)

    def _refuse_action(self, actions: NDArray[np.int64], index: int) -> NoReturn:
        """The step has not happened: the envs that it began anew are over again, and begin the same episode in the next step."""
        begun = self._fields["status"] == FRESH
        self._fields["status"][begun] = OVER
        self._fields["number"][begun] -= 1
        self._over = int(self.finished.sum())
        env, agent = divmod(index, self.max_agents)
        raise LakeError(
            f"action {actions[env, agent]} of agent {agent} in env {env}: actions are 0 to {NUM_ACTIONS - 1}"
        )

    def _reset_at_once(self) -> None:
        finished = self.finished.nonzero()[0]
        self.final_observation = self._seen_by(finished)
        self._begin(finished)
        self._show(kernels.BEGUN)
        self._over = 0

    def _seen_by(self, envs: NDArray[np.int64]) -> NDArray:
        """A copy of these envs' observations."""
        if self._threads == 1:
            return self._observation.take(envs, axis=0)
        kept: NDArray = np.empty((len(envs), *self._observation.shape[1:]), self._observation.dtype)
        flat = (unowned(self._observation.reshape(self.num_envs, -1)), unowned(kept.reshape(len(envs), -1)))
        share(kernels.keep_seen, (envs,), flat, len(envs), self._threads)
        return kept

    def _pay_callable(self, actions: NDArray[np.int64]) -> None:
        state, episode = self._state, self._state.episode
        transition = rewards.Transition(
            before=self._places(state.before),
            positions=self.positions,
            goals=self.goals,
            actions=actions,
            events=state.events,
            reached=self.reached,
            active=state.before != NOWHERE,
            stepped=episode["step"] > 0,
            success=episode["success"] & episode["terminated"],
            step=episode["step"],
            horizon=episode["horizon"],
        )
        assert self.reward is not None
        paid = np.asarray(self.reward(transition), dtype=np.float64)
        if paid.shape != state.rewards.shape:
            raise LakeError(f"the reward function returned shape {paid.shape}: it must be {state.rewards.shape}")
        state.rewards[:] = np.where(transition.active & transition.stepped[:, None], paid, 0.0)
        episode["team"] = rewards.team_means(state.rewards, self.in_episode)

    def action_masks(self) -> NDArray[np.bool_]:
        """bool[n, A, 5]: False where an action leaves the board. In an empty slot only WAIT is True."""
        masks = np.empty((self.num_envs, self.max_agents, NUM_ACTIONS), np.bool_)
        kernels.mask_actions(self._table, masks)
        return masks

    @property
    def num_finished(self) -> int:
        """The number of envs whose episode is over and not yet reset."""
        return self._over

    @property
    def observation(self) -> NDArray:
        """[n, A, …]: the present observations; the batch's own array."""
        return self._observation
