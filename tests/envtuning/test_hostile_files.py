"""A run's file is somebody's text: each trick in it is told in one sentence, and no code of its own runs on its word."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engineers.extras import _is_installed
from engineers.own import declares, object_at, trust_only
from engineers.proposal import Engineer
from engineers.terminal import TextConsole, visible
from envtuning.cli import app
from envtuning.runs.log import RunLog
from envtuning.runs.reading import NotReadable, read_mapping
from envtuning.runs.spec import EngineerSpec, SpecError, load_spec
from envtuning.worlds.registry import UnknownWorld, make_world
from envtuning.worlds.world import World

BASE = "extends: scripted\n"


def envtuning(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def refused(tmp_path: Path, text: str, *more: object) -> str:
    """What is said of a run's file with this text. It is one line, nothing is trained, and the exit code is 1."""
    file = tmp_path / "it.yaml"
    file.write_text(text, encoding="utf-8")
    code, output = envtuning("run", file, *more, "--out", tmp_path / "run")
    assert code == 1
    assert output.startswith("error: ")
    assert output.count("\n") == 1 or "YAML" in output, output  # YAML's own words have line breaks
    assert not (tmp_path / "run").exists()
    return output


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: " + "[" * 3000 + "]" * 3000, "nested too deep"),
        ('{"a": ' + "[" * 100_000, "nested too deep"),
        ("a: " + "[" * 60 + "]" * 60, "nested too deep"),
        (BASE + f"seed: {'7' * 5000}", "neither YAML nor JSON"),
        ('{"extends": "scripted", "seed": ' + "7" * 5000 + "}", "neither YAML nor JSON"),
        (BASE + f"seed: {'7' * 40}", "seed"),
        (BASE + f"name: {'x' * 300}", "name"),
        (BASE + "suites: {validation_per_slice: 1000000000000}", "validation_per_slice"),
        (BASE + "total: 1" + "0" * 30, "total"),
        (BASE + "name: a\nname: b", "'name' twice in one mapping (line 3)"),
        ('{"extends": "scripted", "name": "a", "name": "b"}', "'name' twice in one mapping"),
        (BASE + "engineer: {name: random, options: {space: {a: [.nan, 1]}}}", "space.a.0=nan: give a finite number"),
        ('{"extends": "scripted", "engineer": {"name": "rules", "options": {"x": NaN}}}', "has the number NaN"),
        (BASE + "trainee: {kind: scripted, options: {speed: .inf}}", "speed=inf"),
        (BASE + "trainee: {kind: scripted, options: {speed: 2020-01-01}}", "speed is of type date"),
        (BASE + "engineer: {name: openai/x, options: {api_key: sk-planted-0123456789}}", "no key goes there"),
        (BASE + "engineer: {name: openai/x, options: {request: {extra_headers: {Authorization: planted}}}}", "no key goes"),
        (BASE + "editable: [slices.*.temperature]", "editable: "),
        (BASE + "extends: [1]", "twice"),
        ("extends: [1]", "extends [1]"),
        ("x" * 2_000_000, "at most 1,000,000 are read"),
        (
            "a: &a [1,2,3,4,5,6,7,8,9]\n"
            + "\n".join(f"{b}: &{b} [*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a},*{a}]" for a, b in zip("abcdefgh", "bcdefghi")),
            "more than 100,000 values",
        ),
    ],
)  # fmt: skip
def test_a_trick_in_a_runs_file_is_told_in_a_sentence(tmp_path, text, says):
    said = refused(tmp_path, text)
    assert says in said
    assert "planted" not in said
    assert len(said) < 2_000


def test_too_many_seeds_or_stages_on_the_command_line_are_told_at_once():
    for words in (["--seeds", "1" + "0" * 12], ["--seeds", "7" * 5000], ["--stages", "1" + "0" * 12]):
        code, output = envtuning("run", "scripted", *words)
        assert code == 1
        assert "error: " in output
        assert len(output) < 300


def test_keys_of_merged_mappings_may_be_overwritten():
    assert read_mapping("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}") == {"a": {"x": 1, "y": 2}, "b": {"x": 3, "y": 2}}
    with pytest.raises(NotReadable, match="'x' twice"):
        read_mapping("b: {x: 1, 'x': 2}")


@pytest.mark.parametrize("body", ["raise OSError('gone')", "import sys; sys.exit(0)", "1 / 0"])
def test_a_module_that_raises_or_exits_is_told_in_a_sentence(tmp_path, monkeypatch, body):
    (tmp_path / "rude_module.py").write_text(body)
    monkeypatch.chdir(tmp_path)
    for text in (
        "world: rude_module:World",
        "trainee: {kind: 'rude_module:T'}",
        "engineer: {name: 'rude_module:make'}",
    ):
        sys.modules.pop("rude_module", None)
        said = refused(tmp_path, BASE + text, "--trust", "rude_module")
        assert "'rude_module' cannot be imported (its code raised" in said


def test_a_world_that_exits_while_it_is_made_is_told_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rude_world.py").write_text(
        "import sys\nfrom envtuning.worlds.world import World\ndef make() -> World:\n    sys.exit(0)\n"
    )
    with pytest.raises(UnknownWorld, match="cannot be made with these options: SystemExit: 0"):
        make_world("rude_world:make")


# Trust


PROOF = "from pathlib import Path\nPath('it_ran').touch()\n"


@pytest.mark.parametrize(
    "text", ["world: planted_code:World", "trainee: {kind: 'planted_code:T'}", "engineer: {name: 'planted_code:make'}"]
)
def test_no_module_is_imported_on_a_files_word(tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planted_code.py").write_text(PROOF)
    sys.modules.pop("planted_code", None)
    assert "--trust planted_code" in refused(tmp_path, BASE + text)
    assert not (tmp_path / "it_ran").exists()
    refused(tmp_path, BASE + text, "--trust", "planted_code")  # imported now, and found to be nothing of the kind
    assert (tmp_path / "it_ran").exists()


def test_neither_resume_nor_show_nor_report_imports_on_a_folders_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = RunLog.create(tmp_path / "run", load_spec("scripted"))
    (run.path / "checksums.json").unlink()
    record = json.loads((run.path / "run.json").read_text())
    record["spec"]["world"] = {"name": "planted_code:World", "options": {}}
    (run.path / "run.json").write_text(json.dumps(record))
    (tmp_path / "planted_code.py").write_text(PROOF)
    sys.modules.pop("planted_code", None)
    for command in ("resume", "show", "report", "replay", "tensorboard"):
        code, output = envtuning(command, run.path)
        assert code == 1
        assert "--trust planted_code" in output
    assert not (tmp_path / "it_ran").exists()


@pytest.mark.parametrize(
    "name", ["os:system", "os:system/touch it_ran", "subprocess:run", "engineers.cli:main", "json:JSONDecoder"]
)
def test_what_does_not_say_that_it_is_an_engineer_or_a_world_is_never_called(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    module = name.partition(":")[0]
    for more in ((), ("--trust", module)):
        refused(tmp_path, BASE + f"engineer: {{name: '{name}'}}", *more)
        refused(tmp_path, BASE + f"world: '{name.partition('/')[0]}'", *more)
        refused(tmp_path, BASE + f"trainee: {{kind: '{name.partition('/')[0]}'}}", *more)
    assert not (tmp_path / "it_ran").exists()


class Own:
    name = "own"

    def propose(self, report, current, editable=None): ...


def made(rest: str) -> Own: ...


def made_as_protocol(rest: str) -> Engineer: ...


def made_unsaid(rest): ...


def made_for_the_checker(rest: str) -> "nowhere.Engineer": ...  # noqa: F821


def made_a_text(rest: str) -> str: ...


def test_a_factory_declares_by_its_return_annotation_what_it_makes():
    said = {found: declares(found, Engineer) for found in (Own, made, made_as_protocol, made_for_the_checker)}
    assert all(said.values()), said
    for found in (made_unsaid, made_a_text, os.system, str, World, 3, None):
        assert not declares(found, Engineer), found


def test_in_a_script_every_name_is_its_writers_own_word():
    assert object_at("json:loads") is json.loads
    try:
        trust_only(["xml.dom"])
        with pytest.raises(ImportError, match="--trust json"):
            object_at("json:loads")
        assert object_at("xml.dom.minidom:parse")  # a package stands for what is in it
        with pytest.raises(ImportError, match=r"--trust xml\.sax"):
            object_at("xml.sax:parse")
    finally:
        trust_only(None)


@pytest.mark.parametrize(
    ("engineer", "options"),
    [
        ("openai/gpt-5-mini", {"base_url": "http://evil.example/v1"}),
        ("gemini/x", {"base_url": "http://evil.example"}),
        ("litellm/openai/x", {"base_url": "http://evil.example"}),
        ("litellm/openai/x", {"request": {"api_base": "http://evil.example"}}),
        ("server/http://evil.example/v1#m", {}),
    ],
)
def test_a_key_goes_to_no_host_on_a_files_word(tmp_path, monkeypatch, engineer, options):
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY", "ENGINEERS_SERVER_API_KEY"):
        monkeypatch.setenv(name, "planted-key-0123456789")
    library = engineer.partition("/")[0].replace("server", "openai").replace("gemini", "google.genai")
    if not _is_installed(library):
        pytest.skip(f"needs {library}")
    text = BASE + json.dumps({"engineer": {"name": engineer, "options": options}})[1:-1]
    said = refused(tmp_path, text)
    assert "would go to evil.example" in said
    assert "planted" not in said


def test_a_key_in_options_is_refused_in_python_too():
    with pytest.raises(ValueError, match="no key goes there"):
        EngineerSpec(name="openai/x", options={"api_key": "sk-0123456789"})
    assert EngineerSpec(name="openai/x", options={"max_tokens": 5, "keys": 3}).options == {"max_tokens": 5, "keys": 3}


def test_what_cannot_be_read_from_a_spec_is_a_spec_error(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError):
        load_spec(tmp_path / "x.yaml")


# What a terminal is told


HOSTILE = "a\x1b[2Jb\x1b]0;title\x07c\x00d\x9b31me\u202eevil\u2066f\rg"


def test_what_would_steer_a_terminal_is_written_out():
    assert visible("tab\tline\näöü – 日本 ✓") == "tab\tline\näöü – 日本 ✓"
    shown = visible(HOSTILE)
    assert shown == r"a\x1b[2Jb\x1b]0;title\x07c\x00d\x9b31me\u202eevil\u2066f\rg"


def test_a_console_prints_hostile_text_as_text(capsys):
    from rich.table import Table
    from rich.text import Text

    console = TextConsole(markup=False, force_terminal=True, width=200)
    table = Table("x")
    table.add_row(HOSTILE)
    for shown in (HOSTILE, Text(HOSTILE, style="bold"), table):
        console.print(shown, highlight=False)
    said = capsys.readouterr().out
    assert said.count(r"\x1b]0;title") == 3
    for steering in ("\x1b]", "\x1b[2J", "\x00", "\x07", "\x9b", "\u202e", "\u2066", "\r"):
        assert steering not in said
    assert "\x1b[1m" in said  # its own colours pass
