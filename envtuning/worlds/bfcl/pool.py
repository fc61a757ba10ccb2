"""``TaskPool``: the tasks that a stage trains on, dealt in passes over a pool."""

from __future__ import annotations

import random
from collections.abc import Collection
from itertools import accumulate

from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.package import SPLITS, Package
from envtuning.worlds.bfcl.splits import Cut, Subset
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.world import InfeasibleConfig


def fitting(
    package: Package, cut: Cut, subset: Subset, config: BFCLConfig, excluded: Collection[int] = ()
) -> list[Task]:
    """The subset's tasks that the config allows, by split and scenario."""
    splits = [split for split in SPLITS if split in config.slices and config.slices[split].share > 0]
    return [
        task
        for task in cut.tasks(package, subset, splits)
        if task.scenario not in excluded and task.turns <= config.max_turns and weight_of(task, config) > 0
    ]


def weight_of(task: Task, config: BFCLConfig) -> float:
    """The smallest weight among the task's tool classes; a class that the config does not name has weight 1."""
    return min(config.tools.get(name, 1.0) for name in task.classes)


class TaskPool:
    """An endless sequence of training tasks. Pools with equal arguments give the same tasks in the same order.

    Raises ``InfeasibleConfig`` if no task fits the config.
    """

    def __init__(
        self, package: Package, cut: Cut, config: BFCLConfig, *, seed: int, excluded: Collection[int] = ()
    ) -> None:
        self.config = config
        self._random = random.Random(f"pool {seed}")
        self._tasks = fitting(package, cut, "train", config, excluded)
        if not self._tasks:
            raise InfeasibleConfig(
                f"no training task has at most {config.max_turns} turns, a split with a share and tools with a weight: "
                "allow more turns, or give more splits and tools weight"
            )
        by_split: dict[str, float] = {}
        for task in self._tasks:
            by_split[task.split] = by_split.get(task.split, 0.0) + weight_of(task, config)
        # A split's share is its part of the draws; the number of its tasks that fit plays no part.
        self._weights = [
            config.slices[task.split].share * weight_of(task, config) / by_split[task.split] for task in self._tasks
        ]
        self._queue: list[Task] = []
        self.pool: list[Task] = []
        self._passes = 0

    def deal(self) -> Task:
        """The next task; the pool is shuffled again for each pass, and drawn again after the given number of passes."""
        if not self._queue:
            number, passes = divmod(self._passes, self.config.epochs)
            if passes == 0:
                self.pool = self._draw(number)
            self._passes += 1
            self._queue = self._random.sample(self.pool, len(self.pool))
        return self._queue.pop()

    def _draw(self, number: int) -> list[Task]:
        """``size`` draws by weight (a task may be drawn twice); if the size is 0, as many draws as there are tasks.

        A pool with a size is the same for every seed, because a stage has many seeds: one for each stretch of training or row of a batch.
        """
        size = self.config.pool_size
        source = random.Random(f"pool number {number}") if size else self._random
        return source.choices(self._tasks, cum_weights=list(accumulate(self._weights)), k=size or len(self._tasks))
