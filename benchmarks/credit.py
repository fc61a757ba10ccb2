"""Which change of an engineer's proposals earned the gain? ``python -m benchmarks.credit``: a run of an atlas's spec, stage by stage.

The tree does not have the run's seed. Every stage is then trained again, on paired seeds: on the old config, on the proposed one, and
with each kind of change undone. After a stop, the same command continues.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks._command import errors_in_one_sentence
from benchmarks._record import raise_unless_committed, record
from envtuning.atlas.published import spec_named
from envtuning.atlas.real import real_arms
from envtuning.atlas.roster import ROSTER
from envtuning.atlas.spec import AtlasSpec
from envtuning.runs.log import RunLog
from envtuning.show.terminal import make_console
from envtuning.studies.credit import Credit, changed_stages, credit, raise_unless_enough, table, write
from envtuning.studies.study import execute, folder_name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--atlas", default="corridors", help="whose target, root and budgets the run has; a name or a file"
    )
    parser.add_argument("--engineer", default="rules", choices=ROSTER, help="who writes the stages")
    parser.add_argument("--run-seed", type=int, default=9100, help="seed of the run")
    parser.add_argument("--seeds", type=int, default=10, help="paired seeds on which every stage is trained again")
    parser.add_argument("--out", type=Path, default=Path("runs/credit"), help="folder of the run")
    arguments = parser.parse_args()
    raise_unless_committed()
    with errors_in_one_sentence():
        take_apart(arguments)


def take_apart(arguments: argparse.Namespace) -> None:
    raise_unless_enough(arguments.seeds)
    console, spec = make_console(), spec_named(arguments.atlas)
    run = finished(spec, arguments.engineer, arguments.run_seed, arguments.out / spec.name)
    changed = changed_stages(run)
    found = []
    for stage in changed:
        one = credit(run, stage, seeds=arguments.seeds, ended=lambda line, pace: console.print(f"{line} ({pace})"))
        write(one, run)
        console.print(table(one))
        found.append(figures(one))
    kept = [stage for stage in range(1, spec.depth + 1) if stage not in changed]
    print(f"figures: {record(f'credit_{spec.name}', {'stages': found, 'kept_as_it_was': kept})}")


def finished(spec: AtlasSpec, engineer: str, seed: int, out: Path) -> RunLog:
    """The run that is taken apart; trained where it is not there yet."""
    execute(real_arms(spec, [engineer]), [seed], out)
    return RunLog.open(out / folder_name(engineer) / f"seed{seed}")


def figures(found: Credit) -> dict[str, Any]:
    """One stage; the change that earned most comes first."""
    return asdict(replace(found, groups=found.ranked))


if __name__ == "__main__":
    main()
