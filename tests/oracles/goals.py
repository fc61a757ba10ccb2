"""What an agent on its goal does, and what every agent sees, in plain Python: one board, lists and loops."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake import joint_move
from mapf_frozenlake.types import Event


def lake_of(holes, cell):
    """All cells that are connected with this one over ice."""
    height, width = holes.shape
    lake, stack = {cell}, [cell]
    while stack:
        row, col = stack.pop()
        for there in ((row - 1, col), (row + 1, col), (row, col - 1), (row, col + 1)):
            inside = 0 <= there[0] < height and 0 <= there[1] < width
            if inside and not holes[there] and there not in lake:
                lake.add(there)
                stack.append(there)
    return lake


class Episode:
    """An episode under any ``on_goal``. New goals are not drawn here: ``expected`` says which agents must get one."""

    def __init__(self, instance, on_goal, horizon):
        self.holes, self.on_goal, self.horizon = instance.holes, on_goal, horizon
        self.cells = {agent: tuple(cell) for agent, cell in enumerate(instance.starts.tolist())}
        self.goals = {agent: tuple(cell) for agent, cell in enumerate(instance.goals.tolist())}
        self.everybody = list(self.cells)
        self.num_reached = dict.fromkeys(self.cells, 0)
        self.steps = 0
        self.at_fault = set()
        self.over = False

    def step(self, actions):
        """(rewards under "sparse", terminated, truncated); agents that have left get 0."""
        present = sorted(self.cells)
        after, events = joint_move(
            self.holes, np.array([self.cells[agent] for agent in present]), [actions[a] for a in present]
        )
        self.cells = {agent: tuple(cell) for agent, cell in zip(present, after.tolist())}
        self.steps += 1
        self.at_fault |= {agent for agent, event in zip(present, events) if event not in (Event.NONE, Event.BLOCKED)}
        reached = [agent for agent in present if self.cells[agent] == self.goals[agent]]
        fell = bool((events == Event.HOLE).any())
        if self.on_goal == "wait":
            success = len(reached) == len(self.everybody)
            paid = dict.fromkeys(self.everybody, float(success))
        else:
            for agent in reached:
                self.num_reached[agent] += 1
            paid = {agent: float(agent in reached) for agent in self.everybody}
            success = all(self.num_reached.values()) and self.on_goal == "finish"
        if self.on_goal == "finish":
            for agent in reached:
                del self.cells[agent], self.goals[agent]
        self.gets_a_goal = reached if self.on_goal == "next" else []
        terminated = success or fell
        truncated = not terminated and self.steps >= self.horizon
        self.over = terminated or truncated
        self.success = success
        if self.on_goal == "next":
            self.success = all(self.num_reached.values()) and not fell
        return [paid[agent] for agent in self.everybody], terminated, truncated

    @property
    def violated(self):
        return bool(self.at_fault)

    @property
    def score(self):
        """Part of the agents that are on their goals (have reached one, if they leave or get others) without a fault."""
        if self.on_goal == "wait":
            there = {agent for agent in self.everybody if self.cells[agent] == self.goals[agent]}
        else:
            there = {agent for agent in self.everybody if self.num_reached[agent]}
        return len(there - self.at_fault) / len(self.everybody)

    def window(self, agent, side):
        """The four planes of "ego", float[4, side, side]; zeros for an agent that has left."""
        planes = np.zeros((4, side, side))
        if agent not in self.cells:
            return planes
        radius = side // 2
        top, left = self.cells[agent][0] - radius, self.cells[agent][1] - radius
        for row in range(side):
            for col in range(side):
                cell = (top + row, left + col)
                inside = 0 <= cell[0] < self.holes.shape[0] and 0 <= cell[1] < self.holes.shape[1]
                planes[0, row, col] = not inside or self.holes[cell]
                for other, where in self.cells.items():
                    if where == cell and other != agent:
                        planes[1, row, col] = 1.0 if other < agent else 0.5
                for other, goal in self.goals.items():
                    if goal == cell:
                        planes[2 if other == agent else 3, row, col] = 1.0
        return planes
