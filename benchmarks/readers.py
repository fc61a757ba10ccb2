"""A better reader, or a better report? ``python -m benchmarks.readers RUN_A RUN_B [--seeds 5]``, on finished runs."""

from __future__ import annotations

import argparse

from benchmarks._record import record
from envtuning.studies.readers import read, run_at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="folders of finished runs of the trainee 'grpo'")
    parser.add_argument("--seeds", type=int, default=5, help="answers of each reader to each report")
    parser.add_argument("--max-tokens", type=int, default=4_096, help="of one answer")
    parser.add_argument("--name", default="readers", help="name of the result in benchmarks/results")
    arguments = parser.parse_args()
    runs = {chr(ord("A") + number): run_at(path) for number, path in enumerate(arguments.runs)}
    rows = read(runs, range(arguments.seeds), max_tokens=arguments.max_tokens)
    for row in rows:
        print(", ".join(f"{name} {value}" for name, value in row.items()))
    print(f"figures: {record(arguments.name, {'rows': rows})}")


if __name__ == "__main__":
    main()
