"""The clients' scripts, and what the comment at the head of each says about it (inline script metadata, PEP 723)."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

CHECKS = Path(__file__).parent / "checks"
_HEAD = re.compile(r"^# /// script\n((?:#.*\n)+?)# ///$", re.MULTILINE)


@dataclass(frozen=True)
class Script:
    """One client: how it is installed and run, and its row's words."""

    path: Path
    title: str
    how: str  # how the lake is used from there, in Markdown
    dependencies: tuple[str, ...]
    quick: bool = False  # installs in well under a minute or two
    source: str = ""  # a repository, where it is no package
    commit: str = ""  # of that repository

    @property
    def name(self) -> str:
        return self.path.stem.removeprefix("with_")


def scripts() -> dict[str, Script]:
    """Every client by name, in the order of the table: as the titles sort."""
    found = [read(path) for path in CHECKS.glob("with_*.py")]
    return {script.name: script for script in sorted(found, key=lambda script: script.title.lower())}


def read(path: Path) -> Script:
    """The script at ``path``; a ValueError where its head is missing or lacks something."""
    head = _HEAD.search(path.read_text(encoding="utf-8"))
    if head is None:
        raise ValueError(f"{path.name}: no script metadata at its head; begin with '# /// script'")
    facts = tomllib.loads("".join(line[1:].removeprefix(" ") for line in head[1].splitlines(keepends=True)))
    client = facts.get("tool", {}).get("client", {})
    if missing := [name for name in ("title", "how") if name not in client]:
        raise ValueError(f"{path.name}: its [tool.client] has no {missing[0]!r}")
    return Script(path=path, dependencies=tuple(facts["dependencies"]), **client)
