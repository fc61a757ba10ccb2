"""What is kept of a lake that was played: rates, steps charged, moves; and its film."""

from __future__ import annotations

import numpy as np
import pytest

from envtuning.worlds import make_world
from envtuning.worlds.lakes.episodes import LakeEpisode, downhill, failed, judged, letters, plan_of
from mapf_frozenlake import LakeConfig
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.render import animated_svg, plan_frames
from mapf_frozenlake.text import ParseError, parse_plan
from mapf_frozenlake.types import Instance

LAKES = make_world("lakes")
# Two rows of ice; one agent's shortest way is three steps along row 0. A hole below its start.
BOARD = Instance(np.array([[0, 0, 0, 0], [1, 0, 0, 0]], bool), starts=[(0, 0)], goals=[(0, 3)], makespan=3)
RIGHT, LEFT, DOWN, WAIT = 2, 0, 1, 4


def played(plan, *, horizon=10, slippery=False):
    return judged(5, BOARD, plan, horizon=horizon, slippery=slippery, cost={"tokens": 7})


@pytest.mark.parametrize(
    ("plan", "failure", "valid", "legal", "steps"),
    [
        ([[RIGHT] * 3], None, 1.0, 1.0, 3),
        ([[RIGHT] * 3 + [WAIT] * 3], None, 1.0, 1.0, 3),  # until success
        ([[WAIT] + [RIGHT] * 3], None, 1.0, 1.0, 4),
        ([[RIGHT]], "goal_missed", 0.0, 1.0, 1),
        ([[]], "goal_missed", 0.0, 1.0, 1),  # at least one
        ([[WAIT] * 30], "goal_missed", 0.0, 1.0, 10),  # at most the horizon
        ([[DOWN, WAIT]], "hole", 0.0, 0.0, 2),
        ([[LEFT]], "illegal_move", 0.0, 0.0, 1),
    ],
)
def test_an_episode_has_its_verdict_its_steps_and_its_moves(plan, failure, valid, legal, steps):
    one = played(plan)
    assert (one.case, one.slice, one.failure, one.note) == (5, "2", failure, None)
    assert (one.metrics["valid_rate"], one.metrics["legal_rate"]) == (valid, legal)
    assert one.cost == {"env_steps": steps, "episodes": 1, "tokens": 7}
    assert one.trace == {"moves": letters(plan)}
    assert plan_of(one.trace) == plan


def test_on_ice_that_slips_nothing_is_said_of_the_optimum():
    detour = [[WAIT] + [RIGHT] * 3]
    sure, slipping = played(detour), played(detour, slippery=True)
    assert (sure.metrics["optimal_rate"], sure.metrics["makespan_gap"]) == (0.0, 1.0)
    assert slipping.metrics == {"valid_rate": 1.0, "legal_rate": 1.0}
    assert played([[RIGHT] * 3]).metrics["optimal_rate"] == 1.0


def test_a_reply_without_a_plan_has_a_note_and_no_moves():
    nothing = parse_plan("I cannot", 1)
    assert isinstance(nothing, ParseError)
    one = played(nothing)
    assert (one.failure, one.note, one.trace) == ("parse_error", str(nothing), {"moves": []})
    assert one.cost == {"env_steps": 1, "episodes": 1, "tokens": 7}
    raised = failed(3, BOARD, "policy_error", "no weights", {"samples": 2})
    assert raised.metrics == {"valid_rate": 0.0, "optimal_rate": 0.0, "legal_rate": 0.0}
    assert (raised.case, raised.slice, raised.failure, raised.note) == (3, "2", "policy_error", "no weights")
    assert (raised.cost, raised.trace) == ({"env_steps": 1, "episodes": 1, "samples": 2}, {"moves": []})


def test_a_verdict_stays_in_memory():
    one = played([[RIGHT] * 3])
    again = LakeEpisode.from_json(one.to_json())
    assert one == again
    assert again.verdict is again.playback is None
    assert one.verdict is not None
    assert "verdict" not in repr(one)
    assert "playback" not in repr(one)


@pytest.mark.parametrize(
    ("field", "cell", "action"),
    [
        ([[3, 2], [2, 1]], (0, 0), 1),  # down before right
        ([[0, 1], [1, 2]], (1, 1), 0),  # left before up
        ([[0, 9], [1, 2]], (1, 0), 3),
        ([[2, 1, 0]], (0, 1), 2),
        ([[0, -1], [-1, 2]], (1, 1), 4),  # behind holes
        ([[0, 1]], (0, 0), 4),  # there already
        ([[1, 1], [1, 1]], (0, 0), 4),
    ],
)
def test_downhill_is_the_nearest_way_to_the_goal_or_a_wait(field, cell, action):
    assert downhill(np.array(field, np.int16), cell) == action


@pytest.mark.parametrize(("steps", "cut"), [(40, ""), (41, ", first 40 steps")])
def test_a_film_of_more_than_40_steps_is_cut_and_says_so(steps, cut):
    moves = [[WAIT] * 45]
    one = LakeEpisode(0, "2", "goal_missed", {}, {"env_steps": steps}, {"moves": letters(moves)})
    film = LAKES.film(InstanceSet.from_instances([BOARD]), one)
    assert film.title == f"case 0: goal missed after {steps} steps on 2×4{cut}"
    assert len(film.frames) == 46
    assert film.svg == animated_svg(plan_frames(BOARD, moves)[:41])


@pytest.mark.parametrize(
    ("metrics", "outcome"), [({"optimal_rate": 1.0}, "optimal"), ({"optimal_rate": 0.0}, "valid"), ({}, "valid")]
)
def test_a_film_is_titled_by_how_it_went(metrics, outcome):
    one = LakeEpisode(0, "2", None, metrics, {"env_steps": 3}, {"moves": letters([[RIGHT] * 3])})
    assert LAKES.film(InstanceSet.from_instances([BOARD]), one).title == f"case 0: {outcome} after 3 steps on 2×4"


def test_validation_shows_the_hints_of_the_stage_and_nothing_else_of_it():
    target, stage = LakeConfig.single(4), LakeConfig.single(5, hint_strength=0.5)
    assert LAKES.validated_as(target, stage) == target.model_copy(update={"hint_strength": 0.5})
