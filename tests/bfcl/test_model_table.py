"""A language model on the test's tasks: what it said is kept, what failed goes on where it was, and a right one scores 1."""

import json
import random

import pytest

from benchmarks.bfcl import model as table
from engineers.model.chat import ChatError
from envtuning.errors import RunError
from envtuning.worlds.bfcl.package import SPLITS
from envtuning.worlds.bfcl.reply_format import REPLY_FORMATS, write_answer
from envtuning.worlds.bfcl.scripted import DONE, ground_truth_in
from envtuning.worlds.bfcl.splits import by_scenario

ABOUT = {"model": "scripted"}


class Knowing:
    """Says the ground truth, by the conversation's first question and the number of replies so far; may stop after a number of replies."""

    def __init__(self, package, reply_format, stops_after=None):
        done = write_answer(DONE, reply_format)
        self.said, self.asked, self.stops_after = {}, 0, stops_after
        for task in by_scenario().tasks(package, "test", SPLITS):
            script = ground_truth_in(package, task, reply_format)
            self.said.setdefault(task.questions[0], []).append([reply for turn in script for reply in [*turn, done]])

    def answer(self, messages):
        if self.stops_after is not None and self.asked >= self.stops_after:
            raise ChatError("no more")
        self.asked += 1
        question = next(key for key in self.said if messages[0]["content"].endswith(f"User: {key}"))
        before = [message["content"] for message in messages if message["role"] == "assistant"]
        for replies in self.said[question]:
            if replies[: len(before)] == before and len(before) < len(replies):
                return replies[len(before)]
        return DONE


@pytest.mark.parametrize("reply_format", REPLY_FORMATS)
def test_a_model_that_knows_the_ground_truth_solves_base_and_is_asked_once(v4, tmp_path, monkeypatch, reply_format):
    monkeypatch.setattr(table, "SPLITS", ("base",))
    least = sorted(by_scenario().test)[-4]
    chat = Knowing(v4, reply_format)
    for _ in range(2):
        policy = table.KeptAnswers(chat, tmp_path / "answers.jsonl", ABOUT, workers=2)
        found = table.by_split(policy, "v4", reply_format, least)
        asked = chat.asked
        assert found["base"]["success"][0] == found["base"]["progress"][0] == 1
    assert chat.asked == asked == len(set(policy._known))
    figures = ABOUT | {"splits": found}
    assert table.table(figures).splitlines()[1].split()[:2] == ["base", "1.000"]


def test_what_failed_half_way_goes_on_where_it_was_and_a_line_that_was_cut_off_is_asked_again(
    v4, tmp_path, monkeypatch
):
    monkeypatch.setattr(table, "SPLITS", ("base",))
    least, file = sorted(by_scenario().test)[-3], tmp_path / "answers.jsonl"
    chat = Knowing(v4, "readable", stops_after=4)
    with pytest.raises(RunError, match="no more"):
        table.by_split(table.KeptAnswers(chat, file, ABOUT, workers=1), "v4", "readable", least)
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 4
    file.write_text("".join(lines)[:-5])
    chat.stops_after, chat.asked = None, 0
    policy = table.KeptAnswers(chat, file, ABOUT, workers=1)
    assert len(policy._known) == 3
    assert table.by_split(policy, "v4", "readable", least)["base"]["success"][0] == 1
    assert len(file.read_text().splitlines()) == 1 + 3 + chat.asked


def test_answers_of_another_model_are_not_taken_over(tmp_path):
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"model": "other"}) + "\n")
    with pytest.raises(SystemExit, match="other"):
        table.KeptAnswers(None, file, ABOUT, workers=1)


def test_a_run_asks_the_model_that_it_is_named_under_its_settings(v4, tmp_path, monkeypatch):
    class Silent:
        settings = {"max_tokens": 7}  # noqa: RUF012
        meter = type("Meter", (), {"tokens": 3, "cost": None})

        def answer(self, messages):
            return random.Random(len(messages)).choice(["I cannot.", "No."])

    monkeypatch.setattr(table, "SPLITS", ("miss_param",))
    monkeypatch.setattr(table, "capped_chat", lambda name, file, **caps: Silent())
    found = table.run("v4", "openai/some", answers=str(tmp_path / "a.jsonl"), workers=1)
    assert (found["model"], found["max_tokens"], found["tokens"]) == ("openai/some", 7, 3)
    assert found["splits"]["miss_param"]["success"] == [0, 0, 0]
