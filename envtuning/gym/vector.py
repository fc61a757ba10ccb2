"""``EngineeringVectorEnv``: many runs at once, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from envtuning.dynamics.learners import KINDS, Array, step, success, value
from envtuning.gym.pool import SLICES, STAGES, families_of, place_of, pool, room

COLUMNS = (  # of an observation's slices
    "present", "weight", "dose", "total dose", "validated", "probed", "change", *(f"failed the {kind} way" for kind in KINDS),
)  # fmt: skip
GLOBALS = ("rounds left", "rounds done", "slices", "cases")  # of an observation's run
MOST_CASES = 1000.0
OBSERVATION = spaces.Dict(
    {
        "slices": spaces.Box(-1.0, float(SLICES * STAGES), (SLICES, len(COLUMNS)), np.float32),
        "run": spaces.Box(0.0, MOST_CASES, (len(GLOBALS),), np.float32),
    }
)
ACTION = spaces.Box(-1.0, 1.0, (SLICES, 1 + len(KINDS)), np.float32)

Observation = dict[str, NDArray[np.float32]]


class EngineeringVectorEnv(VectorEnv):
    """Each environment's episode is the run of one learner in closed form, from the report after a first stage of even draws.

    Observation: by slice (``COLUMNS``) and of the run (``GLOBALS``); slices that a run lacks are rows of zeros. Weights and doses are in even
    shares: even draws give 1. Action: each slice's share, from -1 (no data) to 1, and a number for each kind of failure; the largest, if it
    is above 0, is the focus of the slice's data. Reward: the stage's gain on the target, minus the gain of the same stage in a run of even
    draws, so that an episode's sum is its lead over even draws.

    The same seed gives the same episodes. The learners of environment i are those of one environment alone with seed + i; the cases that
    success is counted on are drawn for the batch.
    """

    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  # as gymnasium has it

    def __init__(
        self, num_envs: int = 1, family: str | Sequence[str] = "development", outside: bool = False, **unused: Any
    ) -> None:
        if unused:
            raise TypeError(f"{', '.join(unused)}: the arguments are num_envs, family and outside")
        self.families, self.outside = families_of(family), outside
        self.num_envs = num_envs
        self.single_observation_space, self.single_action_space = OBSERVATION, ACTION
        self.observation_space = batch_space(OBSERVATION, num_envs)
        self.action_space = batch_space(ACTION, num_envs)
        self.learners = room(num_envs)
        self.present = np.zeros((num_envs, SLICES), dtype=bool)
        self.count = np.ones((num_envs, 1))
        self.practice, self.even = (np.zeros((num_envs, SLICES)) for _ in range(2))  # of even draws alone
        self.worth, self.even_worth = np.zeros(num_envs), np.zeros(num_envs)
        self.dose, self.total, self.rate = (np.zeros((num_envs, SLICES)) for _ in range(3))
        self.seen = np.zeros((num_envs, SLICES, len(COLUMNS)), np.float32)
        self.counts = np.zeros((3, num_envs, SLICES), dtype=np.int64)  # cases, and successes on validation and probe
        self.failed = np.zeros((num_envs, SLICES, len(KINDS)), dtype=np.int64)  # on both together
        self.done = np.zeros(num_envs, dtype=np.int64)  # number of trained stages
        self.episodes = np.full(num_envs, -1, dtype=np.int64)
        self.seeds = np.zeros(num_envs, dtype=np.int64)
        self.ended = np.ones(num_envs, dtype=bool)
        self._seeded = False

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        if seed is not None or not self._seeded:
            self._seed(seed)
        mask = np.ones(self.num_envs, dtype=bool)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"], dtype=bool)
        self._begin(np.flatnonzero(mask))
        return self._observation(), {}

    def step(self, actions: Any) -> tuple[Observation, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """One stage of each run; a run that has ended begins the next episode instead, and its action is ignored."""
        if not self._seeded:
            raise RuntimeError("no run has begun: call reset() before step()")
        shares, focus = as_data(np.asarray(actions, dtype=float), self.present)
        over = np.flatnonzero(self.ended)
        self.practice = step(self.learners, self.practice, shares, focus)
        self.even = step(self.learners, self.even, self.learners.present / self.count)
        worth, even_worth = value(self.learners, self.practice), value(self.learners, self.even)
        rewards = (worth - self.worth) - (even_worth - self.even_worth)
        self.worth, self.even_worth = worth, even_worth
        self.dose = shares * self.count
        self.done += 1
        self.total += self.dose
        if len(over):
            rewards[over] = 0.0
            self._start(over)
        self._validate()
        self.ended = self.done >= self.learners.stages
        return self._observation(), rewards, self.ended.copy(), np.zeros(self.num_envs, dtype=bool), {}

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        """Of every environment, and of the cases."""
        fresh = np.random.SeedSequence().generate_state(self.num_envs).tolist()
        if seed is None:
            seeds = fresh
        elif isinstance(seed, int | np.integer):
            seeds = [int(seed) + place for place in range(self.num_envs)]
        else:
            seeds = [other if one is None else int(one) for one, other in zip(seed, fresh, strict=True)]
        self.seeds[:], self.episodes[:] = seeds, -1
        self.rng, self._seeded = np.random.default_rng([number % (1 << 63) for number in seeds]), True

    def _begin(self, which: NDArray[np.intp]) -> None:
        self._start(which)
        self._validate()
        self.ended[which] = False

    def _start(self, which: NDArray[np.intp]) -> None:
        """The next learner of these, after a first stage of even draws."""
        self.episodes[which] += 1
        places = [
            place_of(seed, episode, len(self.families))
            for seed, episode in zip(self.seeds[which].tolist(), self.episodes[which].tolist(), strict=True)
        ]
        for number in {number for number, _ in places}:
            drawn = pool(self.families, self.outside, number)
            mine = np.array([one == number for one, _ in places])
            rows = np.array([row for one, row in places if one == number])
            for name, values in vars(self.learners).items():
                values[which[mine]] = getattr(drawn, name)[rows]
        begun = self.learners[which]
        self.present[which], self.count[which] = begun.present, begun.present.sum(1, keepdims=True)
        self.practice[which] = self.even[which] = step(begun, begun.start, begun.even())
        self.worth[which] = self.even_worth[which] = value(begun, self.practice[which])
        self.dose[which] = self.total[which] = begun.present
        self.done[which], self.rate[which] = 1, 0.0

    def _validate(self) -> None:
        """Fresh cases of every slice, twice: for the validation, and for the probe of what had data."""
        cases = np.where(self.present, self.learners.cases[:, None], 0)
        probed = np.where(self.dose > 0, cases, 0)
        right = success(self.learners, self.practice)
        won = self.rng.binomial(cases, right), self.rng.binomial(probed, right)
        self.counts[:] = cases, *won
        self.failed[:] = kinds_of(cases + probed - won[0] - won[1], self.learners.cause, self.rng)
        before, self.rate = self.rate, won[0] / np.maximum(cases, 1)
        probe = won[1] / np.maximum(probed, 1)
        columns = self.present, self.learners.weight * self.count, self.dose, self.total, self.rate, probe
        for place, values in enumerate((*columns, np.where(self.done[:, None] > 1, self.rate - before, 0.0))):
            self.seen[..., place] = values
        self.seen[..., -len(KINDS) :] = self.failed / np.maximum(self.failed.sum(-1, keepdims=True), 1)

    def _observation(self) -> Observation:
        left = self.learners.stages - self.done
        whole = np.stack([left, self.done, self.count[:, 0], self.learners.cases], axis=1)
        return {"slices": self.seen.copy(), "run": whole.astype(np.float32)}


def as_data(actions: Array, present: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Shares and focus, as ``step`` of the dynamics takes them. Without any data, even."""
    wanted = np.clip((actions[..., 0] + 1) / 2, 0.0, 1.0) * present
    total = wanted.sum(-1, keepdims=True)
    even = present / np.maximum(present.sum(-1, keepdims=True), 1)
    shares = np.where(total > 0, wanted / np.maximum(total, 1e-12), even)
    kinds = actions[..., 1:]
    largest = np.eye(len(KINDS))[kinds.argmax(-1)]
    return shares, np.where(kinds.max(-1, keepdims=True) > 0, largest, 1.0 / len(KINDS))


def kinds_of(lost: NDArray[np.int64], cause: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Failures by kind: a multinomial, kind by kind."""
    first = rng.binomial(lost, cause[..., 0])
    rest = cause[..., 1] + cause[..., 2]
    second = rng.binomial(lost - first, np.clip(cause[..., 1] / np.maximum(rest, 1e-12), 0.0, 1.0))
    return np.stack([first, second, lost - first - second], axis=-1)
