"""``export``: a folder that ``openenv`` validates, builds, serves and pushes."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from envtuning.atomic import storage_errors
from envtuning.worlds.registry import make_world

COPIED = ("models.py", "client.py")  # a trainer needs these two and the package openenv
TEMPLATES, ENDING = Path(__file__).with_name("folder"), ".tmpl"  # of all other files, with their fields in braces


class Needs(NamedTuple):
    """What an image needs besides."""

    extras: str = "openenv"
    prepared: str = "true"  # what is done once while it is built
    packages: str = "curl"  # of Debian


NEEDS = {
    "lakes": Needs(prepared="python -m mapf_frozenlake.warmup"),
    "tools": Needs("openenv,bfcl", "python -m envtuning.worlds.bfcl install"),
    "reasoning-gym": Needs("openenv,reasoning-gym", packages="curl gcc libc6-dev"),  # pycosat has no wheel
}


def export(folder: Path, world: str = "lakes", options: dict[str, Any] | None = None) -> Path:
    """Write the folder, which must not exist yet; its name is the environment's."""
    name = re.sub(r"\W|^(?=\d)", "_", folder.resolve().name)  # it is a Python package's, too
    made = make_world(world, **options or {})
    said = {"name": name, "world": world, "options": options or {}, "version": version("mapf-frozenlake")}
    said |= {"about": made.about.environment, **NEEDS.get(world, Needs())._asdict()}
    with storage_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
    for copied in COPIED:
        shutil.copy(Path(__file__).with_name(copied), folder / copied)
    for template in TEMPLATES.rglob(f"*{ENDING}"):
        written = folder / template.relative_to(TEMPLATES).with_name(template.name.removesuffix(ENDING))
        written.parent.mkdir(exist_ok=True)
        written.write_text(template.read_text(encoding="utf-8").format(**said), encoding="utf-8")
    return folder
