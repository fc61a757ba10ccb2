"""Every block of code on every page is tried by some test, or stands here with the reason why not.

Python runs (page by page, from its top); a shell command is read by the program that it calls, which checks command, options
and values without doing the work; YAML is a run's file or a part of one. What a command *does* is tested where it is made.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import typer
import typer.main
import yaml

from engineers.cli import app as engineers_app
from envtuning.cli import app as envtuning_app
from envtuning.cli.arguments import run_name
from envtuning.runs.spec import RunSpec, load_spec, preset_names

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
}
PYTHON_RUNS_IN = {
    "README.md": "tests/project/test_readme.py",
    "docs/cluster.md": "tests/project/test_readme.py",
    "docs/doors.md": "tests/doors/test_docs.py",
    "docs/environments.md": "tests/project/test_readme.py",
    "docs/instances.md": "tests/project/test_readme.py",
    "docs/pogema.md": "tests/project/test_readme.py",
    "docs/solvers.md": "tests/project/test_readme.py",
    "docs/worlds.md": "tests/envtuning/worlds/test_example_worlds.py",
    "docs/tasks.md": "tests/envtuning/worlds/test_text_world.py",
    "docs/engineers.md": "tests/engineers/test_docs.py",
    "docs/own_engineer.md": "tests/engineers/test_docs.py",
    "docs/exam.md": "tests/envtuning/exam/test_page.py",
    "docs/tools.md": "tests/bfcl/test_docs.py",
    "docs/trainees.md": "tests/envtuning/cli/test_examples.py",
    "docs/training.md": "tests/envtuning/cli/test_examples.py",
}
PYTHON_DOES_NOT_RUN = {
    "docs/design.md": "a list of names, with … for what the reader gives; each name runs on another page",
    "docs/language.md": "names models of one's own; tests/language/test_small_skills.py runs them on a small one",
}
PICTURES = {  # drawings, and what a program says: nothing to run
    "README.md": ("            config ",),
    "docs/design.md": ("            config ",),
    "docs/engineers.md": ("report ──►",),
    "docs/runs.md": ("RUN/run.json",),
    "docs/tools.md": ("[mv(source='a.txt')]",),
}
PROGRAMS = {"envtuning": typer.main.get_command(envtuning_app), "engineers": typer.main.get_command(engineers_app)}
MAKE_TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"])


def blocks(text: str) -> list[tuple[str, str]]:
    """Each fenced block of a page: its language and its lines."""
    return re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[tuple[str, str]]:
    """Page and line of every shell command, in blocks and in code quotes."""
    for page, text in PAGES.items():
        for language, body in blocks(text):
            if language in ("", "sh") and not body.startswith(PICTURES.get(page, ())):
                yield from ((page, line) for line in body.splitlines() if line.strip())
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        yield from ((page, line) for line in re.findall(r"`((?:python -m|envtuning|make|pip install) [^`|]+)`", prose))


def test_every_python_block_has_a_test_or_a_reason():
    with_python = {page for page, text in PAGES.items() if any(language == "python" for language, _ in blocks(text))}
    assert with_python == set(PYTHON_RUNS_IN) | set(PYTHON_DOES_NOT_RUN)
    for page, test in PYTHON_RUNS_IN.items():
        assert Path(page).name in (ROOT / test).read_text(encoding="utf-8"), f"{test} does not name {page}"


def test_every_block_says_what_it_is():
    known = {"", "sh", "python", "text", "yaml", "toml"}
    assert {language for text in PAGES.values() for language, _ in blocks(text)} <= known


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_commands_are_understood(page, line):
    words = shlex.split(line, comments=True)
    words = [word for word in words if word not in ("…", "|")]
    while words and re.fullmatch(r"\w+=\S*", words[0]):  # VARIABLE=value before a command
        words.pop(0)
    if words[:2] == ["python", "-m"]:
        understood_module(words[2], words[3:])
    elif words[0] == "python":
        understood_file(words[1], words[2:])
    elif words[0] == "envtuning":
        understood_by("envtuning", words[1:])
    elif words[0] == "make":
        assert words[1] in MAKE_TARGETS or words[1].isupper()
        assert {word for word in words[1:] if "=" not in word} <= MAKE_TARGETS
    elif words[:2] == ["pip", "install"]:
        for asked in re.findall(r"\[([\w,-]+)\]", " ".join(words)):
            assert set(asked.split(",")) <= EXTRAS
    else:
        assert words[0] in ("export", "ray", "pre-commit", "openenv", "cd", "vf-eval"), (
            f"{page}: nothing here knows {words[0]}"
        )


def understood_by(program: str, words: list[str]) -> None:
    """The command exists, and takes these options and values; a command named without any is a mention. N is a number."""
    if words:
        command = PROGRAMS[program].commands[words[0]]  # type: ignore[attr-defined]
        if hasattr(command, "commands") and words[1:]:
            command, words = command.commands[words[1]], words[1:]
        if words[1:]:
            with suppress(typer.Exit):  # of an option that prints and does nothing else
                command.make_context(words[0], ["1" if word == "N" else word for word in words[1:]])


def understood_module(module: str, words: list[str]) -> None:
    if module == "engineers":
        understood_by("engineers", words)
        return
    module = module.replace("<name>", "store")
    found = importlib.util.find_spec(module)
    assert found is not None, f"there is no module {module}"
    assert found.origin is not None
    understood_file(str(Path(found.origin).parent if found.origin.endswith("__init__.py") else found.origin), words)


def understood_file(path: str, words: list[str]) -> None:
    """Every option that is given stands in the program's source, or in that of the package that it is."""
    place = ROOT / path
    sources = place.rglob("*.py") if place.is_dir() else [place]
    source = "\n".join(one.read_text(encoding="utf-8") for one in sources)
    if "from benchmarks._command import" in source:
        source += (ROOT / "benchmarks/_command.py").read_text(encoding="utf-8")
    for word in words:
        if word.startswith("--"):
            assert f'"{word.partition("=")[0]}"' in source, f"{path} does not know {word}"


def test_a_folder_of_a_run_is_named_as_the_command_names_it():
    named = {run for text in PAGES.values() for run in re.findall(r"\bruns/([\w-]+)-seed0\b", text)}
    assert {"small-corridors-steady", "small-skills-steady"} <= named
    assert named <= {run_name(load_spec(preset)) for preset in preset_names()}


def test_yaml_is_a_run_s_file_or_a_part_of_one():
    for page, text in PAGES.items():
        for language, body in blocks(text):
            if language == "yaml":
                keys = set(yaml.safe_load(body))
                assert keys <= {*RunSpec.model_fields, "extends"}, f"{page}: {keys}"


def test_every_shown_command_that_trains_says_how_long_it_takes():
    """Those of somebody's own file take what their trainee takes."""
    trains = re.compile(
        r"(envtuning (run|compare|pretrain) |make (demo|test)\b|python -m (envtuning|examples)\.\S*tune)"
    )
    silent = [
        (page, line)
        for page, text in PAGES.items()
        for language, body in blocks(text)
        if language in ("", "sh")
        for line in body.splitlines()
        if trains.match(line) and "mine.yaml" not in line and not re.search(r"#.*\b(seconds?|minutes?|hours?)\b", line)
    ]
    assert not silent


def test_the_readme_leads_with_a_run_that_shows_something_in_a_minute():
    first = next(
        line for _, body in blocks(PAGES["README.md"]) for line in body.splitlines() if line.startswith("envtuning run")
    )
    assert first.split()[2] == "small-corridors"
