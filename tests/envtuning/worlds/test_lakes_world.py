"""The lakes' world: every form of policy on the same boards, ice that slips, and sets that are apart."""

from __future__ import annotations

from importlib import import_module
from unittest.mock import Mock

import numpy as np
import pytest

from envtuning.worlds import UnknownWorld, make_world
from envtuning.worlds.lakes import episodes as lake_episodes
from envtuning.worlds.lakes import play as play_module
from envtuning.worlds.lakes.episodes import plan_of
from envtuning.worlds.lakes.world import LakeWorld
from envtuning.worlds.text_player import Reply
from envtuning.worlds.world import InfeasibleConfig
from mapf_frozenlake import LakeConfig, from_text, generate, plan_prompt, solve
from mapf_frozenlake.text import turns_prompt
from mapf_frozenlake.types import NUM_ACTIONS, Action
from mapf_frozenlake.world.batch import LakeBatch
from mapf_frozenlake.world.rewards import REWARDS

TARGET = LakeConfig(num_agents=2, slices={3: {"hole_ratio": 0.2}, 4: {"hole_ratio": 0.2}})
WORDS = {int(action): action.name for action in Action}


@pytest.fixture(scope="module")
def boards():
    return LakeWorld().draw(TARGET, 10, seed=1, purpose="validation", exclude=())


def in_words(plan) -> str:
    return "\n".join(f"Agent {n}: {' '.join(WORDS[move] for move in moves) or 'WAIT'}" for n, moves in enumerate(plan))


class Writer:
    """Solves what it reads in the prompt, and writes the plan down."""

    def reply(self, conversations, *, seed):
        return [Reply(in_words(solve(from_text(m[-1]["content"])).plan), tokens=10) for m in conversations]


def test_a_solver_and_a_model_that_writes_its_plans_are_judged_alike(boards):
    solved = LakeWorld().play(lambda board: solve(board), boards, TARGET, seed=0)
    written = LakeWorld().play(Writer(), boards, TARGET, seed=0)
    assert [one.metrics for one in written] == [one.metrics for one in solved]
    assert all(one.metrics["optimal_rate"] == 1.0 for one in solved)
    assert written[0].cost["tokens"] == 10
    assert written[0].cost["samples"] == written[0].cost["episodes"] == 1
    assert [one.slice for one in solved] == [str(height) for height in boards.heights.tolist()]


class Turner:
    """Writes the next move of a plan that it makes at the first turn of each conversation."""

    def reply(self, conversations, *, seed):
        said = []
        for messages in conversations:
            plan = solve(from_text(messages[0]["content"])).plan
            turn = len(messages) // 2
            moves = [line[turn] if turn < len(line) else int(Action.WAIT) for line in plan]
            said.append("\n".join(f"Agent {n}: {WORDS[move]}" for n, move in enumerate(moves)))
        return said


def test_move_by_move_is_judged_as_the_plan_that_it_comes_to(boards):
    episodes = LakeWorld(mode="turns").play(Turner(), boards, TARGET, seed=0)
    assert all(one.metrics["optimal_rate"] == 1.0 for one in episodes)
    assert [one.cost["env_steps"] for one in episodes] == [board.makespan for board in boards]
    assert {one.cost["samples"] for one in episodes} == {1}  # as in training, where a conversation is one sample


def test_a_reply_that_was_cut_off_is_another_failure_than_one_that_is_nonsense(boards):
    class Cut:
        def reply(self, conversations, *, seed):
            return [Reply("Let me think", truncated=number % 2 == 0) for number in range(len(conversations))]

    episodes = LakeWorld().play(Cut(), boards, TARGET, seed=0)
    assert [one.failure for one in episodes[:4]] == ["truncated", "parse_error"] * 2
    case = LakeWorld().explain(boards, episodes[0])
    assert case.kind == "truncated"
    assert case.picture


class Straight:
    """A neural policy that always wants to go right."""

    env_kwargs = {"observation": "compact"}  # noqa: RUF012

    def act(self, observation):
        return np.full(observation.shape[:2], int(Action.RIGHT), np.int64)


@pytest.fixture
def counted(monkeypatch):
    """How often a plan is judged, and how often one is played for that; each function has one name more in the lakes' world."""
    judge = import_module("mapf_frozenlake.judge")
    judging, playing = Mock(wraps=judge.judge_and_play), Mock(wraps=judge.play)
    monkeypatch.setattr(judge, "judge_and_play", judging)
    monkeypatch.setattr(lake_episodes, "judge_and_play", judging)
    monkeypatch.setattr(judge, "play", playing)
    return lambda: (judging.call_count, playing.call_count)


class Saying:
    """Replies the same to everything."""

    def __init__(self, said):
        self.said = said

    def reply(self, conversations, *, seed):
        return [self.said] * len(conversations)


@pytest.mark.parametrize(
    ("mode", "policy", "played"),
    [
        ("plan", Straight(), 5),
        ("plan", lambda board: [[int(Action.RIGHT)] * 3] * 2, 5),
        ("plan", Saying("?"), 0),  # nothing was read that could be played
        ("turns", Saying("Agent 0: RIGHT\nAgent 1: RIGHT"), 5),
    ],
    ids=["acts", "plans", "replies", "turns"],
)
def test_each_episode_is_judged_once_and_played_once(boards, counted, mode, policy, played):
    """What is told of an episode afterwards, its behaviour and what went wrong, goes by the verdict that was kept."""
    world, boards = LakeWorld(mode=mode), boards[np.arange(5)]
    episodes = world.play(policy, boards, TARGET, seed=0)
    assert counted() == (5, played)
    world.behaviour(boards, episodes)
    failures = [world.explain(boards, episode) for episode in episodes if not episode.succeeded]
    assert failures
    assert counted() == (5, played)


def test_on_ice_that_slips_the_moves_that_came_of_it_are_judged(boards):
    """The judge's verdict is the environment's own, episode by episode, by the same seeds."""
    slippery = TARGET.model_copy(update={"is_slippery": True, "success_rate": 0.5})
    rng = np.random.default_rng(0)
    table = rng.integers(0, NUM_ACTIONS, size=(200, len(boards), 2))

    class Random(Straight):
        def __init__(self):
            self.step = -1

        def act(self, observation):
            self.step += 1
            return table[self.step]

    episodes = LakeWorld().play(Random(), boards, slippery, seed=5)
    batch = LakeBatch(slippery, len(boards), observation="compact", max_size=4, max_agents=2, autoreset="disabled")
    batch.seed(5 + np.arange(len(boards)))
    batch.reset(instances=boards)
    running = np.ones(len(boards), bool)
    for step in range(200):
        before = batch.positions.copy()
        result = batch.step(table[step])
        for case in np.flatnonzero(running):
            line = plan_of(episodes[case].trace)
            made = [moves[step] for moves in line]
            went = batch.positions[case] - before[case]
            for agent, move in enumerate(made):  # who changed its cell went where the recorded move leads
                if went[agent].any():
                    assert {0: (0, -1), 1: (1, 0), 2: (0, 1), 3: (-1, 0)}[move] == tuple(went[agent])
        ended = result.terminated | result.truncated
        over = ended & running
        for case in np.flatnonzero(over):
            assert bool(episodes[case].metrics["valid_rate"]) == bool(batch.valid[case] > 0)
            assert batch.failures[case] == batch.failure_of(case) == episodes[case].failure
            assert max(map(len, plan_of(episodes[case].trace))) == step + 1
        running &= ~over
        if not running.any():
            break
        if ended.any():
            batch.reset(ended.copy(), instances=boards[np.flatnonzero(ended)])
    assert not running.any()
    assert {one.failure for one in episodes} >= {"hole", "conflict", "illegal_move"}
    assert all("optimal_rate" not in one.metrics for one in episodes)


def test_slippery_play_is_a_function_of_its_seed(boards):
    slippery = TARGET.model_copy(update={"is_slippery": True})
    play = [LakeWorld().play(Straight(), boards, slippery, seed=seed) for seed in (3, 3, 4)]
    assert play[0] == play[1]
    assert play[0] != play[2]


def test_a_target_that_slips_is_for_policies_that_act():
    slippery = TARGET.model_copy(update={"is_slippery": True})
    LakeWorld().check_target(slippery, "acts")
    for form in ("plans", "replies"):
        with pytest.raises(InfeasibleConfig, match="no fixed outcome"):
            LakeWorld().check_target(slippery, form)


@pytest.mark.parametrize("form", ["acts", "plans", "replies"])
def test_a_target_has_the_goals_that_cases_are_judged_by(form):
    with pytest.raises(InfeasibleConfig, match="on_goal='finish', but cases are judged by on_goal='wait'"):
        LakeWorld().check_target(TARGET.model_copy(update={"on_goal": "finish"}), form)


def test_a_crowd_without_letters_is_refused_where_a_model_reads_letters():
    crowd = LakeConfig.single(8, 30)
    for form, style in (("acts", "paper"), ("plans", "paper"), ("replies", "coordinates")):
        LakeWorld(style=style).check_form(crowd, form)
    LakeWorld().check_form(LakeConfig.single(8, 24), "replies")
    for style in ("paper", "short"):
        with pytest.raises(InfeasibleConfig, match=f"30 agents: style '{style}' has letters for 24"):
            LakeWorld(style=style).check_form(crowd, "replies")


def test_a_reward_that_pays_no_plan_is_refused_for_models_that_write_plans(monkeypatch):
    monkeypatch.setitem(REWARDS, "sparse", REWARDS["sparse"]._replace(of_plan=None))
    config = LakeConfig.single(4, 2, reward="sparse")
    LakeWorld().check_form(config, "acts")
    with pytest.raises(InfeasibleConfig, match="sparse"):
        LakeWorld().check_form(config, "replies")


def test_what_is_said_of_the_boards_of_a_size_is_counted_on_them(boards):
    said = LakeWorld().drawn(TARGET, boards)
    for size in (3, 4):
        of_size = [board for board in boards if board.height == size]
        assert said[str(size)]["share"] == pytest.approx(len(of_size) / len(boards))
        ratios = [board.holes.sum() / (size * size - 4) for board in of_size]
        assert said[str(size)]["hole_ratio"] == pytest.approx(np.mean(ratios), abs=1e-3)
        ways = [np.abs(board.starts.astype(int) - board.goals).sum(axis=1).mean() for board in of_size]
        assert said[str(size)]["distance"] == pytest.approx(np.mean(ways), abs=1e-3)


def test_an_environment_for_training_begins_where_its_seed_says():
    capacity = {"max_size": 4, "max_agents": 2}

    def boards_of(seed):
        env = LakeWorld().make_env(TARGET, exclude=(), capacity=capacity, seed=seed)
        return [env.reset()[0].tobytes() for _ in range(3)]

    assert boards_of(1) == boards_of(1) != boards_of(2)


def test_worlds_are_made_by_name_or_place():
    assert isinstance(make_world("envtuning.worlds.lakes.world:LakeWorld", mode="turns"), LakeWorld)
    for name, options, says in [
        ("seas", {}, "no world 'seas': the worlds are lakes"),
        ("no.module:World", {}, "cannot be imported"),
        ("envtuning.seeds:World", {}, "has no 'World'"),
        ("envtuning.seeds:derive", {"seed": 1}, "envtuning.seeds:derive"),
        ("lakes", {"depth": 3}, "cannot be made with these options"),
    ]:
        with pytest.raises(UnknownWorld, match=says):
            make_world(name, **options)


def test_a_reply_without_a_plan_has_a_film_in_which_nobody_moves(boards):
    class Silent:
        def reply(self, conversations, *, seed):
            return [Reply("", truncated=True) for _ in conversations]

    episode = LakeWorld().play(Silent(), boards, TARGET, seed=0)[0]
    film = LakeWorld().film(boards, episode)
    assert episode.failure == "truncated"
    assert len(film.frames) == 1
    assert film.svg.startswith("<svg")
    assert film.reply == ""


@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_what_a_policy_writes_stays_with_its_episode_the_end_of_it_if_it_is_long(boards, mode):
    plan = "Agent 0: wait\nAgent 1: wait"

    def brief(text: str) -> str:
        return plan

    def wordy(text: str) -> str:
        return "Hm. " * 600 + plan

    world, boards = LakeWorld(mode=mode), boards[:1]
    episode = world.play(brief, boards, TARGET, seed=0)[0]
    whole = "\n".join([plan] * episode.cost["env_steps"])
    assert episode.trace["reply"] == (whole if len(whole) <= 2_000 else f"…{whole[-1_999:]}")
    assert world.film(boards, episode).reply == episode.trace["reply"]
    reply = world.play(wordy, boards, TARGET, seed=0)[0].trace["reply"]
    assert (len(reply), reply[0], reply[-len(plan) :]) == (2_000, "…", plan)


def test_a_turn_that_nobody_can_read_is_told_apart_from_one_that_was_cut_off(boards):
    class Mumbling:
        def __init__(self, truncated):
            self.truncated = truncated

        def reply(self, conversations, *, seed):
            return [Reply("I would rather", truncated=self.truncated) for _ in conversations]

    for truncated, failure in ((True, "truncated"), (False, "parse_error")):
        episodes = LakeWorld(mode="turns").play(Mumbling(truncated), boards, TARGET, seed=0)
        assert {episode.failure for episode in episodes} == {failure}


def test_what_a_failed_case_is_explained_by_is_its_note_where_it_has_one(boards):
    """A reply that nobody could read has a note of where; a plan that was played is explained by its moves."""

    class Mute:
        def reply(self, conversations, *, seed):
            return [Reply("I do not know", tokens=4) for _ in conversations]

    world = LakeWorld()
    (first, *_) = world.play(Mute(), boards, TARGET, seed=0)
    assert first.note
    case = world.explain(boards, first)
    assert (case.explanation, case.kind, case.slice, case.case_id) == (first.note, "parse_error", first.slice, "0")
    (still, *_) = world.play(lambda board: [[]] * board.num_agents, boards, TARGET, seed=0)
    assert still.note is None
    assert "ended at" in world.explain(boards, still).explanation


def test_waits_and_makespans_that_nobody_knows_are_not_counted():
    """Of four boards one needs a wait, one needs none, of two it is unknown: half, not a quarter."""
    from dataclasses import replace

    config = LakeConfig.single(4, num_agents=2, wait_ratio=0.5)
    known = LakeWorld().draw(config, 4, seed=3, purpose="probe", exclude=())
    needs = known.needs_wait.copy()
    makespan = known.makespan.copy()
    assert sorted(needs.tolist()) == [0, 0, 1, 1]
    unknown = [int(np.flatnonzero(needs == 0)[0]), int(np.flatnonzero(needs == 1)[0])]
    needs[unknown], makespan[unknown] = -1, -1
    half = replace(known, needs_wait=needs, makespan=makespan)
    row = LakeWorld().drawn(config, half)["4"]
    assert row["wait_ratio"] == 0.5
    assert row["least_makespan"] == pytest.approx(makespan[makespan >= 0].mean(), abs=1e-3)
    needs[:], makespan[:] = -1, -1
    assert (
        not {"wait_ratio", "least_makespan"}
        & LakeWorld().drawn(config, replace(known, needs_wait=needs, makespan=makespan))["4"].keys()
    )


def test_a_config_without_boards_is_refused_and_training_deals_the_config():
    with pytest.raises(InfeasibleConfig):
        LakeWorld().check(LakeConfig.single(3, num_agents=2, hole_ratio=0.7, min_distance=4, wait_ratio=1.0))
    LakeWorld().check(TARGET)
    env = LakeWorld().make_env(TARGET, exclude=(), capacity={"max_size": 4, "max_agents": 2}, seed=0)
    assert env.unwrapped.get_config() == TARGET


def test_a_probe_is_dealt_as_the_stage_is_and_a_held_out_set_by_size(boards):
    config = TARGET.model_copy(
        update={"slices": {3: TARGET.slices[3], 4: TARGET.slices[4].model_copy(update={"share": 0.2})}}
    )
    first = generate(config, n=12, seed=3)
    drawn = LakeWorld().draw(config, 6, seed=3, purpose="probe", exclude=(first,))
    assert drawn == generate(config, n=12, seed=3, exclude=(first,)) != first
    assert LakeWorld().draw(config, 6, seed=3, purpose="probe", exclude=()) == first
    held_out = LakeWorld().draw(config, 6, seed=3, purpose="validation", exclude=(boards,))
    assert np.unique(held_out.heights, return_counts=True)[1].tolist() == [6, 6]


@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_a_reply_that_was_cut_behind_its_moves_is_played(boards, mode):
    class CutBehind:
        def reply(self, conversations, *, seed):
            return [Reply("Agent 0: WAIT\nAgent 1: WAIT\nand now", truncated=True) for _ in conversations]

    [episode] = LakeWorld(mode=mode).play(CutBehind(), boards[:1], TARGET, seed=0)
    assert episode.failure == "goal_missed"


@pytest.mark.parametrize("style", ["short", "paper"])
@pytest.mark.parametrize("mode", ["plan", "turns"])
def test_a_policy_of_words_reads_the_runs_style_and_a_case_has_a_seed_of_its_own(boards, mode, style, monkeypatch):
    read, seeds, play = [], [], play_module.converse

    class Reading:
        def reply(self, conversations, *, seed):
            read.extend(messages[0]["content"] for messages in conversations)
            return ["?"] * len(conversations)

    monkeypatch.setattr(
        play_module, "converse", lambda *given, **named: seeds.append(named["seeds"]) or play(*given, **named)
    )
    config = TARGET.model_copy(update={"horizon": 7})
    LakeWorld(mode=mode, style=style).play(Reading(), boards[:3], config, seed=5)
    asked = turns_prompt if mode == "turns" else plan_prompt
    given = (7, style) if mode == "turns" else (style,)
    assert read[:3] == [asked(board, *given) for board in boards[:3]]
    assert seeds == ([[5, 6, 7]] if mode == "turns" else [])


def test_a_solver_without_a_plan_leaves_everybody_standing_and_one_that_raises_fails_its_board(boards):
    def solver(board):
        if board.height == 4:
            raise ValueError("too large")

    for episode in LakeWorld().play(solver, boards, TARGET, seed=0):
        if episode.slice == "3":
            assert (episode.failure, episode.trace["moves"]) == ("goal_missed", ["", ""])
        else:
            assert (episode.failure, episode.note) == ("policy_error", "ValueError: too large")
        assert episode.cost == {"env_steps": 1, "episodes": 1}


def test_a_neural_policy_that_raises_on_one_board_fails_that_one_alone(boards):
    class Choosy(Straight):
        def __init__(self, refused):
            self.refused = refused

        def act(self, observation):
            if self.refused(observation):
                raise ValueError("not this one")
            return super().act(observation)

    expected = LakeWorld().play(Straight(), boards[:3], TARGET, seed=0)
    seen = []
    LakeWorld().play(
        Choosy(lambda observation: seen.append(observation[1].copy()) or False), boards[:3], TARGET, seed=0
    )
    found = LakeWorld().play(
        Choosy(lambda observation: any(np.array_equal(one, seen[0]) for one in observation)), boards[:3], TARGET, seed=0
    )
    assert [one.failure for one in found].count("policy_error") == 1
    assert found[1].note == "ValueError: not this one"
    assert [found[case].to_json() for case in (0, 2)] == [expected[case].to_json() for case in (0, 2)]
