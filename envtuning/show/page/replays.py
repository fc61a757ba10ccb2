"""Which validation episodes a page replays, and their films."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envtuning.runs.folder import RunFolder
from envtuning.worlds.lakes.episodes import Episode
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.render import animated_svg, plan_frames

PER_KIND = 2
LONGEST_FILM = 40  # steps; a wandering episode's film is cut here


@dataclass(frozen=True)
class Replay:
    title: str
    svg: str


def replays(folder: Path, episodes: list[dict]) -> list[Replay]:
    """Up to two films of each way to fail, smallest boards first, and one success."""
    if not episodes:
        return []
    suite = InstanceSet.load(RunFolder(folder).validation_file)
    films = []
    for episode in _choose([Episode.from_json(one) for one in episodes]):
        instance = suite[episode.case]
        plan = [line[:LONGEST_FILM] for line in episode.plan]
        outcome = (episode.failure or ("optimal" if episode.optimal else "valid")).replace("_", " ")
        cut = f", first {LONGEST_FILM} steps" if episode.steps > LONGEST_FILM else ""
        title = f"case {episode.case}: {outcome} after {episode.steps} steps on {instance.height}×{instance.width}{cut}"
        films.append(Replay(title, animated_svg(plan_frames(instance, plan))))
    return films


def _choose(episodes: list[Episode]) -> list[Episode]:
    ordered = sorted(episodes, key=lambda episode: (episode.size, episode.case))
    kinds = sorted({episode.failure for episode in ordered if episode.failure})
    chosen = [episode for kind in kinds for episode in [e for e in ordered if e.failure == kind][:PER_KIND]]
    return chosen + [episode for episode in reversed(ordered) if episode.valid][:1]
