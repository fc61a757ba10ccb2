"""POGEMA plays given episodes: ``python _pogema_play.py TASKS.json RESULT.npz``.

``pogema_parity.py`` runs it with an interpreter that has POGEMA 1.4.0; it imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from pogema import GridConfig, pogema_v0

ACTIONS = (3, 2, 4, 1, 0)  # left, down, right, up, wait, as POGEMA numbers them


def play(tasks: dict) -> dict[str, np.ndarray]:
    """Everything that POGEMA shows before the first step and after each; -1 and 0 behind an episode's end."""
    radius, horizon, episodes = tasks["radius"], tasks["horizon"], tasks["episodes"]
    slots, side = max(len(one["starts"]) for one in episodes), 2 * radius + 1
    shape = (horizon + 1, len(episodes), slots)
    positions = np.full((*shape, 2), -1, np.int16)
    seen = np.zeros((*shape, 3, side, side), np.uint8)
    rewards, steps = np.zeros(shape), np.zeros(len(episodes), np.int64)
    for e, task in enumerate(episodes):
        agents = len(task["starts"])
        config = GridConfig(
            on_target=tasks["on_target"],
            map=task["map"],
            agents_xy=task["starts"],
            targets_xy=task["goals"],
            num_agents=agents,
            obs_radius=radius,
            collision_system=tasks["collision_system"],
            max_episode_steps=horizon,
        )
        env = pogema_v0(grid_config=config)
        observation, _ = env.reset()
        over, step = False, 0
        while True:
            positions[step, e, :agents] = env.unwrapped.get_agents_xy(ignore_borders=True)
            seen[step, e, :agents] = observation
            if over:
                break
            actions = [ACTIONS[action] for action in task["actions"][step]]
            observation, paid, terminated, truncated, _ = env.step(actions)
            step += 1
            rewards[step, e, :agents] = paid
            over = all(terminated) or all(truncated)
        steps[e] = step
    return {"positions": positions, "seen": seen, "rewards": rewards, "steps": steps}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with open(sys.argv[1], encoding="utf-8") as file:
        np.savez(sys.argv[2], **play(json.load(file)))
