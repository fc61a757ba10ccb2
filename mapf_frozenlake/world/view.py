"""The state of a batch of lakes as plain arrays: the read-only half of ``LakeBatch``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import FAILURE_OF_EVENT, MAX_SIZE, FailureKind, Instance
from mapf_frozenlake.world.move import HOLE
from mapf_frozenlake.world.snapshot import Snapshot
from mapf_frozenlake.world.state import EPISODE, MISSED, NEXT, NOWHERE, OVER, WAIT, State

_NAMES: list[str | None] = [*map(str, range(MAX_SIZE + 1)), None]  # of slices by key; -1: None
_SLICES = np.array(_NAMES, dtype=object)
_KINDS: list[str | None] = [None] * (MISSED + 1)  # of failure, by code; None: valid
for _event, _kind in FAILURE_OF_EVENT.items():
    _KINDS[_event] = _kind.value
_KINDS[MISSED] = FailureKind.GOAL_MISSED.value
_FAILURES = np.array(_KINDS, dtype=object)


class LakeView:
    """n envs of A agent slots, read from a ``State``. Cells are (row, col), -1 in empty slots."""

    _state: State
    # Views of the episodes' scalars by name, because making a view takes as long as ten reads.
    _fields: dict[str, NDArray]

    def _look_up_fields(self) -> None:
        self._fields = {name: self._state.episode[name] for name in EPISODE.names or ()}

    @property
    def episode(self) -> NDArray:
        """[n]: every env's scalars, see ``state.EPISODE``."""
        return self._state.episode

    @property
    def positions(self) -> NDArray[np.int16]:
        """[n, A, 2]: row, col; -1 where no agent is active."""
        return self._places(self._state.cells)

    @property
    def goals(self) -> NDArray[np.int16]:
        """[n, A, 2]: row, col; -1 where no agent is active."""
        return self._places(self._state.goals)

    @property
    def active(self) -> NDArray[np.bool_]:
        """[n, A]: False in empty slots, and for agents that have left the board."""
        return self._state.cells != NOWHERE

    @property
    def events(self) -> NDArray[np.int8]:
        """[n, A]: Event codes of the last step."""
        return self._state.events

    @property
    def rewards(self) -> NDArray[np.float64]:
        """[n, A]: of the last step; 0 in empty slots."""
        return self._state.rewards

    @property
    def team_reward(self) -> NDArray[np.float64]:
        """[n]: the mean over the agents that take part."""
        return self._fields["team"]

    @property
    def step_count(self) -> NDArray[np.int32]:
        """[n]: steps taken in the current episode."""
        return self._fields["step"]

    @property
    def horizon(self) -> NDArray[np.int32]:
        """[n]: steps after which the current episode is truncated."""
        return self._fields["horizon"]

    @property
    def finished(self) -> NDArray[np.bool_]:
        """[n]: whether the episode is over and not yet reset."""
        return self._fields["status"] == OVER

    @property
    def success(self) -> NDArray[np.bool_]:
        """[n]: whether the last finished episode ended with all agents on their goals."""
        return self._fields["success"]

    @property
    def valid(self) -> NDArray[np.bool_]:
        """[n]: whether it was a success without any violation."""
        return self._fields["valid"]

    @property
    def optimal(self) -> NDArray[np.int8]:
        """[n]: 1 valid at the certified makespan, 0 not, -1 if that is unknown or the world slips."""
        return self._fields["optimal"]

    @property
    def score(self) -> NDArray[np.float64]:
        """[n]: of the last finished episode: part of the agents on their goals (that have reached one, if goals follow each other)
        without a violation of theirs; 1 if valid."""
        return self._fields["score"]

    @property
    def throughput(self) -> NDArray[np.float64]:
        """[n]: of the last finished episode: goals reached, over the horizon. 0 under on_goal="wait"."""
        return self._fields["throughput"]

    @property
    def lifelong(self) -> NDArray[np.bool_]:
        """[n]: whether the last finished episode was under on_goal="next"."""
        return self._fields["ended_on_goal"] == NEXT

    def was_lifelong(self, env: int) -> bool:
        """``lifelong`` of one env, which takes less time than the column."""
        return self._fields["ended_on_goal"].item(env) == NEXT

    @property
    def reached(self) -> NDArray[np.bool_]:
        """[n, A]: whether each agent reached its goal in the last step; under on_goal="wait", whether it is on it."""
        waits = (self._fields["on_goal"] == WAIT)[:, None]
        on_goal = (self._state.cells == self._state.goals) & self.active
        return np.where(waits, on_goal, self._state.records["reached"] & self.in_episode)

    @property
    def in_episode(self) -> NDArray[np.bool_]:
        """[n, A]: False in empty slots; True also for agents that have left the board."""
        return np.arange(self._state.cells.shape[1]) < self._state.episode["num_agents"][:, None]

    @property
    def slices(self) -> NDArray[np.object_]:
        """[n]: the name of the config's slice from which the last finished episode was drawn; None if its board was given."""
        return _SLICES[self._fields["ended_slice"]]

    def slices_of(self, envs: NDArray[np.intp]) -> NDArray[np.object_]:
        """``slices`` of these envs, which takes less time than the column."""
        return _SLICES[self._fields["ended_slice"][envs]]

    def slice_of(self, env: int) -> str | None:
        """``slices`` of one env, which takes less time than the column."""
        return _NAMES[self._fields["ended_slice"].item(env)]

    @property
    def failures(self) -> NDArray[np.object_]:
        """[n]: the kind of the last finished episode's failure, a ``FailureKind`` as text; None if it was valid."""
        return _FAILURES[self._fields["failure"]]

    def failures_of(self, envs: NDArray[np.intp]) -> NDArray[np.object_]:
        """``failures`` of these envs, which takes less time than the column."""
        return _FAILURES[self._fields["failure"][envs]]

    def failure_of(self, env: int) -> str | None:
        """``failures`` of one env, which takes less time than the column."""
        return _KINDS[self._fields["failure"].item(env)]

    @property
    def board_hashes(self) -> NDArray[np.uint64]:
        """[n]: of the last finished episode: 64 bits that are equal for equal boards, starts and goals."""
        return self._fields["ended_board"]

    @property
    def current_slices(self) -> NDArray[np.object_]:
        """[n]: the same of the current episode."""
        return _SLICES[self._fields["slice"]]

    def holes(self, env: int = 0) -> NDArray[np.bool_]:
        """[height, width]: the board of one env."""
        state, episode = self._state, self._state.episode[env]
        board = state.terrain[env].reshape(state.stride, state.stride)
        pad = state.pad
        return board[pad : pad + episode["height"], pad : pad + episode["width"]] == HOLE

    def instance(self, env: int = 0) -> Instance:
        """The instance of the env's current episode, with its least makespan if that is certified."""
        count = int(self._state.episode["num_agents"][env])
        if count == 0:
            raise LakeError("no episode has begun: call reset first")
        makespan = int(self._state.episode["makespan"][env])
        return Instance(
            holes=self.holes(env),
            starts=self._places(self._state.starts)[env, :count],
            goals=self._places(self._state.records["first_goal"])[env, :count],
            makespan=None if makespan < 0 else makespan,
        )

    def snapshot(self, env: int = 0, actions: NDArray | None = None) -> Snapshot:
        """The present state of one env, for a renderer; ``actions`` [A] are those of the last step."""
        state = self._state
        count = int(state.episode["num_agents"][env])
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

    def _places(self, cells: NDArray[np.int32]) -> NDArray[np.int16]:
        places = self._state.place[cells]
        places[cells == NOWHERE] = -1
        return places
