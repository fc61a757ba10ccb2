"""Run the clients of the field against the lake, each in an environment of its own, and write down what worked.

    python -m clients                      every client; make clients does the same
    python -m clients --quick              those that install quickly
    python -m clients torchrl minari       these; the others keep their rows
    python -m clients --cache FOLDER       keep the environments there for the next time

Figures go to benchmarks/results/clients.json, the table to docs/compatibility.md. A client without a package (EPyMARL, prime-rl) is
fetched at a commit, or taken from the checkout that EPYMARL_SOURCE or PRIME_RL_SOURCE names, or a copy of it with a file COMMIT. With TORCH_INDEX, torch comes from that index.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._record import RESULTS, raise_unless_committed, record
from clients.checks._checks import MARK
from clients.scripts import Script, scripts
from clients.table import write_table

ROOT = Path(__file__).parents[1]
LIMIT = 1800  # seconds for one client's checks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", help="their names; default: all")
    parser.add_argument("--quick", action="store_true", help="only those that install quickly")
    parser.add_argument("--cache", type=Path, help="a folder to keep the environments in; default: a temporary one")
    arguments = parser.parse_args()
    known = scripts()
    if unknown := sorted(set(arguments.clients) - set(known)):
        parser.error(f"unknown client {unknown[0]!r}: known are {', '.join(known)}")
    chosen = [script for name, script in known.items() if name in (arguments.clients or known)]
    chosen = [script for script in chosen if script.quick or not arguments.quick]
    if arguments.cache is not None:
        return run(chosen, arguments.cache.resolve())
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        return run(chosen, Path(folder))


def run(chosen: list[Script], cache: Path) -> int:
    """Check these, record them beside what was recorded of the others, write the table; 1 if one of them failed."""
    raise_unless_committed()
    stored = RESULTS / "clients.json"
    figures: dict[str, Any] = json.loads(stored.read_text())["figures"] if stored.exists() else {}
    for script in chosen:
        print(f"{script.title} …", flush=True)
        figures[script.name] = check(script, cache)
        print(f"  {summary(figures[script.name])}", flush=True)
        record("clients", {name: figures[name] for name in scripts() if name in figures})
    write_table(figures, scripts(), ROOT / "docs" / "compatibility.md")
    return 1 if any(figures[script.name]["failed"] for script in chosen) else 0


def check(script: Script, cache: Path) -> dict[str, Any]:
    """What the client's script reports, run by an interpreter that has the client and the lake and nothing else."""
    began = time.time()
    try:
        environment = os.environ | {"NUMBA_CACHE_DIR": str(cache / "numba"), "OMP_NUM_THREADS": "1"}
        environment.pop("PYTHONPATH", None)
        if script.source:
            environment["CLIENT_SOURCE"] = str(checkout(script, cache))
        python = environment_of(script, cache)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines()
        return not_run("could not be installed: " + (said[-1] if said else str(error)))
    installed = time.time()
    try:
        ran = subprocess.run(
            [python, script.path.name], cwd=script.path.parent, env=environment, capture_output=True, text=True,
            timeout=LIMIT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return not_run(f"did not end within {LIMIT} s")
    reports = [line for line in ran.stdout.splitlines() if line.startswith(MARK)]
    if not reports:
        return not_run("its script broke: " + (ran.stderr.strip().splitlines() or ["no output"])[-1])
    if ran.returncode:
        print(ran.stderr[-4000:], file=sys.stderr)
    seconds = {"install": round(installed - began), "checks": round(time.time() - installed)}
    return json.loads(reports[-1].removeprefix(MARK)) | {"seconds": seconds}


def not_run(why: str) -> dict[str, Any]:
    return {"versions": {}, "shown": [], "failed": {"it ran at all": why[:300]}}


def environment_of(script: Script, cache: Path) -> str:
    """The interpreter of the client's own environment, made on first use. The lake is installed from this checkout."""
    folder = cache / script.name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    made = folder / ".made"
    wanted = "\n".join(script.dependencies)
    if made.exists() and made.read_text() == wanted:
        return str(python)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True, capture_output=True, text=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if index := os.environ.get("TORCH_INDEX"):
        pip += ["--extra-index-url", index]
    extras = [one.removeprefix("mapf-frozenlake") for one in script.dependencies if one.startswith("mapf-frozenlake[")]
    others = [one for one in script.dependencies if not one.startswith("mapf-frozenlake[")]
    install = [*pip, *others, "-e", f"{ROOT}{''.join(extras)}"]
    subprocess.run(install, check=True, capture_output=True, text=True)
    made.write_text(wanted)
    return str(python)


def checkout(script: Script, cache: Path) -> Path:
    """The client's sources: those that NAME_SOURCE names, or the repository at the script's commit."""
    if given := os.environ.get(f"{script.name.upper()}_SOURCE"):
        return Path(given)
    folder = cache / f"{script.name}-source"
    if not (folder / ".git" / "index").exists():  # nothing is checked out yet
        for command in (
            ["git", "init", "-q", str(folder)],
            ["git", "-C", str(folder), "fetch", "-q", "--depth", "1", script.source, script.commit],
            ["git", "-C", str(folder), "checkout", "-q", "FETCH_HEAD"],
        ):
            subprocess.run(command, check=True, capture_output=True, text=True)
    return folder


def summary(figures: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    failed = "".join(f"; FAILED {what}: {why}" for what, why in figures["failed"].items())
    return f"{versions}: {len(figures['shown'])} shown{failed}"


if __name__ == "__main__":
    sys.exit(main())
