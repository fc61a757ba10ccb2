"""A stranger's file runs no code: every command and every public reader of files gets files that name a stranger's module.

The commands are listed from the command lines and the readers from the packages, so that a new one is covered without being remembered.
"""

from __future__ import annotations

import inspect
import json
import pkgutil
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

import engineers
import envtuning.loop
import envtuning.runs
import envtuning.show
import envtuning.studies
from engineers.cli import app as engineers_app
from engineers.report import EXAMPLE_REPORT
from engineers.shared.errors import UserError
from envtuning.cli import MODULES, app_with
from envtuning.errors import SpecError
from envtuning.loop.run import start
from envtuning.runs.resolve import resolve
from envtuning.runs.spec import RunSpec, load_spec

EVIL = "from pathlib import Path\nPath(__file__).with_name('it_ran').touch()\nclass World: ...\nmake = World\n"
NAMED = {  # each part of a run's file that may name a module
    "world": {"world": "evil:World"},
    "trainee": {"trainee": {"kind": "evil:World"}},
    "engineer": {"engineer": "evil:make"},
    "permuted": {"engineer": "permuted/evil:make"},
}
TARGET = {"num_agents": 2, "slices": {"4": {}}}
SHORT = {
    "name": "short",
    "trainee": "scripted",
    "target": TARGET,
    "stages": [{"config": TARGET, "budget": 2}, {"config": "engineer", "budget": 2}],
    "suites": {"validation_per_slice": 2, "test_per_slice": 2, "probe_per_slice": 2},
}


def commands() -> dict[str, tuple[typer.Typer, list[Any]]]:
    """Every command of both command lines with its parameters."""
    return {
        f"{line} {name}": (app, command.params)
        for line, app in (("envtuning", app_with(MODULES)), ("engineers", engineers_app))
        for name, command in get_command(app).commands.items()  # type: ignore[attr-defined]
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with files and runs that name a stranger's module, which lies beside them."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "evil.py").write_text(EVIL)
    (folder / "good.json").write_text(json.dumps(SHORT))
    start(load_spec(folder / "good.json"), folder / "good_run")
    for part, named in NAMED.items():
        (folder / f"{part}.json").write_text(json.dumps(SHORT | named))
        arms = {"arms": {"a": named, "b": {"engineer": "fixed"}}, "base": SHORT, "seeds": [0]}
        (folder / f"{part}_study.json").write_text(json.dumps(arms))
        shutil.copytree(folder / "good_run", folder / f"{part}_run")
        written = json.loads((folder / "good_run" / "run.json").read_text())
        assert set(SHORT) <= set(written["spec"]), "run.json holds the spec elsewhere now: name the module there"
        written["spec"] |= named
        (folder / f"{part}_run" / "run.json").write_text(json.dumps(written))
    report = json.loads(EXAMPLE_REPORT.read_text())
    (folder / "report.json").write_text(json.dumps(report | {"config_class": "evil:World"}))
    return folder


@pytest.fixture
def nothing_ran(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, in which the test stands and where Python would find the module: it leaves a file when it is imported."""
    shutil.copytree(files, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path / "here")
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    return tmp_path / "here"


def strangers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix == ".json" or path.name.endswith("_run"))


def ways(parameters: list[Any], file: str) -> Iterator[list[str]]:
    """The file in place of every argument, and then of each option that takes a value."""
    needed = [
        *(file for one in parameters if one.param_type_name == "argument"),
        *(
            word
            for one in parameters
            if one.param_type_name == "option" and one.required
            for word in (one.opts[0], file)
        ),
    ]
    yield needed
    for one in parameters:
        if one.param_type_name == "option" and not one.required and not one.is_flag:
            yield [*needed, one.opts[0], file]


@pytest.mark.parametrize("command", sorted(commands()))
def test_no_command_imports_what_only_a_file_names(command: str, nothing_ran: Path) -> None:
    app, parameters = commands()[command]
    for file in strangers(nothing_ran):
        for words in ways(parameters, file):
            CliRunner().invoke(app, [command.partition(" ")[2], *words])
            assert not (nothing_ran / "it_ran").exists(), f"{command} {' '.join(words)}"


def test_a_command_that_forgets_all_about_trust_imports_nothing(nothing_ran: Path) -> None:
    app = app_with(MODULES)

    @app.command()
    def forgetful(file: Path) -> None:
        resolve(load_spec(file))

    try:
        for part in NAMED:
            result = CliRunner().invoke(app, ["forgetful", f"{part}.json"])
            assert result.exit_code == 1
            assert "add --trust" in " ".join(result.output.split())
    finally:
        app.registered_commands.pop()


def readers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function and method of a class in these packages that needs one path and nothing else."""
    for package in (engineers, envtuning.loop, envtuning.runs, envtuning.show, envtuning.studies):
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            module = import_module(found.name)
            for name, thing in vars(module).items():
                if name[0] == "_" or getattr(thing, "__module__", None) != module.__name__:
                    continue
                parts = inspect.getmembers(thing, inspect.ismethod) if inspect.isclass(thing) else []
                for called, one in [(name, thing), *((f"{name}.{part}", method) for part, method in parts)]:
                    if called.rpartition(".")[2][0] != "_" and one.__module__ == module.__name__ and _reads_a_path(one):
                        yield f"{module.__name__}.{called}", one


def _reads_a_path(called: Any) -> bool:
    if not callable(called) or inspect.isclass(called):
        return False
    first, *others = inspect.signature(called).parameters.values() or [None]
    return first is not None and "Path" in str(first.annotation) and all(one.default is not one.empty for one in others)


@pytest.mark.parametrize("reader", [name for name, _ in readers()])
def test_no_public_reader_imports_what_only_a_file_names(reader: str, nothing_ran: Path) -> None:
    read = dict(readers())[reader]
    for file in strangers(nothing_ran):
        with suppress(UserError, ValueError, OSError, ImportError, TypeError):
            found = read(nothing_ran / file)
            if isinstance(found, RunSpec):
                resolve(found)
        assert not (nothing_ran / "it_ran").exists(), f"{reader}({file})"


def test_whoever_trusts_the_module_gets_it(nothing_ran: Path) -> None:
    with pytest.raises(SpecError, match="evil"):
        resolve(load_spec("world.json", trust=["evil"]))
    assert (nothing_ran / "it_ran").exists()
