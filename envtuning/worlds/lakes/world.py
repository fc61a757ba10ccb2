"""``LakeWorld``: MAPF-FrozenLake for the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium as gym
import numpy as np

from engineers.from_file import PLAIN, reads
from engineers.report import FailureCase, Split
from envtuning.outcomes import Outcome
from envtuning.worlds.episodes import Episode, by_slice
from envtuning.worlds.lakes.episodes import LakeEpisode, behaviour, missed_by_kind, plan_of, success_by_kind
from envtuning.worlds.lakes.lessons import lessons_of
from envtuning.worlds.lakes.play import Mode, play_lakes
from envtuning.worlds.lakes.supply import raise_unless_enough
from envtuning.worlds.world import About, Cases, Film, Form, InfeasibleConfig, Lesson, Purpose, World
from mapf_frozenlake import (
    GenerationError,
    LakeConfig,
    LakeError,
    check_config,
    generate,
    to_text,
    validation_suite,
    warmup,
)
from mapf_frozenlake.config import Slice
from mapf_frozenlake.feedback import explain
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.letters import MAX_LETTERED_AGENTS
from mapf_frozenlake.text import TextStyle
from mapf_frozenlake.text.rewards import payment_of_plans
from mapf_frozenlake.types import Plan

UNKNOWN = -1  # a board's least makespan, or whether it needs a wait
LONGEST_FILM = 40  # steps; a wandering episode's film is cut here

ABOUT = About(
    name="lakes",
    environment=(
        "A multi-agent FrozenLake: agents on a square grid of ice and holes move at once, one cell a step or not at all, "
        "each from its start to its own goal. Leaving the board, stepping into a hole, two agents on one cell and two agents "
        "exchanging cells are violations. An episode is valid when all agents stand on their goals at once and no violation "
        "happened; it is optimal when, besides, no plan could have taken fewer steps. Following an agent into the cell that it "
        "leaves in the same step is allowed; an agent on its goal stays on the board and blocks it."
    ),
    objective="valid_rate",
    rates={"valid_rate": "valid", "optimal_rate": "optimal"},
    aside=frozenset({"optimal_rate", "legal_rate", "makespan_gap"}),  # the kinds of failure say who broke a rule
    legend="Valid: all agents on their goals, no violation on the way. Optimal: valid in the fewest steps possible.",
    failures={
        "parse_error": "no plan could be read from the reply",
        "truncated": "the reply was cut off at its length limit before it held a plan",
        "illegal_move": "the first violation was a move off the board",
        "hole": "the first violation was a step into a hole, which ends the episode",
        "conflict": "the first violation was two agents on one cell, or two agents exchanging cells",
        "goal_missed": "no violation, but at the episode's end not all agents stood on their goals; how: by what the missing "
        "agents did in the last quarter of its steps",
        "policy_error": "the policy raised an error",
    },
    slice_label="{0}×{0}",
    score_in_words="the part of the agents that stand on their goals at the end without a violation of theirs",
    case="board",
)


@reads(dict.fromkeys(("mode", "style"), PLAIN))
class LakeWorld(World[LakeConfig, InstanceSet, LakeEpisode]):
    """Boards of ``LakeConfig``. Language models write a whole plan (``mode="plan"``) or move by move (``"turns"``)."""

    config_type = LakeConfig
    about = ABOUT
    forms = frozenset({"acts", "replies", "plans"})
    reports = frozenset({"valid_rate", "optimal_rate", "legal_rate", "makespan_gap"})

    def __init__(self, *, mode: Mode = "plan", style: TextStyle = "paper") -> None:
        self.mode, self.style = mode, style

    def check(self, config: LakeConfig) -> None:
        try:
            check_config(config)
        except GenerationError as error:
            raise InfeasibleConfig(str(error)) from error

    def check_form(self, config: LakeConfig, form: Form) -> None:
        if form != "replies":
            return
        try:
            payment_of_plans(config.reward)
        except LakeError as error:
            raise InfeasibleConfig(str(error)) from error
        if self.style != "coordinates" and config.max_agents > MAX_LETTERED_AGENTS:
            raise InfeasibleConfig(
                f"{config.max_agents} agents: style {self.style!r} has letters for {MAX_LETTERED_AGENTS}; give the world style: coordinates"
            )

    def check_target(self, config: LakeConfig, form: Form) -> None:
        if config.on_goal != "wait":
            raise InfeasibleConfig(
                f"the target has on_goal={config.on_goal!r}, but cases are judged by on_goal='wait': leave it out of the target"
            )
        if config.is_slippery and form != "acts":
            raise InfeasibleConfig(
                "the target has is_slippery=True, and on slippery ice a plan has no fixed outcome: validate on "
                "a target with is_slippery false, or train a policy that acts on observations"
            )

    def draw(
        self, config: LakeConfig, per_slice: int, *, seed: int, purpose: Purpose, exclude: Sequence[Any]
    ) -> InstanceSet:
        count = per_slice * len(self.slices(config))
        try:
            if purpose == "probe":  # drawn by the stage's own shares
                return generate(config, n=count, seed=seed, exclude=exclude)
            return _held_out(even_shares(config), count, seed, exclude)
        except GenerationError as error:
            raise InfeasibleConfig(str(error)) from error

    def outcome(self, info: Mapping[str, Any], repeat: bool = False) -> Outcome:
        return super().outcome({**info, "is_success": info["valid"]}, repeat)

    def load(self, path: Path) -> InstanceSet:
        return InstanceSet.load(path)

    def play(self, policy: Any, cases: InstanceSet, config: LakeConfig, *, seed: int) -> list[LakeEpisode]:
        return play_lakes(policy, cases, config, seed=seed, mode=self.mode, style=self.style)

    def explain(self, cases: InstanceSet, episode: LakeEpisode) -> FailureCase:
        """The board drawn, and what went wrong on it."""
        instance = cases[episode.case]
        return FailureCase(
            slice=episode.slice,
            kind=str(episode.failure),
            picture=to_text(instance, "paper" if instance.num_agents <= MAX_LETTERED_AGENTS else "coordinates"),
            explanation=episode.note or explain(instance, plan_of(episode.trace), episode.verdict),
            case_id=str(episode.case),
        )

    def behaviour(self, cases: InstanceSet, episodes: Sequence[LakeEpisode]) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for size, group in by_slice(episodes).items():
            rows = [behaviour(cases[episode.case], episode) for episode in group]
            found[size] = {name: round(fmean(row[name] for row in rows), 3) for name in rows[0]}
            found[size] |= missed_by_kind(cases, group)
        return found

    def splits(self, cases: InstanceSet, episodes: Sequence[LakeEpisode]) -> dict[str, dict[str, Split]]:
        return {size: success_by_kind(cases, group) for size, group in by_slice(episodes).items()}

    def drawn(self, config: LakeConfig, cases: InstanceSet) -> dict[str, dict[str, float]]:
        """Per size, what was really drawn: shares, holes, waits, distances, least makespans."""
        return {name: _drawn(cases, int(name)) for name in self.slices(config)}

    def film(self, cases: InstanceSet, episode: Episode) -> Film:
        from mapf_frozenlake.render import animated_svg, ansi, plan_frames, save_animation

        instance = cases[episode.case]
        no_moves: Plan = [[] for _ in range(instance.num_agents)]
        plan = plan_of(episode.trace) or no_moves  # if no plan could be read
        steps = episode.cost["env_steps"]
        optimal = episode.metrics.get("optimal_rate")
        outcome = (episode.failure or ("optimal" if optimal else "valid")).replace("_", " ")
        cut = f", first {LONGEST_FILM} steps" if steps > LONGEST_FILM else ""
        frames = plan_frames(instance, plan)
        return Film(
            title=f"case {episode.case}: {outcome} after {steps} steps on {instance.height}×{instance.width}{cut}",
            svg=animated_svg(frames[: LONGEST_FILM + 1]),
            frames=[ansi(frame) for frame in frames],
            save=lambda path, seconds: save_animation(path, frames, seconds_per_step=seconds),
            reply=episode.trace.get("reply", ""),
        )

    def validated_as(self, target: LakeConfig, config: LakeConfig) -> LakeConfig:
        """If a stage shows hints, its validation shows them too."""
        return target.model_copy(update={"hint_strength": config.hint_strength})

    def capacity(self, configs: Sequence[LakeConfig]) -> dict[str, Any]:
        return {
            "max_size": max(config.max_size for config in configs),
            "max_agents": max(config.max_agents for config in configs),
        }

    def config_in(self, capacity: Mapping[str, Any]) -> LakeConfig:
        return LakeConfig.single(capacity["max_size"], num_agents=1)

    def make_env(self, config: LakeConfig, *, exclude: Sequence[Cases], capacity: Mapping[str, Any], seed: int) -> Any:
        env = gym.make("MAPFFrozenLake-v0", config=config, exclude=list(exclude), **capacity)
        env.reset(seed=seed)
        return NamesBoards(env)

    def make_text_env(self, config: LakeConfig, *, seed: int) -> Any:
        env = gym.make("MAPFFrozenLakeText-v0", mode=self.mode, style=self.style, config=config)
        env.reset(seed=seed)
        return env

    def lessons(self, config: LakeConfig, count: int, *, seed: int, exclude: Sequence[Any]) -> list[Lesson]:
        """Boards, each with an optimal plan, for models that write whole plans."""
        if self.mode != "plan":
            raise InfeasibleConfig(
                f"mode {self.mode!r} has no certified answers: they are whole plans, so set the world's mode to plan"
            )
        try:
            boards = generate(config, n=count, seed=seed, exclude=exclude, num_threads=1)
        except GenerationError as error:
            raise InfeasibleConfig(str(error)) from error
        return lessons_of(boards, self.style)

    def prepare(self) -> None:
        for _, compile_it in warmup.steps():
            compile_it()

    def summary(self, config: LakeConfig) -> list[str]:
        """'4×4 80 %, holes .10' is 80 % of the data at a hole ratio of 0.10."""
        total = sum(piece.share for piece in config.slices.values())
        dealt = [(size, piece) for size, piece in sorted(config.slices.items()) if piece.share > 0]
        return [f"{size}×{size} {piece.share / total:.0%}, {_knobs(piece)}" for size, piece in dealt]


class NamesBoards(gym.Wrapper[Any, Any, Any, Any]):
    """The last info of an episode says, as ``case``, which board it was played on."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            info["case"] = str(self.env.unwrapped.batch.board_hashes[0])  # type: ignore[attr-defined]
        return observation, reward, terminated, truncated, info


def raise_unless_lakes(world: World[Any]) -> None:
    if world.config_type is not LakeConfig:
        raise ValueError(f"it trains on lakes, not on {world.about.name}: name another trainee.kind")


def _held_out(config: LakeConfig, count: int, seed: int, exclude: Sequence[InstanceSet]) -> InstanceSet:
    """A set for validation or test. Raises ``TooFewCases`` if the config has too few different boards for it."""
    try:
        drawn = validation_suite(config, count, seed, exclude=exclude)
    except GenerationError:
        raise_unless_enough(config, count, None, seed=seed, exclude=exclude)
        raise
    raise_unless_enough(config, count, drawn, seed=seed, exclude=exclude)
    return drawn


def even_shares(config: LakeConfig) -> LakeConfig:
    slices = {
        size: piece.model_copy(update={"share": 1.0 if piece.share > 0 else 0.0})
        for size, piece in config.slices.items()
    }
    return config.model_copy(update={"slices": slices})


def _drawn(cases: InstanceSet, size: int) -> dict[str, float]:
    boards = cases[np.flatnonzero(cases.heights == size)]
    if not len(boards):
        return {"share": 0.0}
    agents = boards.num_agents.astype(int)
    board_holes = [int(instance.holes.sum()) for instance in boards]
    distances = [np.abs(one.starts.astype(int) - one.goals).sum(axis=1).mean() for one in boards]
    row = {
        "share": len(boards) / len(cases),
        "hole_ratio": fmean(holes / max(1, size * size - 2 * n) for holes, n in zip(board_holes, agents, strict=True)),
        "distance": fmean(distances),
        "agents": fmean(agents.tolist()),
    }
    if len(known := boards.needs_wait[boards.needs_wait != UNKNOWN]):
        row["wait_ratio"] = float(known.mean())
    if len(known := boards.makespan[boards.makespan != UNKNOWN]):
        row["least_makespan"] = float(known.mean())
    return {name: round(float(value), 3) for name, value in row.items()}


def _knobs(piece: Slice) -> str:
    waits = "" if piece.wait_ratio is None else f", waits {_ratio(piece.wait_ratio)}"
    return f"holes {_ratio(piece.hole_ratio)}{waits}"


def _ratio(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")
