"""A better reader, or a better report? ``python -m benchmarks.readers RUN_A RUN_B [--seeds 5]``, on finished runs."""

from __future__ import annotations

import argparse
from typing import Any

from rich.table import Table

from benchmarks._record import record
from envtuning.show.console import make_console, percent, plain_table
from envtuning.studies.readers import MEASURES, means, read, run_at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="folders of finished runs of the trainee 'grpo'")
    parser.add_argument("--seeds", type=int, default=5, help="answers of each reader to each report")
    parser.add_argument("--max-tokens", type=int, default=4_096, help="of one answer")
    parser.add_argument("--name", default="readers", help="name of the result in benchmarks/results")
    arguments = parser.parse_args()
    runs = {chr(ord("A") + number): run_at(path) for number, path in enumerate(arguments.runs)}
    rows = read(runs, range(arguments.seeds), max_tokens=arguments.max_tokens)
    make_console().print(table(rows))
    stages = {name: run.state.done[-1].number for name, run in runs.items()}
    print(f"figures: {record(arguments.name, {'stages': stages, 'means': means(rows), 'rows': rows})}")


def table(rows: list[dict[str, Any]]) -> Table:
    drawn = plain_table(
        "what each reader makes of each report, means over its answers",
        "kept: of the slices that work; frontier: part of the data just under it; large: the largest slice keeps half of its share; "
        "fallback: no usable config, the current one counts",
    )
    for heading in ("reader", "report", "answers", *MEASURES):
        drawn.add_column(heading, justify="left" if heading in ("reader", "report") else "right")
    for row in means(rows):
        cells = ["" if row[name] is None else percent(row[name]) for name in MEASURES]
        drawn.add_row(row["reader"], row["report"], str(row["answers"]), *cells)
    return drawn


if __name__ == "__main__":
    main()
