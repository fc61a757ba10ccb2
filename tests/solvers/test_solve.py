"""What ``solve``, ``solve_batch``, ``certify_batch`` and the experts promise, on boards a reader can check by hand."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from brute_force import replay
from hypothesis import given, settings
from hypothesis import strategies as st
from solver_boards import as_plain, random_instance, small_instance

from mapf_frozenlake.errors import LakeError, SolverBudgetExceeded
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.solvers import certify_batch, distance_fields, pibt, solve, solve_batch
from mapf_frozenlake.types import Instance


def lake(*rows: str) -> Instance:
    """``#`` is a hole; agent k starts on the k-th letter and ends on the same letter in capitals."""
    grid = np.array([list(row) for row in rows])
    names = sorted({cell for cell in grid.flat if cell.islower()})
    where = {cell: np.argwhere(grid == cell)[0] for cell in names + [name.upper() for name in names]}
    return Instance(grid == "#", [where[name] for name in names], [where[name.upper()] for name in names])


def test_a_gap_for_one_makes_the_other_wait():
    gap = lake("a#.A", "....", "b#.B")
    solution = solve(gap)
    assert solution.makespan == 6
    assert solve(gap, "sum_of_costs").sum_of_costs == 11
    assert certify_batch(gap.holes[None], gap.starts[None], gap.goals[None]).needs_wait.tolist() == [1]


def test_agents_that_cannot_pass_are_proved_infeasible():
    crossing = lake("aB..bA", "######")
    for waits in ("anywhere", "goals_only"):
        for objective in ("makespan", "sum_of_costs"):
            assert not solve(crossing, objective, waits).feasible
    assert solve(crossing).plan is None
    assert not pibt(crossing).feasible


def test_an_order_that_fits_the_corridor_is_feasible():
    solution = solve(lake("ab..AB", "######"))
    assert (solution.makespan, solution.sum_of_costs) == (4, 8)


def test_a_full_ring_can_turn():
    """Four agents fill a 2×2 block and need each other's cells at once: following all the way round is legal."""
    block = Instance([[0, 0], [0, 0]], [(0, 0), (1, 1)], [(0, 1), (1, 0)])
    assert solve(block, waits="goals_only").makespan == 1


def test_waits_on_goals_only_can_make_plans_longer_or_impossible():
    rng = np.random.default_rng(5)
    longer = impossible = 0
    for _ in range(3000):
        instance = small_instance(rng, max_side=4, max_agents=3)
        free, bound = solve(instance), solve(instance, waits="goals_only")
        if free.feasible and not bound.feasible:
            impossible += 1
        elif free.feasible:
            assert bound.makespan >= free.makespan
            longer += bound.makespan > free.makespan
    assert longer > 50
    assert impossible > 0


def test_out_of_budget_is_said_and_is_no_result():
    rng = np.random.default_rng(6)
    crowded = [random_instance(rng, 4, 4, 5, 2) for _ in range(40)]
    results = solve_batch(crowded, budget=1, num_threads=1)
    stopped = [found for found in results if isinstance(found, SolverBudgetExceeded)]
    assert stopped
    assert "budget=1" in str(stopped[0])
    with pytest.raises(SolverBudgetExceeded, match="budget=1"):
        solve(crowded[results.index(stopped[0])], budget=1)
    for instance, found in zip(crowded, results, strict=True):
        if not isinstance(found, SolverBudgetExceeded):
            assert found.makespan == solve(instance).makespan


@pytest.mark.parametrize("wrong", [{"objective": "fuel"}, {"waits": "never"}])
def test_unknown_words_are_refused(wrong: dict[str, str]):
    with pytest.raises(LakeError, match=next(iter(wrong.values()))):
        solve(lake("a.A", "..."), **wrong)


def test_batches_are_the_same_on_any_number_of_threads():
    rng = np.random.default_rng(7)
    instances = [random_instance(rng, 6, 6, 4, 8) for _ in range(60)]
    arrays = [np.stack([getattr(each, name) for each in instances]) for name in ("holes", "starts", "goals")]
    alone, together = certify_batch(*arrays, num_threads=1), certify_batch(*arrays, num_threads=4)
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one, other)
    one = solve_batch(instances, num_threads=1)
    for threads in (2, 3, 5):
        assert solve_batch(instances, num_threads=threads) == one
    assert [found.makespan for found in solve_batch(instances)] == [
        m if m >= 0 else None for m in alone.makespan.tolist()
    ]


def test_padding_does_not_matter():
    rng = np.random.default_rng(8)
    for _ in range(50):
        instance = random_instance(rng, 4, 5, 3, 4)
        holes = np.ones((1, 9, 8), bool)
        holes[0, :4, :5] = instance.holes
        starts, goals = np.full((2, 1, 6, 2), -1, np.int16)
        starts[0, :3], goals[0, :3] = instance.starts, instance.goals
        size = {
            "heights": np.array([4], np.int16),
            "widths": np.array([5], np.int16),
            "num_agents": np.array([3], np.int16),
        }
        padded = certify_batch(holes, starts, goals, **size)
        assert padded == certify_batch(instance.holes[None], instance.starts[None], instance.goals[None])


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32 - 1), height=st.integers(2, 70), width=st.integers(2, 70))
def test_plans_on_boards_of_any_shape_keep_the_rules(seed: int, height: int, width: int):
    """Wide boards too: a row may be longer than a word of the bit sets."""
    height, width = min(height, 64), min(width, 64)
    rng = np.random.default_rng(seed)
    num_agents = int(rng.integers(1, min(5, height * width // 2) + 1))
    instance = random_instance(rng, height, width, num_agents, height * width // 6)
    try:
        for solution in (solve(instance, budget=20_000), pibt(instance, budget=2_000)):
            if solution.feasible:
                assert replay(*as_plain(instance), solution.plan) == (solution.makespan, solution.sum_of_costs)
    except SolverBudgetExceeded:
        pass  # said, not hung


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_numbers_of_agents_and_board_symmetries_do_not_matter(seed: int):
    rng = np.random.default_rng(seed)
    instance = small_instance(rng, max_side=6, max_agents=4)
    shuffled = rng.permutation(instance.num_agents)
    turned = Instance(instance.holes.T, instance.starts[shuffled, ::-1], instance.goals[shuffled, ::-1])
    for objective in ("makespan", "sum_of_costs"):
        one, other = solve(instance, objective), solve(turned, objective)
        assert getattr(one, objective) == getattr(other, objective)


def test_distance_fields_count_moves_around_holes():
    instance = Instance([[0, 1, 0], [0, 1, 0], [0, 0, 1]], [(0, 0)], [(2, 1)])
    assert distance_fields(instance).tolist() == [[[3, -1, -1], [2, -1, -1], [1, 0, -1]]]


@pytest.mark.parametrize(("side", "num_agents"), [(12, 40), (32, 64), (64, 64)])
def test_pibt_moves_crowds(side: int, num_agents: int):
    rng = np.random.default_rng(9)
    solved = 0
    for _ in range(5):
        instance = random_instance(rng, side, side, num_agents, side * side // 20)
        solution = pibt(instance)
        assert solution == pibt(instance)
        if solution.feasible:
            assert replay(*as_plain(instance), solution.plan) == (solution.makespan, solution.sum_of_costs)
            solved += 1
    assert solved > 0


def test_a_batch_is_arrays_that_read_as_solutions():
    rng = np.random.default_rng(9)
    instances = [random_instance(rng, int(rng.integers(3, 7)), int(rng.integers(3, 7)), 3, 5) for _ in range(40)]
    together = InstanceSet.from_instances(instances)
    for objective in ("makespan", "sum_of_costs"):
        found = solve_batch(together, objective=objective)
        assert found == solve_batch(instances, objective=objective, num_threads=1)
        assert len(found) == 40
        for row, instance in enumerate(instances):
            alone = solve(instance, objective=objective)
            assert found[row] == alone
            assert found.feasible[row] == alone.feasible
            assert found.makespan[row] == (alone.makespan if alone.feasible else -1)
            assert found.sum_of_costs[row] == (alone.sum_of_costs if alone.feasible else -1)
        assert found[-1] is found[39], "made once"
        assert found[3:5] == [found[3], found[4]]
    assert found != solve_batch(together[:39], objective=objective)
    assert len(solve_batch([])) == 0
    with pytest.raises(IndexError, match="solution 40 of 40"):
        found[40]


HARD = """
import os, signal, threading, time
import numpy as np
import mapf_frozenlake as mfl
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a background shell starts ignores Ctrl-C
rng = np.random.default_rng(0)
holes = rng.random((12, 12)) < 0.2
free = rng.permutation(np.argwhere(~holes))
instance = mfl.Instance(holes=holes, starts=free[:20], goals=free[20:40])
mfl.solve_batch([mfl.Instance(holes=np.zeros((3, 3), bool), starts=[[0, 0], [2, 2]], goals=[[2, 0], [0, 2]])], "sum_of_costs")
mfl.solve(mfl.Instance(holes=np.zeros((2, 2), bool), starts=[[0, 0]], goals=[[1, 1]]), "sum_of_costs")
def interrupt():  # again and again, as somebody would: Python loses a signal that lands in a compiler's callback
    global pressed
    for seconds in (1, *[5] * 50):
        time.sleep(seconds)
        pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    {call}
    print("ended by itself")
except KeyboardInterrupt:
    print("stopped after", time.monotonic() - pressed, flush=True)
    os._exit(0)  # before the next one comes
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        "mfl.solve(instance, 'sum_of_costs', budget=10**12)",
        "mfl.solve_batch([instance] * 3, 'sum_of_costs', budget=10**12)",
    ],
)
def test_ctrl_c_stops_a_long_search(call):
    """12×12, 20 agents, sum of costs: without it, still running after 150 s."""
    code = HARD.format(call=call)
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    ).stdout
    assert printed.startswith("stopped after"), printed
    assert float(printed.split()[-1]) < 10
