"""How replies must be written: what counts as the paper's format, that every plan can be written in it, and what it is paid."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmarks.bfcl.scripts import run_script
from envtuning.trainees.language.tool_lessons import lesson
from envtuning.worlds.bfcl.calls import MAX_CALLS, MAX_CHARACTERS, Call, Calls, EndOfTurn, Unreadable
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.env import BFCLMultiTurnEnv
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.reply_format import REPLY_FORMATS, read_reply, write_answer, write_calls
from envtuning.worlds.bfcl.scripted import ground_truth_in
from envtuning.worlds.bfcl.tasks import find_task, load_tasks

PWD = Call("pwd")
LS = '[{"name": "ls", "arguments": {"a": true}}]'


@pytest.mark.parametrize(
    ("text", "action"),
    [
        (f"<think>Look.</think><tool_call>{LS}</tool_call>", Calls((Call("ls", (), {"a": True}),))),
        (f" <think></think>\n\n<tool_call>\n{LS}\n</tool_call>\n", Calls((Call("ls", (), {"a": True}),))),
        ("<think>Done.</think> <answer> It is there. </answer>", EndOfTurn("It is there.")),
        ("<think>a <answer> b</think><answer></answer>", EndOfTurn("")),
    ],
)
def test_what_is_in_the_format_is_read(text, action):
    assert read_reply(text, "xml") == action


@pytest.mark.parametrize(
    "text",
    [
        "",
        "It is there.",
        "[pwd()]",
        LS,
        f"<tool_call>{LS}</tool_call>",  # no thoughts
        f"Well. <think>x</think><tool_call>{LS}</tool_call>",
        f"<think>x</think><tool_call>{LS}</tool_call> Done.",
        f"<think>x</think><tool_call>{LS}</tool_call><tool_call>{LS}</tool_call>",
        f"<think>x</think><tool_call>{LS}</tool_call><answer>y</answer>",
        f"<think>x</think><answer>y</answer><tool_call>{LS}</tool_call>",
        "<think>x</think><answer>y</answer><answer>z</answer>",
        f"<think>x</think><tool_call>{LS}",
        "<think>x</think>",
        "<think>x</think><tool_call>[]</tool_call>",
        "<think>x</think><tool_call>[ \n]</tool_call>",
        "<think>x</think><tool_call>[pwd()]</tool_call>",  # no JSON
        '<think>x</think><tool_call>{"name": "ls", "arguments": {}}</tool_call>',  # no list
        '<think>x</think><tool_call>["ls"]</tool_call>',
        f"<think>{'x' * MAX_CHARACTERS}</think><answer>y</answer>",
        write_calls([PWD] * (MAX_CALLS + 1), "xml"),
    ],
)
def test_what_is_not_in_the_format_is_unreadable(text):
    assert isinstance(read_reply(text, "xml"), Unreadable)


@pytest.mark.parametrize("reply_format", REPLY_FORMATS)
def test_what_is_written_in_a_format_is_read_in_it(reply_format):
    calls = (Call("mv", (), {"source": "a", "destination": "b"}), PWD)
    assert read_reply(write_calls(calls, reply_format), reply_format) == Calls(calls)
    assert read_reply(write_answer("Done.", reply_format), reply_format) == EndOfTurn("Done.")


PIECES = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<answer>", "</answer>", LS, "x ")


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12))
def test_no_text_raises(pieces):
    assert isinstance(read_reply("".join(pieces), "xml"), Calls | EndOfTurn | Unreadable)


@pytest.mark.parametrize("piece", PIECES)
def test_a_hostile_text_is_read_in_no_time(piece):
    began = time.process_time()
    read_reply(("<think></think><tool_call>" + piece * MAX_CHARACTERS)[:MAX_CHARACTERS], "xml")
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("split", SPLITS)
def test_the_ground_truth_solves_its_tasks_in_the_paper_s_format(v4, split):
    for task in load_tasks(v4, split)[::4]:
        talk = Conversation(v4, task, tool_style="none", reply_format="xml")
        scores = run_script(talk, ground_truth_in(v4, task, "xml")).scores()
        assert (scores["success"], scores["progress"], scores["unreadable"]) == (1, 1, 0), task.id


def test_a_reply_in_another_format_is_told_so_makes_no_call_and_costs_syntax(v4):
    task = find_task(v4, "multi_turn_base_0")
    talk = Conversation(v4, task, tool_style="none", reply_format="xml", reward="syntax")
    talk.act("[pwd()]")
    assert talk.said.startswith("Error:")
    assert not talk.earlier
    talk.act(write_calls([PWD], "xml"))
    paid = talk.act(write_answer("Done.", "xml"))
    assert paid == pytest.approx((2 / 3 + 1) / 2 / task.checked_turns)  # one of three replies was not in the format


def test_a_stage_s_config_says_the_format_and_the_environment_keeps_it(v4):
    env = BFCLMultiTurnEnv(tasks=["multi_turn_base_0"], reply_format="xml")
    message, _ = env.reset(seed=0)
    assert "<tool_call>" in message
    with pytest.raises(ValueError, match="reply_format"):
        BFCLMultiTurnEnv(reply_format="markdown")
    with pytest.raises(ValidationError, match="reply_format"):
        BFCLConfig(reply_format="markdown")


def test_a_lesson_is_in_the_format_that_it_is_given_for(v4):
    messages = lesson(v4, find_task(v4, "multi_turn_base_0"), "none", "xml")
    said = [message["content"] for message in messages if message["role"] == "assistant"]
    assert said
    assert not any(isinstance(read_reply(text, "xml"), Unreadable) for text in said)
