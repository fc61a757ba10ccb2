"""``record``: a benchmark's figures as JSON, with all that one needs to know to trust or repeat them."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
WRITTEN = (":(top,exclude)benchmarks/results", ":(top,exclude)benchmarks/README.md")  # by record() itself
PACKAGES = ("mapf-frozenlake", "numpy", "numba", "gymnasium", "pettingzoo", "ray", "torch", "pogema", "w9-pathfinding")


def record(name: str, figures: dict[str, Any]) -> Path:
    """Write ``benchmarks/results/NAME.json``, and ``benchmarks/README.md`` anew; returns the former's path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(conditions() | {"figures": figures}, indent=1) + "\n", encoding="utf-8")
    from benchmarks import readme  # it needs RESULTS from here

    readme.main()
    return path


def conditions() -> dict[str, Any]:
    """Machine, versions, commit and command."""
    return {
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", "-m", _module(), *sys.argv[1:]]),
        "commit": _commit(),
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version()} | _versions(),
    }


def _module() -> str:
    """The module that was started, as it is named behind ``python -m``."""
    path = Path(sys.argv[0])
    return f"benchmarks.{path.parent.name if path.stem == '__main__' else path.stem}"


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str:
    """The commit, with a + where the working tree differs from it in more than results; "unknown" outside a checkout."""
    try:
        ask = {"cwd": Path(__file__).parent, "capture_output": True, "text": True, "check": True}
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], **ask).stdout.strip()
        status = ["git", "status", "--porcelain", "--untracked-files=no", "--", ":/", *WRITTEN]
        changed = subprocess.run(status, **ask).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changed else head


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"
