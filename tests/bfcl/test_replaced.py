"""Hints in place of messages: what the agent no longer reads, what it still does, and that judging does not notice."""

import random

import pytest

from benchmarks.bfcl.scripts import perturbed, run_script
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.hints import augment
from envtuning.worlds.bfcl.tasks import find_task, load_tasks
from envtuning.worlds.bfcl.world import BFCLCases, BFCLWorld, settings_of

TASK = "multi_turn_base_0"


def said(package, reply, **options):
    talk = Conversation(package, find_task(package, TASK), augmenter=augment, tool_style="none", **options)
    talk.act(reply)
    return talk.said


def test_the_hint_alone_is_shown_of_a_call_that_went_wrong(v4):
    reply = "[cd(folder='nowhere')]"
    after, instead = said(v4, reply), said(v4, reply, hint_place="instead")
    message, _, hint = after.partition("\nHint: ")
    assert "No such" in message
    assert instead == f"Error.\nHint: {hint}"


@pytest.mark.parametrize("reply", ["[pwd()]", "[echo(content=5)]"])  # nothing to hint at; a hint, and no error
def test_what_is_no_error_stays(v4, reply):
    assert said(v4, reply, hint_place="instead").startswith(said(v4, reply).partition("\nHint: ")[0])


def test_a_message_that_has_no_hint_stays(v4):
    talk = Conversation(v4, find_task(v4, TASK), augmenter=lambda event: None, hint_place="instead", tool_style="none")
    talk.act("[cd(folder='nowhere')]")
    assert "No such" in talk.said


def test_judging_does_not_notice(v4):
    for task in load_tasks(v4, "base")[::10]:
        script = perturbed(v4, task, random.Random(task.id))
        talks = [
            run_script(Conversation(v4, task, augmenter=augment, hint_place=place, tool_style="none"), script)
            for place in ("after", "instead")
        ]
        assert talks[0].scores() == talks[1].scores()
        assert talks[0].results == talks[1].results


@pytest.mark.parametrize(
    ("feedback", "hints", "place"),
    [("standard", False, "after"), ("augmented", True, "after"), ("replaced", True, "instead")],
)
def test_a_stage_s_feedback_says_where_hints_stand(feedback, hints, place):
    settings = settings_of(BFCLConfig(feedback=feedback))
    assert (settings["augmenter"] is not None, settings["hint_place"]) == (hints, place)


def test_a_failure_is_shown_as_it_was_spoken(v4):
    world = BFCLWorld()
    config = BFCLConfig(slices={"base": {}}, feedback="replaced")
    cases = BFCLCases((TASK,))
    turn = iter(["[cd(folder='nowhere')]"] + ["Done."] * 20)
    (episode,) = world.play(lambda message: next(turn), cases, config, seed=0)
    case = world.explain(cases, episode)
    assert "Hint:" in case.picture
    assert "No such" not in case.picture
