"""Chooses the board that an env plays next: prioritised level replay, and sampling for learnability, over single instances.

An engineer chooses which kinds of boards a stage trains on; a ``LevelReplay`` chooses among the boards of that kind. A new
board is played ``plays`` times before it has a score. With probability ``replay`` an env gets a scored board again, by the
rank of its score and the time since it was last played (Jiang et al. 2021, "Prioritized Level Replay"). The learning policy
plays all of these episodes and learns from them, and they count against the budget. There are no additional probes.

Scores of a board:

- ``regret``: the best plan's value minus the policy's. It is exact, because the solvers know the optimum. Both values are the
  discounted chance of success: γ^(least makespan − 1), and the mean over episodes of γ^(steps − 1) for a success and 0 otherwise.
- ``positive_value_loss`` and ``max_monte_carlo``: the usual estimates of regret if no optimum is known: the mean of the
  positive part of the advantages, and the best return ever seen on the board minus the critic's value.
- ``learnability``: p(1 − p), where p is the smoothed rate of success (Rutherford et al. 2024, "No Regrets").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from envtuning.trainees.lakes.rollout import Rollout
from mapf_frozenlake.types import Certificate

Score = Literal["regret", "positive_value_loss", "max_monte_carlo", "learnability"]
SCORES = get_args(Score)
DOUBT = 1.0  # each board starts with half a success and half a failure


class LevelOptions(BaseModel):
    """How boards are chosen within a stage."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: Score = Field("regret", description=f"How a board's score is computed: {', '.join(SCORES)}.")
    replay: float = Field(0.5, ge=0, lt=1, description="Probability that an episode replays a scored board.")
    plays: int = Field(1, ge=1, description="Number of times a new board is played before it may be replayed.")
    size: int = Field(2048, ge=1, description="Number of boards kept; the one with the lowest score is dropped first.")
    rank_power: float = Field(0.3, gt=0, description="β of the priority rank^(−1/β): smaller is greedier.")
    staleness: float = Field(
        0.1, ge=0, le=1, description="Part of the priority that goes to boards that were not played for long."
    )

    @property
    def certificate(self) -> Certificate | None:
        """How boards must be certified: with their least makespan, if the score needs it."""
        return "exact" if self.score == "regret" else None


class LevelReplay:
    """Deals boards of one pool, by row number, to envs and scores them. All randomness comes from the seed.

    The batch calls ``choose`` when envs begin episodes; the sampler calls ``before`` and ``after`` around each step of a
    rollout, and ``learnt`` when the rollout is complete.
    """

    def __init__(
        self, options: LevelOptions, *, num_envs: int, pool_size: int, length: int, gamma: float, seed: Sequence[int]
    ) -> None:
        self.options, self.gamma, self.pool_size = options, gamma, pool_size
        self._playing = np.full(num_envs, -1, np.int64)  # the row that each env plays; -1: none yet
        self._played = np.zeros((length, num_envs), np.int64)  # the same at each step of the rollout
        self._steps = np.zeros((length, num_envs), np.int64)  # of the episode so far
        self._won = np.zeros((length, num_envs), np.bool_)
        self._random = np.random.default_rng(np.random.SeedSequence([*seed, 0x1E7E15]))
        self._next, self._dealt = 0, 0  # the newest row, and how often it was dealt
        self._clock = 0  # rollouts
        self._rows = np.empty(0, np.int64)  # remembered boards; the next arrays have a value for each
        self._known = np.empty((0, len(_FIELDS)))

    def choose(self, envs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows that these envs play next."""
        again = (self._random.random(len(envs)) < self.options.replay) & bool(len(self._rows))
        rows = np.empty(len(envs), np.int64)
        rows[again] = self._random.choice(self._rows, int(again.sum()), p=self.priorities()) if again.any() else 0
        rows[~again] = [self._new() for _ in range(int((~again).sum()))]
        self._playing[envs] = rows
        return rows

    def _new(self) -> int:
        if self._dealt == self.options.plays:
            self._next, self._dealt = (self._next + 1) % self.pool_size, 0
        self._dealt += 1
        return self._next

    def before(self, t: int) -> None:
        """Called before step t of the rollout, in which an env whose episode has ended begins another."""
        self._played[t] = self._playing

    def after(self, t: int, step_count: NDArray, success: NDArray) -> None:
        """Called after step t, with its results."""
        self._steps[t], self._won[t] = step_count, success

    def learnt(self, rollout: Rollout, lambda_: float, makespans: NDArray) -> None:
        """Update the scores from the rollout. ``makespans`` are the pool's, by row."""
        self._clock += 1
        moved = rollout.moved
        rows, line = np.unique(self._played[moved], return_inverse=True)
        place = self._places(rows)
        known = self._known[place]
        for name, amount in self._sums(rollout, lambda_).items():
            np.add.at(column(known, name), line, amount)
        best = np.where(rollout.active, rollout.returns(self.gamma), -np.inf).max(axis=2)
        np.maximum.at(column(known, "best"), line, best[moved])
        column(known, "optimum")[:] = self.gamma ** np.maximum(makespans[rows].astype(float) - 1, 0)
        column(known, "seen_at")[:] = self._clock
        self._known[place] = known
        self._forget()

    def _sums(self, rollout: Rollout, lambda_: float) -> dict[str, NDArray[np.float64]]:
        """The quantities that are summed for each board: one line for every env and step in which an agent moved."""
        moved, agents = rollout.moved, rollout.active
        advantages = rollout.advantages(self.gamma, lambda_)
        won = (rollout.ended & self._won)[moved].astype(float)
        return {
            "episodes": rollout.ended[moved].astype(float),
            "successes": won,
            "discounted": won * self.gamma ** np.maximum(self._steps[moved] - 1, 0),
            "moves": agents.sum(axis=2)[moved].astype(float),
            "gain": np.where(agents, np.maximum(advantages, 0), 0.0).sum(axis=2)[moved],
            "value": np.where(agents, rollout.values[:-1], 0.0).sum(axis=2)[moved],
        }

    def _places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of these boards in memory; new boards get a place."""
        new = rows[~np.isin(rows, self._rows)]
        fresh = np.zeros((len(new), len(_FIELDS)))
        column(fresh, "best")[:] = -np.inf
        self._rows, self._known = np.concatenate([self._rows, new]), np.concatenate([self._known, fresh])
        order = np.argsort(self._rows)
        return order[np.searchsorted(self._rows, rows, sorter=order)]

    def _forget(self) -> None:
        """Keep the boards with the highest scores; among equal scores, the recently played ones."""
        if len(self._rows) > self.options.size:
            kept = np.lexsort((column(self._known, "seen_at"), self.scores()))[-self.options.size :]
            self._rows, self._known = self._rows[kept], self._known[kept]

    def scores(self) -> NDArray[np.float64]:
        """The scores of all remembered boards."""
        return getattr(self, f"_{self.options.score}")()

    def _regret(self) -> NDArray[np.float64]:
        episodes = column(self._known, "episodes")
        earned = column(self._known, "discounted") / np.maximum(episodes, 1)
        return np.where(episodes > 0, column(self._known, "optimum") - earned, 0.0)

    def _positive_value_loss(self) -> NDArray[np.float64]:
        return column(self._known, "gain") / np.maximum(column(self._known, "moves"), 1)

    def _max_monte_carlo(self) -> NDArray[np.float64]:
        expected = column(self._known, "value") / np.maximum(column(self._known, "moves"), 1)
        return np.where(np.isfinite(column(self._known, "best")), column(self._known, "best") - expected, 0.0)

    def _learnability(self) -> NDArray[np.float64]:
        wins = column(self._known, "successes") + DOUBT / 2
        rate = wins / (column(self._known, "episodes") + DOUBT)
        return rate * (1 - rate)

    def priorities(self) -> NDArray[np.float64]:
        """Probabilities of all remembered boards: by the rank of the score, mixed with the time since each was last played."""
        scores = self.scores()
        ranks = np.empty(len(scores))
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        by_score = ranks ** (-1 / self.options.rank_power)
        waited = self._clock - column(self._known, "seen_at")
        by_wait = waited / waited.sum() if waited.sum() > 0 else np.full(len(scores), 1 / len(scores))
        return (1 - self.options.staleness) * by_score / by_score.sum() + self.options.staleness * by_wait


_FIELDS = ("episodes", "successes", "discounted", "moves", "gain", "value", "best", "optimum", "seen_at")


def column(known: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    return known[:, _FIELDS.index(name)]
