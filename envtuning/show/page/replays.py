"""Chooses the validation episodes that a page replays, and makes their films."""

from __future__ import annotations

from engineers.roles import natural_key
from envtuning.runs.log import RunLog
from envtuning.worlds.episodes import Episode
from envtuning.worlds.world import Film

PER_KIND = 2


def replays(run: RunLog, stage: int, episodes: list[Episode]) -> list[Film]:
    """Up to two films of each kind of failure, easiest slices first, and one success; none if the world has no films."""
    if not episodes:
        return []
    cases = run.cases("validation")
    films = [run.film(stage, cases, episode) for episode in _choose(episodes)]
    return [film for film in films if film is not None]


def _choose(episodes: list[Episode]) -> list[Episode]:
    ordered = sorted(episodes, key=lambda episode: (natural_key(episode.slice), episode.case))
    kinds = sorted({episode.failure for episode in ordered if episode.failure})
    chosen = [episode for kind in kinds for episode in [e for e in ordered if e.failure == kind][:PER_KIND]]
    return chosen + [episode for episode in reversed(ordered) if episode.succeeded][:1]
