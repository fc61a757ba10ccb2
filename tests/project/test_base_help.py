"""``envtuning`` in the base install: the commands are listed with the extra that each needs, and one that is called names its own."""

import subprocess
import sys

import pytest
import typer.main

from envtuning.base_help import EXTRAS, answer, commands
from envtuning.cli import app

WITHOUT = """
import runpy, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("typer", "rich", "yaml", "jinja2", "filelock"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
runpy.run_module("envtuning", run_name="__main__")
"""


def base_install(*arguments):
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_lists_every_command_with_its_extra():
    asked = base_install("--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    lines = {line.split()[0]: line.split()[1] for line in asked.stdout.splitlines() if line.startswith("  ")}
    assert lines.pop("command") == "extra"
    assert lines == {name: EXTRAS.get(name, "rllib") for name in typer.main.get_command(app).commands}


def test_a_command_that_is_called_names_its_own_extra():
    called = base_install("pretrain", "folder")
    assert called.returncode == 1
    assert "mapf-frozenlake[grpo]" in called.stderr


@pytest.mark.parametrize(
    ("arguments", "said", "status"),
    [
        ([], "Usage: envtuning COMMAND", 0),
        (["pretrain", "--help"], "mapf-frozenlake[grpo]", 0),
        (
            ["run", "scripted"],
            'envtuning run needs typer: pip install "mapf-frozenlake[rllib]", or in a checkout pip install -e ".[rllib]"',
            1,
        ),
        (["nonsense"], "envtuning needs typer: pip install", 1),
    ],
)
def test_what_is_answered(arguments, said, status):
    text, got = answer(arguments, "typer")
    assert said in text
    assert got == status


def test_what_is_listed_is_what_the_commands_say_of_themselves():
    listed = {name: command.help.splitlines()[0] for name, command in typer.main.get_command(app).commands.items()}
    assert {name: command.said for name, command in commands().items()} == listed
