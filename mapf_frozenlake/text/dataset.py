"""Rows of question, answer and metadata, and a score for any answer to them: the convention of reasoning-gym."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mapf_frozenlake.config import LakeConfig
from mapf_frozenlake.errors import LakeError, SolverBudgetExceeded
from mapf_frozenlake.generator import generate
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import judge
from mapf_frozenlake.solvers import solve
from mapf_frozenlake.suite import load_suite
from mapf_frozenlake.text.board import TextStyle, from_text, to_text
from mapf_frozenlake.text.plan import format_plan, parse_plan
from mapf_frozenlake.text.prompts import plan_prompt
from mapf_frozenlake.text.rewards import plan_reward
from mapf_frozenlake.types import Instance

ORACLE_BUDGET = 200_000  # expansions for the row's own answer


def text_dataset(
    config: LakeConfig | InstanceSet | str, n: int | None = None, seed: int = 0, *, style: TextStyle = "paper"
) -> list[dict[str, Any]]:
    """``n`` rows drawn from a config, or the rows of a given set or shipped suite: the same for the same arguments.

    question  rules, board and the form of the answer
    answer    a plan of least makespan, or "" if the solver did not find one in its budget
    metadata  the input of ``score_answer``, and facts about the instance; all in JSON's types
    """
    if isinstance(config, str):
        config = load_suite(config)
    if isinstance(config, InstanceSet):
        instances = config if n is None else config[np.arange(min(n, len(config)))]
        reward = config.config.reward if config.config is not None else "sparse"
    else:
        if n is None:
            raise LakeError("n=None: say how many rows are to be drawn from the config")
        instances, reward = generate(config, n=n, seed=seed), config.reward
    return [_row(instance, index, style, reward) for index, instance in enumerate(instances)]


def score_answer(answer: str | None, entry: Mapping[str, Any]) -> float:
    """The score of an answer to a row of ``text_dataset``, by the row's named reward; 0 for no answer."""
    instance = from_text(entry["metadata"]["text"])
    plan = parse_plan(answer or "", instance.num_agents)
    return plan_reward(entry["metadata"]["reward"], instance, plan, judge(instance, plan))


def _row(instance: Instance, index: int, style: TextStyle, reward: str) -> dict[str, Any]:
    return {
        "question": plan_prompt(instance, style),
        "answer": _oracle(instance),
        "metadata": {
            "source_dataset": "mapf_frozenlake",
            "source_index": index,
            "text": to_text(instance, style),
            "reward": reward,
            "num_agents": instance.num_agents,
            "height": instance.height,
            "width": instance.width,
            "holes": int(np.count_nonzero(instance.holes)),
            "makespan": instance.makespan,
            "needs_wait": instance.needs_wait,
        },
    }


def _oracle(instance: Instance) -> str:
    try:
        plan = solve(instance, budget=ORACLE_BUDGET).plan
    except SolverBudgetExceeded:
        return ""
    return "" if plan is None else format_plan(plan)
