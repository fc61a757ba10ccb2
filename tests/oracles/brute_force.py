"""The rules of plans once more, in the most obvious code: every joint state, every joint move, plain breadth-first search.

Shares nothing with the package. Slow: for boards up to 4×4 with up to 3 agents.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import product

Cell = tuple[int, int]
State = tuple[Cell, ...]

MOVES = {0: (0, -1), 1: (1, 0), 2: (0, 1), 3: (-1, 0), 4: (0, 0)}


def is_ice(holes: Sequence[Sequence[bool]], cell: Cell) -> bool:
    row, col = cell
    return 0 <= row < len(holes) and 0 <= col < len(holes[0]) and not holes[row][col]


def is_legal(holes: Sequence[Sequence[bool]], before: State, after: State) -> bool:
    """All on ice, no two on one cell, no two exchanged."""
    if not all(is_ice(holes, cell) for cell in after) or len(set(after)) != len(after):
        return False
    agents = range(len(before))
    return not any(after[a] == before[b] and after[b] == before[a] for a in agents for b in agents if a != b)


def successors(holes: Sequence[Sequence[bool]], state: State, goals: State, waits: str) -> Iterator[State]:
    options = []
    for agent, (row, col) in enumerate(state):
        may_wait = waits == "anywhere" or state[agent] == goals[agent]
        cells = [(row + down, col + right) for move, (down, right) in MOVES.items() if move != 4 or may_wait]
        options.append([cell for cell in cells if is_ice(holes, cell)])
    for after in product(*options):
        if is_legal(holes, state, after):
            yield after


def least_makespan(holes: Sequence[Sequence[bool]], starts: State, goals: State, waits: str = "anywhere") -> int | None:
    """None if the goals cannot be reached at all."""
    frontier, seen, steps = [starts], {starts}, 0
    while frontier:
        if goals in frontier:
            return steps
        reached = []
        for state in frontier:
            for after in successors(holes, state, goals, waits):
                if after not in seen:
                    seen.add(after)
                    reached.append(after)
        frontier, steps = reached, steps + 1
    return None


def all_makespans(holes: Sequence[Sequence[bool]], starts: State) -> dict[State, int]:
    """The least makespan for every joint goal that can be reached, waits anywhere."""
    steps_to, frontier = {starts: 0}, [starts]
    while frontier:
        reached = []
        for state in frontier:
            for after in successors(holes, state, starts, "anywhere"):
                if after not in steps_to:
                    steps_to[after] = steps_to[state] + 1
                    reached.append(after)
        frontier = reached
    return steps_to


def least_sum_of_costs(
    holes: Sequence[Sequence[bool]], starts: State, goals: State, waits: str = "anywhere"
) -> int | None:
    """Dijkstra from the start; an agent pays for every step until it declares, on its goal, that it stays for good."""
    agents = range(len(starts))
    start = (starts, (False,) * len(starts))
    cost_of, heap = {start: 0}, [(0, start)]
    while heap:
        cost, (state, done) = heapq.heappop(heap)
        if cost > cost_of[state, done]:
            continue
        if all(done):
            return cost
        following = [
            (cost, (state, tuple(done[a] or a == agent for a in agents)))
            for agent in agents
            if state[agent] == goals[agent] and not done[agent]
        ]
        for after in successors(holes, state, goals, waits):
            if all(after[a] == goals[a] for a in agents if done[a]):
                following.append((cost + done.count(False), (after, done)))
        for new_cost, node in following:
            if new_cost < cost_of.get(node, new_cost + 1):
                cost_of[node] = new_cost
                heapq.heappush(heap, (new_cost, node))
    return None


def needs_wait(holes: Sequence[Sequence[bool]], starts: State, goals: State) -> bool | None:
    """No plan of least makespan in which agents wait only on their goals; None if there is no plan."""
    least = least_makespan(holes, starts, goals)
    if least is None:
        return None
    layer = {starts}
    for _ in range(least):
        layer = {after for state in layer for after in successors(holes, state, goals, "goals_only")}
    return goals not in layer


def replay(
    holes: Sequence[Sequence[bool]], starts: State, goals: State, plan: Sequence[Sequence[int]], waits: str = "anywhere"
) -> tuple[int, int]:
    """(makespan, sum of costs) of a plan; an AssertionError that says where it breaks a rule."""
    steps = max(len(actions) for actions in plan)
    states = [starts]
    for t in range(steps):
        state = states[-1]
        moves = [actions[t] if t < len(actions) else 4 for actions in plan]
        for agent, move in enumerate(moves):
            assert waits == "anywhere" or move != 4 or state[agent] == goals[agent], f"agent {agent} waits at step {t}"
        after = tuple((row + MOVES[m][0], col + MOVES[m][1]) for (row, col), m in zip(state, moves, strict=True))
        assert is_legal(holes, state, after), f"step {t}: {state} -> {after}"
        states.append(after)
    assert states[-1] == goals, f"ends on {states[-1]}, not {goals}"
    costs = [
        max((t for t in range(1, steps + 1) if states[t - 1][a] != goals[a]), default=0) for a in range(len(goals))
    ]
    return max(costs), sum(costs)
