"""The forms of a policy (solver, text, neural) and the calls of each. In every form, an answer is JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.config import RULES, LakeConfig
from mapf_frozenlake.errors import LakeError, SolverBudgetExceeded
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.judge import actions_by_step
from mapf_frozenlake.types import Action, Event, Instance, Plan, Solution
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.move import after_slip

Form = Literal["solver", "text", "neural"]
Answer = str | list[list[int]] | None  # a reply; or a plan; or None without a plan
Prompt = Callable[[Instance], str]
Solver = Callable[[Instance], Solution | Plan | None]
NEURAL_BATCH = 1024  # boards at once


@runtime_checkable
class NeuralPolicy(Protocol):
    """Acts on ``LakeBatch`` observations, all boards at once."""

    # Arguments of the LakeBatch whose observations it understands: observation, max_size, window, …
    env_kwargs: dict[str, Any]

    def act(self, observation: NDArray) -> NDArray[np.int64]:
        """[n, A, …] -> int64[n, A]: one action for each board and agent slot."""
        ...


def form_of(policy: Any) -> Form:
    """The form, by ``act`` and ``env_kwargs``, or by the annotation of a callable's first argument."""
    if isinstance(policy, NeuralPolicy):
        return "neural"
    if callable(policy):
        parameters = list(inspect.signature(policy).parameters.values())
        wants = str(getattr(parameters[0].annotation, "__name__", parameters[0].annotation)) if parameters else ""
        if wants.rpartition(".")[2] == "Instance":
            return "solver"
        if wants in ("str", "list[str]", "Sequence[str]", "list", "Sequence"):
            return "text"
    raise LakeError(
        f"cannot tell which form of policy {policy!r} is: pass form='solver' (an Instance to a plan), form='text' (a string "
        "to a string) or form='neural' (an object with act and env_kwargs; sb3_policy makes one of a Stable-Baselines3 model)"
    )


def checked_form(policy: Any, form: Form | None) -> Form:
    if form is None:
        return form_of(policy)
    if form not in get_args(Form):
        raise LakeError(f"form={form!r}: give one of {', '.join(map(repr, get_args(Form)))}")
    if form == "neural" and not isinstance(policy, NeuralPolicy):
        raise LakeError(f"form='neural' needs an object with act(observation) and env_kwargs, not {policy!r}")
    return form


def solver_answers(
    solver: Solver, suite: InstanceSet, wanted: Sequence[int], max_workers: int
) -> Iterator[tuple[int, list[list[int]] | None]]:
    """Plans of a callable from an instance to a plan or solution, in the order in which they arrive."""

    def ask(index: int) -> list[list[int]] | None:
        instance = suite[index]
        plan = plan_by(solver, instance)
        if plan is None:
            return None
        columns = actions_by_step(plan, instance.num_agents).T  # refuses a result that is not a plan
        return [column[: len(moves)].tolist() for column, moves in zip(columns, plan)]

    return _concurrently(ask, wanted, max_workers)


def plan_by(solver: Solver, instance: Instance) -> Plan | None:
    """The plan of a solver; None if it finds none or spends its budget."""
    try:
        found = solver(instance)
    except SolverBudgetExceeded:
        return None
    return found.plan if isinstance(found, Solution) else found


def text_answers(
    policy: Callable[[Any], Any],
    suite: InstanceSet,
    wanted: Sequence[int],
    prompt: Prompt,
    batch_size: int | None,
    max_workers: int,
) -> Iterator[tuple[int, Answer]]:
    """Replies of a callable from a prompt to a reply; with ``batch_size``, from a list of prompts to a list of replies."""
    if batch_size is None:
        yield from _concurrently(lambda index: _reply(policy(prompt(suite[index]))), wanted, max_workers)
        return
    batches = [wanted[begin : begin + batch_size] for begin in range(0, len(wanted), batch_size)]

    def ask(batch: Sequence[int]) -> list[Answer]:
        replies = list(policy([prompt(suite[index]) for index in batch]))
        if len(replies) != len(batch):
            raise LakeError(
                f"the policy gave {len(replies)} replies to {len(batch)} prompts: it must give one for each"
            )
        return [_reply(reply) for reply in replies]

    for batch, replies in _concurrently(ask, batches, max_workers):
        yield from zip(batch, replies)


def neural_answers(
    policy: NeuralPolicy, suite: InstanceSet, wanted: Sequence[int], config: LakeConfig | None, seed: int = 0
) -> Iterator[tuple[int, list[list[int]]]]:
    """The moves that a network makes on each board, until its episode ends by success, a fall or the horizon.

    On slippery ice, these are the moves after slips, and under POGEMA's rules what each agent really did, so that they can be judged like a plan; board ``index`` slips by
    ``seed + index``.
    """
    for begin in range(0, len(wanted), NEURAL_BATCH):
        chunk = np.asarray(wanted[begin : begin + NEURAL_BATCH])
        yield from zip(chunk.tolist(), _moves_made(policy, suite[chunk], config, seed + chunk))


def batch_of(
    boards: InstanceSet, rules: LakeConfig, env_kwargs: Mapping[str, Any], seeds: NDArray[np.int64]
) -> LakeBatch:
    """An env for each of these boards, with the observations of ``env_kwargs``; the caller resets it to the boards."""
    shapes = {"max_size": max(boards.holes.shape[1:]), "max_agents": boards.starts.shape[1]} | dict(env_kwargs)
    batch = LakeBatch(rules, len(boards), **shapes | {"autoreset": "disabled"})
    batch.seed(seeds)
    return batch


def _moves_made(
    policy: NeuralPolicy, boards: InstanceSet, config: LakeConfig | None, seeds: NDArray[np.int64]
) -> list[list[list[int]]]:
    rules = LakeConfig.single(max(boards.holes.shape[1:]), num_agents=1)
    if config is not None:  # without its boards
        rules = rules.model_copy(update={name: getattr(config, name) for name in RULES})
    batch = batch_of(boards, rules, policy.env_kwargs, seeds)
    as_pogema = rules.collisions not in ("block", "end")
    observation = batch.reset(instances=boards)
    made: list[NDArray[np.int64]] = []  # per step, [n, A]
    lengths = np.zeros(len(boards), np.int64)  # of each episode; 0 while it continues
    while True:
        actions = np.array(policy.act(observation), dtype=np.int64)
        episode = batch.episode
        made.append(after_slip(actions, batch.positions, episode["key"], episode["step"] + 1, episode["ahead"]))
        result = batch.step(actions)
        if as_pogema:  # the judge knows the lake's own rules: it is given what each agent really did
            made[-1] = np.where(result.events == Event.NONE, actions, Action.WAIT)
        over = result.terminated | result.truncated
        lengths[over & (lengths == 0)] = len(made)
        if lengths.all():
            break
        observation = result.observation
        if over.any():  # their results stay; the batch requires a reset before the next step
            observation = batch.reset(over, instances=boards[np.flatnonzero(over)])
    moves = np.stack(made)  # [steps, n, A]
    return [moves[: lengths[row], row, : boards.num_agents[row]].T.tolist() for row in range(len(boards))]


def _reply(reply: Any) -> str:
    if reply is None:  # an empty answer of a model
        return ""
    if not isinstance(reply, str):
        raise LakeError(f"a text policy replied with {type(reply).__name__}: return a string, or give another form=")
    return reply


def _concurrently(ask: Callable[[Any], Any], wanted: Sequence[Any], max_workers: int) -> Iterator[tuple[Any, Any]]:
    """(question, answer) in the order in which answers arrive. An exception stops further questions. It is raised after the pending
    answers have arrived, because they may have been paid for."""
    if max_workers == 1:
        for question in wanted:
            yield question, ask(question)
        return
    questions, failed = iter(wanted), None
    with ThreadPoolExecutor(max_workers) as pool:
        running: dict[Future, Any] = {
            pool.submit(ask, question): question for question in islice(questions, max_workers)
        }
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                question, error = running.pop(future), future.exception()
                if error is not None:
                    failed = failed or error
                    continue
                yield question, future.result()
                for following in islice(questions, 1 if failed is None else 0):
                    running[pool.submit(ask, following)] = following
    if failed is not None:
        raise failed
