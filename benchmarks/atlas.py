"""The atlas: ``python -m benchmarks.atlas build small-corridors``, then ``score --engineer rules``, in seconds.

Trees are written down in ``benchmarks/atlases``, beside what was built of them. ``build`` trains what is not stored yet; it may be
killed at any time, and goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from envtuning.atlas.build import build
from envtuning.atlas.spec import AtlasSpec, load_atlas
from envtuning.cli import parse_seeds
from envtuning.show.console import make_console

HERE = Path(__file__).parent / "atlases"


def spec_named(name: str) -> AtlasSpec:
    """Of this folder, or of a file."""
    own = HERE / f"{name}.yaml"
    return load_atlas(own if own.exists() else name)


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def main() -> None:
    given = sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    building = commands.add_parser("build", help="train and store the seeds that are not stored yet")
    building.add_argument("atlas", help=f"one of {', '.join(names())}, or a file")
    building.add_argument("--seeds", help="only these seeds: a list such as 7000,7001")
    building.add_argument("--jobs", type=int, default=1, help="how many seeds at a time")
    building.add_argument("--out", type=Path, default=HERE, help="folder of all trees: OUT/NAME/seedN.reports.json.xz")
    building.add_argument("--work", type=Path, default=Path("runs/atlas"), help="folder for what is unfinished")
    arguments = parser.parse_args(given)
    if arguments.command == "build":
        build_atlas(arguments)


def build_atlas(arguments: argparse.Namespace) -> None:
    console, spec = make_console(), spec_named(arguments.atlas)
    seeds = parse_seeds(arguments.seeds + ",") if arguments.seeds else None
    build(
        spec,
        arguments.out / spec.name,
        arguments.work,
        seeds=seeds,
        jobs=arguments.jobs,
        ended=lambda line: console.print(line, highlight=False),
    )


if __name__ == "__main__":
    main()
