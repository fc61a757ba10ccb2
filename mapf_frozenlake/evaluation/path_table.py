"""``PathTable``: the measures of a protocol's episodes, by map and number of agents."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.evaluation import layout
from mapf_frozenlake.evaluation.measure import PathEpisode
from mapf_frozenlake.evaluation.path_plot import panels

TITLES = {  # measure -> title and digits, in the order of the columns
    "individual": ("individual success %", 1),
    "common": ("common success %", 1),
    "makespan": ("makespan", 1),
    "sum_of_costs": ("sum of costs", 1),
    "throughput": ("throughput", 3),
    "density": ("agent density", 3),
    "collisions": ("collisions", 2),
    "seconds_per_step": ("seconds per step", 6),
}


@dataclass(frozen=True)
class PathRow:
    """Means over the episodes of one map with one number of agents. Measures that the rules do not have are None."""

    map: str
    agents: int
    episodes: int
    individual: float  # % of agents that arrived
    common: float  # % of episodes in which all agents arrived
    makespan: float | None
    sum_of_costs: float | None
    throughput: float | None
    density: float
    collisions: float
    seconds_per_step: float


@dataclass(frozen=True, repr=False)
class PathTable:
    """The result of ``evaluate`` on a protocol: ``print`` it, or take ``rows``, ``episodes``, ``to_markdown()``, ``to_json()``, ``plot``."""

    name: str  # of the policy
    protocol: str
    episodes: tuple[PathEpisode, ...]

    @property
    def rows(self) -> tuple[PathRow, ...]:
        groups: dict[tuple[str, int], list[PathEpisode]] = {}
        for episode in self.episodes:
            groups.setdefault((episode.map, episode.agents), []).append(episode)
        return tuple(
            PathRow(
                map=map_name,
                agents=agents,
                episodes=len(group),
                individual=100 * _mean(group, "arrived"),
                common=100 * _mean(group, "solved"),
                makespan=_mean_or_none(group, "makespan"),
                sum_of_costs=_mean_or_none(group, "sum_of_costs"),
                throughput=_mean_or_none(group, "throughput"),
                density=_mean(group, "density"),
                collisions=_mean(group, "collisions"),
                seconds_per_step=_mean(group, "seconds_per_step"),
            )
            for (map_name, agents), group in groups.items()
        )

    def plot(self, path: str | PathLike[str], measure: str, others: Sequence[PathTable] = ()) -> Path:
        """Write an SVG with a panel for each map: the measure over the number of agents, with a line for each table."""
        if measure not in TITLES:
            raise LakeError(f"measure={measure!r}: give one of {', '.join(TITLES)}")
        target = Path(path)
        if target.suffix.lower() != ".svg":
            raise LakeError(f"{target.name}: a plot is saved as .svg, not {target.suffix or 'without an ending'!r}")
        lines = {
            table.name: {(row.map, row.agents): getattr(row, measure) for row in table.rows}
            for table in (self, *others)
        }
        target.write_text(panels(TITLES[measure][0], lines), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return f"{self._headline()}\n\n{layout.aligned(*self._grid())}"

    def __repr__(self) -> str:
        return f"PathTable({self._headline()})"

    def to_markdown(self) -> str:
        return layout.in_markdown(*self._grid())

    def to_json(self) -> str:
        """Name, protocol and rows; ``episodes`` are not in it."""
        return json.dumps(
            {"name": self.name, "protocol": self.protocol, "rows": [asdict(row) for row in self.rows]}, indent=1
        )

    def _headline(self) -> str:
        solved = sum(episode.solved for episode in self.episodes)
        return f"{self.name} on {self.protocol}: all agents arrived in {solved} of {len(self.episodes)} episodes"

    def _grid(self) -> tuple[list[str], list[list[str]]]:
        rows = self.rows
        shown = [name for name in TITLES if any(getattr(row, name) is not None for row in rows)]
        header = ["map", "agents", *(TITLES[name][0] for name in shown)]
        return header, [
            [row.map, str(row.agents), *(f"{getattr(row, name):.{TITLES[name][1]}f}" for name in shown)] for row in rows
        ]


def _mean(group: Sequence[PathEpisode], name: str) -> float:
    return float(sum(getattr(one, name) for one in group) / len(group))


def _mean_or_none(group: Sequence[PathEpisode], name: str) -> float | None:
    return None if getattr(group[0], name) is None else _mean(group, name)
