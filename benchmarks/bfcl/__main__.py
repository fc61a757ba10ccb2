"""``python -m benchmarks.bfcl TABLE --version v4``: figures of the tool-use world; to benchmarks/results unless --no-record."""

from __future__ import annotations

import argparse
import importlib
import json

from benchmarks._record import record

TABLES = ("ground-truth", "agreement", "baselines", "memory", "actionability", "ablations")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl", description=__doc__)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--version", default="v4", choices=["v4", "v3-paper"], help="one per process")
    parser.add_argument("--no-record", action="store_true", help="print only")
    parser.add_argument("--fork", help="actionability: a folder of tool classes whose messages get rows of their own")
    parser.add_argument("--traces", help="actionability: a stage's episodes.json, whose mistakes weight the rows")
    parser.add_argument("--out", help="ablations: where the runs are kept; finished ones are not run again")
    arguments = parser.parse_args()
    figures = importlib.import_module(f"benchmarks.bfcl.{arguments.table.replace('-', '_')}").run(
        arguments.version, **{name: given for name in ("fork", "traces", "out") if (given := getattr(arguments, name))}
    )
    print(json.dumps(figures, indent=1))
    if not arguments.no_record:
        record(f"bfcl_{arguments.table.replace('-', '_')}_{arguments.version}", figures)


if __name__ == "__main__":
    main()
