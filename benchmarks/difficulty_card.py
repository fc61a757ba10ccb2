"""``python -m benchmarks.difficulty_card [--boards N]``: how hard the lake is for policies that do not learn, knob by knob.

The rows are the same as for language-model trainers: a prompt, a reply, the judge's verdict. One knob at a time differs from ``BASE``.
The published rows of language models on the suite stand beside them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mapf_frozenlake as mfl
from benchmarks._record import raise_unless_committed, record
from benchmarks.evaluate_suite import greedy, random_walk
from mapf_frozenlake.evaluation.reference import paper_rows
from mapf_frozenlake.evaluation.table import wilson
from mapf_frozenlake.text.trl import judged_reply, prompt_row
from mapf_frozenlake.types import Instance, Plan

BASE: dict[str, Any] = {"size": 5, "num_agents": 3, "hole_ratio": 0.2, "wait_ratio": None, "min_distance": 1}
KNOBS: dict[str, tuple[Any, ...]] = {
    "size": (3, 4, 5, 6, 8, 10),
    "num_agents": (1, 2, 3, 4, 5),
    "hole_ratio": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
    "wait_ratio": (0.0, 0.25, 0.5, 0.75, 1.0),
    "min_distance": (1, 2, 3, 4, 5),
}
POLICIES: dict[str, Callable[[Instance], Plan]] = {
    "oracle": lambda instance: mfl.solve(instance).plan or [],
    "greedy": greedy,  # as if every agent were alone
    "random": random_walk,
}


def solved(policy: Callable[[Instance], Plan], rows: Sequence[Mapping[str, Any]]) -> int:
    """How many replies the judge finds valid."""
    replies = (mfl.format_plan(policy(mfl.from_text(row["prompt"][0]["content"]))) for row in rows)
    return sum(judged_reply(reply, row["metadata"])[1].valid for reply, row in zip(replies, rows))


def row(knob: str, value: Any, boards: int) -> dict[str, Any]:
    config = mfl.LakeConfig.single(**(BASE | {knob: value}))
    rows = [prompt_row(instance, config.reward) for instance in mfl.generate(config, n=boards, seed=0)]
    found: dict[str, Any] = {"knob": knob, "value": value, "boards": boards}
    for name, policy in POLICIES.items():
        count = solved(policy, rows)
        found[name] = {"solved": count / boards, "interval": wilson(count, boards)}
    return found


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The card as Markdown, in percent."""
    lines = ["| knob | value | oracle | greedy | random |", "| --- | ---: | ---: | ---: | ---: |"]
    for one in rows:
        shares = " | ".join(f"{100 * one[name]['solved']:.1f}" for name in POLICIES)
        lines.append(f"| `{one['knob']}` | {one['value']} | {shares} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.difficulty_card", description=__doc__)
    parser.add_argument("--boards", type=int, default=400, help="for each row")
    boards = parser.parse_args().boards
    raise_unless_committed()
    rows = [row(knob, value, boards) for knob, values in KNOBS.items() for value in values]
    published = [{"who": one.who, **one.group, "valid": one.valid, "optimal": one.optimal} for one in paper_rows()]
    path = record("difficulty_card", {"base": BASE, "rows": rows, "published": published})
    print(f"{table(rows)}\n{path}")


if __name__ == "__main__":
    main()
