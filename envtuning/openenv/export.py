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
    (folder / "server").mkdir()
    for copied in COPIED:
        shutil.copy(Path(__file__).with_name(copied), folder / copied)
    for path, text in FILES.items():
        (folder / path).write_text(text.format(**said), encoding="utf-8")
    return folder


FILES = {
    "__init__.py": """\
from .client import TextEnv
from .models import TextAction, TextObservation, TextState

__all__ = ["TextAction", "TextEnv", "TextObservation", "TextState"]
""",
    "server/__init__.py": "",
    "server/app.py": '''\
"""The server. It compiles what it needs first, and answers then."""

from envtuning.openenv.app import make_app, serve

app = make_app({world!r}, {options!r}, name={name!r})


def main() -> None:
    serve(app)


if __name__ == "__main__":
    main()
''',
    "openenv.yaml": """\
spec_version: 1
name: {name}
version: {version}
type: space
runtime: fastapi
app: server.app:app
port: 8000
validation:
  reward:
    range: [0.0, 1.0]
    oracle_tolerance: 0.0
    floor_margin: 0.1
  resources:
    cpu: 1.0
    memory_mb: 2048
    disk_mb: 2048
    episode_timeout_s: 60.0
  capabilities:
    verifier:
      kind: reward_channel
  types:
    tags: [text, {name}]
""",
    "pyproject.toml": """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "openenv-{name}"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["openenv>=0.10,<0.11", "mapf-frozenlake[{extras}]>={version}"]

[project.scripts]
server = "{name}.server.app:main"

[tool.setuptools]
packages = ["{name}", "{name}.server"]
package-dir = {{"{name}" = ".", "{name}.server" = "server"}}
""",
    "Dockerfile": """\
FROM python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends curl && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . .
# Wheels that no index has may lie in wheels/.
RUN mkdir -p wheels && pip install --no-cache-dir --find-links wheels .
RUN {prepared}
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=3s --start-period=120s --retries=3 CMD curl -f http://localhost:8000/health || exit 1
CMD ["python", "-m", "server.app", "--host", "0.0.0.0", "--port", "8000"]
""",
    "README.md": """\
---
title: {name}
sdk: docker
app_port: 8000
tags: [openenv]
---

{about}

A text environment: an action is a reply, an observation what the model reads next. `reset` takes a seed and any field of the
config, so that each episode says how difficult it is.
""",
}
