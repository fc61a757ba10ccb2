"""``python -m engineers`` on a report file alone: most of it called in this process, or each call would import everything anew."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engineers import cli
from engineers.model.prompt import Prompt
from engineers.proposal import Change, Proposal, Usage
from engineers.registry import BACKENDS, what_it_does
from engineers.report import StageReport

ROOT = Path(__file__).parents[2]
REPORT = ROOT / "engineers" / "example_report.json"


def program(*arguments, **options):
    command = [sys.executable, "-m", "engineers", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.fixture
def run(capsys, monkeypatch):
    """The program's main function, and how a process would have ended."""
    pytest.importorskip("typer")
    from engineers.cli import main

    def called(*arguments):
        monkeypatch.setattr(sys, "argv", ["engineers", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, ended.value.code or 0, said.out, said.err)

    return called


def test_propose_shows_the_change_and_the_reason(run, tmp_path):
    done = run("propose", "--report", REPORT, "--engineer", "rules", "--save", tmp_path / "next.json")
    assert done.returncode == 0, done.stderr
    assert "slices.4.wait_ratio" in done.stdout
    assert "of the way to it" in " ".join(done.stdout.split())
    saved = json.loads((tmp_path / "next.json").read_text())
    assert saved["slices"]["4"]["wait_ratio"] > 0.2


def test_propose_is_in_colour_on_a_terminal():
    import os

    done = program("propose", "--report", REPORT, env={**os.environ, "FORCE_COLOR": "1", "TERM": "xterm-256color"})
    assert "\x1b[31m" in done.stdout, "old values in red"
    assert "\x1b[32m" in done.stdout, "new values in green"


def test_json_is_the_whole_proposal(run):
    proposal = json.loads(run("propose", "--report", REPORT, "--engineer", "uniform", "--json").stdout)
    assert proposal["engineer"] == "uniform"
    assert proposal["config"]["slices"]["3"]["share"] == 0.125


def test_only_what_is_opened_is_turned(run):
    done = run("propose", "--report", REPORT, "--engineer", "random", "--editable", "slices.3.share", "--json")
    assert [change["path"] for change in json.loads(done.stdout)["reasons"]] == ["slices.3.share"]


def test_a_fallback_has_an_exit_code_of_its_own(run, tmp_path):
    done = run("propose", "--report", REPORT, "--engineer", f"human/{tmp_path}", "--option", "timeout=0.1")
    assert done.returncode == 3
    assert "the current config is kept" in done.stdout


def test_prompt_shows_what_would_be_sent(run):
    done = run("prompt", "--report", REPORT, "--context", "V4", "--schema")
    assert done.returncode == 0, done.stderr
    assert "## Failures on validation" in done.stdout
    assert '"additionalProperties": false' in done.stdout
    assert run("prompt", "--report", "example", "--context", "V4", "--schema").stdout == done.stdout
    two_questions = run("prompt", "--report", REPORT, "--context", "V5").stdout
    assert "Sum up" in two_questions
    assert "(the model's summary)" in two_questions


def test_list_names_every_engineer(run):
    from engineers import available

    listed = run("list").stdout
    assert all(name in listed for name in available())
    assert "…" not in listed  # what is cut cannot be typed
    assert re.search(r"steady +The default\. As rising, but", listed)


@pytest.mark.parametrize("backend", sorted(BACKENDS))
def test_the_list_says_in_a_sentence_what_each_engineer_does(backend):
    """Its first, which names no option and ends."""
    said = what_it_does(backend)
    assert re.fullmatch(r"[A-Z].{15,150}[.]", said), said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engineer", "nobody"], "engineer 'nobody' is unknown"),
        (["--config-class", "nowhere:Config"], "cannot be imported"),
        (["--config-class", "json:dumps"], "is not a pydantic model"),
        (["--config-class", "engineers:Usage"], "the config in example_report.json is not a valid Usage: "),
        (["--context", "V9", "--engineer", "human"], "one of informed, V1"),
        (["--editable", "slices.99.share"], "names no knob of LakeConfig"),
        (["--option", "speed"], "write name=value"),
        (["--option", "speed=1"], "has no option speed"),
        (["--save", "/proc/no/next.json"], "/proc/no"),
    ],
)
def test_propose_errors_are_one_line(run, arguments, said):
    done = run("propose", "--report", REPORT, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_is_no_report_says_where(run, tmp_path):
    (tmp_path / "r.json").write_text('{"stage": -1}')
    done = run("propose", "--report", tmp_path / "r.json")
    assert done.returncode == 2
    assert "r.json is not a report: stage" in done.stderr


def test_a_file_that_is_no_json_is_no_report(run, tmp_path):
    (tmp_path / "r.md").write_text("# Hello")
    assert "r.md is not a report: Invalid JSON" in run("propose", "--report", tmp_path / "r.md").stderr


def test_an_engineer_in_a_file_of_ones_own_is_found(tmp_path):
    (tmp_path / "mine.py").write_text("from engineers.plain.fixed import FixedEngineer as Mine\n")
    done = program("propose", "--report", REPORT, "--engineer", "mine:Mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert " ".join(done.stdout.split()) == "fixed on the config of stage 2 no change"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("pass", "error: bad failed (TypeError: propose returned a NoneType, not a Proposal)"),
        ("1 / 0", "error: bad failed (ZeroDivisionError: division by zero (bad_{0}.py, line 4))"),
        ("[].pop()", "error: bad failed (IndexError: pop from empty list (bad_{0}.py, line 4))"),
        ("return Proposal(config=current.model_construct(slices={{}}))", "error: bad's config was refused ("),
        (
            "import engineers; return engineers.make('rules').propose(report, current, ['no'])",
            "error: 'no' names no knob of",
        ),
    ],
    ids=["none", "zero", "empty", "refused", "path"],
)
def test_ones_own_engineer_fails_in_a_sentence(run, request, tmp_path, monkeypatch, written, said):
    module = request.node.callspec.id
    lines = ["from engineers import Engineer, Proposal", "class Bad(Engineer):", "    name = 'bad'"]
    lines.append(f"    def propose(self, report, current, editable=None): {written.format(module)}")
    (tmp_path / f"bad_{module}.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for option in ([], ["--json"]):
        done = run("propose", "--report", "example", "--engineer", f"bad_{module}:Bad", *option)
        assert done.returncode == (2 if module == "path" else 1)
        assert done.stderr.startswith(said.format(module)), done.stderr
        assert "Traceback" not in done.stderr


def test_ones_own_engineer_is_guarded_as_in_a_run(run, tmp_path, monkeypatch):
    lines = [
        "from engineers import Engineer, Proposal",
        "from engineers.knobs import with_values",
        "class Greedy(Engineer):",
        "    name = 'greedy'",
        "    def propose(self, report, current, editable=None):",
        "        return Proposal(config=with_values(current, {('slices', '3', 'share'): 0.0}))",
    ]
    (tmp_path / "greedy.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    ask = ("propose", "--report", "example", "--engineer", "greedy:Greedy")
    assert run(*ask).returncode == 0
    for option, why in (
        (("--max-drop", "0.5"), "slice 3 works"),
        (("--editable", "slices.*.hole_ratio"), "slices.3.share was changed"),
    ):
        done = run(*ask, *option)
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: greedy's config was refused ({why}"), done.stderr


def test_an_engineer_that_changes_nothing_says_why(capsys):
    proposal = Proposal(config=Usage(), engineer="x", kept={"a": "it [rises]", "b": "it [rises]"})
    cli._show(proposal, StageReport(stage=1, config={}))
    assert capsys.readouterr().out.splitlines() == ["x on the config of stage 2", "  no change", "  a, b: it [rises]"]


def test_a_human_is_told_everything_unless_told_otherwise(run, tmp_path):
    ask = ("propose", "--report", REPORT, "--engineer", f"human/{tmp_path}", "--option", "timeout=0.1")
    run(*ask)
    report = tmp_path / "stage-1" / "report.md"
    assert "## Failed episodes" in report.read_text()
    run(*ask, "--context", "V1")
    assert "## Failed episodes" not in report.read_text()


def test_a_config_is_saved_into_a_folder_that_is_not_there_yet(run, tmp_path):
    run("propose", "--report", REPORT, "--engineer", "uniform", "--save", tmp_path / "new" / "next.json")
    assert json.loads((tmp_path / "new" / "next.json").read_text())["slices"]["3"]["share"] == 0.125


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(), None),
        (Usage(attempts=1, prompt_tokens=10, completion_tokens=5, cost=0.01234, seconds=0.25),
         "1 question, 10 + 5 tokens, cost $0.0123, 0.2 s"),
        (Usage(attempts=3, cost=None, seconds=2), "3 questions, 0 + 0 tokens, cost unknown, 2.0 s"),
    ],
)  # fmt: skip
def test_what_an_answer_took_is_told_where_a_model_was_asked(usage, said, capsys):
    proposal = Proposal(config=Usage(), engineer="x", usage=usage)
    cli._show(proposal, StageReport(stage=1, config={}))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["x on the config of stage 2", "  no change", *([said] if said else [])]


@pytest.mark.parametrize(
    ("fallback", "reasons", "refusals", "said"),
    [
        (True, [], ["too many agents"], ["  refused: too many agents", "  the current config is kept"]),
        (False, [], ["too many agents"], ["  refused: too many agents", "  no change"]),
        (False, [Change(path="num_agents", old=2, new=3, reason="more of them")], [], []),
    ],
)
def test_a_proposal_is_told_by_its_refusals_and_by_what_it_changes(fallback, reasons, refusals, said, capsys):
    proposal = Proposal(config=Usage(), engineer="x", fallback=fallback, reasons=reasons, refusals=refusals)
    cli._show(proposal, StageReport(stage=0, config={}))
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == "x on the config of stage 1"
    assert rest[: len(said)] == said
    assert [line.split() for line in rest[len(said) :] if reasons][1:] == [
        [one.path, str(one.old), "→", str(one.new), *one.reason.split()] for one in reasons
    ]


def test_options_are_read_as_json_where_they_are_json():
    assert cli._options(["timeout=60", "name=a=b", "stop=[1]", "empty="]) == {
        "timeout": 60, "name": "a=b", "stop": [1], "empty": "",
    }  # fmt: skip
    assert cli._options(None) == {}


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.5, "0.5"), (1e-05, "1e-05"), (3.0, "3"), (True, "true"), (None, "null"), ([1, 2], "[1, 2]"), ("x", '"x"')],
)
def test_values_stand_in_the_table_as_json_and_numbers_short(value, said, capsys):
    told_of([Change(path="knob", old="before", new=value)])
    assert capsys.readouterr().out.splitlines()[-1].split("→")[1].strip() == said


def test_numbers_have_the_digits_that_tell_them_apart(capsys):
    told_of([Change(path="share", old=1 / 3, new=0.3333333)])
    assert capsys.readouterr().out.splitlines()[-1].split() == ["share", "0.33333333", "→", "0.3333333"]


def told_of(reasons: list[Change]) -> None:
    cli._show(Proposal(config=Usage(), engineer="x", reasons=reasons), StageReport(stage=0, config={}))


TALKATIVE = """
from engineers import Engineer, Proposal
from engineers.proposal import Change

class Mine(Engineer):
    name = "mine"

    def propose(self, report, current, editable=None):
        slices = {3: current.slices[3].model_copy(update={"share": 0.5}), **{size: current.slices[size] for size in current.slices if size != 3}}
        kept = Change(path="num_agents", old=2, new=2, reason="enough of them")
        why = Change(path="slices.3", reason="more small lakes")
        return Proposal(config=current.model_copy(update={"slices": slices}), reasons=[kept, why], engineer=self.name)
"""


def test_propose_lists_what_changes_and_nothing_else(tmp_path):
    """Whatever an engineer gives reasons for."""
    (tmp_path / "mine.py").write_text(TALKATIVE)
    done = program("propose", "--report", REPORT, "--engineer", "mine:Mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    _, heading, *rows = done.stdout.splitlines()
    assert heading.split() == ["knob", "now", "next", "why"]
    was = StageReport.example().config["slices"]["3"]["share"]
    assert [row.split() for row in rows] == [["slices.3.share", f"{was:g}", "→", "0.5", "more", "small", "lakes"]]


@pytest.mark.parametrize("engineer", ["fixed", "rules", "reader", "uniform", "random", "rising", "steady"])
def test_no_engineer_lists_a_knob_that_stays(engineer, run):
    shown = run("propose", "--report", REPORT, "--engineer", engineer).stdout
    rows = [line.split() for line in shown.splitlines() if "→" in line]
    assert rows or "no change" in shown
    assert [row for row in rows if row[1] == row[3]] == []


ASKED = {"seed": 7, "context": "V2", "max_attempts": 2, "max_cost": 0.5, "max_total_tokens": 900, "max_drop": 0.25}


def test_what_is_given_reaches_the_engineer_and_what_is_not_does_not(run, tmp_path, monkeypatch):
    asked = []

    def make(name, **options):
        asked.append((name, options))
        raise ValueError("enough")

    monkeypatch.setattr(cli, "make", make)
    run("propose", "--report", REPORT)
    words = [word for name, value in ASKED.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    more = ("--transcript", tmp_path / "t.jsonl", "--option", "timeout=60", "--option", "seed=9", "--engineer", "x")
    run("propose", "--report", REPORT, *words, *more)
    assert asked == [
        ("steady", {"seed": 0, "max_attempts": 3}),
        ("x", ASKED | {"seed": 9, "transcript": tmp_path / "t.jsonl", "timeout": 60}),
    ]


@pytest.mark.parametrize("drop", ["-0.1", "1.1"])
def test_a_part_that_is_none_is_refused(run, drop):
    assert run("propose", "--report", REPORT, "--max-drop", drop).returncode == 2


def test_a_config_is_saved_to_be_read(run, tmp_path):
    file = tmp_path / "new" / "deeper" / "next.json"
    said = run("propose", "--report", REPORT, "--engineer", "uniform", "--save", file, "--json").stdout
    proposal = json.loads(said)
    assert said == json.dumps(proposal, indent=2, ensure_ascii=False) + "\n"
    assert file.read_text() == json.dumps(proposal["config"], indent=2, ensure_ascii=False) + "\n"


def test_whose_class_a_config_is_says_the_command_else_the_report_else_it_is_a_lake(tmp_path):
    report = json.loads(REPORT.read_text()) | {"config_class": ""}
    file = tmp_path / "r.json"
    file.write_text(json.dumps(report))
    assert type(cli._load(file, "")[1]).__name__ == "LakeConfig"
    file.write_text(json.dumps(report | {"config": {"seconds": 3}, "config_class": "engineers:Usage"}))
    assert cli._load(file, "")[1] == Usage(seconds=3)
    file.write_text(json.dumps(report | {"config": {"path": "a"}, "config_class": "engineers:Usage"}))
    assert cli._load(file, "engineers:Change")[1] == Change(path="a")
    file.write_text(json.dumps(report | {"config": {"tasks": {"add": {"share": 0.5}}}}))
    assert cli._load(file, "envtuning.worlds.small_skills:world")[1].tasks["add"].share == 0.5


def test_a_class_that_ignores_the_reports_config_is_not_asked_about(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "another.py").write_text(
        "from pydantic import BaseModel\nclass Pole(BaseModel):\n    length: float = 0.5\n"
    )
    refused = run("propose", "--report", REPORT, "--config-class", "another:Pole")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "has 'collisions', and Pole has no such field; give its --config-class" in refused.stderr


def test_no_class_is_imported_on_a_reports_word(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted_class.py").write_text(
        "from pathlib import Path\nfrom pydantic import BaseModel\nPath('it_ran').touch()\nclass Own(BaseModel): ...\n"
    )
    report = json.loads(REPORT.read_text()) | {"config": {}, "config_class": "planted_class:Own"}
    (tmp_path / "r.json").write_text(json.dumps(report))
    for command in ("prompt", "propose"):
        refused = run(command, "--report", "r.json")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "--config-class planted_class:Own" in refused.stderr
        assert not (tmp_path / "it_ran").exists()
    run("prompt", "--report", "r.json", "--config-class", "planted_class:Own")
    assert (tmp_path / "it_ran").exists()


def test_signs_in_a_report_are_no_markup_of_the_terminals(run, tmp_path):
    report = json.loads(REPORT.read_text()) | {"environment": "A [bold]lake[/bold] of [/] signs."}
    (tmp_path / "r.json").write_text(json.dumps(report))
    assert "A [bold]lake[/bold] of [/] signs." in run("prompt", "--report", tmp_path / "r.json").stdout


def test_a_prompt_is_headed_by_its_context_its_size_and_what_was_left_out(capsys):
    messages = [{"role": "user", "content": "x" * 25}]
    cli._show_prompt(Prompt(messages, ["a failure case", "the behaviour"]), "context V1")
    cli._show_prompt(Prompt(messages), "context V1")
    said = capsys.readouterr().out
    assert "context V1, about 11 tokens; left out: a failure case, the behaviour" in " ".join(said.split())
    assert said.count("left out") == 1
    assert f"user\n{'x' * 25}\n" in said
