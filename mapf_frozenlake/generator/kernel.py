"""The draw loops: draw until a board passes, and count why other boards failed."""

from __future__ import annotations

import numpy as np

from mapf_frozenlake.generator.apportion import ANY
from mapf_frozenlake.generator.draw import all_can_reach, count_up_to, dig, every_cell, place, stream_of
from mapf_frozenlake.generator.families import RANDOM, draw_map
from mapf_frozenlake.generator.symmetry import key_of
from mapf_frozenlake.solvers.bits import entry, inlined
from mapf_frozenlake.solvers.board import make_problem
from mapf_frozenlake.solvers.certify import FEASIBLE, INFEASIBLE, LEFT_OPEN, certify
from mapf_frozenlake.solvers.experts import lazy_search

# Outcomes of a draw: columns of the tally.
ACCEPTED, NO_PLACE, UNREACHABLE, EXCLUDED, UNSOLVABLE, UNDECIDED, NEEDS_WAIT, NEEDS_NO_WAIT = range(8)
NUM_FATES = 8
AWAITS_SEARCH = -1


@inlined
def next_candidate(
    stream, layout, height, width, agents, num_holes, min_distance, displacements, draws_left, cells, lake_of, stack, holes,
    starts, goals, tally,
):  # fmt: skip
    """Draw until every agent can reach its goal; returns the number of draws left, 0 if it failed.

    ``cells`` is a permutation of ``every_cell``, or room for a map's ice; ``layout`` says which map, see ``draw_map``; ``tally`` is
    this instance's row. Random holes are dug around starts and goals; in every other map, starts and goals are placed on its ice.
    """
    while draws_left > 0:
        ice = cells
        if layout[0] != RANDOM:
            ice = cells[: draw_map(stream, layout, height, width, cells, lake_of, stack, holes)]
        if not place(stream, height, width, agents, min_distance, displacements, ice, starts, goals):
            tally[NO_PLACE] += 1
            return 0
        if layout[0] == RANDOM:
            dig(stream, height, width, agents, num_holes, cells, holes)
        if not all_can_reach(holes, height, width, starts, goals, agents, lake_of, stack):
            tally[UNREACHABLE] += 1
        else:
            return draws_left
        draws_left -= 1
    return 0


@inlined
def fate_of_fitting(holes, height, width, starts, goals, agents, excluded):
    """ACCEPTED, unless the board's key is among the sorted ``excluded``."""
    if excluded.size > 0:
        key = key_of(holes, height, width, starts, goals, agents)
        at_most = count_up_to(excluded, key)
        if at_most > 0 and excluded[at_most - 1] == key:
            return EXCLUDED
    return ACCEPTED


@entry
def fill_reachable(
    seed_key, indices, rows, layout, height, width, agents, num_holes, min_distance, displacements, excluded, max_draws,
    holes, starts, goals, tally,
):  # fmt: skip
    """Write instance ``indices[i]`` to row ``rows[i]`` of holes, starts, goals; every agent can reach its goal.

    ``tally`` int64[k, NUM_FATES] counts draws by outcome. Stops at the first row that fails; returns the number of rows filled.
    """
    lake_of, stack = np.empty((height, width), np.int16), np.empty(height * width, np.int64)
    for i in range(indices.size):
        stream, row, cells = stream_of(seed_key, indices[i]), rows[i], every_cell(height, width)
        draws_left = max_draws
        while tally[i, ACCEPTED] == 0:
            draws_left = next_candidate(
                stream, layout, height, width, agents, num_holes, min_distance, displacements, draws_left, cells, lake_of,
                stack, holes[row], starts[row], goals[row], tally[i],
            )  # fmt: skip
            if draws_left == 0:
                return i
            draws_left -= 1
            tally[i, fate_of_fitting(holes[row], height, width, starts[row], goals[row], agents, excluded)] += 1
    return indices.size


@entry
def fill_solvable(
    seed_key, indices, rows, layout, height, width, agents, num_holes, min_distance, displacements, excluded, max_draws,
    holes, starts, goals, tally, joint_steps,
):  # fmt: skip
    """Like ``fill_reachable``; in addition some plan for all agents was found within ``joint_steps``."""
    lake_of, stack = np.empty((height, width), np.int16), np.empty(height * width, np.int64)
    for i in range(indices.size):
        stream, row, cells = stream_of(seed_key, indices[i]), rows[i], every_cell(height, width)
        draws_left = max_draws
        while tally[i, ACCEPTED] == 0:
            draws_left = next_candidate(
                stream, layout, height, width, agents, num_holes, min_distance, displacements, draws_left, cells, lake_of,
                stack, holes[row], starts[row], goals[row], tally[i],
            )  # fmt: skip
            if draws_left == 0:
                return i
            draws_left -= 1
            board, ends = holes[row, :height, :width], (starts[row, :agents], goals[row, :agents])
            status, _, _ = lazy_search(board, ends[0], ends[1], 0, joint_steps)
            if status == FEASIBLE:
                tally[i, fate_of_fitting(holes[row], height, width, starts[row], goals[row], agents, excluded)] += 1
            else:
                tally[i, UNSOLVABLE if status == INFEASIBLE else UNDECIDED] += 1
    return indices.size


@entry
def fill_exact(
    seed_key, indices, rows, layout, height, width, agents, num_holes, min_distance, displacements, excluded, max_draws,
    holes, starts, goals, tally, label, max_decisions, budget, search, makespan, needs_wait,
):  # fmt: skip
    """Like ``fill_reachable``; in addition jointly solvable with the wanted ``label``. Makespan and wait are exact.

    ``budget`` bounds the solver's expansions per board, ``max_decisions`` the boards that it decides per instance.
    ``search`` is passed to ``certify``. If a board needs a search and ``search`` is missing, the result is AWAITS_SEARCH.
    """
    lake_of, stack = np.empty((height, width), np.int16), np.empty(height * width, np.int64)
    for i in range(indices.size):
        stream, row, cells = stream_of(seed_key, indices[i]), rows[i], every_cell(height, width)
        draws_left, decisions_left = max_draws, max_decisions
        while tally[i, ACCEPTED] == 0:
            draws_left = next_candidate(
                stream, layout, height, width, agents, num_holes, min_distance, displacements, draws_left, cells, lake_of,
                stack, holes[row], starts[row], goals[row], tally[i],
            )  # fmt: skip
            if draws_left == 0 or decisions_left == 0:
                return i
            draws_left -= 1
            decisions_left -= 1
            problem = make_problem(holes[row], height, width, starts[row], goals[row], agents)
            status, steps, waits = certify(problem, budget, search)
            if status == LEFT_OPEN:
                return AWAITS_SEARCH
            if status == INFEASIBLE:
                tally[i, UNSOLVABLE] += 1
            elif status != FEASIBLE:
                tally[i, UNDECIDED] += 1
            elif label != ANY and waits != label:
                tally[i, NEEDS_WAIT if waits == 1 else NEEDS_NO_WAIT] += 1
            else:
                makespan[row], needs_wait[row] = steps, waits
                tally[i, fate_of_fitting(holes[row], height, width, starts[row], goals[row], agents, excluded)] += 1
    return indices.size
