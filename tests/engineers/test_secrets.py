"""A planted key is nowhere: not in a file, a log line, a prompt, an error or a proposal, whichever way it comes in."""

from __future__ import annotations

import logging
import traceback

import pytest

from engineers import ChatError, ModelEngineer, make
from engineers.model.chat import Timeout
from engineers.redaction import BLANK, protect, redact, scrub

KEY = "planted-4f1b-key-do-not-show"


@pytest.fixture(params=["environment", "protected"])
def planted(request, monkeypatch):
    """The key, known from the environment or because a backend was given it."""
    if request.param == "environment":
        monkeypatch.setenv("SOMEBODY_API_KEY", KEY)
        return KEY
    protect(KEY + "-given")
    return KEY + "-given"


def test_a_run_leaves_the_key_nowhere(planted, scripted, answer, report, kitchen, tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    told = report.model_copy(update={"environment": f"A kitchen with {planted}.", "training": {"note": planted}})
    chat = scripted(
        f"My key is {planted}.",
        Timeout(f"POST https://api/v1?key={planted} timed out"),
        answer(reason=f"because {planted}", soup={"colour": planted}),
        answer(soup={"heat": 90.0}),
    )
    engineer = ModelEngineer(chat, context="full", max_attempts=4, transcript=tmp_path / "transcript.jsonl")
    proposal = engineer.propose(told, kitchen)
    assert not proposal.fallback
    (tmp_path / "proposal.json").write_text(proposal.model_dump_json())
    replayed = make(f"replay/{tmp_path}", transcript=tmp_path / "again.jsonl").propose(told, kitchen)
    (tmp_path / "replayed.json").write_text(replayed.model_dump_json())

    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == 4
    for file in files:
        assert planted not in file.read_text()
    assert BLANK in (tmp_path / "transcript.jsonl").read_text()
    assert all(planted not in message["content"] for asked in chat.asked for message in asked)
    assert planted not in caplog.text
    assert planted not in "".join(capfd.readouterr())


def test_a_reason_with_the_key_in_it_is_blanked(planted, scripted, answer, report, kitchen):
    chat = scripted(answer(reason=f"because {planted}", soup={"heat": 90.0}))
    (change,) = ModelEngineer(chat).propose(report, kitchen).reasons
    assert change.reason == f"because {BLANK}"


def test_an_error_never_holds_the_key(planted):
    with pytest.raises(ChatError) as caught:
        raise ChatError(f"401 for {planted}")
    assert planted not in "".join(traceback.format_exception_only(caught.value))


@pytest.mark.parametrize(
    "name", ["AWS_BEARER_TOKEN_BEDROCK", "OPENAI_API_KEY_2", "aws_secret_access_key", "DB_PASSWORD"]
)
@pytest.mark.parametrize("padding", ["", "\n", " "])
def test_whatever_a_variable_named_like_a_secret_holds_is_blanked(monkeypatch, name, padding):
    monkeypatch.setenv(name, KEY + padding)
    assert redact(f"said {KEY}, and {(KEY + padding)!r}").count(KEY) == 0


def test_a_variable_with_another_name_is_left_alone(monkeypatch):
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "sometimes")
    assert redact("sometimes") == "sometimes"


def test_a_password_in_a_servers_address_is_in_no_proposal_and_no_transcript(scripted, report, kitchen, tmp_path):
    chat = scripted("see https://host", model="server/http://me:my-pass-word@host/v1#m")
    engineer = ModelEngineer(chat, max_attempts=1, transcript=tmp_path / "t.jsonl")
    proposal = engineer.propose(report, kitchen)
    assert proposal.engineer == engineer.name == f"server/http://{BLANK}@host/v1#m"
    assert "my-pass-word" not in (tmp_path / "t.jsonl").read_text()


def test_blanking_a_line_of_json_leaves_it_json():
    line = '{"a":"https://host","b:c@d":1}'
    assert redact(line) == line


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghij0123456789",
        "AIzaSyA1234567890abcdefghijklmnop",
        "hf_abcdefghijklmnopqrstuvwxyz",
        "github_pat_11ABCDEFG0123456789",
        "Bearer abcdef.ghijkl-mnopqr==",
        "https://user:pass-word@host/v1",
    ],
)
def test_whatever_looks_like_a_key_is_blanked(secret):
    shown = redact(f"error: {secret} was refused")
    assert secret.rpartition(" ")[2] not in shown
    assert BLANK in shown
    assert "was refused" in shown


@pytest.mark.parametrize(
    "text", ["task-oriented skills", "a share of 0.25", "sk-8", "https://host:8000/v1#model", "6:30 to 7:45 @ home"]
)
def test_ordinary_words_are_left_alone(text):
    assert redact(text) == scrub(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "cd: '/wonderland/documents': No such file",
        "/alice_s_files/report.pdf moved to /alice_s_files/archive/report.pdf",
    ],
)
def test_paths_that_a_report_is_about_stay_readable(text):
    assert scrub(text) == text


@pytest.mark.parametrize(
    "path", ["/home/anna/x.txt", "~/x/y", "C:\\Users\\anna\\x", "/opt/tool/key.pem", "/usr/lib/python3"]
)
def test_paths_of_a_machine_are_blanked(path):
    assert scrub(f"see {path}.").startswith("see <path>")


def test_of_two_secrets_of_which_one_begins_like_the_other_the_longer_leaves_no_tail(monkeypatch):
    monkeypatch.setenv("ONE_API_KEY", "planted-first")
    monkeypatch.setenv("TWO_API_KEY", "planted-first-and-its-long-tail")
    assert redact("a planted-first-and-its-long-tail b planted-first c") == f"a {BLANK} b {BLANK} c"


@pytest.mark.parametrize(("length", "blanked"), [(7, False), (8, True)])
def test_what_is_shorter_than_eight_characters_is_no_secret_but_a_word(monkeypatch, length, blanked):
    word = "zqxjkvwb"[:length]
    protect(word)
    protect(f"  {word[:3]}   ")  # white space makes no secret of it
    assert (BLANK in redact(f"the {word} stays")) == blanked
    monkeypatch.setenv("SOME_TOKEN", word.upper())
    assert (BLANK in redact(f"the {word.upper()} stays")) == blanked


def test_a_secret_with_white_space_around_it_is_blanked_without_it():
    protect("  planted-between-spaces\n")
    assert redact("x planted-between-spaces y") == f"x {BLANK} y"


def test_nothing_to_protect_is_no_secret():
    protect(None)
    protect("")
    protect(" " * 20)
    assert redact("a b") == "a b"


def test_a_longer_secret_goes_first_whatever_its_first_letter(monkeypatch):
    monkeypatch.setenv("ONE_API_KEY", "zz-planted-key")
    monkeypatch.setenv("TWO_API_KEY", "aa-zz-planted-key-tail")
    assert redact("aa-zz-planted-key-tail") == BLANK


@pytest.mark.parametrize(
    ("path", "in_prompt", "in_picture"),
    [
        ("/home/anna/x.txt", "<path>", "<path>"),
        ("/Users/anna/x.txt", "<path>", "<path>"),
        ("/root/x.txt", "<path>", "<path>"),
        ("~/notes/x.txt", "<path>", "<path>"),
        ("C:\\Users\\anna", "<path>", "<path>"),
        ("/Volumes/nowhere/x.txt", "<path>", "/Volumes/nowhere/x.txt"),  # of a machine, but not of this one
        ("/scratch/nowhere/x.txt", "<path>", "/scratch/nowhere/x.txt"),
        ("/projects/nowhere/x.txt", "<path>", "/projects/nowhere/x.txt"),  # a folder that this machine has
        ("/wonderland/documents/x.txt", "/wonderland/documents/x.txt", "/wonderland/documents/x.txt"),
    ],
)
def test_paths_of_machines_go_from_prompts_and_those_of_this_one_from_pictures(
    monkeypatch, path, in_prompt, in_picture
):
    from engineers import redaction

    monkeypatch.setattr(redaction, "_top_folders", lambda: frozenset({"projects"}))
    assert scrub(f"see {path} there") == f"see {in_prompt} there"
    assert redaction.scrub_picture(f"see {path} there") == f"see {in_picture} there"


def test_a_picture_keeps_its_words_and_loses_paths_that_are_really_there_and_keys(tmp_path, monkeypatch):
    from engineers.redaction import scrub_picture

    monkeypatch.setenv("SOME_TOKEN", KEY)
    monkeypatch.setattr("os.path.lexists", lambda path: path == "/wonderland/documents")
    shown = f"$HOME %PATH% /wonderland/documents/a /wonderland/other/b {KEY}"
    assert scrub_picture(shown) == f"$HOME %PATH% <path> /wonderland/other/b {BLANK}"
    assert scrub("$HOME and ${PATH} and %PATH% and $5 and 10%") == (
        "<variable> and <variable> and <variable> and $5 and 10%"
    )
