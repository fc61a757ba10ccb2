"""The world's side of GRPO: what is asked, which boards, what a played conversation is worth and how it failed."""

from __future__ import annotations

from itertools import zip_longest
from types import SimpleNamespace

import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language.tasks import EnvTurns, LakePlans, LakeTurns, tasks_of
from envtuning.worlds.text_player import Conversation, Reply
from mapf_frozenlake.text.trl import prompt_row
from mapf_frozenlake.types import Action

CONFIG = mfl.LakeConfig.model_validate(
    {"num_agents": 2, "reward": "shaped", "slices": {4: {"hole_ratio": 0.2}, 5: {"hole_ratio": 0.1}}, "horizon": 9}
)


def boards(rows):
    return [mfl.from_text(row["metadata"]["text"]) for row in rows]


def test_lakes_are_asked_for_plans_or_turn_by_turn_and_other_worlds_by_their_environments():
    def world(name, mode):
        return SimpleNamespace(about=SimpleNamespace(name=name), mode=mode, style="short")

    assert type(tasks_of(world("lakes", "plan"), {}, ())) is LakePlans
    assert type(tasks_of(world("lakes", "turns"), {}, ())) is LakeTurns
    assert type(tasks_of(world("words", "turns"), {}, ())) is EnvTurns
    assert (LakePlans.turns, LakeTurns.turns, EnvTurns.turns) == (False, True, True)


@pytest.mark.parametrize("style", ["short", "paper"])
def test_a_plan_is_asked_for_as_in_the_dataset(style):
    rows = LakePlans(style, ()).rows(CONFIG, 6, seed=1)
    for row, board in zip(rows, boards(rows), strict=True):
        assert row["prompt"] == prompt_row(board, CONFIG.reward, style)["prompt"]
        assert row["metadata"]["slice"] == str(board.height)
    assert {row["metadata"]["slice"] for row in rows} == {"4", "5"}


@pytest.mark.parametrize("style", ["short", "paper"])
def test_turn_by_turn_the_first_question_is_the_environments_own(style):
    tasks = LakeTurns(style, ())
    rows = tasks.rows(CONFIG, 6, seed=1)
    for case, (row, board) in enumerate(zip(rows, boards(rows), strict=True)):
        env, seed, options = tasks.begin(case)
        assert row["prompt"] == [{"role": "user", "content": env.reset(seed=seed, options=options)[0], "case": case}]
        assert options["instance"].key() == board.key()
        assert row["metadata"]["slice"] == str(board.height)


@pytest.mark.parametrize("kind", [LakePlans, LakeTurns])
def test_boards_come_back_with_their_seed_and_none_is_held_out(kind):
    held_out = mfl.generate(CONFIG, n=12, seed=3)
    drawn = boards(kind("short", ()).rows(CONFIG, 12, seed=3))
    assert drawn == boards(kind("short", ()).rows(CONFIG, 12, seed=3))
    kept = boards(kind("short", [held_out]).rows(CONFIG, 12, seed=3))
    assert {board.key() for board in drawn} & {board.key() for board in held_out}
    assert not {board.key() for board in kept} & {board.key() for board in held_out}


def test_a_walk_over_a_lake_is_worth_the_sum_of_its_rewards_and_fails_as_the_judge_says():
    tasks = LakeTurns("short", ())
    tasks.boards = list(mfl.generate(mfl.LakeConfig.single(3, num_agents=2, hole_ratio=0.0), n=1, seed=0))
    plan = mfl.solve(tasks.boards[0]).plan
    steps = [{"actions": list(actions)} for actions in zip_longest(*plan, fillvalue=int(Action.WAIT))]

    def judged(infos, cut=False, **last):
        talk = Conversation(
            rewards=[0.5, 0.25], infos=[*infos[:-1], infos[-1] | last], replies=[Reply("x", truncated=cut)]
        )
        return tasks.judge(0, talk)

    still = [{"actions": [int(Action.WAIT)] * 2}] * 2
    assert judged(steps, valid=True) == (0.75, None)
    assert judged(still, valid=False) == (0.75, "goal_missed")
    assert judged(still, parse_error="no moves") == (0.75, "parse_error")
    assert judged(still, parse_error="no moves", cut=True) == (0.75, "truncated")
    assert judged(still, cut=True) == (0.75, "goal_missed")  # cut, but its moves could be read
    assert judged(steps, valid=False) == (0.75, "goal_missed")  # the environment has the last word on its own goals
    off = [{"actions": [int(Action.UP)] * 2}] * 3
    assert (
        judged(off)
        == (0.75, str(mfl.judge(tasks.boards[0], [[int(Action.UP)] * 3] * 2).failure))
        != (0.75, "goal_missed")
    )
    assert tasks.judge(0, Conversation()) == (0, "goal_missed")


@pytest.mark.parametrize(
    ("infos", "cut", "kind"),
    [
        ([{}, {"success": True, "failure": "late"}], True, None),
        ([{"success": True}, {"success": False, "failure": "late"}], False, "late"),
        ([{"failure": "late"}], True, "truncated"),
        ([{}], False, "failed"),
        ([], False, "failed"),
    ],
)
def test_a_conversation_with_another_world_fails_as_its_last_word_says(infos, cut, kind):
    talk = Conversation(rewards=[1.0, -0.5], infos=infos, replies=[Reply("x", truncated=cut)])
    assert EnvTurns(None, {}, ()).judge(0, talk) == (0.5, kind)


def test_a_case_of_another_world_is_its_environment_reset_with_the_cases_own_seed():
    class Dealing:
        """Its question is the seed."""

        def reset(self, *, seed, options):
            return f"case of {seed}", {"slice": seed % 2} if seed % 3 else {}

    made = []

    def make_env(config, *, exclude, room, seed):
        made.append((config, exclude, room, seed))
        return Dealing()

    tasks = EnvTurns(SimpleNamespace(make_env=make_env), {"size": 3}, ("held out",))
    rows = tasks.rows("config", 8, seed=1)
    assert made == [("config", ("held out",), {"size": 3}, seed) for seed in tasks.seeds]
    assert len(set(tasks.seeds)) == 8
    assert all(0 <= seed < 2**31 for seed in tasks.seeds)
    for case, (row, seed) in enumerate(zip(rows, tasks.seeds, strict=True)):
        assert row["prompt"] == [{"role": "user", "content": f"case of {seed}", "case": case}]
        assert row["metadata"] == {"slice": str(seed % 2) if seed % 3 else "all"}
        assert tasks.begin(case)[1:] == (seed, None)
    seeds = tasks.seeds
    tasks.rows("config", 8, seed=2)
    assert not set(seeds) & set(tasks.seeds)
