"""``PathProtocol``: what a planner or policy for path finding is measured on, by number of agents and family of maps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.generator.generate import generate
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.types import Collisions, OnGoal

# The fields of each map's slice; hole_ratio, loops and the rest as in ``LakeConfig``.
MAPS: dict[str, dict[str, Any]] = {
    "random-16": {"size": 16, "hole_ratio": 0.2},
    "random-32": {"size": 32, "hole_ratio": 0.2},
    "maze-33": {"size": 33, "map_family": "maze", "loops": 0.5},
    "rooms-32": {"size": 32, "map_family": "rooms", "room_size": 7, "loops": 0.5},
    "warehouse-64": {"size": 64, "map_family": "warehouse", "shelf_length": 10, "aisle": 2},
}


@dataclass(frozen=True)
class PathProtocol:
    """Boards, rules and seeds. Equal protocols have equal boards, on every machine.

    Starts and goals are random; each agent alone can reach its goal. A crowd of agents may still have no joint plan.
    """

    name: str
    on_goal: OnGoal
    maps: Mapping[str, Mapping[str, Any]]
    agents: tuple[int, ...] = (8, 16, 32, 64)
    episodes: int = 20  # of each map with each number of agents
    horizon: int = 256
    seed: int = 0
    collisions: Collisions = "block"

    def config(self, map_name: str, agents: int) -> LakeConfig:
        if map_name not in self.maps:
            raise LakeError(f"no map is called {map_name!r}: the maps of {self.name} are {', '.join(self.maps)}")
        return LakeConfig.single(
            num_agents=agents,
            on_goal=self.on_goal,
            collisions=self.collisions,
            horizon=self.horizon,
            **self.maps[map_name],
        )

    def boards(self, map_name: str, agents: int) -> InstanceSet:
        return generate(self.config(map_name, agents), self.episodes, self.seed, certify="reachable")

    def shorter(self, episodes: int, agents: tuple[int, ...] | None = None) -> PathProtocol:
        """The first episodes of it, for a quick look; its name says so."""
        return replace(self, name=f"{self.name} ({episodes} episodes)", episodes=episodes, agents=agents or self.agents)


PROTOCOLS = {
    "paths-2026": PathProtocol("paths-2026", "wait", MAPS),
    "lifelong-2026": PathProtocol("lifelong-2026", "next", MAPS),
}
