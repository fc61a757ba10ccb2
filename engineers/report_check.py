"""Whether a report is about the config that an engineer is asked about: else its proposal would rest on nothing, silently."""

from __future__ import annotations

from contextlib import suppress

from pydantic import BaseModel, ValidationError

from engineers.report import StageReport
from engineers.roles import WHOLE, slices_in
from engineers.shared.errors import UserError

SHOWN = 12  # names in an error


class ReportUnclear(UserError, ValueError):
    """The report's rows or its objective do not fit the config or each other."""


def raise_unless_about(report: StageReport, current: BaseModel) -> None:
    """Raises ``ReportUnclear`` for a row of a slice that neither the config nor the target has, and for an objective that no row has."""
    rows = [*report.results, *report.training_results, *report.own_config_results]
    known = _slices(current)
    with suppress(ValidationError):  # no target, or not one of the config's class
        known |= _slices(type(current).model_validate(report.target))
    strangers = [row.name for row in rows if row.name not in known]
    if strangers and known != {WHOLE}:
        raise ReportUnclear(
            f"the report has a row of the slice {strangers[0]!r}, and the config has {_listed(known - {WHOLE})}: name each row by a slice, and "
            "leave out rows that add several up"
        )
    measured = [row for row in rows if row.episodes and row.metrics]
    if measured and not any({report.objective, "success_rate"} & row.metrics.keys() for row in measured):
        found = {name for row in measured for name in row.metrics}
        raise ReportUnclear(f"no result has the objective {report.objective!r}: they have {_listed(found)}")


def _slices(config: BaseModel) -> set[str]:
    """The names of the slices that share the data; ``WHOLE`` alone for a config without shares."""
    return {piece.name for piece in slices_in(config) if piece.share is not None} or {WHOLE}


def _listed(names: set[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:SHOWN]) + (f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else "")
