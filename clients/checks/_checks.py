"""What a client's script ends with: run its checks one after the other, and print as one line of JSON what came of them."""

from __future__ import annotations

import importlib.util
import inspect
import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

MARK = "client-report "  # before the line that the runner reads


def run(namespace: Mapping[str, Any]) -> None:
    """Every ``check_…`` of a script, in order. A check's docstring says what was shown; an exception is its failure.

    The script's ``PACKAGES`` are those whose versions count, its ``VERSIONS`` those of what is no package.
    """
    shown, failed = [], {}
    for name, check in namespace.items():
        if name.startswith("check_") and inspect.isfunction(check) and check.__module__ == namespace["__name__"]:
            says = _says(check)
            try:
                check()
            except Exception as error:
                traceback.print_exc()
                failed[says] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            else:
                shown.append(says)
    versions = namespace.get("VERSIONS", {}) | {package: version(package) for package in namespace["PACKAGES"]}
    print(MARK + json.dumps({"versions": versions, "shown": shown, "failed": failed}), flush=True)
    sys.exit(1 if failed else 0)


def commit_of(folder: str) -> str:
    """The commit that is checked out there. Of a copy that is no checkout, the one that its file COMMIT names, if any."""
    if not (Path(folder) / ".git").exists():
        named = Path(folder) / "COMMIT"
        return f"{named.read_text().strip()[:12]} (a copy)" if named.exists() else "a copy of unknown version"
    asked = subprocess.run(
        ["git", "-C", folder, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
    )
    return asked.stdout.strip()


def module_at(name: str, path: Path) -> Any:
    """The module of this name from one file of a checkout, whose package is not installed."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _says(check: Callable[[], None]) -> str:
    return " ".join((check.__doc__ or check.__name__).split()).rstrip(".")
