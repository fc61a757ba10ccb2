"""PIBT and LaCAM on the standard protocols for path finding; the table and the plots of docs/instances.md.

    python -m benchmarks.path_finding

``paths-2026``: every agent has one goal. LaCAM plans at once, PIBT step by step. ``lifelong-2026``: agents get new goals, and PIBT
plans anew in every step. Both planners know the whole board.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mapf_frozenlake as mfl
from benchmarks._record import raise_unless_committed, record

IMAGES = Path(__file__).parents[1] / "docs" / "images"
PLANNERS: dict[str, dict[str, Any]] = {
    "paths-2026": {"PIBT": mfl.OnlinePIBT(), "LaCAM": mfl.pibt},
    "lifelong-2026": {"PIBT": mfl.OnlinePIBT()},
}
PLOTS = {"paths-2026": "common", "lifelong-2026": "throughput"}


def main() -> None:
    raise_unless_committed()
    figures = {}
    for protocol, planners in PLANNERS.items():
        tables = []
        for name, planner in planners.items():
            tables.append(mfl.evaluate(planner, mfl.PROTOCOLS[protocol], name=name))
            print(tables[-1], flush=True)
        figures[protocol] = {table.name: json.loads(table.to_json())["rows"] for table in tables}
        tables[0].plot(IMAGES / f"{protocol}.svg", PLOTS[protocol], tables[1:])
    print(record("path_finding", figures))


if __name__ == "__main__":
    main()
