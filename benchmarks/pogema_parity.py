"""Whether the lake plays as POGEMA 1.4.0 does: positions, rewards, ends and all observations, cell for cell.

    python -m benchmarks.pogema_parity --pogema-python PATH

Both play the same episodes: same maps, starts, goals (under "next" the goals that the lake's stream gave) and actions. Most moves
lead towards the goals, so that agents meet. POGEMA pins other versions than this project, so it has an interpreter of its own:

    python -m venv pogema && pogema/bin/pip install pogema==1.4.0

A difference counts as explained only where one of these predicates holds. Each was written from POGEMA's source before the
first comparison, and looks at the lake's own record alone:

follower   ``Grid.move_without_checks``, which only ``collision_system="soft"`` uses, clears an agent's old cell after agents of
           lower numbers have moved. So an agent is missing from the channel of agents, in every window, if it entered a cell
           that an agent of a higher number left in the same step.
left       ``Pogema.step`` shows windows to agents that have left the board under ``on_target="finish"``, too, and keeps their
           cells. The lake shows them zeros.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._record import raise_unless_committed, record
from mapf_frozenlake import InstanceSet, LakeBatch, LakeConfig, generate

PEER = Path(__file__).parent / "_pogema_play.py"
ON_TARGET = {"wait": "nothing", "finish": "finish", "next": "restart"}
SYSTEMS = ("priority", "block_both", "soft")
RADIUS, HORIZON = 3, 32
BOARDS = {  # size, agents, what else; equal shares of the episodes
    "few": ((4, 4), 2, {"hole_ratio": 0.2}),
    "random": ((8, 8), 8, {"hole_ratio": 0.3}),
    "crowded": ((5, 5), 12, {"hole_ratio": 0.0}),
    "maze": ((9, 7), 6, {"map_family": "maze", "loops": 0.3}),
    "warehouse": ((8, 12), 10, {"map_family": "warehouse", "shelf_length": 3}),
}
AGENTS_CHANNEL = 1


@dataclass
class Played:
    """What the lake did: [steps + 1, episodes, slots, …]; nothing is written behind an episode's end."""

    actions: NDArray[np.int64]
    positions: NDArray[np.int16]
    goals: NDArray[np.int16]
    seen: NDArray[np.uint8]
    rewards: NDArray[np.float64]
    steps: NDArray[np.int64]  # [episodes]


def boards(episodes: int, seed: int) -> InstanceSet:
    drawn = []
    for size, agents, others in BOARDS.values():
        config = LakeConfig.single(size, agents, **others)
        drawn += list(generate(config, episodes // len(BOARDS), seed, certify="reachable"))
    return InstanceSet.from_instances(drawn)


def play(instances: InstanceSet, on_goal: str, system: str, seed: int) -> Played:
    slots, episodes = instances.starts.shape[1], len(instances)
    config = LakeConfig.single(
        max(instances.holes.shape[1:]), slots, hole_ratio=0.0, on_goal=on_goal, collisions=system, horizon=HORIZON
    )
    batch = LakeBatch(config, episodes, observation="pogema", window=2 * RADIUS + 1, dtype="int8", autoreset="disabled")
    batch.seed(np.arange(episodes))
    batch.reset(instances=instances)
    rng, shape = np.random.default_rng(seed), (HORIZON + 1, episodes, slots)
    made = Played(
        np.full((HORIZON, episodes, slots), 4), np.full((*shape, 2), -1, np.int16), np.full((*shape, 2), -1, np.int16),
        np.zeros((*shape, *batch.observation.shape[2:]), np.uint8), np.zeros(shape), np.zeros(episodes, np.int64),
    )  # fmt: skip
    running = np.ones(episodes, bool)
    for step in range(HORIZON + 1):
        made.positions[step][running], made.goals[step][running] = batch.positions[running], batch.goals[running]
        made.seen[step][running] = batch.observation[running] > 0
        made.rewards[step][running] = batch.rewards[running] if step else 0
        over = batch.finished
        made.steps[running & over] = step
        running &= ~over
        if not running.any():
            return made
        if over.any():  # the batch wants them reset; what they do then is not recorded
            batch.reset(over, instances=instances[np.flatnonzero(over)])
        made.actions[step] = towards(batch, rng)
        batch.step(made.actions[step])
    raise AssertionError("every episode ends by its horizon")


def towards(batch: LakeBatch, rng: np.random.Generator) -> NDArray[np.int64]:
    """Two thirds of the moves lead nearer to the goals as the crow flies, also into walls and other agents."""
    delta = batch.goals.astype(int) - batch.positions
    down, right = delta[..., 0], delta[..., 1]
    upright = (right == 0) | ((down != 0) & (rng.random(down.shape) < 0.5))
    along = np.where(upright, np.where(down > 0, 1, 3), np.where(right > 0, 2, 0))
    return np.where(rng.random(down.shape) < 2 / 3, along, rng.integers(0, 5, down.shape))


def tasks_of(instances: InstanceSet, played: Played, on_goal: str, system: str) -> dict[str, Any]:
    episodes = []
    for e, instance in enumerate(instances):
        count, last = instance.num_agents, int(played.steps[e])
        goals: list[Any] = instance.goals.tolist()
        if on_goal == "next":
            goals = [sequence(played.goals[: last + 1, e, agent], instance.starts[agent]) for agent in range(count)]
        episodes.append(
            {
                "map": instance.holes.astype(int).tolist(),
                "starts": instance.starts.tolist(),
                "goals": goals,
                "actions": played.actions[:last, e, :count].tolist(),
            }
        )
    return {
        "radius": RADIUS,
        "horizon": HORIZON,
        "on_target": ON_TARGET[on_goal],
        "collision_system": system,
        "episodes": episodes,
    }


def sequence(goals: NDArray[np.int16], start: NDArray[np.int16]) -> list[list[int]]:
    """One agent's goals in turn, of which POGEMA wants at least two; the last one was not reached."""
    changes = np.flatnonzero((goals[1:] != goals[:-1]).any(axis=1)) + 1
    found = goals[[0, *changes.tolist()]].tolist()
    return found if len(found) > 1 else [*found, start.tolist()]


def compare(ours: Played, theirs: dict[str, NDArray]) -> dict[str, int]:
    """Counts of what was compared, of the differences that a predicate explains, and of those that none explains."""
    there = ours.positions[..., 0] >= 0  # [steps + 1, episodes, slots]
    everyone = there[0][None] & (np.arange(HORIZON + 1)[:, None, None] <= ours.steps[None, :, None])
    left = everyone & ~there
    unlike_seen = (ours.seen != theirs["seen"]) & everyone[..., None, None, None]
    by_left = unlike_seen & left[..., None, None, None]
    by_follower = unlike_seen & missing(ours)
    unlike_positions = ((ours.positions != theirs["positions"]).any(axis=-1)) & everyone
    return {
        "episodes": len(ours.steps),
        "agent_steps": int(everyone.sum()),
        "goals_reached": int((ours.rewards > 0).sum()),
        "observed_numbers": int(everyone.sum() * np.prod(ours.seen.shape[3:])),
        "explained_by_follower": int(by_follower.sum()),
        "predicted_by_follower": int((missing(ours) & there[..., None, None, None]).sum()),
        "explained_by_left": int(by_left.sum()) + int((unlike_positions & left).sum()),
        "unexplained_observed_numbers": int((unlike_seen & ~by_left & ~by_follower).sum()),
        "unexplained_positions": int((unlike_positions & ~left).sum()),
        "unexplained_rewards": int(((ours.rewards != theirs["rewards"]) & everyone).sum()),
        "unexplained_ends": int((ours.steps != theirs["steps"]).sum()),
    }


def missing(ours: Played) -> NDArray[np.bool_]:
    """The predicate ``follower``: bool like ``seen``, True where the lake shows an agent that POGEMA has lost."""
    now, before = ours.positions[1:], ours.positions[:-1]
    moved = (now != before).any(axis=-1)
    lost = np.zeros(ours.positions.shape[:3], bool)
    slots = lost.shape[2]
    for follower in range(slots):
        for leader in range(follower + 1, slots):
            left_cell = (before[:, :, leader] == now[:, :, follower]).all(axis=-1) & moved[:, :, leader]
            lost[1:, :, follower] |= left_cell & (now[:, :, follower, 0] >= 0)
    hidden = np.zeros(ours.seen.shape, bool)
    for one in range(slots):
        offset = ours.positions[:, :, one, None] - ours.positions + RADIUS  # of the lost agent in each window
        inside = (
            ((offset >= 0) & (offset <= 2 * RADIUS)).all(axis=-1)
            & lost[:, :, one, None]
            & (ours.positions[..., 0] >= 0)
        )
        step, episode, observer = np.nonzero(inside)
        row, col = offset[step, episode, observer].T
        hidden[step, episode, observer, AGENTS_CHANNEL, row, col] = True
    return hidden


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.pogema_parity", description=__doc__.partition("\n")[0])
    parser.add_argument("--pogema-python", required=True, help="an interpreter with POGEMA 1.4.0")
    parser.add_argument("--episodes", type=int, default=2000, help="for each mode")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    raise_unless_committed()
    instances, modes = boards(given.episodes, given.seed), {}
    for on_goal in ON_TARGET:
        for system in SYSTEMS:
            ours = play(instances, on_goal, system, given.seed)
            with tempfile.TemporaryDirectory() as folder:
                tasks, result = Path(folder, "tasks.json"), Path(folder, "result.npz")
                tasks.write_text(json.dumps(tasks_of(instances, ours, on_goal, system)))
                subprocess.run([given.pogema_python, str(PEER), str(tasks), str(result)], check=True)
                theirs = dict(np.load(result))
            modes[f"{on_goal}, {system}"] = compare(ours, theirs)
            print(f"{on_goal}, {system}: {modes[f'{on_goal}, {system}']}", flush=True)
    sys.argv = [
        Path(word).name if word == given.pogema_python else word for word in sys.argv
    ]  # no path of this machine
    print(record("pogema_parity", {"radius": RADIUS, "horizon": HORIZON, "boards": list(BOARDS), "modes": modes}))


if __name__ == "__main__":
    main()
