"""An engineer at a keyboard: the report is laid out, answers are waited for, refused and accepted."""

from __future__ import annotations

import json
import os
import shutil
import threading

import pytest

import engineers
from engineers import AnswerFormat, Guard
from engineers.human import HumanEngineer, make
from engineers.model.prompt import PROMPT_VERSION
from engineers.model.transcript import read_transcript


class Desk:
    """Somebody who saves these texts, one each time something is said to them."""

    def __init__(self, tmp_path, *texts):
        self.folder, self.texts, self.heard = tmp_path / "desk" / "stage-1", list(texts), []

    def __call__(self, said):
        self.heard.append(said)
        if self.texts:
            text = self.texts.pop(0)
            threading.Timer(0.05, self.save, [text]).start()

    def save(self, text):
        """In one step: on a busy machine a file that is half written may look settled."""
        draft = self.folder / "mine.json"
        draft.write_text(text)
        draft.replace(self.folder / "answer.json")

    def engineer(self, **options):
        return make(str(self.folder.parent), say=self, **{"timeout": 20.0, "poll": 0.01, **options})


def test_an_edited_answer_becomes_a_proposal(tmp_path, answer, report, kitchen):
    desk = Desk(tmp_path, answer(soup={"heat": 90.0}))
    proposal = desk.engineer().propose(report, kitchen)
    assert proposal.config.menu["soup"].heat == 90.0
    assert proposal.reasons[0].reason == "it burns"
    assert not proposal.fallback
    assert "answer.json" in desk.heard[0]
    assert "- soup: 80 of 100, 0.80" in (desk.folder / "report.md").read_text()
    assert json.loads((desk.folder / "report.json").read_text())["stage"] == 1


def test_a_desk_s_answers_are_a_transcript_that_replays_them(tmp_path, answer, report, kitchen):
    path = tmp_path / "transcript.jsonl"
    desk = Desk(tmp_path, '{"changes": ', answer(soup={"heat": 900.0}), answer(soup={"heat": 95.0}))
    proposal = desk.engineer(transcript=path, who="anna").propose(report, kitchen)
    exchanges = read_transcript(path)
    assert [(one.engineer, one.model, one.number) for one in exchanges] == [
        ("human anna", "human", n) for n in range(3)
    ]
    assert all(one.when and one.prompt_version == PROMPT_VERSION and one.context.name == "full" for one in exchanges)
    copy = tmp_path / "copy.jsonl"
    again = engineers.make(f"replay/{path}", transcript=copy).propose(report, kitchen)
    assert (again.config, again.reasons, again.engineer, again.refusals) == (
        proposal.config, proposal.reasons, "human anna", proposal.refusals,
    )  # fmt: skip
    assert copy.read_bytes() == path.read_bytes()


def test_a_wrong_answer_is_refused_and_waited_for_again(tmp_path, answer, report, kitchen):
    desk = Desk(tmp_path, '{"changes": ', answer(soup={"heat": 900.0}), answer(soup={"heat": 95.0}))
    proposal = desk.engineer().propose(report, kitchen)
    assert proposal.config.menu["soup"].heat == 95.0
    assert len(proposal.refusals) == 2
    assert "invalid JSON" in desk.heard[1]
    assert "less than or equal to 300" in (desk.folder / "refused.txt").read_text()
    Desk(tmp_path).engineer(timeout=0.01).propose(report, kitchen)
    assert not (desk.folder / "refused.txt").exists(), "asked anew: nothing has been refused yet"


@pytest.mark.timeout(30)
@pytest.mark.parametrize("kind", [os.mkfifo, os.mkdir, lambda path: path.write_text("[" * 50_000)])
def test_an_answer_that_no_file_can_be_is_refused_and_waited_for_again(tmp_path, answer, report, kitchen, kind):
    desk = Desk(tmp_path)
    desk.engineer(timeout=0.01).propose(report, kitchen)
    file = desk.folder / "answer.json"
    file.unlink()
    kind(file)

    def hears(said):
        if "Not accepted" in said:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
            file.write_text(answer(soup={"heat": 95.0}))

    proposal = make(str(desk.folder.parent), say=hears, timeout=20.0, poll=0.01).propose(report, kitchen)
    assert proposal.config.menu["soup"].heat == 95.0
    assert len(proposal.refusals) == 1


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", ["report.md", "report.json", "refused.txt", ".report.md.draft"])
@pytest.mark.parametrize(
    "kind", [os.mkfifo, lambda path: path.symlink_to("/dev/full"), lambda path: path.symlink_to(path)]
)
def test_what_lies_on_the_desk_is_replaced_not_written_through(tmp_path, answer, report, kitchen, name, kind):
    desk = Desk(tmp_path, "{", answer(soup={"heat": 95.0}))
    desk.folder.mkdir(parents=True)
    kind(desk.folder / name)
    assert desk.engineer().propose(report, kitchen).config.menu["soup"].heat == 95.0
    assert "- soup: 80 of 100, 0.80" in (desk.folder / "report.md").read_text()


def test_saved_as_it_is_changes_nothing(tmp_path, report, kitchen):
    desk = Desk(tmp_path, json.dumps(AnswerFormat(kitchen).blank()))
    proposal = desk.engineer().propose(report, kitchen)
    assert proposal.config == kitchen
    assert not proposal.fallback


def test_a_blank_answer_has_every_knob_and_is_edited_in_place(tmp_path, report, kitchen):
    body = AnswerFormat(kitchen).blank()
    assert [entry["path"] for entry in body["changes"]] == [knob.name for knob in AnswerFormat(kitchen).knobs]
    (heat,) = [entry for entry in body["changes"] if entry["path"] == "menu.soup.heat"]
    assert heat == {"path": "menu.soup.heat", "reason": "", "value": 100.0}
    heat |= {"reason": "it burns", "value": 90.0}
    proposal = Desk(tmp_path, json.dumps(body)).engineer().propose(report, kitchen)
    assert [(one.path, one.old, one.new, one.reason) for one in proposal.reasons] == [
        ("menu.soup.heat", 100.0, 90.0, "it burns")
    ]


def test_nobody_there(tmp_path, report, kitchen):
    proposal = Desk(tmp_path).engineer(timeout=0.1).propose(report, kitchen)
    assert proposal.fallback
    assert proposal.config == kitchen
    assert "timeout=0.1 seconds" in proposal.refusals[0]


def test_an_answer_saved_while_nobody_waited_counts(tmp_path, answer, report, kitchen):
    desk = Desk(tmp_path)
    assert desk.engineer(timeout=0.05).propose(report, kitchen).fallback
    (desk.folder / "answer.json").write_text(answer(soup={"heat": 80.0}))
    assert desk.engineer().propose(report, kitchen).config.menu["soup"].heat == 80.0


def test_an_accepted_answer_is_not_given_to_the_next_run_that_asks_the_same(tmp_path, answer, report, kitchen):
    text = answer(soup={"heat": 80.0})
    assert not Desk(tmp_path, text).engineer().propose(report, kitchen).fallback
    desk = Desk(tmp_path)
    assert desk.engineer(timeout=0.1).propose(report, kitchen).fallback
    assert "accepted.json: copy it to answer.json to give it again" in desk.heard[0]
    assert (desk.folder / "accepted.json").read_text() == text
    (desk.folder / "accepted.json").replace(desk.folder / "answer.json")
    assert desk.engineer().propose(report, kitchen).config.menu["soup"].heat == 80.0


def test_an_answer_to_another_question_does_not_count(tmp_path, answer, report, kitchen):
    desk = Desk(tmp_path)
    desk.engineer(timeout=0.05).propose(report, kitchen)
    (desk.folder / "answer.json").write_text(answer(soup={"heat": 80.0}))
    other = report.model_copy(update={"results": []})
    assert desk.engineer(timeout=0.05).propose(other, kitchen).fallback


def test_the_guard_holds_for_people_too(tmp_path, answer, report, kitchen):
    desk = Desk(tmp_path, answer(soup={"share": 0.0}), answer(soup={"share": 0.4}))
    proposal = desk.engineer(guard=Guard(max_drop=0.5)).propose(report, kitchen)
    assert proposal.config.menu["soup"].share == 0.4
    assert "slice soup works" in proposal.refusals[0]


@pytest.mark.parametrize("name", ["human", "human/some/folder"])
def test_the_desk_is_named_after_the_slash(name):
    import engineers

    made = engineers.make(name)
    assert isinstance(made, HumanEngineer)
    assert str(made.desk) == ("engineer-desk" if name == "human" else "some/folder")
    assert str(engineers.make(name, desk="run/desk").desk) == ("run/desk" if name == "human" else "some/folder")


def test_what_a_person_is_given_and_what_came_of_it(tmp_path, answer, report, kitchen):
    desk = Desk(tmp_path, "no", answer(soup={"heat": 90.0}))
    proposal = desk.engineer(space={"menu.*.heat": (80, 200)}).propose(report, kitchen)
    assert proposal.engineer == "human"
    assert proposal.usage.attempts == 2
    assert 0 < proposal.usage.seconds < 20
    assert (proposal.usage.tokens, proposal.usage.cost) == (0, 0.0)
    assert "sensible are 80 to 200." in (desk.folder / "report.md").read_text()
    assert (desk.folder / "report.json").read_text() == report.model_dump_json(indent=2)
    read, wrote = desk.folder / "report.md", desk.folder / "answer.json"
    assert desk.heard == [
        f"Stage 1 is done: read {read}, edit and save {wrote}.",
        f"Not accepted: {proposal.refusals[0]}. Edit and save again.",
    ]
    assert (desk.folder / "refused.txt").read_text() == f"{proposal.refusals[0]}\n"


def test_a_blank_answer_is_laid_out_to_be_edited_and_again_where_it_was_removed(tmp_path, report, kitchen):
    desk = Desk(tmp_path)
    file = desk.folder / "answer.json"
    for _ in range(2):
        gone = desk.engineer(timeout=0.02, poll=60).propose(report, kitchen)  # no look is later than the end
        assert (gone.fallback, gone.engineer, gone.usage.attempts) == (True, "human", 1)
        assert gone.usage.seconds < 5
        assert file.read_text() == json.dumps(AnswerFormat(kitchen).blank(), indent=2) + "\n"
        file.unlink()


def test_without_anybody_to_say_it_to_it_is_said_on_the_screen(tmp_path, report, kitchen, capsys):
    HumanEngineer(tmp_path, timeout=0.01).propose(report, kitchen)
    said = capsys.readouterr()
    assert said.err.startswith("Stage 1 is done: read ")
    assert said.out == ""


@pytest.mark.parametrize("poll", [-1, float("nan")])
def test_no_look_comes_before_the_one_before_it(poll, tmp_path):
    with pytest.raises(ValueError, match=f"^poll={poll}: give a number of seconds, 0 or more$"):
        make(str(tmp_path), poll=poll)
