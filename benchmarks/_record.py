"""``record``: a benchmark's figures as JSON, with the facts that are needed to trust or repeat them."""

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

from benchmarks import readme
from benchmarks.readme import RESULTS as RESULTS

REFUSED = RESULTS.parents[1] / "runs" / "not-committed"  # figures of a tree that no commit has
DIRTY = "BENCHMARKS_DIRTY"  # set to 1, changes that are not committed are no reason to refuse: the commit gets a +
WRITTEN = (
    ":(top,exclude)benchmarks/results",
    ":(top,exclude)benchmarks/README.md",
    ":(top,exclude)docs/compatibility.md",
)
PACKAGES = ("mapf-frozenlake", "numpy", "numba", "gymnasium", "pettingzoo", "ray", "torch", "pogema", "w9-pathfinding")


class NotCommitted(SystemExit):
    """Figures are of a commit: they can be made again from it."""


def record(name: str, figures: dict[str, Any]) -> Path:
    """Write ``benchmarks/results/NAME.json``, and ``benchmarks/README.md`` anew; returns the former's path.

    Where the tree has changes that are not committed, the figures are kept under ``runs/not-committed`` and ``NotCommitted`` is raised.
    """
    text = json.dumps(conditions() | {"figures": figures}, indent=1) + "\n"
    try:
        raise_unless_committed()
    except NotCommitted as refusal:
        kept = REFUSED / f"{name}.json"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text, encoding="utf-8")
        raise NotCommitted(f"{refusal}; the figures are in {kept}") from None
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(text, encoding="utf-8")
    readme.main()
    return path


def raise_unless_committed() -> None:
    """For whoever records: before a long benchmark, so that it is not found out after."""
    if _commit().endswith("+") and os.environ.get(DIRTY) != "1":
        raise NotCommitted(
            f"files differ from the commit, so that nobody could make these figures again: commit them, or set {DIRTY}=1"
        )


def conditions() -> dict[str, Any]:
    """Machine, versions, commit, command, and what it took so far, processes that it waited for included."""
    return {
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join([*_started(), *sys.argv[1:]]),
        "commit": _commit(),
        "cpu_minutes": round(sum(os.times()[:4]) / 60, 1),
        "machine": {
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version()} | _versions(),
    }


def _started() -> list[str]:
    """How the program was started: by ``python -m`` with a module or package, or as a file."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None:
        return ["python", Path(sys.argv[0]).name]
    return ["python", "-m", spec.parent if spec.name.endswith(".__main__") else spec.name]


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
