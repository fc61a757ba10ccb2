"""POGEMA's speed, printed as JSON: ``python _pogema.py SETTINGS``.

``throughput.py`` and ``lifelong.py`` run it with an interpreter that has POGEMA; it imports nothing of this project.
"""

from __future__ import annotations

import json
import sys
import time
import warnings


def speed(
    agents: int, size: int, radius: int, holes: float, horizon: int, steps: int, on_target: str = "finish"
) -> float:
    """Agent-steps per CPU second of one POGEMA env under uniformly random actions, resets included."""
    import numpy as np
    from pogema import GridConfig, pogema_v0

    config = GridConfig(
        num_agents=agents,
        size=size,
        density=holes,
        seed=0,
        obs_radius=radius,
        max_episode_steps=horizon,
        on_target=on_target,
    )
    env = pogema_v0(grid_config=config)
    tape = np.random.default_rng(0).integers(0, 5, (256, agents)).tolist()
    env.reset()
    for _ in range(horizon // 2):
        env.step(tape[0])
    begin = time.process_time()
    for step in range(steps):
        _, _, terminated, truncated, _ = env.step(tape[step % 256])
        if all(terminated) or all(truncated):
            env.reset()
    return steps * agents / (time.process_time() - begin)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(speed(**json.loads(sys.argv[1]))))
