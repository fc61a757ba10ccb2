"""What is kept of a lake that was played: rates, steps charged, moves; and its film."""

from __future__ import annotations

import numpy as np
import pytest

from envtuning.worlds import make_world
from envtuning.worlds.episodes import Episode
from envtuning.worlds.lakes.episodes import (
    LakeEpisode,
    behaviour,
    downhill,
    failed,
    how_missed,
    judged,
    letters,
    missed_by_kind,
    plan_of,
    success_by_kind,
)
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
    again = LakeEpisode(**one.to_json())
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


# Two rows of ice; each agent's shortest way runs along row 0, towards the other.
CORRIDOR = Instance(np.zeros((2, 6), bool), starts=[(0, 1), (0, 4)], goals=[(0, 5), (0, 0)])
UP = 3


def walked(plan, **given):
    return judged(0, CORRIDOR, plan, **{"horizon": 100, "slippery": False, "cost": {}} | given)


def test_only_a_success_ends_an_episode_before_its_plan_does():
    """They collide on the way, stand on their goals after eight steps and wait there: no success, so all ten count."""
    round_about = [[WAIT] * 5 + [RIGHT] * 4 + [WAIT], [DOWN, LEFT, LEFT, LEFT, LEFT, UP] + [WAIT] * 4]
    assert (walked(round_about).failure, walked(round_about).cost["env_steps"]) == (None, 9)
    late = [[RIGHT, RIGHT, *[WAIT] * 5, RIGHT, RIGHT, WAIT], [LEFT, LEFT, DOWN, LEFT, LEFT, LEFT, UP, WAIT, WAIT, WAIT]]
    assert walked(late).failure == "conflict"
    assert walked(late).cost["env_steps"] == 10


def test_an_agent_that_waits_on_its_goal_loses_no_time():
    plan = [[WAIT] * 8, [DOWN, LEFT, LEFT, LEFT, LEFT, UP, WAIT, WAIT]]
    assert behaviour(CORRIDOR, walked(plan)) == {
        "episode_length": 8.0, "idle_steps": 8, "collisions": 0, "collisions_avoided": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("first", "how"),
    [
        ([WAIT] * 6 + [RIGHT, WAIT], "coming_nearer"),  # the last two of eight steps are the quarter
        ([WAIT] * 7 + [RIGHT], "coming_nearer"),
        ([WAIT] * 5 + [RIGHT, WAIT, WAIT], "standing_still"),
        ([WAIT] * 7 + [RIGHT, WAIT, WAIT], "coming_nearer"),  # of ten steps it is three
        ([WAIT] * 6 + [RIGHT, WAIT, WAIT, WAIT], "standing_still"),
    ],
)
def test_a_goal_is_missed_as_in_the_last_quarter_of_the_steps(first, how):
    assert how_missed(CORRIDOR, walked([first, []]).playback) == how


@pytest.mark.parametrize(
    ("second", "how"), [([WAIT] * 8, "standing_still"), ([WAIT] * 7 + [LEFT], "coming_nearer"), ([WAIT] * 6 + [LEFT, RIGHT], "wandering")]
)  # fmt: skip
def test_a_goal_is_missed_as_by_those_who_did_not_arrive(second, how):
    """Agent 0 stands on its goal from the first step on."""
    board = Instance(np.zeros((2, 6), bool), starts=[(1, 4), (0, 4)], goals=[(1, 5), (0, 0)])
    one = judged(0, board, [[RIGHT, *[WAIT] * 7], second], horizon=100, slippery=False, cost={})
    assert one.failure == "goal_missed"
    assert how_missed(board, one.playback) == how


def test_parts_of_missed_goals_are_told_to_three_places_and_only_of_what_is_in_memory():
    boards = InstanceSet.from_instances([CORRIDOR] * 3)
    missed = [walked([[WAIT], [WAIT]]), walked([[RIGHT], []]), failed(2, CORRIDOR, "truncated", "cut", {})]
    assert missed_by_kind(boards, missed) == {
        "goal_missed_standing_still": 0.333, "goal_missed_coming_nearer": 0.333, "goal_missed_wandering": 0.0
    }  # fmt: skip
    assert missed_by_kind(boards, [LakeEpisode(**one.to_json()) for one in missed]) == {}
    found = LAKES.behaviour(boards, missed)["2"]
    assert (found["episode_length"], found["idle_steps"]) == (1.0, 0.667)
    assert LAKES.behaviour(boards[:1], missed[:1])["2"]["idle_steps"] == 2.0


def test_success_is_split_by_waits_by_the_way_of_each_agent_and_by_agents_where_these_differ():
    def board(agents, way, waits):
        starts, goals = [(row, 0) for row in range(agents)], [(row, way) for row in range(agents)]
        return Instance(np.zeros((4, 4), bool), starts=starts, goals=goals, needs_wait=waits)

    boards = [
        board(1, 3, False),
        board(2, 1, True),
        board(2, 2, None),
        board(2, 2, True),
        board(2, 1, True),
        board(1, 3, False),
    ]
    cases = InstanceSet.from_instances(boards)
    episodes = [Episode(case, "4", None if case in (0, 1, 3) else "hole", {}) for case in range(6)]
    assert counted(success_by_kind(cases, episodes)) == {  # the middle of the ways is 2: those of just that are neither
        "a_wait_is_needed": (2, 3), "no_wait_is_needed": (1, 2), "goals_are_near": (1, 2), "goals_are_far": (1, 2),
        "1_agents": (1, 2), "2_agents": (2, 4),
    }  # fmt: skip
    assert counted(success_by_kind(cases, episodes[1:3])) == {
        "a_wait_is_needed": (1, 1), "goals_are_near": (1, 1), "goals_are_far": (0, 1), "2_agents": (1, 2)
    }  # fmt: skip


def counted(splits):
    return {name: (split.succeeded, split.episodes) for name, split in splits.items()}


@pytest.mark.parametrize(("length", "begins"), [(1_999, "x"), (2_000, "x"), (2_001, "…")])
def test_two_thousand_characters_of_a_reply_are_kept_the_mark_of_a_cut_included(length, begins):
    kept = judged(0, BOARD, [[RIGHT]], horizon=9, slippery=False, cost={}, reply="x" * length).trace["reply"]
    assert (kept[0], len(kept)) == (begins, min(length, 2_000))


def test_the_known_waits_and_makespans_of_a_size_are_told_to_three_places():
    def board(holes, **known):
        grid = np.zeros((3, 3), bool)
        grid[1, 1] = holes
        starts, goals = [(0, 0), (0, 1), (0, 2), (1, 0)], [(2, 0), (2, 1), (2, 2), (1, 2)]
        return Instance(grid, starts=starts, goals=goals, **known)

    three = Instance(np.zeros((4, 4), bool), starts=[(0, 0)], goals=[(0, 3)], makespan=3, needs_wait=False)
    known = {"makespan": 4, "needs_wait": False}
    cases = InstanceSet.from_instances([board(1, **known), board(1, makespan=5, needs_wait=False), three])
    config = LakeConfig.model_validate({"slices": {3: {}, 4: {}, 5: {}}})
    assert LAKES.drawn(config, cases) == {
        "3": {
            "share": 0.667,
            "hole_ratio": 1.0,
            "distance": 2.0,
            "agents": 4.0,
            "wait_ratio": 0.0,
            "least_makespan": 4.5,
        },
        "4": {
            "share": 0.333,
            "hole_ratio": 0.0,
            "distance": 3.0,
            "agents": 1.0,
            "wait_ratio": 0.0,
            "least_makespan": 3.0,
        },
        "5": {"share": 0.0},
    }


def test_a_film_is_saved_at_the_pace_that_is_asked_for(monkeypatch):
    saved = []
    monkeypatch.setattr("mapf_frozenlake.render.save_animation", lambda *given, **named: saved.append((*given, named)))
    one = played([[RIGHT] * 3])
    film = LAKES.film(InstanceSet.from_instances([BOARD] * 6), one)
    film.save("file.gif", 0.25)
    [(path, frames, named)] = saved
    assert (path, len(frames), named) == ("file.gif", 4, {"seconds_per_step": 0.25})
