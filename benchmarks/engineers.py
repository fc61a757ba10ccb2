"""Engineers against each other on equal budgets: ``python -m benchmarks.engineers --engineers fixed,rules --seeds 5``.

It calls ``envtuning.studies.compare``. Engineers that need a key take part if the key is set; else they are listed as left out.
After an interruption, the same command continues.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks._record import record
from envtuning.cli.arguments import adjusted, parse_seeds
from envtuning.runs.spec import load_spec
from envtuning.show.console import ConsoleObserver
from envtuning.show.terminal import make_console
from envtuning.studies.compare import compare, table

ENGINEERS = "fixed,random,uniform,rules,half-success,progress-share"
NEED_A_KEY = {"openai": ("OPENAI_API_KEY",), "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY")}


def with_keys(engineers: Sequence[str], has: Callable[[str], object]) -> tuple[list[str], dict[str, str]]:
    """Those that can be asked here, and for the others the key they lack."""
    able, missing = [], {}
    for name in engineers:
        needed = NEED_A_KEY.get(name.partition("/")[0], ())
        if needed and not any(has(key) for key in needed):
            missing[name] = " or ".join(needed)
        else:
            able.append(name)
    return able, missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engineers", default=ENGINEERS, help="names, separated by commas (default: %(default)s)")
    parser.add_argument(
        "--seeds", default="5", help="a number of seeds, or a list such as 0,4,7 (default: %(default)s)"
    )
    parser.add_argument("--preset", default="engineer", help="the preset or file that all of them run")
    parser.add_argument("--stages", type=int, help="only so many stages, or more")
    parser.add_argument("--out", type=Path, default=Path("runs/engineers"), help="folder of all runs")
    parser.add_argument("--name", default="engineers", help="name of the result in benchmarks/results")
    arguments = parser.parse_args()

    console = make_console()
    asked = [name.strip() for name in arguments.engineers.split(",") if name.strip()]
    able, missing = with_keys(asked, os.environ.get)
    for name, key in missing.items():
        console.print(f"{name} is left out: {key} is not set")
    spec = adjusted(load_spec(arguments.preset), stages=arguments.stages)
    result = compare(spec, able, parse_seeds(arguments.seeds), arguments.out, ConsoleObserver(console))
    console.print(table(result))
    path = record(arguments.name, asdict(result) | {"left_out": missing})
    console.print(f"figures: {path}", highlight=False)


if __name__ == "__main__":
    main()
