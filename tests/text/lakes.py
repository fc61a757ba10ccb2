"""Lakes and plans for property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import mapf_frozenlake as mfl

LEFT, DOWN, RIGHT, UP, WAIT = range(5)


@st.composite
def instances(draw, max_side=6, max_agents=5, min_side=2):
    """Any lake that ``Instance`` accepts, solvable or not."""
    height, width = draw(st.integers(min_side, max_side)), draw(st.integers(min_side, max_side))
    agents = draw(st.integers(1, min(max_agents, height * width // 2)))
    cells = draw(st.permutations([(row, col) for row in range(height) for col in range(width)]))
    endpoints, free = cells[: 2 * agents], cells[2 * agents :]
    holes = np.zeros((height, width), bool)
    for cell in draw(st.lists(st.sampled_from(free), max_size=len(free), unique=True)) if free else []:
        holes[cell] = True
    return mfl.Instance(holes=holes, starts=endpoints[:agents], goals=endpoints[agents:])


def plans(agents, max_steps=12):
    return st.lists(st.lists(st.integers(0, 4), max_size=max_steps), min_size=agents, max_size=agents)


def instances_with_plans(**bounds):
    return instances(**bounds).flatmap(lambda instance: st.tuples(st.just(instance), plans(instance.num_agents)))


def lake(rows, starts, goals, **facts):
    """``lake(["..", ".#"], …)``: # is a hole."""
    holes = [[letter == "#" for letter in row] for row in rows]
    return mfl.Instance(holes=np.array(holes), starts=np.array(starts), goals=np.array(goals), **facts)
