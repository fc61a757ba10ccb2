"""Lists the commands without importing them, and prints ``envtuning --help`` with each command's extra if the command line's packages are missing."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from engineers.shared.extras import how_to_install
from envtuning.cli import MODULES

# Each of these extras includes the command line; the first is the default.
EXTRAS = {
    "exam": "exam",
    "weights": "grpo",
    "pretrain": "grpo",
    "evaluate": "grpo",
    "openenv": "openenv",
    "tensorboard": "rllib",
}
ANY = "rllib"
NOTES = f"""\
Install an extra by {how_to_install("EXTRA")}.
A run needs the extra of its trainee: {ANY} for ppo, rllib and scripted; sb3; grpo.
`evaluate` asks local models with grpo; for providers add openai, gemini or litellm.
"""


def answer(arguments: Sequence[str], missing: str) -> tuple[str, int]:
    """The text for a ``missing`` package, and the exit status: 0 for a request for help."""
    known = commands()
    named = next((word for word in arguments if word in known), None)
    asked_for_help = not arguments or "--help" in arguments
    if named is None and asked_for_help:
        return _overview(known), 0
    extra = EXTRAS.get(named or "", ANY)
    said = f"envtuning{f' {named}' if named else ''} needs {missing}: {how_to_install(extra)}"
    return (f"{known[named].said}\n{said}", 0) if named and asked_for_help else (said, 1)


class Command(NamedTuple):
    module: str  # of envtuning.cli
    said: str


def commands() -> dict[str, Command]:
    """Each command and the first line of its docstring, read from the source, because its import may fail here, and takes long."""
    found = {}
    for module in MODULES:
        source = (Path(__file__).parent / "cli" / f"{module}.py").read_text(encoding="utf-8")
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and "app.command()" in map(ast.unparse, node.decorator_list):
                found[node.name] = Command(module, (ast.get_docstring(node) or "").partition("\n")[0])
    return found


def _overview(known: dict[str, Command]) -> str:
    rows = [f"  {name:<12} {EXTRAS.get(name, ANY):<6} {command.said}" for name, command in known.items()]
    return "\n".join(["Usage: envtuning COMMAND …", "", f"  {'command':<12} {'extra':<6}", *rows, "", NOTES.rstrip()])
