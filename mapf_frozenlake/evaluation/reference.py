"""The published figures of "From Trainee to Trainer" (arXiv 2606.17682), as rows that name their source."""

from __future__ import annotations

import json
from importlib import resources

from mapf_frozenlake.evaluation.row import Row

INSTANCES_PER_CELL = 150


def paper_rows() -> tuple[Row, ...]:
    """Every (agents, size) and every pooled row of every model that the paper reports."""
    text = resources.files("mapf_frozenlake.suite").joinpath("paper_results.json").read_text(encoding="utf-8")
    rows: list[Row] = []
    for table in json.loads(text)["tables"]:
        agents = table["agents"]
        for model, figures in table["models"].items():
            for cell in figures["cells"]:
                rows.append(_reported(model, agents, cell["size"], INSTANCES_PER_CELL, cell))
            pooled = INSTANCES_PER_CELL * len(figures["cells"])
            rows.append(_reported(model, agents, "all", pooled, figures["all"]))
    return tuple(rows)


def _reported(model: str, agents: int, size: int | str, n: int, figures: dict[str, float]) -> Row:
    group = {"agents": agents, "size": size}
    return Row(who=model, group=group, n=n, valid=figures["valid"], optimal=figures["optimal"], reported=True)
