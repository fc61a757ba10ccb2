"""Plays a policy of any form on boards: it is asked in batches, and its actions become a plan for the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from envtuning.worlds.lakes.episodes import LakeEpisode, failed, judged
from envtuning.worlds.text_player import Conversation, Reply, ask, converse
from mapf_frozenlake import LakeConfig, LakeError
from mapf_frozenlake.envs.text_env import MAPFFrozenLakeTextEnv
from mapf_frozenlake.evaluation.forms import NeuralPolicy, form_of, neural_answers, solver_answers
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.text import ParseError, TextStyle, parse_plan, plan_prompt
from mapf_frozenlake.types import Instance, Plan

Mode = Literal["plan", "turns"]


class NoPlan(NamedTuple):
    """The kind of a failure without a plan, and the reason."""

    kind: str
    why: str


@dataclass(frozen=True)
class Found:
    """A policy's result on a board."""

    outcome: Plan | ParseError | NoPlan  # a plan, or a reply that could not be read, or another failure
    cost: Mapping[str, int] = field(default_factory=dict)
    reply: str = ""  # of a language model


def play_lakes(
    policy: Any, boards: InstanceSet, config: LakeConfig, *, seed: int, mode: Mode, style: TextStyle
) -> list[LakeEpisode]:
    """One episode per board, in order."""
    return [
        _episode(case, boards[case], found, config)
        for case, found in enumerate(_asked(policy, boards, config, seed, mode, style))
    ]


def _episode(case: int, instance: Instance, found: Found, config: LakeConfig) -> LakeEpisode:
    if isinstance(found.outcome, NoPlan):
        return failed(case, instance, *found.outcome, found.cost, found.reply)
    return judged(
        case,
        instance,
        found.outcome,
        horizon=config.horizon_for(instance.height, instance.width),
        slippery=config.is_slippery,
        cost=found.cost,
        reply=found.reply,
    )


def _asked(
    policy: Any, boards: InstanceSet, config: LakeConfig, seed: int, mode: Mode, style: TextStyle
) -> Iterator[Found]:
    if isinstance(policy, NeuralPolicy):
        return iter(_acted(policy, boards, range(len(boards)), config, seed))
    if hasattr(policy, "reply") or _is_function_of_text(policy):
        replies = _turns if mode == "turns" else _plans_in_words
        return iter(replies(policy, boards, config, seed, style))
    return (_plan_of(policy, boards, case) for case in range(len(boards)))


def _is_function_of_text(policy: Any) -> bool:
    try:
        return form_of(policy) == "text"
    except LakeError:
        return False  # without an annotation it takes an instance


def _acted(
    policy: NeuralPolicy, boards: InstanceSet, cases: Sequence[int], config: LakeConfig, seed: int
) -> list[Found]:
    """All boards at once. If the policy raises, they are played one by one, so that only a bad board fails."""
    try:
        answers = dict(neural_answers(policy, boards, cases, config, seed))
        return [Found(answers[case]) for case in cases]
    except Exception as error:
        if len(cases) == 1:
            return [Found(NoPlan("policy_error", f"{type(error).__name__}: {error}"))]
    return [found for case in cases for found in _acted(policy, boards, [case], config, seed)]


def _plan_of(solver: Callable[[Instance], Any], boards: InstanceSet, case: int) -> Found:
    try:
        plan = next(solver_answers(solver, boards, [case], 1))[1]
    except Exception as error:  # any error of a third party's policy fails this board only
        return Found(NoPlan("policy_error", f"{type(error).__name__}: {error}"))
    return Found(plan if plan is not None else [[] for _ in range(boards[case].num_agents)])


def _plans_in_words(policy: Any, boards: InstanceSet, config: LakeConfig, seed: int, style: TextStyle) -> list[Found]:
    """All boards at once: one question each, and one reply with the whole plan."""
    questions = [[{"role": "user", "content": plan_prompt(board, style)}] for board in boards]
    return [_read(reply, board) for reply, board in zip(ask(policy, questions, seed=seed), boards, strict=True)]


def _read(reply: Reply, board: Instance) -> Found:
    cost = {"samples": 1, "tokens": reply.tokens}
    if reply.error is not None:
        return Found(NoPlan("policy_error", reply.error), cost)
    plan = parse_plan(reply.text, board.num_agents)
    if reply.truncated and isinstance(plan, ParseError):
        return Found(NoPlan("truncated", str(plan)), cost, reply.text)
    return Found(plan, cost, reply.text)


def _turns(policy: Any, boards: InstanceSet, config: LakeConfig, seed: int, style: TextStyle) -> list[Found]:
    """All boards in step; each reply has a move for every agent. After a reply that cannot be read, all agents wait."""
    envs = [MAPFFrozenLakeTextEnv(mode="turns", style=style, config=alone(config, board)) for board in boards]
    begun = [{"instance": board} for board in boards]
    talks = converse(envs, policy, seeds=[seed + case for case in range(len(envs))], options=begun)
    return [moves_of(talk) for talk in talks]


def alone(config: LakeConfig, board: Instance) -> LakeConfig:
    """The config's rules with room for this board."""
    shape = {"slices": {max(board.height, board.width): {}}, "num_agents": board.num_agents}
    return LakeConfig.model_validate(config.model_dump() | shape)


def moves_of(talk: Conversation) -> Found:
    """The moves of every agent in a conversation, or how it failed."""
    cost = {"samples": 1, "tokens": talk.tokens}
    said = "\n".join(reply.text for reply in talk.replies)
    if talk.error is not None:
        return Found(NoPlan("policy_error", talk.error), cost, said)
    unread = next((info["parse_error"] for info in talk.infos if info.get("parse_error")), None)
    if unread is not None:
        return Found(NoPlan("truncated" if talk.truncated_reply else "parse_error", unread), cost, said)
    return Found(np.array([info["actions"] for info in talk.infos]).T.tolist(), cost, said)
