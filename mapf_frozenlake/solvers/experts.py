"""Experts for many agents: each agent's shortest path alone, and fast plans that may be long.

``pibt`` is priority inheritance with backtracking, step by step. A lazy depth-first search over configurations (LaCAM)
makes it complete: if a step leads to no new configuration, constraints on single agents force another step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.errors import SolverBudgetExceeded
from mapf_frozenlake.solvers.bits import entry, kernel, search_step
from mapf_frozenlake.solvers.board import UNREACHABLE, make_problem
from mapf_frozenlake.solvers.joint import FOUND, NONE, OUT_OF_BUDGET
from mapf_frozenlake.solvers.rows import find_row, larger_table, taller
from mapf_frozenlake.types import Action, Instance, Solution

DEFAULT_STEPS = 200_000  # joint steps tried
MOST_OPTIONS = 5  # of one agent in one step


def distance_fields(instance: Instance) -> NDArray[np.int16]:
    """int16[num_agents, height, width]: moves from each cell to each agent's goal around the holes, -1 without a path."""
    fields = _fields(instance.holes, instance.starts, instance.goals)
    height, width = instance.holes.shape
    fields = fields.reshape(-1, height, width + 1)[:, :, :width]
    return np.where(fields == UNREACHABLE, np.int16(-1), fields)


@entry
def _fields(holes, starts, goals):
    return make_problem(holes, holes.shape[0], holes.shape[1], starts, goals, len(starts)).distance


def pibt(instance: Instance, seed: int = 0, budget: int = DEFAULT_STEPS) -> Solution:
    """A valid plan for many agents, found fast but not of least makespan, or a proof that no plan exists; complete.

    Equal seeds give equal plans. Raises ``SolverBudgetExceeded`` if ``budget`` joint steps give neither plan nor proof.
    """
    status, paths, tried = lazy_search(instance.holes, instance.starts, instance.goals, seed, budget)
    if status == OUT_OF_BUDGET:
        raise SolverBudgetExceeded(
            f"budget={budget} joint steps were spent on {instance.num_agents} agents on a "
            f"{instance.height}×{instance.width} lake without a plan or a proof that there is none: raise it, or another seed"
        )
    if status == NONE:
        return Solution(feasible=False, expansions=tried)
    plan = _actions_of(paths, instance.width + 1)
    costs = [len(actions) for actions in plan]
    return Solution(True, plan, max(costs), sum(costs), tried)


@kernel
def _random(state):
    """The next of a sequence of 64-bit numbers (xorshift); ``state[0]`` is never 0."""
    x = state[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    state[0] = x
    return x


@kernel
def _give_way(problem, agent, now, then, here, there, random):
    """PIBT: the agent takes the best cell that it can and pushes the agent that stands there; False if it has to stay.

    ``now`` and ``then`` are cells per agent (-1: not chosen yet); ``here`` and ``there`` are agents per cell (-1: free).
    """
    board, distance = problem.board, problem.distance[agent]
    start = now[agent]
    options = np.empty(5, np.int64)
    rank = np.empty(5, np.int64)
    count = board.degree[start] + 1
    for k in range(count):
        cell = np.int64(board.neighbors[start, k]) if k + 1 < count else start
        crowded = 1 if here[cell] >= 0 and here[cell] != agent else 0
        own = (np.int64(distance[cell]) * 2 + crowded) * 1024 + np.int64(_random(random) & np.uint64(1023))
        place = k
        while place > 0 and rank[place - 1] > own:
            rank[place], options[place] = rank[place - 1], options[place - 1]
            place -= 1
        rank[place], options[place] = own, cell
    for k in range(count):
        cell = options[k]
        if there[cell] >= 0:
            continue
        other = here[cell]
        if other >= 0 and then[other] == start:
            continue  # that would be a swap
        then[agent] = cell
        there[cell] = agent
        if other < 0 or other == agent or then[other] >= 0:
            return True
        if _give_way(problem, other, now, then, here, there, random):
            return True
    then[agent] = start
    there[start] = agent
    return False


@kernel
def _next_step(problem, now, order, constraint, tree, then, here, there, random):
    """A joint step from ``now`` that obeys a chain of constraints (an agent and its fixed cell); False if PIBT finds no step."""
    agents = len(now)
    for agent in range(agents):
        then[agent] = -1
        here[now[agent]] = agent
    fits = True
    while tree[constraint, 2] > 0 and fits:
        agent, cell = order[tree[constraint, 2] - 1], tree[constraint, 1]
        other = here[cell]
        fits = there[cell] < 0 and not (other >= 0 and other != agent and then[other] == now[agent])
        if fits:
            then[agent] = cell
            there[cell] = agent
        constraint = tree[constraint, 0]
    for agent in order:
        if not fits:
            break
        if then[agent] < 0:
            fits = _give_way(problem, agent, now, then, here, there, random)
    for agent in range(agents):
        here[now[agent]] = -1
        if then[agent] >= 0:
            there[then[agent]] = -1
        there[now[agent]] = -1
    return fits


@kernel
def _order_agents(problem, configuration, urgency, order):
    """The most urgent first: steps since the agent last stood on its goal, then the distance it had at first."""
    agents = len(configuration)
    for agent in range(agents):
        own = urgency[agent] * 8192 + np.int64(problem.distance[agent, problem.starts[agent]])
        place = agent
        while place > 0:
            before = order[place - 1]
            if urgency[before] * 8192 + np.int64(problem.distance[before, problem.starts[before]]) >= own:
                break
            order[place] = before
            place -= 1
        order[place] = agent


@entry
def pibt_step(holes, positions, goals, urgency, random):
    """One joint step of PIBT without search: int64[agents], the cells to go to, as row · (width + 1) + col.

    ``urgency`` int64[agents]: steps since each agent last stood on its goal. ``random`` uint64[1] is not 0, and is moved on.
    """
    agents = len(positions)
    problem = make_problem(holes, holes.shape[0], holes.shape[1], positions, goals, agents)
    cells = len(problem.board.degree)
    here, there, then = np.full(cells, -1), np.full(cells, -1), np.full(agents, -1)
    now, order = problem.starts.astype(np.int64), np.empty(agents, np.int64)
    _order_agents(problem, now, urgency, order)
    for agent in range(agents):
        here[now[agent]] = agent
    for one in order:
        if then[one] < 0:
            _give_way(problem, one, now, then, here, there, random)
    return then


class Search(NamedTuple):
    """The configurations seen so far, one row each, and the constraints on the step after each."""

    configurations: np.ndarray  # int64[met, agents]: cells
    orders: np.ndarray  # int64[met, agents]: order in which agents choose
    urgencies: np.ndarray  # int64[met, agents]
    links: np.ndarray  # int64[met, 3]: parent, first and last open constraint (-1: no constraint)
    tree: np.ndarray  # int64[constraints, 4]: parent, cell, depth, next open one
    table: np.ndarray  # int64[slots]: hash table of configurations
    stack: np.ndarray  # int64[depth, 1]


@kernel
def _new_search(agents):
    table = np.empty(1024, np.int64)
    table[:] = -1
    return Search(
        np.empty((256, agents), np.int64),
        np.empty((256, agents), np.int64),
        np.zeros((256, agents), np.int64),
        np.empty((256, 3), np.int64),
        np.empty((1024, 4), np.int64),
        table,
        np.empty((1024, 1), np.int64),
    )


@search_step
def _has_room(search, met, constraints, depth):
    """Whether there is room for one more configuration and its constraints."""
    return (
        met < len(search.configurations)
        and constraints + MOST_OPTIONS < len(search.tree)
        and depth < len(search.stack)
        and 2 * met <= len(search.table)
    )


@kernel
def _with_room(search, met, constraints, depth):
    """The same search with larger arrays instead of full ones."""
    configurations, orders, urgencies, links, tree, table, stack = search
    if met == len(configurations):
        configurations, orders = taller(configurations, 0), taller(orders, 0)
        urgencies, links = taller(urgencies, 0), taller(links, -1)
    if constraints + MOST_OPTIONS >= len(tree):
        tree = taller(tree, -1)
    if depth == len(stack):
        stack = taller(stack, -1)
    if 2 * met > len(table):
        table = larger_table(table, configurations, met)
    return Search(configurations, orders, urgencies, links, tree, table, stack)


@search_step
def _meet(problem, search, met, slot, constraints, then, parent):
    """Add a new configuration, with no constraint on the step after it yet."""
    for agent in range(len(then)):
        search.configurations[met, agent] = then[agent]
        waits = parent >= 0 and then[agent] != problem.goals[agent]
        search.urgencies[met, agent] = search.urgencies[parent, agent] + 1 if waits else 0
    _order_agents(problem, then, search.urgencies[met], search.orders[met])
    tree, links = search.tree, search.links
    tree[constraints, 0], tree[constraints, 1], tree[constraints, 2], tree[constraints, 3] = -1, -1, 0, -1
    links[met, 0], links[met, 1], links[met, 2] = parent, constraints, constraints
    search.table[slot] = met


@search_step
def _constrain_further(board, search, current, constraint, constraints):
    """Below ``constraint``, open one for each cell to which the next agent may be fixed; returns the number of constraints."""
    tree, links = search.tree, search.links
    level = tree[constraint, 2]
    start = search.configurations[current, search.orders[current, level]]
    for k in range(board.degree[start] + 1):
        child = constraints + k
        tree[child, 0], tree[child, 2], tree[child, 3] = constraint, level + 1, -1
        tree[child, 1] = np.int64(board.neighbors[start, k]) if k < board.degree[start] else start
        if links[current, 1] < 0:
            links[current, 1] = child
        else:
            tree[links[current, 2], 3] = child
        links[current, 2] = child
    return constraints + board.degree[start] + 1


@search_step
def _all_at(cells, goals):
    same = True
    for agent in range(len(cells)):
        same &= cells[agent] == goals[agent]
    return same


@entry
def lazy_search(holes, starts, goals, seed, budget):
    """(status, paths, joint steps tried)."""
    agents = len(starts)
    problem = make_problem(holes, holes.shape[0], holes.shape[1], starts, goals, agents)
    cells = len(problem.board.degree)
    random = np.empty(1, np.uint64)
    random[0] = np.uint64(0x9E3779B97F4A7C15) * np.uint64(2 * seed + 1)
    no_path = np.empty((agents, 1), np.int16)
    then = np.empty(agents, np.int64)
    for agent in range(agents):
        then[agent] = problem.starts[agent]
        if problem.distance[agent, then[agent]] == UNREACHABLE:
            return NONE, no_path, 0
    here, there = np.empty(cells, np.int64), np.empty(cells, np.int64)
    here[:] = -1
    there[:] = -1
    search = _new_search(agents)
    _meet(problem, search, 0, find_row(search.table, search.configurations, then), 0, then, -1)
    search.stack[0, 0] = 0
    met, constraints, depth, tried = 1, np.int64(1), 1, 0
    while depth > 0:
        if not _has_room(search, met, constraints, depth):
            search = _with_room(search, met, constraints, depth)
        current = search.stack[depth - 1, 0]
        now, order = search.configurations[current], search.orders[current]
        if _all_at(now, problem.goals):
            return FOUND, _way_to(search.configurations, search.links, current), tried
        constraint = search.links[current, 1]
        if constraint < 0:
            depth -= 1
            continue
        if tried >= budget:
            return OUT_OF_BUDGET, no_path, tried
        tried += 1
        search.links[current, 1] = search.tree[constraint, 3]
        if search.tree[constraint, 2] < agents:
            constraints = _constrain_further(problem.board, search, current, constraint, constraints)
        if not _next_step(problem, now, order, constraint, search.tree, then, here, there, random):
            continue
        slot = find_row(search.table, search.configurations, then)
        known = search.table[slot]
        search.stack[depth, 0] = known if known >= 0 else met
        depth += 1
        if known < 0:
            _meet(problem, search, met, slot, constraints, then, current)
            met += 1
            constraints += 1
    return NONE, no_path, tried


@kernel
def _way_to(configurations, links, last):
    steps = 0
    current = last
    while links[current, 0] >= 0:
        steps += 1
        current = links[current, 0]
    paths = np.empty((configurations.shape[1], steps + 1), np.int16)
    current = last
    for t in range(steps, -1, -1):
        for agent in range(configurations.shape[1]):
            paths[agent, t] = configurations[current, agent]
        current = links[current, 0]
    return paths


def _actions_of(paths: NDArray[np.int16], stride: int) -> tuple[tuple[int, ...], ...]:
    """Paths of flat cells as actions; an agent's list ends when it stays on its goal for good."""
    action_of = {-1: Action.LEFT, stride: Action.DOWN, 1: Action.RIGHT, -stride: Action.UP, 0: Action.WAIT}
    plan = []
    for moves in np.diff(paths.astype(np.int64), axis=1).tolist():
        while moves and moves[-1] == 0:
            moves.pop()
        plan.append(tuple(int(action_of[move]) for move in moves))
    return tuple(plan)
