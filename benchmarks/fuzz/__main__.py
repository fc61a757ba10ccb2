"""``python -m benchmarks.fuzz TARGET… --n 100000``: feed broken input to every parser, and store the figures in benchmarks/results.

A target is a module here with ``run(n, seed) -> dict``: the counts over n inputs. It raises on a crash, a hang, or a rejection
that does not say where and why.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import time
from pathlib import Path

from benchmarks._record import raise_unless_committed, record


def targets() -> list[str]:
    """Every module of this folder, by the name it has on the command line."""
    names = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="+", choices=["all", *targets()])
    parser.add_argument("--n", type=int, default=100_000, help="inputs per target (100000)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    raise_unless_committed()
    for target in targets() if "all" in arguments.targets else arguments.targets:
        module = importlib.import_module(f"benchmarks.fuzz.{target.replace('-', '_')}")
        began = time.perf_counter()
        outcome = module.run(arguments.n, arguments.seed)
        figures = {
            "inputs": arguments.n,
            "seed": arguments.seed,
            "seconds": round(time.perf_counter() - began, 1),
        } | outcome
        print(f"{target}: {figures}")
        record(f"fuzz_{target.replace('-', '_')}", figures)


if __name__ == "__main__":
    main()
