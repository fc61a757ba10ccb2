"""``export``: a folder that ``openenv`` validates, builds, serves and pushes."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import version
from pathlib import Path
from typing import Any

from envtuning.atomic import storage_errors
from envtuning.worlds.registry import make_world

COPIED = ("models.py", "client.py")  # a trainer needs these two and the package openenv
TEMPLATES, ENDING = Path(__file__).with_name("folder"), ".tmpl"  # of all other files, with their fields in braces
# What an image needs besides: extras, and what is done once while it is built.
NEEDS = {
    "lakes": ("openenv", "python -m mapf_frozenlake.warmup"),
    "tools": ("openenv,bfcl", "python -m envtuning.worlds.bfcl install"),
}


def export(folder: Path, world: str = "lakes", options: dict[str, Any] | None = None) -> Path:
    """Write the folder, which must not exist yet; its name is the environment's."""
    name = re.sub(r"\W|^(?=\d)", "_", folder.resolve().name)  # it is a Python package's, too
    made = make_world(world, **options or {})
    extras, prepared = NEEDS.get(world, ("openenv", "true"))
    said = {"name": name, "world": world, "options": options or {}, "version": version("mapf-frozenlake")}
    said |= {"about": made.about.environment, "extras": extras, "prepared": prepared}
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
