"""``ScriptedTrainee``: a learner in closed form, for tests and for trying out engineers in seconds.

It follows item response theory. It has a skill for each map size, and a board has a difficulty; the chance of solving it is
``sigmoid(skill - difficulty)``. Training raises the skill by ``p (1 - p)``: boards that are mastered or out of reach teach
nothing. Neighbouring sizes learn a little too. Its plans are real plans, good or bad, and are judged like all others.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engineers.from_file import PLAIN, reads
from engineers.shared import untrusted
from envtuning.outcomes import Counts, Tally
from envtuning.trainees.base import OUTCOMES, Metrics, OnIteration, Trainee
from envtuning.worlds.lakes.episodes import downhill
from envtuning.worlds.lakes.world import raise_unless_lakes
from mapf_frozenlake import LakeConfig, Slice
from mapf_frozenlake.solvers import distance_fields, solve
from mapf_frozenlake.types import DELTAS, FailureKind, Instance, Plan

MISSED = FailureKind.GOAL_MISSED.value  # a careless plan stops a step before its goal
ITERATION = 500  # env steps
EPISODE = 10  # env steps of an episode that it reports
SMALLEST = 2  # a lake's side


@reads(dict.fromkeys(("speed", "spill"), PLAIN))
class ScriptedTrainee(Trainee):
    """Deterministic and instant; ``speed`` is the skill gained per 1,000 env steps at the frontier."""

    in_words = "A learner in closed form: one skill for each map size, which grows by what sometimes succeeds."
    outcomes_in_words = "Each episode succeeds by chance, with the skill that it has then."
    form = "plans"
    reports = frozenset({"success_rate", "grad_norm"})

    def __init__(
        self,
        *,
        capacity: Mapping[str, Any],
        world: Any = None,
        exclude: Any = (),
        seed: int = 0,
        speed: float = 0.4,
        spill: float = 0.5,
    ) -> None:
        for name, value in (("speed", speed), ("spill", spill)):
            if not isinstance(value, int | float):
                raise ValueError(f"{name}={value!r:.40}: give a number")
        self.max_size, self.speed, self.spill = int(capacity["max_size"]), speed, spill
        self.skill = np.zeros(self.max_size + 1)  # float64[max_size + 1]: by board size

    @classmethod
    def check_world(cls, world: Any) -> None:
        raise_unless_lakes(world)

    def train(self, config: LakeConfig, budget: int, *, seed: int, on_iteration: OnIteration | None = None) -> Metrics:
        rng, luck_of_training = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        taken, last = 0, {"success_rate": 0.0, "grad_norm": 0.0}
        while taken < budget:
            steps = min(ITERATION, budget - taken)
            outcomes = self._outcomes(config, steps, luck_of_training)
            last = self._learn(config, steps, noise=rng.normal())
            taken += steps
            if on_iteration is not None:
                on_iteration(last | {"env_steps": float(steps), OUTCOMES: outcomes})
        return last | {"env_steps": float(taken)}

    def _outcomes(self, config: LakeConfig, steps: int, rng: np.random.Generator) -> Tally:
        """Episodes of ``EPISODE`` steps by the slices' shares, each a success by the slice's chance before this iteration.

        No board is drawn for them. So each is a first visit, and each failed one misses its goal.
        """
        total, tally = sum(piece.share for piece in config.slices.values()), Tally()
        for size, piece in config.slices.items():
            episodes = round(steps / EPISODE * piece.share / total)
            if episodes:
                won = int(rng.binomial(episodes, self._chance(size, piece, config)))
                failures = Counter({MISSED: episodes - won} if won < episodes else {})
                tally.first[str(size)] = Counts(episodes=episodes, successes=won, score_sum=won, failures=failures)
        return tally

    def _chance(self, size: int, piece: Slice, config: LakeConfig) -> float:
        wait_ratio = 0.1 if piece.wait_ratio is None else piece.wait_ratio
        return solve_chance(self.skill[size], difficulty(size, piece.hole_ratio, wait_ratio, config.max_agents))

    def _learn(self, config: LakeConfig, steps: int, noise: float) -> Metrics:
        """One iteration: every slice raises the skills by its share of the data."""
        total = sum(piece.share for piece in config.slices.values())
        sizes = np.arange(len(self.skill))
        success = signal = 0.0
        pull = np.zeros_like(self.skill)
        for size, piece in config.slices.items():
            chance = self._chance(size, piece, config)
            learnability = piece.share / total * 4 * chance * (1 - chance)
            pull += learnability * self.spill ** np.abs(sizes - size)
            success += piece.share / total * chance
            signal += learnability
        self.skill += self.speed * steps / 1000 * pull
        return {"success_rate": success, "grad_norm": signal * (1 + 0.2 * float(np.clip(noise, -2, 2)))}

    def policy(self) -> Callable[[Instance], Plan]:
        """A function from board to plan: the optimal plan if the chance is above the board's fixed draw, else a careless one."""
        skill = self.skill.copy()

        def act(instance: Instance) -> Plan:
            cells = instance.holes.size - 2 * instance.num_agents
            hole_ratio = instance.holes.sum() / cells if cells else 0.0
            hardness = difficulty(instance.height, hole_ratio, float(bool(instance.needs_wait)), instance.num_agents)
            if luck(instance) < solve_chance(skill[instance.height], hardness):
                plan = solve(instance).plan
                if plan is not None:
                    return plan
            return heedless_plan(instance)

        return act

    def save(self, folder: Path) -> None:
        (folder / "skill.json").write_text(json.dumps(self.skill.tolist()), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Sizes that the saving run did not have get the initial skill; a study's further test sets may have such sizes."""
        found = np.array(untrusted.parsed((folder / "skill.json").read_bytes()), float)
        if found.ndim != 1 or not SMALLEST < len(found) <= len(self.skill):
            raise ValueError(f"skill.json has shape {found.shape}, this trainee's is {self.skill.shape}")
        self.skill = np.pad(found, (0, len(self.skill) - len(found)))

    def close(self) -> None:
        """Nothing to release."""


def difficulty(size: int, hole_ratio: float, wait: float, num_agents: int) -> float:
    return 0.4 * (size - 3) + 4.0 * hole_ratio + 1.0 * wait + 0.5 * (num_agents - 1)


def solve_chance(skill: float, hardness: float) -> float:
    return 1.0 / (1.0 + math.exp(hardness - skill))


def luck(instance: Instance) -> float:
    """A number in [0, 1), uniform over boards and fixed for each board."""
    return int.from_bytes(hashlib.sha256(instance.key()).digest()[:8], "big") / 2**64


def heedless_plan(instance: Instance) -> list[list[int]]:
    """Each agent's shortest path alone, without the last step: it never reaches the goal, and agents may collide."""
    plan = []
    for start, field in zip(instance.starts.tolist(), distance_fields(instance)):
        cell, moves = tuple(start), []
        while field[cell] > 1:
            action = downhill(field, cell)
            moves.append(action)
            cell = (cell[0] + int(DELTAS[action][0]), cell[1] + int(DELTAS[action][1]))
        plan.append(moves)
    return plan
