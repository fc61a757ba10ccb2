"""``python -m benchmarks`` lists the benchmarks; ``python -m benchmarks NAME …`` runs one, as ``python -m benchmarks.NAME …`` does."""

from __future__ import annotations

import ast
import json
import re
import runpy
import sys
from pathlib import Path

from benchmarks._record import RESULTS

HERE = Path(__file__).parent
# CPU minutes by what the pages and figures say, until a result that is recorded says it itself.
ABOUT = {
    "bfcl": "2",
    "fuzz": "16",
    "grpo": "120",
    "papers_row": "120",
    "side_by_side": "4",
}


def commands() -> dict[str, Path]:
    """The file behind each name: modules and packages of this folder that can be run."""
    files = [*HERE.glob("*.py"), *HERE.glob("*/__main__.py")]
    named = {(path.parent.name if path.parent != HERE else path.stem): path for path in files if path != Path(__file__)}
    starts = 'if __name__ == "__main__":'
    return {
        name: path
        for name, path in sorted(named.items())
        if name[0] != "_" and starts in path.read_text(encoding="utf-8")
    }


def shows(path: Path) -> str:
    """What a benchmark shows: the first line of its docstring, without its own command."""
    line = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
    said = [part.strip(" ,:;.") for part in re.split(r"``python -m benchmarks[^`]*``", line)]
    return ": ".join(part for part in said if part).replace("?: ", "? ")


def minutes(name: str) -> str:
    """CPU minutes of the longest of its stored results that say so, else about how many."""
    found = [
        stored["cpu_minutes"]
        for stored in (json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("*.json"))
        if "cpu_minutes" in stored and f"benchmarks.{name}" in stored["command"].split()
    ]
    return f"{max(found):.0f}" if found else ABOUT.get(name, "?")


def main(arguments: list[str]) -> None:
    known = commands()
    if not arguments or arguments[0] in ("-h", "--help"):
        print(
            f"{__doc__}\n\nThe number is about how many CPU minutes it takes; ?: it is recorded with the next result.\n"
        )
        for name, path in known.items():
            print(f"{name:17} {minutes(name):>5}  {shows(path)}")
        return
    name, *sys.argv[1:] = arguments
    if name not in known:
        raise SystemExit(f"{name}: no such benchmark; one of {', '.join(known)}")
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
