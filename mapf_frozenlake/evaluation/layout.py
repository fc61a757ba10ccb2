"""How a table looks: the same cells as plain text or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from mapf_frozenlake.evaluation.row import Row
from mapf_frozenlake.types import FailureKind

REPORTED = "†"
FOOTNOTE = (
    f'{REPORTED} as published by the authors of "From Trainee to Trainer" (arXiv 2606.17682), on their own instances, 150 a '
    "cell: not measured here"
)
FAILURE_TITLES = {kind.value: kind.value.replace("_", " ") for kind in FailureKind}


class Sheet(NamedTuple):
    """What is printed: a headline, titled groups of rows, footnotes."""

    headline: str
    sections: Sequence[tuple[str, Sequence[Row]]]
    footnotes: Sequence[str] = ()


def interleaved(rows: Iterable[Row], reference: Iterable[Row]) -> list[Row]:
    """Each row, then the reference's rows of the same group."""
    published = list(reference)
    together: list[Row] = []
    for row in rows:
        together += [row, *(other for other in published if other.group == row.group)]
    return together


def aligned(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A table as plain text: the first column to the left, the others to the right."""
    widths = [max(len(line[column]) for line in (header, *cells)) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in (header, *cells)
    ]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def in_markdown(header: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    marks = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (header, marks, *cells))


def plain(sheet: Sheet) -> str:
    """Sections of aligned columns, a headline above them."""
    parts = [sheet.headline]
    for title, rows in sheet.sections:
        parts.append(f"by {title}\n{aligned(*grid(rows))}")
    return "\n\n".join([*parts, *sheet.footnotes])


def markdown(sheet: Sheet) -> str:
    parts = [sheet.headline]
    for title, rows in sheet.sections:
        parts.append(f"**By {title}**\n\n{in_markdown(*grid(rows))}")
    return "\n\n".join([*parts, *sheet.footnotes])


def html(sheet: Sheet) -> str:
    """The same as HTML tables, for notebooks."""
    parts = [f"<p>{escape(sheet.headline)}</p>"]
    for title, rows in sheet.sections:
        header, cells = grid(rows)
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in cells)
        caption = f"<caption>by {escape(title)}</caption>"
        parts.append(f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in sheet.footnotes)])


def headline(row: Row) -> str:
    """One line about all instances."""
    optimal = (
        "optimum unknown" if row.optimal is None else f"{row.optimal:.2f} % optimal {_interval(row.optimal_interval)}"
    )
    return f"{row.who}: {row.valid:.2f} % valid {_interval(row.valid_interval)}, {optimal}, {row.n} instances"


def grid(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Header and cells; failure kinds that never happened have no column."""
    kinds = [kind for kind in FAILURE_TITLES if any(row.failures.get(kind) for row in rows)]
    groups = list(dict.fromkeys(name for row in rows for name in row.group))
    several = len({row.who for row in rows}) > 1
    header = [
        *(name.replace("_", " ") for name in groups),
        *(["policy"] if several else []),
        "n", "valid %", "95 %", "optimal %", "95 %", "regret", "sum of costs",
        *(FAILURE_TITLES[kind] for kind in kinds),
    ]  # fmt: skip
    cells = [
        [
            *(_label(row.group.get(name, "all")) for name in groups),
            *([row.who + (f" {REPORTED}" if row.reported else "")] if several else []),
            str(row.n),
            f"{row.valid:.2f}",
            _interval(row.valid_interval),
            _number(row.optimal, 2),
            _interval(row.optimal_interval),
            _number(row.regret, 2),
            _number(row.sum_of_costs, 1),
            *("" if row.reported else str(row.failures.get(kind, 0)) for kind in kinds),
        ]
        for row in rows
    ]
    return header, cells


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"[{interval[0]:.1f}, {interval[1]:.1f}]"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
