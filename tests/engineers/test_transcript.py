"""Every exchange is kept, and a replay without a model or a key gives the same proposals and the same file."""

from __future__ import annotations

import json
from datetime import datetime

import pytest

import engineers
from engineers import CONTEXTS, AnswerFormat, ChatError, ModelEngineer
from engineers.model.chat import Timeout
from engineers.model.prompt import PROMPT_VERSION
from engineers.model.transcript import TranscriptError, read_transcript


@pytest.fixture
def recorded(scripted, answer, report, kitchen, tmp_path):
    """Two stages, with bad replies, a time-out and a summary: the file and the proposals."""
    path = tmp_path / "run" / "transcript.jsonl"
    chat = scripted(
        *("Salt.", "no", Timeout("took 60 s"), "```json\n" + answer(soup={"heat": 90.5}) + "\n```"),
        *("Heat.", "nö", "\u2028{", "bad"),
    )
    engineer = ModelEngineer(chat, context="V5", max_attempts=3, transcript=path)
    reports = [report, report.model_copy(update={"stage": 2})]
    return path, reports, [engineer.propose(each, kitchen) for each in reports]


def test_every_exchange_is_a_line(recorded):
    path, _, proposals = recorded
    exchanges = read_transcript(path)
    assert [(e.stage, e.number, e.kind) for e in exchanges] == [
        *((1, 0, "summary"), (1, 1, "proposal"), (1, 2, "proposal"), (1, 3, "proposal")),
        *((2, 0, "summary"), (2, 1, "proposal"), (2, 2, "proposal"), (2, 3, "proposal")),
    ]
    assert exchanges[2].error == "took 60 s"
    assert exchanges[5].reply == "nö"
    assert sum(e.prompt_tokens for e in exchanges[:4]) == proposals[0].usage.prompt_tokens
    assert all("headers" not in json.loads(line) for line in path.read_bytes().splitlines())


def test_a_replay_is_equal_byte_for_byte(recorded, kitchen, tmp_path):
    path, reports, proposals = recorded
    copy = tmp_path / "copy.jsonl"
    replay = engineers.make(f"replay/{path}", transcript=copy)
    assert [replay.propose(each, kitchen) for each in reports] == proposals
    assert copy.read_bytes() == path.read_bytes()


def test_a_replay_keeps_no_state(recorded, kitchen):
    path, reports, proposals = recorded
    replay = engineers.make(f"replay/{path.parent}")
    assert replay.propose(reports[1], kitchen) == proposals[1]
    assert replay.propose(reports[0], kitchen) == proposals[0]


def test_a_stage_that_was_not_recorded_falls_back(recorded, report, kitchen):
    path, *_ = recorded
    proposal = engineers.make(f"replay/{path}").propose(report.model_copy(update={"stage": 7}), kitchen)
    assert proposal.fallback
    assert "no question 0 of stage 7; it has stages [1, 2]" in proposal.refusals[0]


def test_another_question_is_refused(recorded, report, kitchen):
    path, *_ = recorded
    changed = report.model_copy(update={"environment": "A bakery."})
    proposal = engineers.make(f"replay/{path}").propose(changed, kitchen)
    assert proposal.fallback
    assert proposal.config == kitchen
    assert "differs from what was recorded" in proposal.refusals[0]


def test_a_transcript_of_an_older_prompt_is_read_and_its_questions_are_others(recorded, report, kitchen):
    path, *_ = recorded
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line["version"] = 1
        del line["when"], line["prompt_version"]
        line["messages"][0]["content"] += " In other words."
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert {(one.version, one.prompt_version, one.when) for one in read_transcript(path)} == {(1, 1, "")}
    assert "version 1 of the prompt" in engineers.make(f"replay/{path}").propose(report, kitchen).refusals[0]


def test_a_recording_of_whole_configs_is_read_and_not_replayed(recorded, report, kitchen):
    path, *_ = recorded
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        if line["kind"] == "proposal":
            line["json_schema"] = {"type": "object", "properties": {"reasons": {}, "config": {}}}
            line["messages"][-1]["content"] += " Write the whole config."
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    proposal = engineers.make(f"replay/{path}").propose(report, kitchen)
    assert (proposal.fallback, proposal.config) == (True, kitchen)
    assert proposal.refusals == [
        "question 1 of stage 1 in transcript.jsonl asked for a whole config; an answer is a list of changes now"
    ]


def test_many_runs_in_one_folder_are_told_apart_by_their_questions(scripted, answer, report, kitchen, tmp_path):
    others = [report.model_copy(update={"environment": f"Kitchen {run}."}) for run in range(3)]
    for run, told in enumerate(others):
        path = tmp_path / f"seed{run}" / "stages" / "01" / "transcript.jsonl"
        ModelEngineer(scripted(answer(soup={"heat": 80.0 + run})), transcript=path).propose(told, kitchen)
    replay = engineers.make(f"replay/{tmp_path}")
    assert [replay.propose(told, kitchen).config.menu["soup"].heat for told in others] == [80.0, 81.0, 82.0]


def test_a_stage_that_was_run_again_replays_as_the_last_time(scripted, answer, report, kitchen, tmp_path):
    path = tmp_path / "transcript.jsonl"
    for heat in (80.0, 90.0):
        ModelEngineer(scripted(answer(soup={"heat": heat})), transcript=path).propose(report, kitchen)
    assert engineers.make(f"replay/{path}").propose(report, kitchen).config.menu["soup"].heat == 90.0


def test_a_line_cut_off_by_a_kill_is_skipped_and_the_next_one_whole(recorded, scripted, answer, report, kitchen):
    path, *_ = recorded
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert len(read_transcript(path)) == 7
    ModelEngineer(scripted(answer()), transcript=path).propose(report.model_copy(update={"stage": 3}), kitchen)
    assert [e.stage for e in read_transcript(path)] == [1, 1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("content", "said"), [("{}\n", "line 1: engineer: Field required"), ("\n\n[]\n{", "contains no exchange")]
)
def test_a_file_that_is_no_transcript_says_where(tmp_path, content, said):
    path = tmp_path / "t.jsonl"
    path.write_text(content)
    with pytest.raises(TranscriptError, match=said):
        engineers.make(f"replay/{path}")


def test_a_missing_transcript_says_what_to_give(tmp_path):
    with pytest.raises(TranscriptError, match="there is no transcript at"):
        engineers.make(f"replay/{tmp_path}/nowhere")


def test_a_transcript_of_another_version_is_not_read_as_this_one(recorded):
    path, *_ = recorded
    path.write_bytes(path.read_bytes().replace(b'{"version":2', b'{"version":3', 1))
    with pytest.raises(TranscriptError, match="line 1: version=3"):
        read_transcript(path)


def test_an_exchange_is_kept_with_all_that_was_asked_and_what_it_took(recorded, kitchen):
    path, *_ = recorded
    summary, first, failed, _ = read_transcript(path)[:4]
    assert first.model_dump(exclude={"messages", "seconds", "when"}) == {
        "version": 2, "prompt_version": PROMPT_VERSION, "engineer": "local/scripted", "model": "local/scripted", "context": CONTEXTS["V5"].model_dump(),
        "max_attempts": 3, "stage": 1, "number": 1, "kind": "proposal", "json_schema": AnswerFormat(kitchen).schema,
        "max_tokens": 4096, "reply": "no", "error": None, "error_kind": "", "prompt_tokens": 1000,
        "completion_tokens": 100, "cost": 0.0,
    }  # fmt: skip
    assert (summary.json_schema, summary.number) == (None, 0)
    assert datetime.fromisoformat(first.when).tzinfo is not None
    assert (failed.error_kind, failed.prompt_tokens, failed.completion_tokens) == ("Timeout", 0, 0)
    assert [message["role"] for message in first.messages] == ["system", "user"]
    assert len(failed.messages) == 4  # the bad reply and what was wrong with it


def test_a_replay_is_the_last_recorded_engineer_and_is_guarded_again(scripted, answer, report, kitchen, tmp_path):
    path = tmp_path / "t.jsonl"
    for name, attempts, context in (("old", 1, "V1"), ("older", 2, "V2"), ("new", 4, "V3")):
        chat = scripted(answer(soup={"share": 0.0}), *["no"] * 3)
        ModelEngineer(chat, name=name, max_attempts=attempts, context=context, transcript=path).propose(report, kitchen)
    replay = engineers.make(f"replay/{path}")
    assert (replay.name, replay.max_attempts, replay.context.name, replay.chat.model) == (
        "new", 4, "V3", "local/scripted",
    )  # fmt: skip
    assert engineers.make(f"replay/{path}", space={"menu.*.heat": (1, 2)}).space == {"menu.*.heat": (1.0, 2.0)}
    assert replay.propose(report, kitchen).config.menu["soup"].share == 0
    guarded = engineers.make(f"replay/{path}", max_drop=0.5).propose(report, kitchen)
    assert "slice soup works" in guarded.refusals[0]
    with pytest.raises(ChatError, match="asks no model"):
        replay.chat.complete([], None, max_tokens=1)


def test_transcripts_below_a_folder_are_read_in_the_order_of_their_names(recorded, tmp_path):
    path, *_ = recorded
    line = path.read_bytes().splitlines(keepends=True)[0]
    for stage, name in ((5, "transcript-b.jsonl"), (4, "deep/transcript-a.jsonl"), (6, "other.jsonl")):
        file = tmp_path / "many" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(line.replace(b'"stage":1', b'"stage":%d' % stage))
    assert [exchange.stage for exchange in read_transcript(tmp_path / "many")] == [4, 5]
    assert len(read_transcript(tmp_path / "many" / "other.jsonl")) == 1
