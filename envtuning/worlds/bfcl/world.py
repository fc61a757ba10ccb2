"""``BFCLWorld``: multi-turn tool use for the loop."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from engineers.from_file import PLAIN, reads
from engineers.report import FailureCase
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.env import BFCLMultiTurnEnv
from envtuning.worlds.bfcl.events import CallAugmenter
from envtuning.worlds.bfcl.hints import WrittenHints
from envtuning.worlds.bfcl.hints.check import refusals
from envtuning.worlds.bfcl.package import SPLITS, Package, ToolClass, Version, load
from envtuning.worlds.bfcl.pool import TaskPool, fitting
from envtuning.worlds.bfcl.splits import LATEST, Cut, CutName, by_scenario, by_tool_class
from envtuning.worlds.bfcl.tasks import Task, find_task, scenario_of
from envtuning.worlds.bfcl.transcript import failure_of, transcript
from envtuning.worlds.episodes import Episode, by_slice
from envtuning.worlds.text_player import Conversation, converse
from envtuning.worlds.world import About, Form, InfeasibleConfig, Purpose, TooFewCases, World, fingerprints_of

AT_ONCE = 64  # conversations played together
COUNTED = ("calls", "failed_calls", "unreadable", "guessed_turns", "turns")  # in an episode, for reports

ABOUT = About(
    name="tools",
    environment=(
        "Multi-turn tool use, the Berkeley Function-Calling Leaderboard's multi-turn part. A user asks for something in several "
        "turns; the agent calls tools (a file system, mathematics, messages, posts, tickets, trading, travel, a vehicle), sees "
        "their results, and ends each turn in words. After each turn the tools' states must be what the ground truth's calls "
        "would have made them, and every result that the ground truth's calls give must have been obtained. A task is solved "
        "when that holds for all turns. In some turns a tool or a value is missing: there the agent must say so and wait."
    ),
    objective="success_rate",
    rates={"success_rate": "success", "progress": "progress", "syntax": "syntax"},
    legend=(
        "Success: every turn right, as the official checker has it. Progress: part of the turns that are right. "
        "Syntax: replies that can be read and calls that ran without error, in turns that need calls."
    ),
    failures={
        "said_nothing": "in a turn that needs calls, none was made",
        "wrong_state": "after the first wrong turn a tool was not in the state that it should have been in",
        "missing_result": "after the first wrong turn the states were right, but a result was never asked for",
        "too_many_steps": "more than 20 replies with calls in one turn: the episode was cut off",
        "policy_error": "the policy raised an error",
    },
    case="task",
    score_in_words="the part of the turns with ground truth that are right",
    unit="episodes",
)


@dataclass(frozen=True)
class BFCLCases:
    """Tasks by id, in a fixed order."""

    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def save(self, path: Path) -> None:
        Path(path).write_text(json.dumps({"tasks": list(self.ids)}) + "\n", encoding="utf-8")

    def fingerprints(self) -> frozenset[int]:
        """The scenarios: to a learner, the variants of a scenario in the four splits are the same case."""
        return frozenset(map(scenario_of, self.ids))


@reads(dict.fromkeys(("cut", "held_out", "version"), PLAIN))  # not ``path``, because the code there is run
class BFCLWorld(World[BFCLConfig, BFCLCases, Episode]):
    """Tasks of one version of the benchmark, divided by ``cut``. ``held_out`` names a tool class that is used for the test and never in
    training."""

    config_type = BFCLConfig
    about = ABOUT
    forms: frozenset[Form] = frozenset({"replies"})
    reports = frozenset({"success_rate", "progress", "syntax"})

    def __init__(
        self,
        *,
        version: Version = "v4",
        path: str | None = None,
        held_out: ToolClass | None = None,
        cut: CutName = LATEST,
    ) -> None:
        self.version, self.path, self.held_out, self.cut_name = version, path, held_out, cut

    @property
    def package(self) -> Package:
        return load(self.version, self.path)

    @property
    def cut(self) -> Cut:
        if self.held_out is None:
            return by_scenario(self.cut_name)
        return by_tool_class(self.version, self.held_out, self.cut_name)

    def check(self, config: BFCLConfig) -> None:
        """Hints must pass the checks of ``refusals``, and at least one task must fit."""
        if said := refusals(self.package, config.hints):
            raise InfeasibleConfig("; ".join(said[:3]))
        self.pool(config)

    def draw(
        self, config: BFCLConfig, per_slice: int, *, seed: int, purpose: Purpose, exclude: Sequence[Any]
    ) -> BFCLCases:
        excluded = fingerprints_of(exclude)
        if purpose == "probe":  # drawn by the stage's own shares
            pool = self.pool(config, seed, excluded)
            return BFCLCases(tuple(pool.deal().id for _ in range(per_slice * len(self.slices(config)))))
        tasks = fitting(self.package, self.cut, purpose, config, excluded)
        chosen: list[Task] = []
        for split in self.slices(config):
            found = [task for task in tasks if task.split == split]
            if len(found) < per_slice:
                remedy = f"ask for at most {len(found)}" if found else "allow more turns, or give more tools weight"
                raise TooFewCases(
                    f"{per_slice} tasks of {split} are needed to {'validate' if purpose == 'validation' else 'test'} "
                    f"on, but the {purpose} scenarios have {len(found)}: {remedy}"
                )
            # Variants of a scenario are not independent: take scenarios first that the set has least often.
            drawn = random.Random(f"{purpose} {split} {seed}").sample(found, len(found))
            times = Counter(task.scenario for task in chosen)
            chosen += sorted(drawn, key=lambda task: times[task.scenario])[:per_slice]
        return BFCLCases(tuple(task.id for task in chosen))

    def pool(self, config: BFCLConfig, seed: int = 0, excluded: frozenset[int] = frozenset()) -> TaskPool:
        """The tasks that this config trains on. Raises ``InfeasibleConfig``."""
        return TaskPool(self.package, self.cut, config, seed=seed, excluded=excluded)

    def load(self, path: Path) -> BFCLCases:
        return BFCLCases(tuple(json.loads(Path(path).read_text(encoding="utf-8"))["tasks"]))

    def slices(self, config: BFCLConfig) -> dict[str, float]:
        """The splits in use, in the benchmark's order."""
        shares = {split: config.slices[split].share for split in SPLITS if split in config.slices}
        total = sum(shares.values())
        return {split: share / total for split, share in shares.items() if share > 0}

    def play(self, policy: Any, cases: BFCLCases, config: BFCLConfig, *, seed: int) -> list[Episode]:
        """One official episode per task, with the config's feedback and style; nothing in it is random."""
        episodes: list[Episode] = []
        for start in range(0, len(cases), AT_ONCE):
            tasks = [find_task(self.package, task_id) for task_id in cases.ids[start : start + AT_ONCE]]
            envs = [self.play_env(config) for _ in tasks]
            named = [{"task": task} for task in tasks]
            talks = converse(envs, policy, seeds=[seed] * len(tasks), options=named, seed=seed)
            for offset, (task, env, talk) in enumerate(zip(tasks, envs, talks)):
                episodes.append(_episode(start + offset, task, env, talk))
        return episodes

    def explain(self, cases: BFCLCases, episode: Episode) -> FailureCase:
        """The conversation of the first wrong turn, and what the result should have been."""
        task = find_task(self.package, cases.ids[episode.case])
        trace = episode.trace
        picture, explanation = transcript(
            self.package, task, trace["replies"], trace["hints_by"], trace.get("rules", {})
        )
        return FailureCase(
            slice=episode.slice,
            kind=str(episode.failure),
            picture=picture,
            explanation=episode.note or explanation,
            case_id=task.id,
        )

    def behaviour(self, cases: BFCLCases, episodes: Sequence[Episode]) -> dict[str, dict[str, float]]:
        """Per split, means per episode."""
        return {
            split: {name: round(fmean(episode.trace["counts"][name] for episode in group), 2) for name in COUNTED}
            for split, group in by_slice([episode for episode in episodes if episode.trace]).items()
        }

    def drawn(self, config: BFCLConfig, cases: BFCLCases) -> dict[str, dict[str, float]]:
        """Per split: its part of the cases, the turns and calls of the ground truth, and the tool classes."""
        tasks = [find_task(self.package, task_id) for task_id in cases.ids]
        found: dict[str, dict[str, float]] = {}
        for split in self.slices(config):
            group = [task for task in tasks if task.split == split]
            if not group:
                continue
            numbers = {
                "share": len(group) / len(tasks),
                "turns": fmean(task.turns for task in group),
                "calls": fmean(sum(map(len, task.ground_truth)) for task in group),
            }
            classes = sorted({name for task in group for name in task.classes})
            numbers |= {name: sum(name in task.classes for task in group) / len(group) for name in classes}
            found[split] = {name: round(value, 3) for name, value in numbers.items()}
        return found

    def validated_as(self, target: BFCLConfig, config: BFCLConfig) -> BFCLConfig:
        """The target's tasks with the stage's feedback: if the stage has hints, validation has them too."""
        return target.model_copy(update={"feedback": config.feedback, "hints": config.hints})

    def make_env(
        self,
        config: BFCLConfig,
        *,
        exclude: Sequence[Any] = (),
        capacity: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> TrainingEnv:
        """A Gymnasium text environment whose episodes are training tasks drawn by the config."""
        return TrainingEnv(self, config, fingerprints_of(exclude), seed)

    def play_env(self, config: BFCLConfig) -> BFCLMultiTurnEnv:
        """An environment in which validation and test are played."""
        return BFCLMultiTurnEnv(version=self.version, path=self.path, **settings_of(config))


class TrainingEnv(BFCLMultiTurnEnv):
    """An environment with an endless sequence of training tasks; its config may change between episodes."""

    def __init__(self, world: BFCLWorld, config: BFCLConfig, excluded: frozenset[int], seed: int) -> None:
        super().__init__(version=world.version, path=world.path)
        self._world, self._excluded, self._seed = world, excluded, seed
        self.set_config(config)

    def set_config(self, config: BFCLConfig) -> None:
        """Use this config from the next reset on."""
        config = deepcopy(config)  # the caller may change its own later
        self._pool = self._world.pool(config, self._seed, self._excluded)
        self._config = config
        self.settings |= settings_of(config)

    def get_config(self) -> BFCLConfig:
        return deepcopy(self._config)

    set_task, get_task = set_config, get_config  # RLlib's names

    def next_task(self) -> Task:
        """The task of the next reset that names none."""
        return self._pool.deal()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """With a seed, the pool is made anew from that seed."""
        if seed is not None:
            self._seed = seed
            self.set_config(self._config)
        named = dict(options or {})
        if named.get("task") is None:
            named["task"] = self.next_task()
        return super().reset(seed=seed, options=named)


def settings_of(config: BFCLConfig) -> dict[str, Any]:
    """The environment's arguments from a stage's config."""
    return {
        "reward": config.reward,
        "augmenter": augmenter_of(config),
        "hint_place": "instead" if config.feedback == "replaced" else "after",
        "tool_style": config.tool_style,
        "reply_format": config.reply_format,
    }


def augmenter_of(config: BFCLConfig) -> CallAugmenter | None:
    """The writer of a stage's hints; None for a stage without hints."""
    return None if config.feedback == "standard" else WrittenHints(config.hints)


def _episode(number: int, task: Task, env: BFCLMultiTurnEnv, talk: Conversation) -> Episode:
    played = env.conversation
    assert played is not None, "the player has reset it"
    scores = played.scores()
    failure = "policy_error" if talk.error is not None else failure_of(played)
    hints = env.settings["augmenter"]
    return Episode(
        case=number,
        slice=task.split,
        failure=failure,
        metrics={"success_rate": scores["success"], "progress": scores["progress"], "syntax": scores["syntax"]},
        cost={"episodes": 1, "samples": 1, "env_steps": len(talk.rewards), "tokens": talk.tokens},
        trace={
            "task": task.id,
            "replies": [reply.text for reply in talk.replies],
            "hints_by": None if hints is None else dict(hints.hints),
            "rules": {name: env.settings[name] for name in ("hint_place", "reply_format")},
            "counts": {name: scores[name] for name in COUNTED},
            "departures": list(played.departures),
        },
        note=talk.error,
    )
