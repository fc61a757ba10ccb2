"""Doors for language-model trainers: lakes as a ``datasets.Dataset``, a reward function, an environment with a tool.

TRL's ``GRPOTrainer`` takes all three; ``mapf_frozenlake`` itself needs neither TRL nor datasets to be imported. ::

    lakes = LakePrompts(mfl.LakeConfig.single(3), n=2_000)
    trainer = GRPOTrainer("Qwen/Qwen3-4B", train_dataset=lakes.dataset, reward_funcs=plan_rewards)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import LakeConfig, RewardName
from mapf_frozenlake.config_versions import ConfigFile, ConfigVersions
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.generator.generate import Exclude, check_config, excluded_keys, generate
from mapf_frozenlake.judge import judge
from mapf_frozenlake.text.board import TextStyle, from_text, raise_unless_lettered, to_text
from mapf_frozenlake.text.plan import parse_plan
from mapf_frozenlake.text.prompts import plan_prompt, turns_prompt
from mapf_frozenlake.text.rewards import plan_reward
from mapf_frozenlake.types import Instance, Verdict

if TYPE_CHECKING:
    import datasets

Reply = str | Sequence[Mapping[str, Any]]  # plain, or the messages that TRL makes of a conversational prompt
KEPT = 4_096  # recently parsed boards


def plan_rewards(
    completions: Sequence[Reply],
    metadata: Sequence[Mapping[str, Any]],
    log_metric: Any = None,
    **other_columns: Any,
) -> list[float]:
    """A reward function for TRL: judges each reply's plan and pays the row's named reward.

    Only the model's last message counts, and of it only the text outside its thoughts. A reply that cannot be read pays 0.
    """
    judged = [judged_reply(text_of(reply), row) for reply, row in zip(completions, metadata, strict=True)]
    if log_metric is not None and judged:
        log_metric("valid_rate", sum(verdict.valid for _, verdict in judged) / len(judged))
    return [reward for reward, _ in judged]


def judged_reply(reply: str, row: Mapping[str, Any]) -> tuple[float, Verdict]:
    """The reward of one reply and the judge's verdict; ``row`` has the lake's ``text`` and the ``reward``'s name."""
    instance = _instance(row["text"], row.get("makespan"))
    plan = parse_plan(reply, instance.num_agents)
    verdict = judge(instance, plan)
    return plan_reward(row["reward"], instance, plan, verdict), verdict


def text_of(reply: Reply) -> str:
    """The text of a completion in either of TRL's two forms."""
    if isinstance(reply, str):
        return reply
    return str(reply[-1].get("content") or "") if reply else ""


@lru_cache(maxsize=KEPT)
def _instance(text: str, makespan: int | None) -> Instance:
    """Read a lake's text once, because all replies of a group are about the same lake."""
    return replace(from_text(text), makespan=makespan)


def prompt_row(instance: Instance, reward: RewardName, style: TextStyle = "paper") -> dict[str, Any]:
    """One row for TRL: a conversational ``prompt``, and ``metadata`` for the reward, with the slice of the config."""
    metadata = {
        "text": to_text(instance, style), "reward": reward, "makespan": instance.makespan, "slice": str(instance.height),
    }  # fmt: skip
    return {"prompt": [{"role": "user", "content": plan_prompt(instance, style)}], "metadata": metadata}


def to_dataset(rows: Iterable[Mapping[str, Any]]) -> datasets.Dataset:
    """Rows of ``text_dataset`` as TRL takes them: a conversational ``prompt``, ``answer`` and ``metadata``."""
    found = [
        {
            "prompt": [{"role": "user", "content": row["question"]}],
            "answer": row["answer"],
            "metadata": dict(row["metadata"]),
        }
        for row in rows
    ]
    return _datasets().Dataset.from_list(found)


class LakePrompts:
    """``n`` prompts that are drawn on access, so that the config may change under a running trainer.

    ``dataset`` is a ``datasets.Dataset`` of n rows; row k is board k of (config in force, seed). A change takes effect at
    the next batch that the trainer fetches (one may be fetched ahead), with ``dataloader_num_workers=0``, TRL's default.

    A trainer that reads its prompts in another process has a copy of this object. With ``source``, a file, the copies follow:
    ``set_config`` writes the config to the file as the next version, and every batch is drawn by the file's version. A
    ``config`` given here is put in force; without one, the file's config is used.

    A row's metadata have the ``version`` of its draw; ``rewards`` counts replies to rows that are ``late``.
    """

    def __init__(
        self,
        config: LakeConfig | None = None,
        n: int = 100_000,
        seed: int = 0,
        *,
        style: TextStyle = "paper",
        exclude: Exclude = None,
        source: str | Path | None = None,
    ) -> None:
        if n < 1:
            raise LakeError(f"n={n}: give at least 1 prompt")
        if config is None and source is None:
            raise LakeError("config=None: give a config to start with, or a source that has one")
        self.source = None if source is None else Path(source)
        self.seed, self.style = seed, style
        self._versions: ConfigVersions = ConfigVersions() if source is None else ConfigFile(source)
        if config is not None:
            self.set_config(config)
        self.get_config()  # a source without a config is refused here, and not later in the trainer
        self._excluded = excluded_keys(exclude)
        self.dataset = _datasets().Dataset.from_dict({"board": list(range(n))})
        self.dataset.set_transform(self._rows)

    def set_config(self, config: LakeConfig) -> None:
        """Use this config from now on."""
        self._versions.put(config)

    def raise_unless_fits(self, config: LakeConfig) -> None:
        """Raises ``LakeError`` for a config whose boards cannot be drawn, or not written in this style."""
        raise_unless_lettered(config.max_agents, self.style)
        check_config(config, exclude=self._excluded)

    def get_config(self) -> LakeConfig:
        return self._versions.in_force()[1]

    @property
    def version(self) -> int:
        """The version of the current config: 1 for the first, one more after each change."""
        return self._versions.in_force()[0]

    @property
    def late(self) -> int:
        """The number of replies, in all processes, that ``rewards`` judged after their row's version was replaced."""
        return self._versions.late()

    def rewards(
        self,
        completions: Sequence[Reply],
        metadata: Sequence[Mapping[str, Any]],
        log_metric: Any = None,
        **other_columns: Any,
    ) -> list[float]:
        """``plan_rewards``, and counts the replies to late rows."""
        version = self.version
        late = sum(row["version"] < version for row in metadata)
        self._versions.count_late(late)
        if log_metric is not None and metadata:
            log_metric("late_rate", late / len(metadata))
        return plan_rewards(completions, metadata, log_metric, **other_columns)

    def _rows(self, batch: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        version, config = self._versions.in_force()
        rows = [self._row(config, board) for board in batch["board"]]
        return {
            "prompt": [row["prompt"] for row in rows],
            "metadata": [row["metadata"] | {"version": version} for row in rows],
        }

    @lru_cache(maxsize=KEPT)  # noqa: B019  a trainer has one of these, and it lives as long as the trainer
    def _row(self, config: LakeConfig, board: int) -> dict[str, Any]:
        [instance] = generate(config, n=1, seed=self.seed, first=board, exclude=self._excluded, num_threads=1)
        return prompt_row(instance, config.reward, self.style)


class LakeTurns:
    """One lake, step by step, for TRL's ``environment_factory``: the model moves all agents by calling ``move``.

    A row needs the ``metadata`` of ``prompt_row``. Its prompt may be any, because ``reset`` returns the lake's text. As in
    ``envtuning run``, the moves of the whole walk are judged as a plan and paid by the row's named reward; a walk with moves that
    cannot be read, or without any move, pays 0. TRL makes a tool of every public method, ``reset`` and ``get_reward`` apart.
    """

    def __init__(self) -> None:
        self._env: gym.Env[str, str] | None = None
        self._instance: Instance | None = None
        self._reward = ""
        self._walk: list[NDArray[np.int64]] = []  # a move for every agent
        self._unread = False  # whether moves could not be read
        self._over = True

    def reset(self, metadata: Mapping[str, Any], **other_columns: Any) -> str:
        """Begin on the lake of this row; returns what TRL writes right behind the prompt's last words."""
        instance = _instance(metadata["text"], metadata.get("makespan"))
        side = max(instance.height, instance.width)
        config = LakeConfig.single(
            side, instance.num_agents, reward=metadata["reward"], feedback=metadata.get("feedback", True)
        )
        env = gym.make("MAPFFrozenLakeText-v0", mode="turns", config=config, max_size=side).unwrapped
        env.reset(options={"instance": instance})
        self._env, self._instance, self._reward = env, instance, metadata["reward"]
        self._walk, self._unread, self._over = [], False, False
        return "\n\n" + turns_prompt(instance, config.horizon_for(instance.height, instance.width))

    def move(self, moves: str) -> str:
        """
        Move every agent by one step.

        Args:
            moves: One line for each agent, as in "Agent 0: RIGHT"; LEFT, DOWN, RIGHT, UP or WAIT.

        Returns:
            Where everybody is now, and what went wrong.
        """
        if self._env is None or self._over:
            return "The episode is over: nothing moves any more."
        said_back, _, terminated, truncated, info = self._env.step(moves)
        if info["parse_error"] is None:
            self._walk.append(info["actions"])
        else:
            self._unread = True
        self._over = terminated or truncated
        if self._over:
            said_back += "\nAll agents are on their goals." if info["success"] else "\nThe episode is over."
        return said_back

    def get_reward(self) -> float:
        """The reward of the walk so far."""
        # Without a move there is no plan to judge: an empty one breaks no rule, so ``legal`` would pay a model that never moves.
        if self._instance is None or self._unread or not self._walk:
            return 0.0
        plan = [[int(moves[agent]) for moves in self._walk] for agent in range(self._instance.num_agents)]
        return plan_reward(self._reward, self._instance, plan, judge(self._instance, plan))


def turn_rewards(environments: Sequence[Any], **other_columns: Any) -> list[float | None]:
    """A reward function for TRL: each ``LakeTurns``' own reward, for ``TRLCurriculumCallback.rewards`` to count.

    TRL itself pays ``get_reward``, so give ``GRPOConfig(reward_weights=[0.0])``: this one is counted, and not paid again.
    """
    return [one.get_reward() if isinstance(one, LakeTurns) else None for one in environments]


def _datasets() -> Any:
    try:
        import datasets
    except ImportError as error:
        raise ImportError(
            'datasets is not installed: pip install "mapf-frozenlake[grpo]", or in a checkout pip install -e ".[grpo]"',
            name=error.name,
        ) from None
    return datasets
