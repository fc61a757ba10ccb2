"""The world's side of GRPO: what is asked, which boards, what a played conversation is worth and how it failed."""

from __future__ import annotations

from itertools import zip_longest
from types import SimpleNamespace

import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language.tasks import EnvTurns, LakePlans, LakeTurns, tasks_of
from envtuning.worlds.lakes.play import play_lakes
from envtuning.worlds.text_player import Conversation, Reply, converse
from mapf_frozenlake.instance_set import InstanceSet
from mapf_frozenlake.text.trl import prompt_row
from mapf_frozenlake.types import Action

CONFIG = mfl.LakeConfig.model_validate(
    {"num_agents": 2, "reward": "shaped", "slices": {4: {"hole_ratio": 0.2}, 5: {"hole_ratio": 0.1}}, "horizon": 9}
)


def boards(rows):
    return [mfl.from_text(row["metadata"]["text"]) for row in rows]


def test_lakes_are_asked_for_plans_or_turn_by_turn_and_other_worlds_by_their_environments():
    from envtuning.worlds.lakes.world import LakeWorld

    assert type(tasks_of(LakeWorld(mode="plan"), {}, ())) is LakePlans
    assert type(tasks_of(LakeWorld(mode="turns"), {}, ())) is LakeTurns
    assert type(tasks_of(SimpleNamespace(), {}, ())) is EnvTurns


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


def test_a_walk_over_a_lake_is_worth_its_configs_reward_by_the_judges_verdict_and_fails_as_in_validation():
    """What each step paid does not matter: a walk with a violation, or with a reply that was not read, is no success."""
    tasks = LakeTurns("short", ())
    tasks.boards = list(mfl.generate(mfl.LakeConfig.single(3, num_agents=2, hole_ratio=0.0), n=1, seed=0))
    plan = mfl.solve(tasks.boards[0]).plan
    steps = [{"actions": list(actions)} for actions in zip_longest(*plan, fillvalue=int(Action.WAIT))]

    def judged(infos, reward="sparse", cut=False, **last):
        tasks.config = mfl.LakeConfig(reward=reward)
        talk = Conversation(
            rewards=[0.5, 0.25], infos=[*infos[:-1], infos[-1] | last], replies=[Reply("x", truncated=cut)]
        )
        return tasks.judge(0, talk)[:2]

    still = [{"actions": [int(Action.WAIT)] * 2}] * 2
    off = [{"actions": [int(Action.UP)] * 2}] * 3
    violation = str(mfl.judge(tasks.boards[0], [[int(Action.UP)] * 3] * 2).failure)
    assert violation != "goal_missed"
    assert judged(steps) == judged(steps, cut=True) == judged(steps, "progress") == (1.0, None)
    assert judged(steps, "shaped")[0] > 1.0
    assert judged([*off, *steps]) == (0.0, violation)
    assert judged(steps, parse_error="no moves", success=True) == (0.0, "parse_error")
    assert judged(steps, "legal", parse_error="no moves", cut=True) == (0.0, "truncated")
    assert judged(still) == judged(still, cut=True) == (0.0, "goal_missed")
    assert judged(still, "legal") == (1.0, "goal_missed")


def test_training_and_validation_agree_on_every_walk():
    """The same walks, played in both: paid 1 where valid and 0 elsewhere, with the same kinds of failure."""
    config = CONFIG.model_copy(update={"reward": "sparse"})
    tasks = LakeTurns("short", ())
    tasks.rows(config, 40, seed=2)
    boards = InstanceSet.from_instances(tasks.boards)

    def reply(conversations, *, seed):
        """The optimal moves; some boards' second reply cannot be read."""
        said = []
        for messages in conversations:
            board, turn = mfl.from_text(messages[0]["content"]), len(messages) // 2
            lines = [line[turn] if turn < len(line) else int(Action.WAIT) for line in mfl.solve(board).plan]
            words = "\n".join(f"Agent {agent}: {Action(move).name}" for agent, move in enumerate(lines))
            said.append("hm" if turn == 1 and int(board.starts.sum()) % 2 else words)
        return said

    policy = SimpleNamespace(reply=reply)
    validated = play_lakes(policy, boards, config, seed=0, mode="turns", style="short")
    envs, seeds, options = zip(*map(tasks.begin, range(40)), strict=True)
    talks = converse(envs, policy, seeds=seeds, options=options)
    trained = [tasks.judge(case, talk) for case, talk in enumerate(talks)]
    scores = [0.0 if one.verdict is None else one.verdict.score for one in validated]
    assert trained == [
        (one.metrics["valid_rate"], one.failure, score) for one, score in zip(validated, scores, strict=True)
    ]
    assert {failure for _, failure, _ in trained} >= {None, "parse_error"}


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
    assert EnvTurns(None, {}, ()).judge(0, talk) == (0.5, kind, float(kind is None))


def test_a_case_of_another_world_is_its_environment_reset_with_the_cases_own_seed():
    class Dealing:
        """Its question is the seed."""

        def reset(self, *, seed, options):
            return f"case of {seed}", {"slice": seed % 2} if seed % 3 else {}

        def close(self):
            pass

    made = []

    def make_env(config, *, exclude, capacity, seed):
        made.append((config, exclude, capacity, seed))
        return Dealing()

    tasks = EnvTurns(SimpleNamespace(make_env=make_env), {"size": 3}, ("held out",))
    rows = tasks.rows("config", 8, seed=1)
    assert made == [("config", ("held out",), {"size": 3}, seed) for seed in tasks.seeds]
    assert len(set(tasks.seeds)) == 8
    assert all(0 <= seed < 2**31 for seed in tasks.seeds)
    for case, (row, seed) in enumerate(zip(rows, tasks.seeds, strict=True)):
        assert row["prompt"] == [{"role": "user", "content": f"case of {seed}", "case": case}]
        assert row["metadata"] == {"slice": str(seed % 2) if seed % 3 else "all", "case": f"case of {seed}"}
        assert tasks.begin(case)[1:] == (seed, None)
    seeds = tasks.seeds
    tasks.rows("config", 8, seed=2)
    assert not set(seeds) & set(tasks.seeds)


@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_a_config_whose_boards_cannot_be_drawn_is_infeasible(mode):
    """As where every board of its size is held out."""
    from envtuning.worlds.lakes.world import LakeWorld
    from envtuning.worlds.world import InfeasibleConfig

    config = mfl.LakeConfig.single(2, num_agents=2)
    world = LakeWorld(mode=mode, style="short")
    tasks = tasks_of(world, {}, [mfl.generate(config, n=500, seed=0)])
    with pytest.raises(InfeasibleConfig, match="no board in 20000 draws"):
        tasks.rows(config, 4, seed=0)


def test_every_environment_that_is_made_is_closed():
    from envtuning.trainees.language.rollouts import rollout

    opened, closed = [], []

    class Env:
        def __init__(self):
            opened.append(self)

        def reset(self, seed=None, options=None):
            return "question", {}

        def step(self, action):
            return "over", 1.0, True, False, {"success": True}

        def close(self):
            closed.append(self)

    class Silent:
        tokenizer, template = (
            SimpleNamespace(chat_template="", apply_chat_template=lambda talk, **_: "answer second"),
            {},
        )

        def prompt(self, messages):
            return [1]

        def sample(self, prompts):
            return [[2] for _ in prompts]

        def told(self, prompt, written):
            return Reply("yes")

    world = SimpleNamespace(about=SimpleNamespace(name="words"), make_env=lambda config, **_: Env())
    tasks = EnvTurns(world, {}, ())
    rows = tasks.rows(None, 3, seed=0)
    assert rollout(Silent(), [row["prompt"] for row in rows], tasks.begin, tasks.judge)["paid"] == [1.0] * 3
    assert len(opened) == 6
    assert set(map(id, closed)) == set(map(id, opened))
    assert len(closed) == 6
