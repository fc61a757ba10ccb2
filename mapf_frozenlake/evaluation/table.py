"""``EvaluationTable``: the results of all instances, by agents and size, wait subset and hole ratio."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.evaluation import layout
from mapf_frozenlake.evaluation.record import Record
from mapf_frozenlake.evaluation.reference import paper_rows
from mapf_frozenlake.evaluation.row import Row
from mapf_frozenlake.frames import frame
from mapf_frozenlake.types import FailureKind


def wilson(successes: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate; (0, 1) without a trial."""
    if n == 0:
        return 0.0, 1.0
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


@dataclass(frozen=True, repr=False)
class EvaluationTable:
    """The result of ``evaluate``: ``print`` it, or take ``rows``, ``per_instance``, ``to_markdown()``, ``to_json()``."""

    name: str  # of the policy
    per_instance: tuple[Record, ...]
    reference: tuple[Row, ...] = ()

    @property
    def overall(self) -> Row:
        return _row(self.name, {}, self.per_instance)

    @property
    def rows(self) -> tuple[Row, ...]:
        """For each number of agents, a row for each size and one pooled over its sizes; the last row is over all instances."""
        cells = self.by("agents", "size")
        rows: list[Row] = []
        for pooled in self.by("agents"):
            agents = pooled.group["agents"]
            rows += [cell for cell in cells if cell.group["agents"] == agents]
            rows.append(replace(pooled, group={"agents": agents, "size": "all"}))
        return (*rows, self.overall)

    @property
    def by_wait_subset(self) -> tuple[Row, ...]:
        """By the subset's wait ratio if the suite has subsets, else by whether the instance needs a wait."""
        subsets = self.by("wait_subset", where=lambda record: record.wait_subset is not None)
        return subsets or self.by("needs_wait", where=lambda record: record.needs_wait is not None)

    @property
    def by_hole_ratio(self) -> tuple[Row, ...]:
        return self.by("hole_ratio")

    def by(self, *fields: str, where: Callable[[Record], bool] | None = None) -> tuple[Row, ...]:
        """One row for each combination of these fields of ``Record`` that occurs, in order."""
        groups: dict[tuple[Any, ...], list[Record]] = {}
        for record in self.per_instance:
            if where is None or where(record):
                groups.setdefault(tuple(getattr(record, name) for name in fields), []).append(record)
        ordered = sorted(groups, key=lambda key: [(part is None, isinstance(part, str), part or 0) for part in key])
        return tuple(_row(self.name, dict(zip(fields, key)), groups[key]) for key in ordered)

    def with_reference(self, *models: str) -> EvaluationTable:
        """The same table with the published figures of "From Trainee to Trainer" beside it, marked as theirs.

        ``models`` keeps models whose name contains one of these texts: ``with_reference("Qwen3")``. Without any, all are kept.
        """
        rows = paper_rows()
        names = list(dict.fromkeys(row.who for row in rows))
        for model in models:
            if not any(model.lower() in name.lower() for name in names):
                raise LakeError(f"the paper has no model {model!r}: its models are {', '.join(names)}")
        kept = [row for row in rows if not models or any(model.lower() in row.who.lower() for model in models)]
        return replace(self, reference=tuple(kept))

    def sections(self) -> list[tuple[str, list[Row]]]:
        """Title and rows of each part of the printed table."""
        parts = [
            ("agents and size", layout.interleaved(self.rows, self.reference)),
            (
                "wait ratio of the subset" if _has_subsets(self.per_instance) else "needs a wait",
                list(self.by_wait_subset),
            ),
            ("hole ratio", list(self.by_hole_ratio)),
        ]
        return [(title, rows) for title, rows in parts if len(rows) > 1]

    @property
    def _sheet(self) -> layout.Sheet:
        return layout.Sheet(layout.headline(self.overall), self.sections(), [layout.FOOTNOTE] if self.reference else [])

    def __str__(self) -> str:
        return layout.plain(self._sheet)

    def __repr__(self) -> str:
        return f"EvaluationTable({layout.headline(self.overall)})"

    def _repr_html_(self) -> str:
        """The display in a notebook."""
        return layout.html(self._sheet)

    def to_pandas(self) -> Any:
        """``per_instance`` as a DataFrame, one row for each; needs pandas."""
        return frame([asdict(record) for record in self.per_instance])

    def to_markdown(self) -> str:
        """The same as ``str``, as Markdown tables."""
        return layout.markdown(self._sheet)

    def to_dict(self, *, per_instance: bool = True) -> dict[str, Any]:
        """The whole table, in JSON's types."""
        content: dict[str, Any] = {
            "policy": self.name,
            "overall": asdict(self.overall),
            "rows": [asdict(row) for row in self.rows],
            "by_wait_subset": [asdict(row) for row in self.by_wait_subset],
            "by_hole_ratio": [asdict(row) for row in self.by_hole_ratio],
            "reference": [asdict(row) for row in self.reference],
        }
        if per_instance:
            content["per_instance"] = [asdict(record) for record in self.per_instance]
        return content

    def to_json(self, *, per_instance: bool = True) -> str:
        return json.dumps(self.to_dict(per_instance=per_instance))


def _row(who: str, group: dict[str, Any], records: Sequence[Record]) -> Row:
    n = len(records)
    valid = sum(record.valid for record in records)
    known = all(record.optimal is not None for record in records)
    optimal = sum(bool(record.optimal) for record in records)
    failures = {kind.value: sum(record.failure == kind for record in records) for kind in FailureKind}
    return Row(
        who=who,
        group=group,
        n=n,
        valid=_percent(valid / n if n else 0.0),
        optimal=_percent(optimal / n if n else 0.0) if known else None,
        valid_interval=_percent_interval(valid, n),
        optimal_interval=_percent_interval(optimal, n) if known else None,
        failures={kind: count for kind, count in failures.items() if count},
        regret=_mean(record.regret for record in records),
        sum_of_costs=_mean(record.sum_of_costs for record in records),
    )


def _has_subsets(records: Iterable[Record]) -> bool:
    return any(record.wait_subset is not None for record in records)


def _percent(rate: float) -> float:
    return round(100.0 * rate, 2)


def _percent_interval(successes: int, n: int) -> tuple[float, float]:
    low, high = wilson(successes, n)
    return _percent(low), _percent(high)


def _mean(values: Iterable[int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 3) if known else None
