"""``evaluate``: ask a policy for every instance of a suite, judge its answers, make the table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext
from typing import Any, overload

from mapf_frozenlake.config import RULES, LakeConfig
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.evaluation.forms import (
    Answer,
    Form,
    NeuralPolicy,
    Prompt,
    checked_form,
    neural_answers,
    solver_answers,
    text_answers,
)
from mapf_frozenlake.evaluation.measure import Planner, ask_once, measure
from mapf_frozenlake.evaluation.path_table import PathTable
from mapf_frozenlake.evaluation.protocol import PathProtocol
from mapf_frozenlake.evaluation.record import record_of
from mapf_frozenlake.evaluation.reply_file import ReplyFile
from mapf_frozenlake.evaluation.table import EvaluationTable
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.suite import load_suite
from mapf_frozenlake.text import plan_prompt
from mapf_frozenlake.types import Instance

Progress = Callable[[int, int], None]


@overload
def evaluate(
    policy: Any,
    suite: PathProtocol,
    *,
    form: Form | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> PathTable: ...


@overload
def evaluate(
    policy: Any,
    suite: InstanceSet | Iterable[Instance] | str,
    *,
    form: Form | None = None,
    name: str | None = None,
    prompt: Prompt = plan_prompt,
    batch_size: int | None = None,
    max_workers: int = 1,
    config: LakeConfig | None = None,
    resume: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> EvaluationTable: ...


def evaluate(
    policy: Any,
    suite: PathProtocol | InstanceSet | Iterable[Instance] | str,
    *,
    form: Form | None = None,
    name: str | None = None,
    prompt: Prompt = plan_prompt,
    batch_size: int | None = None,
    max_workers: int = 1,
    config: LakeConfig | None = None,
    resume: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> EvaluationTable | PathTable:
    """Evaluate a policy on a suite: ask it once for each instance, and judge every answer by the same judge.

    On a ``PathProtocol`` (see ``PROTOCOLS``), every episode is played, and the table has the measures of papers on path finding. The
    policy may also be a planner there, an object with ``act_on(batch)``. Only ``form``, ``name`` and ``progress`` can be given there. The
    policy is asked once more, at the start, so that no time counts what it compiles.

    policy       a solver (Instance to Solution or plan), a text policy (string to string), or a neural policy (an object
                 with ``act(observation)`` and ``env_kwargs``, stepped through ``LakeBatch``); give ``form`` if
                 the policy itself does not show which of these it is
    suite        an InstanceSet, instances, or the name of a shipped suite
    prompt       makes a text policy's prompt from an instance
    batch_size   prompts for each call of a text policy, which then returns a list of replies
    max_workers  number of threads that ask a solver or text policy
    config       the rules of a neural policy's episodes (horizon, hints), with ``on_goal="wait"``; its sizes and agents do not matter
    resume       a file that keeps the answers: these are not asked again; with a neural policy give a ``name``, too
    settings     other settings that affect the answers, as JSON: a ``resume`` file that was begun with others is refused
    progress     called with (number of answers, number of instances) after each answer, and at the start if some were kept

    An exception of the policy ends the evaluation; with ``resume``, the answers so far are kept.
    """
    if isinstance(suite, PathProtocol):
        given = {
            "prompt": prompt is not plan_prompt,
            "batch_size": batch_size is not None,
            "max_workers": max_workers != 1,
            "config": config is not None,
            "resume": resume is not None,
            "settings": settings is not None,
        }
        for argument in (one for one, is_given in given.items() if is_given):
            raise LakeError(
                f"{argument}= does not work with a protocol: leave it out. The rules are fields of the protocol, such as collisions"
            )
        return _on_protocol(policy, suite, form, name, progress)
    suite = _instances(suite)
    if len(suite) == 0:
        raise LakeError("the suite is empty: give at least one instance")
    form = checked_form(policy, form)
    if max_workers < 1 or (batch_size is not None and batch_size < 1):
        raise LakeError(f"max_workers={max_workers}, batch_size={batch_size}: give at least 1")
    if form == "neural":
        if config is not None and config.on_goal != "wait":
            raise LakeError(
                f"on_goal={config.on_goal!r} in config: the plans on a suite are judged by on_goal='wait'; leave it out, or evaluate on a "
                "PathProtocol with this on_goal"
            )
        if resume is not None and name is None:
            raise LakeError(
                "resume= with a network needs name=, for instance its checkpoint's: without it, another network's answers would be reused"
            )
        rules = LakeConfig() if config is None else config
        settings = {f"config.{rule}": getattr(rules, rule) for rule in RULES} | dict(settings or {})
    name = name if name is not None else _name_of(policy)
    first_prompt = prompt(suite[0]) if form == "text" else None
    kept = ReplyFile(resume, suite, form, name, first_prompt, settings) if resume is not None else None
    answers: dict[int, Answer] = dict(kept.answers) if kept is not None else {}
    missing = [index for index in range(len(suite)) if index not in answers]
    if progress is not None and answers:
        progress(len(answers), len(suite))
    with nullcontext() if kept is None else closing(kept):
        for index, answer in _ask(policy, form, suite, missing, prompt, batch_size, max_workers, config):
            answers[index] = answer
            if kept is not None:
                kept.add(index, answer)
            if progress is not None:
                progress(len(answers), len(suite))
    return EvaluationTable(name, tuple(record_of(suite, index, answers[index]) for index in range(len(suite))))


def _on_protocol(
    policy: Any, protocol: PathProtocol, form: Form | None, name: str | None, progress: Progress | None
) -> PathTable:
    # A policy that is both is played as a network, as on a suite.
    is_planner = form is None and isinstance(policy, Planner) and not isinstance(policy, NeuralPolicy)
    played = "planner" if is_planner else checked_form(policy, form)
    if played == "text":
        raise LakeError(
            "a protocol is played step by step: give a planner, a network, or a solver from Instance to plan"
        )
    if played == "solver" and protocol.on_goal == "next":
        raise LakeError(
            f"{protocol.name} gives new goals, which a plan made at the start cannot know: give a planner or a network"
        )
    cells = [(map_name, agents) for map_name in protocol.maps for agents in protocol.agents]
    episodes = []
    for done, (map_name, agents) in enumerate(cells, start=1):
        config, boards = protocol.config(map_name, agents), protocol.boards(map_name, agents)
        if len(boards) == 0:
            raise LakeError(
                f"{protocol.name} has no boards of map {map_name!r} with {agents} agents: give at least one"
            )
        if done == 1:
            ask_once(policy, played, boards, config)
        episodes += measure(policy, played, boards, config, map_name)
        if progress is not None:
            progress(done, len(cells))
    return PathTable(name if name is not None else _name_of(policy), protocol.name, tuple(episodes))


def _ask(
    policy: Any,
    form: Form,
    suite: InstanceSet,
    missing: list[int],
    prompt: Prompt,
    batch_size: int | None,
    max_workers: int,
    config: LakeConfig | None,
) -> Iterator[tuple[int, Answer]]:
    if form == "neural":
        return neural_answers(policy, suite, missing, config)
    if form == "text":
        return text_answers(policy, suite, missing, prompt, batch_size, max_workers)
    return solver_answers(policy, suite, missing, max_workers)


def _instances(suite: InstanceSet | Iterable[Instance] | str) -> InstanceSet:
    if isinstance(suite, str):
        return load_suite(suite)
    if not isinstance(suite, Iterable):
        raise LakeError(
            f"the suite is of type {type(suite).__name__}: give evaluate(policy, suite), the suite as instances, as its name or as a "
            "protocol"
        )
    return suite if isinstance(suite, InstanceSet) else InstanceSet.from_instances(suite)


def _name_of(policy: Any) -> str:
    return str(getattr(policy, "name", None) or getattr(policy, "__name__", None) or type(policy).__name__)
