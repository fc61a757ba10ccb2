"""Tool use in the loop: what is drawn, played and told."""

import json
from collections import Counter

import pytest

from engineers import AnswerFormat, Context, StageReport, make, redaction
from engineers.knobs import find_knobs
from engineers.model.prompt import build_prompt
from engineers.report import FailureCase
from envtuning.trainees.language.tasks import EnvTurns
from envtuning.worlds.bfcl.calls import as_reply
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.hints import WrittenHints
from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.pool import TaskPool
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.splits import by_scenario
from envtuning.worlds.bfcl.tasks import find_task, load_tasks, scenario_of
from envtuning.worlds.bfcl.transcript import transcript
from envtuning.worlds.bfcl.world import BFCLCases
from envtuning.worlds.episodes import rates
from envtuning.worlds.registry import make_world
from envtuning.worlds.world import InfeasibleConfig, TooFewCases

ALL = BFCLConfig()
BASE = BFCLConfig(slices={"base": {}})


@pytest.fixture(scope="module")
def world(v4):
    return make_world("tools")


class GroundTruth:
    """Says each turn's calls and then that it is done; finds the task by its question."""

    def __init__(self, package, split):
        self.turns = {task.questions[0]: task for task in load_tasks(package, split)}

    def reply(self, conversations, *, seed):
        return [self._next(messages) for messages in conversations]

    def _next(self, messages):
        first = messages[0]["content"].rpartition("\n\nUser: ")[2]
        task = self.turns[first]
        said = [m["content"] for m in messages if m["role"] == "assistant"]
        turn = said.count(DONE)
        wanted = task.ground_truth[turn]
        return as_reply(wanted) if wanted and (not said or said[-1] == DONE) else DONE


def test_held_out_sets_are_of_their_scenarios_and_disjoint(world):
    validation = world.draw(ALL, 10, seed=1, purpose="validation", exclude=())
    test = world.draw(ALL, 30, seed=1, purpose="test", exclude=(validation,))
    probe = world.draw(BASE, 20, seed=1, purpose="probe", exclude=(validation, test))
    cut = by_scenario()
    assert validation.fingerprints() <= cut.validation
    assert test.fingerprints() <= cut.test
    assert probe.fingerprints() <= cut.train
    assert len(validation) == 40
    assert len(test) == 120
    assert all(task_id.startswith("multi_turn_base_") for task_id in probe.ids)
    assert world.draw(ALL, 10, seed=1, purpose="validation", exclude=()) == validation
    with pytest.raises(TooFewCases, match="20"):
        world.draw(ALL, 21, seed=1, purpose="validation", exclude=())


def test_a_held_out_set_has_each_scenario_as_rarely_as_can_be(world):
    """Then a run's intervals, which count tasks, count independent ones."""
    test = world.draw(ALL, 25, seed=1, purpose="test", exclude=())
    assert len(test) == len(test.fingerprints()) == 100
    validation = world.draw(ALL, 12, seed=1, purpose="validation", exclude=())
    times = Counter(map(scenario_of, validation.ids))
    assert len(times) == 20
    assert set(times.values()) == {2, 3}


@pytest.mark.parametrize("config", [ALL, BASE], ids=["every split", "base"])
def test_no_training_reset_deals_a_held_out_task(world, config):
    validation = world.draw(ALL, 10, seed=1, purpose="validation", exclude=())
    test = world.draw(ALL, 30, seed=1, purpose="test", exclude=(validation,))
    env = world.make_env(config, exclude=(validation, test), capacity={}, seed=3)
    dealt = {find_task(world.package, env.reset(seed=7 if n == 0 else None)[1]["task"]).scenario for n in range(60)}
    assert len(dealt) > 20
    assert not dealt & (validation.fingerprints() | test.fingerprints())


def test_a_config_counts_as_it_was_when_it_was_set(world):
    config = BFCLConfig(slices={"base": {}})
    env = world.make_env(config)
    config.slices["miss_func"] = config.slices.pop("base")
    env.get_config().slices.clear()
    assert env.reset(seed=1)[1]["slice"] == "base"


def test_a_training_reset_for_no_task_in_particular_deals_one(world):
    env = world.make_env(BASE)
    dealt = {scenario_of(env.reset(options={"task": None})[1]["task"]) for _ in range(20)}
    assert dealt <= by_scenario().train


def test_a_config_of_which_no_task_can_be_held_out_says_what_to_allow(world):
    with pytest.raises(TooFewCases, match="allow more turns, or give more tools weight"):
        world.draw(BFCLConfig(max_turns=1), 5, seed=1, purpose="validation", exclude=())


def test_cases_come_back_from_the_disk(world, tmp_path):
    cases = world.draw(ALL, 5, seed=1, purpose="validation", exclude=())
    cases.save(tmp_path / "cases.json")
    assert world.load(tmp_path / "cases.json") == cases


def test_ground_truth_solves_what_the_world_plays(world, v4):
    target = BFCLConfig(slices={"miss_func": {}})
    cases = world.draw(target, 20, seed=1, purpose="validation", exclude=())
    episodes = world.play(GroundTruth(v4, "miss_func"), cases, target, seed=0)
    assert [episode.failure for episode in episodes] == [None] * 20
    assert rates(episodes) == {"success_rate": 1.0, "progress": 1.0, "syntax": 1.0}
    assert all(episode.cost["episodes"] == 1 and episode.cost["env_steps"] > 1 for episode in episodes)


def test_silence_fails_and_is_told_readably(world):
    cases = world.draw(ALL, 5, seed=1, purpose="validation", exclude=())
    episodes = world.play(lambda text: "I would rather not.", cases, ALL, seed=0)
    assert rates(episodes) == {"success_rate": 0.0, "progress": 0.0, "syntax": 0.0}
    case = world.explain(cases, episodes[0])
    assert case.kind == "said_nothing"
    assert case.picture.startswith("User")
    assert "no call was made" in case.explanation
    assert json.dumps([episode.to_json() for episode in episodes])


def test_a_failed_case_is_told_by_the_first_turn_that_went_wrong(v4):
    task = find_task(v4, "multi_turn_base_0")
    assert task.turns > 1
    later = [reply for calls in task.ground_truth[1:] for reply in (as_reply(calls), DONE)]
    said, why = transcript(v4, task, [DONE, *later], None)
    assert said.startswith(f"User: {Conversation(v4, task, tool_style='none').said}")
    assert "(turn 2)" not in said  # what came after the silence
    assert said.count("Agent:") == 1
    assert why.startswith(f"Turn 1 of {task.turns}: no call was made.")


def test_an_episode_that_stopped_while_nothing_was_wrong_is_told_as_ended_early(v4):
    """Before its first turn ended; behind a turn that was right; behind one that has no ground truth to be wrong by."""
    task = next(task for task in load_tasks(v4, "miss_func") if task.ground_truth[0] and () in task.ground_truth)
    replies = []
    for calls in task.ground_truth[: 1 + task.ground_truth.index(())]:
        assert transcript(v4, task, replies, None)[1] == "The episode ended before its last turn."
        replies += [as_reply(calls), DONE] if calls else [DONE]
    said, why = transcript(v4, task, replies, None)
    assert why == "The episode ended before its last turn."
    assert said.startswith(f"User (turn {task.ground_truth.index(()) + 2}): ")


def walked(package, task):
    """The failed case of who makes a folder, goes there, looks where it is, and is cut off."""
    replies = ["[mkdir(dir_name='drafts')]", "[cd(folder='drafts')]", "[pwd()]"]
    picture, explanation = transcript(package, task, replies, None)
    return FailureCase(slice=task.split, kind="too_many_steps", picture=picture, explanation=explanation)


def user_prompt(cases):
    config = BFCLConfig()
    report = StageReport(stage=0, config=config.model_dump(mode="json"), failure_cases=cases)
    context = Context(failures=False, cases=True, case_tokens=10**6, token_budget=10**6)
    return build_prompt(report, AnswerFormat(config), context).messages[1]["content"]


def test_failure_cases_and_prompts_keep_the_paths_that_they_are_about(v4, monkeypatch):
    """A task for each root of the 800 tasks, whatever folders this machine has at its top; a real path is blanked."""
    monkeypatch.setattr(redaction, "_top_folders", lambda: frozenset({"workspace", "data", "tmp"}))
    states = {
        task: json.loads(task.state_json.get("GorillaFileSystem", "{}")) for s in SPLITS for task in load_tasks(v4, s)
    }
    by_root = {root: task for task, state in states.items() for root in list(state.get("root", ()))[:1]}
    assert {"workspace", "data", "tmp"} < set(by_root)
    told = [walked(v4, task) for task in by_root.values()]
    assert all(f'"/{root}/drafts"' in case.picture for root, case in zip(by_root, told, strict=True))
    text = user_prompt(told)
    assert all(case.picture in text for case in told)
    case = told[0]
    case.picture += f"\nFile {__file__}, line 3; /home/anna/notes.txt; sk-proj-abcdefghij0123456789; $MSFT"
    assert "File <path>, line 3; <path>; <redacted>; $MSFT" in user_prompt([case])


def test_a_failure_case_says_what_differs_and_no_values_of_the_ground_truth(world, v4):
    task = find_task(v4, "multi_turn_base_0")
    cases = BFCLCases((task.id,))

    class Wrong:
        def reply(self, conversations, *, seed):
            return [
                "[cd(folder='document')]" if len(talk) == 1 else "[pwd()]" if len(talk) == 3 else DONE
                for talk in conversations
            ]

    (episode,) = world.play(Wrong(), cases, BFCLConfig(slices={"base": {}}), seed=0)
    case = world.explain(cases, episode)
    assert case.kind == "wrong_state"
    assert "GorillaFileSystem.root" in case.explanation
    assert "/workspace/document" in case.picture
    assert not any(value in case.explanation for value in ("temp", "final_report"))


def test_what_cannot_be_drawn_or_must_not_be_said_is_refused(world):
    with pytest.raises(ValueError, match="every share is 0"):
        BFCLConfig(slices={"base": {"share": 0}})
    with pytest.raises(InfeasibleConfig, match="allow more turns"):
        world.check(BFCLConfig(tools=dict.fromkeys(ALL.tools, 0.0)))
    with pytest.raises(InfeasibleConfig, match="gives away"):
        world.check(BFCLConfig(hints={"cd: cd: {}: No such file or directory": "Look for final_report.pdf."}))
    world.check(ALL)


def test_the_pool_deals_by_shares_in_passes(v4):
    config = BFCLConfig(slices={"base": {"share": 0.75}, "miss_func": {"share": 0.25}}, pool_size=40, epochs=2)
    pool = TaskPool(v4, by_scenario(), config, seed=3)
    first, second, third = ([pool.deal().id for _ in range(40)] for _ in range(3))
    assert sorted(first) == sorted(second) != sorted(third)
    assert first != second
    dealt = [
        TaskPool(v4, by_scenario(), config.model_copy(update={"pool_size": 320}), seed=n).deal().split
        for n in range(400)
    ]
    assert 0.68 < dealt.count("base") / 400 < 0.82
    without = BFCLConfig(tools={"TravelAPI": 0.0})
    assert not any("TravelAPI" in TaskPool(v4, by_scenario(), without, seed=n).deal().classes for n in range(50))
    assert (
        TaskPool(v4, by_scenario(), config, seed=3).deal().id == TaskPool(v4, by_scenario(), config, seed=3).deal().id
    )


def test_the_rows_of_a_batch_and_the_stretches_of_a_stage_have_one_pool(world):
    config = BASE.model_copy(update={"pool_size": 2, "epochs": 100, "tool_style": "none"})
    rows = EnvTurns(world, {}, ()).rows(config, 12, seed=0)
    stretches = [{env.next_task().id for _ in range(4)} for env in (world.make_env(config, seed=n) for n in (1, 2))]
    assert len({row["prompt"][0]["content"] for row in rows}) == len(stretches[0]) <= 2
    assert stretches[0] == stretches[1]


def test_engineers_can_write_shares_tools_and_hints(world):
    key = "cd: cd: {}: No such file or directory"
    config = BFCLConfig(feedback="augmented", hints={key: ""})
    names = {knob.pattern for knob in find_knobs(config)}
    assert names == {"slices.*.share", "tools.*", "hints.*"}
    from engineers import StageReport

    report = StageReport(stage=0, config=config.model_dump(mode="json"), objective="success_rate")
    proposal = make("uniform").propose(report, current=config)
    assert isinstance(proposal.config, BFCLConfig)
    world.check(proposal.config)


def test_hints_of_the_stage_are_shown_in_validation_too(world):
    stage = BFCLConfig(feedback="augmented", hints={"cd: cd: {}: No such file or directory": "Look around."})
    rules = world.validated_as(ALL, stage)
    assert rules.hints == stage.hints
    assert isinstance(world.play_env(rules).settings["augmenter"], WrittenHints)
    assert world.play_env(ALL).settings["augmenter"] is None
