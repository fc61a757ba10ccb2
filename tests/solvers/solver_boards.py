"""Random instances for the solvers' tests, and instances as the brute force oracle takes them."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.types import Instance


def random_instance(rng: np.random.Generator, height: int, width: int, num_agents: int, num_holes: int) -> Instance:
    """Starts, goals and holes all over the board; solvable or not."""
    cells = rng.permutation(height * width)
    holes = np.zeros((height, width), bool)
    holes.flat[cells[2 * num_agents : 2 * num_agents + num_holes]] = True
    places = np.stack(np.divmod(cells, width), axis=1)
    return Instance(holes, places[:num_agents], places[num_agents : 2 * num_agents])


def small_instance(rng: np.random.Generator, max_side: int, max_agents: int) -> Instance:
    """Any shape up to ``max_side``, any number of agents that fits, any number of holes up to two in three."""
    height, width = rng.integers(2, max_side + 1, 2)
    num_agents = rng.integers(1, min(max_agents, height * width // 2) + 1)
    spare = height * width - 2 * num_agents
    return random_instance(rng, height, width, num_agents, rng.integers(0, 2 * spare // 3 + 1))


def as_plain(instance: Instance) -> tuple[list[list[bool]], tuple, tuple]:
    """Holes, starts and goals in lists and tuples."""
    starts = tuple((row, col) for row, col in instance.starts.tolist())
    goals = tuple((row, col) for row, col in instance.goals.tolist())
    return instance.holes.tolist(), starts, goals
