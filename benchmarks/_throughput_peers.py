"""Other environments' speed, one per call, printed as JSON: ``python _throughput_peers.py pogema|jumanji SETTINGS``.

Run by ``throughput.py`` with an interpreter in which the peer is installed; imports nothing of this project.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from typing import Any


def pogema(agents: int, size: int, radius: int, lifelong: bool, holes: float, horizon: int, steps: int) -> float:
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
        on_target="restart" if lifelong else "finish",
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


def jumanji(envs: int, steps: int) -> dict[str, float]:
    """Agent-steps per CPU second of LevelBasedForaging, compiled, batched, auto-reset, under random actions."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jumanji
    from jumanji.wrappers import AutoResetWrapper

    env: Any = AutoResetWrapper(jumanji.make("LevelBasedForaging-v0"))
    agents = int(env.unwrapped.num_agents)

    def step(state: Any, key: Any) -> tuple[Any, Any]:
        actions = jax.random.randint(key, (envs, agents), 0, 6)
        state, timestep = jax.vmap(env.step)(state, actions)
        return state, timestep.reward.sum()

    @jax.jit
    def roll(state: Any, key: Any) -> tuple[Any, Any]:
        return jax.lax.scan(step, state, jax.random.split(key, steps))

    state, _ = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), envs))
    state, _ = jax.block_until_ready(roll(state, jax.random.PRNGKey(1)))
    begin = time.process_time()
    jax.block_until_ready(roll(state, jax.random.PRNGKey(2)))
    return {"agents": agents, "speed": steps * envs * agents / (time.process_time() - begin)}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    peer = {"pogema": pogema, "jumanji": jumanji}[sys.argv[1]]
    print(json.dumps(peer(**json.loads(sys.argv[2]))))
