"""Played cases: the record of each, and counts over many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Annotated, Any, TypeVar

from pydantic import Field

from engineers.report import SliceResult
from engineers.roles import natural_key

Amounts = dict[str, int]  # by unit: env_steps, episodes, samples, tokens
Rate = Annotated[float, Field(ge=0, le=1)]


@dataclass(frozen=True)
class Episode:
    """One case, played once and judged once. A world's own class may add fields, which are kept in memory only."""

    case: int  # its place among the cases
    slice: str
    failure: str | None  # the kind of failure; None after a success
    metrics: Mapping[str, float]  # by the table's names: a rate's 0 or 1, or a number; absent if unknown
    cost: Mapping[str, int] = field(default_factory=dict)  # by unit
    trace: Any = None  # JSON: the data for a replay
    note: str | None = None  # why it failed, if the trace does not show it

    @property
    def succeeded(self) -> bool:
        return self.failure is None

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("case", "slice", "failure", "trace", "note")} | {
            "metrics": dict(self.metrics),
            "cost": dict(self.cost),
        }


E = TypeVar("E", bound=Episode)


def by_slice(episodes: Iterable[E]) -> dict[str, list[E]]:
    """In the natural order of the slices' names: 9 before 10."""
    grouped: dict[str, list[E]] = {}
    for episode in episodes:
        grouped.setdefault(episode.slice, []).append(episode)
    return dict(sorted(grouped.items(), key=lambda item: natural_key(item[0])))


def rates(episodes: Sequence[Episode]) -> dict[str, float]:
    """The mean of every metric over the episodes that have it."""
    names = dict.fromkeys(name for episode in episodes for name in episode.metrics)
    return {name: fmean(episode.metrics[name] for episode in episodes if name in episode.metrics) for name in names}


def slice_results(episodes: Iterable[Episode]) -> list[SliceResult]:
    """The table of a validation: one row per slice."""
    return [
        SliceResult(
            name=name,
            episodes=len(group),
            metrics=rates(group),
            failures=dict(sorted(Counter(episode.failure for episode in group if episode.failure).items())),
        )
        for name, group in by_slice(episodes).items()
    ]


def pooled(results: Sequence[SliceResult], metric: str) -> float:
    """A rate over all episodes of a table; 0 without episodes."""
    total = sum(row.episodes for row in results)
    return sum(row.metrics.get(metric, 0.0) * row.episodes for row in results) / total if total else 0.0


def total_cost(episodes: Iterable[Episode]) -> Amounts:
    """The cost of all of them, by unit."""
    spent: Counter[str] = Counter()
    for episode in episodes:
        spent.update(episode.cost)
    return dict(spent)


def spread(episodes: Iterable[Episode], count: int) -> list[Episode]:
    """At most ``count`` failures, taking one of each slice and kind in turn, so that a few show every kind."""
    queues: dict[tuple[str, str], list[Episode]] = {}
    for episode in episodes:
        if episode.failure is not None:
            queues.setdefault((episode.slice, episode.failure), []).append(episode)
    ordered = [queues[key] for key in sorted(queues, key=lambda key: (natural_key(key[0]), key[1]))]
    picked: list[Episode] = []
    while len(picked) < count and any(ordered):
        picked += [queue.pop(0) for queue in ordered if queue]
    return picked[:count]
