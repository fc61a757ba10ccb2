"""The world's side of GRPO: prompts, and rewards of replies.

``LakePlans``: lakes, with all agents' plans in one reply. ``LakeTurns``: lakes, with a reply for each step. ``EnvTurns``: any
world with a training environment of strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any, Protocol

from envtuning.seeds import derive
from envtuning.trainees.language.rollouts import Judged
from envtuning.worlds.lakes.play import NoPlan, alone, moves_of
from envtuning.worlds.lakes.world import LakeWorld
from envtuning.worlds.text_player import Conversation
from envtuning.worlds.world import ONE_SLICE, InfeasibleConfig
from mapf_frozenlake import GenerationError, LakeConfig, LakeError, from_text, generate, judge
from mapf_frozenlake.envs.text_env import MAPFFrozenLakeTextEnv
from mapf_frozenlake.generator.generate import Exclude, excluded_keys
from mapf_frozenlake.text import TextStyle, turns_prompt
from mapf_frozenlake.text.rewards import plan_reward
from mapf_frozenlake.text.trl import prompt_row
from mapf_frozenlake.types import Instance

Rows = list[dict[str, Any]]


class Turns(Protocol):
    """Conversations that the loop plays itself. ``rows`` begins a stretch of training; the other methods are about these rows."""

    def rows(self, config: Any, n: int, seed: int) -> Rows:
        """``n`` rows: ``prompt``, and in ``metadata`` the ``slice`` and the question, as ``text`` or ``case``. None of the held-out cases is among them."""
        ...

    def begin(self, case: int) -> tuple[Any, int, dict[str, Any] | None]:
        """The environment of a row's case, and the seed and options of its reset."""
        ...

    def judge(self, case: int, talk: Conversation) -> Judged:
        """How a played conversation went."""
        ...


def tasks_of(world: Any, capacity: Mapping[str, Any], exclude: Sequence[Any]) -> LakePlans | Turns:
    """The tasks of a world: lakes have their own texts, other worlds use their text environments."""
    if isinstance(world, LakeWorld):
        made = LakeTurns if world.mode == "turns" else LakePlans
        return made(world.style, exclude)
    return EnvTurns(world, capacity, exclude)


class _Boards:
    """A row for each board, new ones and none held out; the same for the same seed. Its ``metadata`` names the slice that a reply counts for."""

    def __init__(self, style: TextStyle, exclude: Exclude) -> None:
        self.style, self.excluded = style, excluded_keys(exclude)

    def rows(self, config: LakeConfig, n: int, seed: int) -> Rows:
        """Raises ``InfeasibleConfig``."""
        try:
            boards = generate(config, n=n, seed=seed, exclude=self.excluded, num_threads=1)
        except GenerationError as error:
            raise InfeasibleConfig(str(error)) from error
        return [prompt_row(instance, config.reward, self.style) for instance in boards]


class LakePlans(_Boards):
    """One prompt and one reply with all plans: TRL generates it, and the row suffices to judge it."""


class LakeTurns(_Boards):
    """A reply for each step, in ``MAPFFrozenLakeText-v0``, with feedback if the config has it."""

    def __init__(self, style: TextStyle, exclude: Exclude) -> None:
        super().__init__(style, exclude)
        self.config = LakeConfig()
        self.boards: list[Instance] = []

    def rows(self, config: LakeConfig, n: int, seed: int) -> Rows:
        rows = super().rows(config, n, seed)
        self.config, self.boards = config, [from_text(row["metadata"]["text"]) for row in rows]
        for case, (row, board) in enumerate(zip(rows, self.boards, strict=True)):
            question = turns_prompt(board, config.horizon_for(board.height, board.width), self.style)
            row["prompt"] = [{"role": "user", "content": question, "case": case}]
        return rows

    def begin(self, case: int) -> tuple[Any, int, dict[str, Any] | None]:
        board = self.boards[case]
        config = alone(self.config, board)
        return MAPFFrozenLakeTextEnv(mode="turns", style=self.style, config=config), case, {"instance": board}

    def judge(self, case: int, talk: Conversation) -> Judged:
        """As in validation, all moves together are judged as a plan. If a reply cannot be read there is no plan, and the reward is 0."""
        plan = moves_of(talk).outcome
        if isinstance(plan, NoPlan):
            return Judged(0.0, plan.kind, 0.0)
        board = self.boards[case]
        verdict = judge(board, plan)
        paid = plan_reward(self.config.reward, board, plan, verdict)
        return Judged(paid, verdict.failure and str(verdict.failure), verdict.score)


class EnvTurns:
    """Any world with a training environment of strings: case k is the episode after ``reset`` with its seed."""

    def __init__(self, world: Any, capacity: Mapping[str, Any], exclude: Sequence[Any]) -> None:
        self.world, self.capacity, self.exclude = world, capacity, exclude
        self.config: Any = None
        self.seeds: list[int] = []

    def rows(self, config: Any, n: int, seed: int) -> Rows:
        self.config, self.seeds = config, [derive(seed, "case", case) for case in range(n)]
        rows = []
        for case in range(n):
            env, case_seed, options = self.begin(case)
            with closing(env):
                question, info = env.reset(seed=case_seed, options=options)
            if not isinstance(question, str):
                raise LakeError(
                    f"world {self.world.about.name!r} trains on {type(question).__name__} observations, but a language "
                    "model reads strings: choose another trainee, or a world whose make_env gives text environments"
                )
            rows.append(
                {
                    "prompt": [{"role": "user", "content": question, "case": case}],
                    "metadata": {"slice": str(info.get("slice", ONE_SLICE)), "case": question},
                }
            )
        return rows

    def begin(self, case: int) -> tuple[Any, int, dict[str, Any] | None]:
        seed = self.seeds[case]
        return self.world.make_env(self.config, exclude=self.exclude, capacity=self.capacity, seed=seed), seed, None

    def judge(self, case: int, talk: Conversation) -> Judged:
        info = talk.infos[-1] if talk.infos else {}
        success = bool(info.get("success"))
        kind = "truncated" if talk.truncated_reply else str(info.get("failure") or "failed")
        return Judged(sum(talk.rewards), None if success else kind, float(info.get("score", success)))
