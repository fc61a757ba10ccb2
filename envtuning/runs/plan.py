"""``Plan``: a run's spec with all that it names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engineers.guard import Guard
from envtuning.runs.spec import RunSpec
from envtuning.worlds.world import World


@dataclass(frozen=True)
class Plan:
    spec: RunSpec

    @property
    def world(self) -> World[Any]:
        return self.spec.world.made

    @cached_property
    def guard(self) -> Guard:
        """What every config of this run must pass."""
        return Guard(self.world.check if self.spec.guard.check_feasible else None, self.spec.guard.max_drop)
