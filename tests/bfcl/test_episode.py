"""One conversation, reply by reply: what is counted, what is paid, what is heard, and where it is cut off."""

from dataclasses import replace

import pytest

from benchmarks.bfcl.official import official_verdict
from envtuning.worlds.bfcl.calls import Call, as_reply
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.scripted import DONE
from envtuning.worlds.bfcl.tasks import find_task, load_tasks


@pytest.fixture(scope="module")
def task(v4):
    return find_task(v4, "multi_turn_base_0")


@pytest.fixture(scope="module")
def waiting(v4):
    """A task with a turn in which nothing can be done before the tool appears, and a tool that it never offers."""
    return next(task for task in load_tasks(v4, "miss_func") if task.ground_truth.index(()) == 1 and task.excluded)


def hint_of_cd(event):
    return f"{event.call.name} after {len(event.earlier)}" if event.call.name == "cd" else None


def test_an_episode_s_counts_are_of_all_its_turns(v4, task):
    talk = Conversation(v4, task, augmenter=hint_of_cd)
    first, calls = as_reply(task.ground_truth[0]), len(task.ground_truth[0])
    assert talk.check is None
    assert [talk.act(reply) for reply in ("[cd(", "[cd(folder='nowhere'), pwd()]", first)] == [0.0] * 3
    assert talk.act(DONE) == pytest.approx(1 / task.checked_turns)
    assert (talk.check.right, talk.hints) == (True, 2)
    assert [talk.act(reply) for reply in ("[pwd()]", "[no_such_tool()]", "[[")] == [0.0] * 3
    assert [talk.act(DONE) for _ in range(task.turns - 1)] == [0.0] * (task.turns - 1)
    assert (talk.over, talk.said, talk.check.right) == (True, "", False)
    assert talk.scores() == {
        "success": 0.0,
        "progress": pytest.approx(1 / task.checked_turns),
        "syntax": pytest.approx(((3 / 4 + (calls + 1) / (calls + 2)) / 2 + (3 / 4 + 1 / 2) / 2) / task.checked_turns),
        "calls": calls + 4.0,
        "failed_calls": 2.0,
        "unreadable": 2.0,
        "guessed_turns": 0.0,
        "unlisted_calls": 0.0,
        "turns": float(task.turns),
    }
    assert len(talk.results) == len(talk.earlier) == calls + 4
    with pytest.raises(RuntimeError, match="begin another"):
        talk.act(DONE)


def test_hints_stand_below_the_results_that_they_are_about(v4, task):
    talk = Conversation(v4, task, augmenter=hint_of_cd)
    talk.act("[pwd(), cd(folder='nowhere'), pwd()]")
    plain, hinted, hint, again = talk.said.splitlines()
    assert (hint, plain) == ("Hint: cd after 1", again)
    assert "nowhere" in hinted
    assert talk.results == [plain, hinted, plain]
    talk.act("[cd(")
    assert talk.said.startswith("Error: the calls cannot be read")


@pytest.mark.parametrize("reward", ["progress", "syntax", "binary"])
def test_ground_truth_is_paid_turn_by_turn_or_at_the_end(v4, waiting, reward):
    talk = Conversation(v4, waiting, reward=reward)
    paid = []
    for calls in waiting.ground_truth:
        if calls:
            assert talk.act(as_reply(calls)) == 0.0
        paid.append(talk.act("[ ]" if talk.turn else DONE))  # no calls at all end a turn, as words do
    part = [float(bool(calls)) / waiting.checked_turns for calls in waiting.ground_truth]
    assert paid == pytest.approx(part if reward != "binary" else [0.0] * (waiting.turns - 1) + [1.0])
    assert (talk.scores()["success"], talk.scores()["guessed_turns"]) == (1.0, 0.0)


def test_a_wrong_turn_is_paid_for_its_syntax_alone(v4, task):
    for reward, paid in (("syntax", 1 / task.checked_turns), ("progress", 0.0), ("binary", 0.0)):
        talk = Conversation(v4, task, reward=reward)
        talk.act("[pwd()]")
        assert talk.act(DONE) == pytest.approx(paid)


def test_each_turn_offers_its_tools_and_new_ones_come_in_place_of_a_question(v4):
    task = next(task for task in load_tasks(v4, "miss_func") if 1 in task.held_back)
    talk = Conversation(v4, task, tool_style="short")
    for turn in range(task.turns):
        assert talk.tools == task.tools(v4, turn)
        assert talk.said.endswith(v4.added_tools_sentence if turn in task.held_back else task.questions[turn])
        talk.act(DONE)


def test_calls_where_nothing_can_be_done_are_guesses_and_are_judged_by_nobody(v4, waiting):
    talk = Conversation(v4, waiting)
    talk.act(DONE)
    talk.act(as_reply(waiting.ground_truth[2][:1]))
    talk.act(DONE)
    assert talk.check is None
    assert (talk.scores()["guessed_turns"], talk.scores()["turns"]) == (1.0, 2.0)
    talk.act(DONE)
    assert talk.scores()["guessed_turns"] == 1.0


def test_a_tool_that_is_not_offered_is_counted_and_run_or_refused_as_one_that_there_is_not(v4, waiting):
    name = next(iter(waiting.held_back[2]))
    offered = f"{Conversation(v4, waiting).tools[0]['name']}()"
    for unlisted, departures in (("run", []), ("refuse", [f"{name}: not offered in turn 0, refused"])):
        talk = Conversation(v4, waiting, unlisted=unlisted)
        talk.act(f"[no_such_tool(), {name}(), {offered}]")
        assert talk.departures == departures
        unknown, refused, _ = (result.error for _, result in talk.earlier)
        assert unknown
        assert refused or unlisted == "run"
        assert talk.scores()["unlisted_calls"] == 1.0
        if unlisted == "refuse":
            assert talk.said.splitlines()[:2] == [
                f"Error during execution: name '{tool}' is not defined" for tool in ("no_such_tool", name)
            ]


@pytest.mark.parametrize("unlisted", ["run", "refuse"])
def test_what_the_official_executor_would_run_though_it_is_no_tool_is_a_departure_and_not_in_the_trajectory(
    v4, task, unlisted, tmp_path
):
    talk = Conversation(v4, task, unlisted=unlisted)
    file = tmp_path / "written"
    talk.act(as_reply(task.ground_truth[0]))
    others = ("no_such_tool", "copy", "method", "execute_multi_turn_func_call")
    talk.act(as_reply([Call("exec", (f"open({str(file)!r}, 'w')",)), *map(Call, others)]))
    assert set(talk.said.splitlines()) == {
        f"Error during execution: name '{name}' is not defined" for name in ("exec", *others)
    }
    assert [said.partition(":")[0] for said in talk.departures] == ["exec", "method", "execute_multi_turn_func_call"]
    for calls in ((), *task.ground_truth[1:]):
        if calls:
            talk.act(as_reply(calls))
        talk.act(DONE)
    assert talk.trajectory[0] == [list(task.ground_truth[0]), ["no_such_tool()", "copy()"]]
    assert talk.scores()["calls"] == sum(map(len, task.ground_truth)) + 5
    assert talk.scores()["success"] == official_verdict(v4, task, talk.trajectory)["valid"] == 1
    assert not file.exists()


@pytest.mark.parametrize("reply", ["[exec('1')]", "[exec('1')] [exec('1')]", "[no_such_tool()]"])
def test_a_turn_without_a_call_of_a_tool_is_judged_as_the_official_checker_judges_the_trajectory(v4, reply):
    """In this task's second turn, the ground truth changes nothing and gets no new result."""
    task = find_task(v4, "multi_turn_base_103")
    talk = Conversation(v4, task)
    for turn, calls in enumerate(task.ground_truth):
        for one in reply.split() if turn == 1 else [as_reply(calls)]:
            talk.act(one)
        talk.act(DONE)
    assert talk.scores()["success"] == official_verdict(v4, task, talk.trajectory)["valid"] == ("exec" not in reply)


@pytest.mark.parametrize("replies", [["[pwd()]"] * 4, ["[pwd("] * 4, ["[pwd()]", "[pwd("] * 2])
def test_one_more_reply_with_calls_than_the_limit_cuts_the_episode_off(v4, task, replies):
    talk = Conversation(replace(v4, step_limit=3), task)
    for reply in replies[:-1]:
        assert (talk.act(reply), talk.over) == (0.0, False)
    assert (talk.act(replies[-1]), talk.over) == (0.0, True)
    assert talk.trajectory == []
    assert talk.scores()["turns"] == 1.0
    next_turn = Conversation(replace(v4, step_limit=3), task)
    for reply in [*replies[:-1], DONE, *replies[:-1]]:
        next_turn.act(reply)
    assert not next_turn.over
