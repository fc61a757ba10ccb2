"""Controls: the same engineer with outcomes that carry no information about this policy. If it does as well, reading gains nothing.

A control changes *outcomes* alone: success by slice, failures, behaviour and training curves, of this stage and of earlier
ones. The configs, the doses, the target and the rounds left stay the run's own.

- *average*: the mean outcomes of development runs. This engineer follows the same schedule for every policy.
- *permuted*: the run's own outcomes, with the slices' names exchanged by one fixed permutation.

``engineers.make`` knows them as ``average/ENGINEER`` and ``permuted/ENGINEER``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from engineers import registry
from engineers.engineer import Engineer
from engineers.from_file import PLAIN, reads
from engineers.knobs import Knob
from engineers.proposal import Proposal
from engineers.report import SliceResult, Split, StageRecord, StageReport
from engineers.roles import natural_key
from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable, parsed, read_bytes
from engineers.tiers import Tier

ConfigT = TypeVar("ConfigT", bound=BaseModel)
Told = Callable[[StageReport], StageReport]
Run = Sequence[StageReport]  # a run's reports, one for each stage, in order

# Entries of `training` that are settings and not outcomes.
DOSE = ("round", "rounds", "iterations", "why_it_ended")
DOSE_PREFIXES = ("trained_", "validated_")


class ControlledEngineer(Engineer):
    """An engineer that reads other outcomes than those of its run.

    ``guard`` stays None: the guard of the engineer inside judges by these other outcomes, so the run must judge by the real ones.
    """

    def __init__(self, engineer: Engineer, told: Told, control: str, tier: Tier) -> None:
        self.engineer, self.told, self.name = engineer, told, f"{engineer.name} ({control})"
        self.tier = tier

    def can_turn(self, knobs: Sequence[Knob]) -> bool:
        return self.engineer.can_turn(knobs)

    def check_able(self, current: BaseModel, editable: Sequence[str] | None = None) -> None:
        self.engineer.check_able(current, editable)

    def check_askable(self) -> None:
        self.engineer.check_askable()

    def recall(self, exchanges: Sequence[Mapping[str, Any]]) -> None:
        self.engineer.recall(exchanges)

    def propose(
        self, report: StageReport, current: ConfigT, editable: Sequence[str] | None = None
    ) -> Proposal[ConfigT]:
        return self.engineer.propose(self.told(report), current, editable)


def average(engineer: Engineer, runs: Sequence[Run]) -> ControlledEngineer:
    """The engineer with the mean outcomes of these runs."""
    mean = mean_run(runs)
    return ControlledEngineer(engineer, lambda report: with_outcomes_of(mean, report), "average", Tier.FAMILY)


def permuted(engineer: Engineer, seed: int) -> ControlledEngineer:
    """The engineer with its own outcomes under other slices' names."""
    return ControlledEngineer(engineer, lambda report: under_other_names(report, seed), "permuted", engineer.tier)


def save_run(path: Path, run: Run, **made_by: Any) -> None:
    """Reports for ``average/ENGINEER`` to read, with how they were made."""
    reports = [report.model_dump(mode="json") for report in run]
    path.write_text(json.dumps({**made_by, "reports": reports}, indent=1) + "\n", encoding="utf-8")


def read_run(path: Path) -> list[StageReport]:
    """Raises ``ValueError`` for a file without reports."""
    try:
        content = read_bytes(path)
        if content is None:
            raise ValueError(f"{path} does not exist: give the file of a run's reports")
        found = parsed(content)
        if not isinstance(found, dict) or not found.get("reports"):
            raise ValueError(f"{path} holds no reports: give a file that save_run wrote")
        return TypeAdapter(list[StageReport]).validate_python(found["reports"])
    except NotReadable as error:
        raise ValueError(f"{path} {error}") from error
    except ValidationError as error:
        raise ValueError(f"{path}: {in_sentences(error, 'reports')}") from error


def make_average(engineer: str, *, reports: str | Path, **options: Any) -> ControlledEngineer:
    """``average/ENGINEER``, with the outcomes in the file ``reports``."""
    return average(registry.named_in_a_file(engineer, options), [read_run(Path(reports))])


@reads({"permutation": PLAIN})
def make_permuted(engineer: str, *, permutation: int = 0, **options: Any) -> ControlledEngineer:
    """``permuted/ENGINEER``, with the slices exchanged by the permutation of this number."""
    return permuted(registry.named_in_a_file(engineer, options), permutation)


def with_outcomes_of(run: Run, report: StageReport) -> StageReport:
    """The report with the outcomes that this run had after the same stages. Raises ``ValueError`` if the run is shorter."""
    if len(run) <= report.stage:
        raise ValueError(
            f"the other run has {len(run)} stages, and the report is of stage {report.stage}: give a longer run"
        )
    theirs = run[report.stage]
    return report.model_copy(
        update={
            "results": _rows(report.results, theirs.results),
            "training_results": _rows(report.training_results, theirs.training_results),
            "own_config_results": _rows(report.own_config_results, theirs.own_config_results),
            "failure_cases": theirs.failure_cases,
            "behaviour": {name: theirs.behaviour[name] for name in report.behaviour if name in theirs.behaviour},
            "splits": {name: theirs.splits[name] for name in report.splits if name in theirs.splits},
            "training": _training(report.training, theirs.training),
            "history": [_record(record, run[record.stage]) for record in report.history],
        }
    )


def under_other_names(report: StageReport, seed: int) -> StageReport:
    """The report with the outcomes of its slices exchanged: each table keeps its names, and every name gets another's row."""
    other = _exchange([row.name for row in report.results], seed)
    trained = _exchange([row.name for row in report.training_results], seed)
    return report.model_copy(
        update={
            "results": _renamed(report.results, seed),
            "training_results": _renamed(report.training_results, seed),
            "blind_scores": {trained.get(name, name): score for name, score in report.blind_scores.items()},
            "own_config_results": _renamed(report.own_config_results, seed),
            "failure_cases": [
                case.model_copy(update={"slice": other.get(case.slice, case.slice)}) for case in report.failure_cases
            ],
            "behaviour": {other.get(name, name): numbers for name, numbers in report.behaviour.items()},
            "splits": {other.get(name, name): parts for name, parts in report.splits.items()},
            "history": [
                record.model_copy(
                    update={
                        "results": _renamed(record.results, seed),
                        "training_results": _renamed(record.training_results, seed),
                        "own_config_results": _renamed(record.own_config_results, seed),
                    }
                )
                for record in report.history
            ],
        }
    )


def mean_run(runs: Sequence[Run]) -> list[StageReport]:
    """One report a stage: the mean outcomes over the runs, as far as the shortest goes. Shows no failed case."""
    return [_mean(reports) for reports in zip(*runs, strict=False)]


def _renamed(rows: Sequence[SliceResult], seed: int) -> list[SliceResult]:
    other = _exchange([row.name for row in rows], seed)
    found = [row.model_copy(update={"name": other[row.name]}) for row in rows]
    return sorted(found, key=lambda row: natural_key(row.name))


def _exchange(names: Sequence[str], seed: int) -> dict[str, str]:
    """A permutation that moves every name (unless there is only one) to the next on a circle, which the seed orders."""
    circle = sorted(names, key=lambda name: random.Random(f"permuted:{seed}:{name}").random())
    return dict(zip(circle, [*circle[1:], *circle[:1]], strict=True))


def _record(record: StageRecord, theirs: StageReport) -> StageRecord:
    return record.model_copy(
        update={
            "results": _rows(record.results, theirs.results),
            "training_results": _rows(record.training_results, theirs.training_results),
            "own_config_results": _rows(record.own_config_results, theirs.own_config_results),
            "training": {
                name: value
                for name, value in _training(record.training, theirs.training).items()
                if isinstance(value, int | float)
            },
        }
    )


def _rows(own: Sequence[SliceResult], theirs: Sequence[SliceResult]) -> list[SliceResult]:
    """Their rows for the slices of the report; a slice that they did not play has no row."""
    by_name = {row.name: row for row in theirs}
    return [by_name[row.name] for row in own if row.name in by_name]


def _training(own: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in own.items() if _is_dose(name)} | {
        name: value for name, value in theirs.items() if not _is_dose(name)
    }


def _is_dose(name: str) -> bool:
    return name in DOSE or name.startswith(DOSE_PREFIXES)


def _mean(reports: Sequence[StageReport]) -> StageReport:
    return reports[0].model_copy(
        update={
            "results": _mean_rows([report.results for report in reports]),
            "training_results": _mean_rows([report.training_results for report in reports]),
            "own_config_results": _mean_rows([report.own_config_results for report in reports]),
            "failure_cases": [],
            "behaviour": {
                name: _mean_numbers([report.behaviour[name] for report in reports if name in report.behaviour])
                for name in dict.fromkeys(name for report in reports for name in report.behaviour)
            },
            "splits": _mean_splits([report.splits for report in reports]),
            "training": _mean_training([report.training for report in reports]),
            "history": [],
        }
    )


def _mean_rows(tables: Sequence[Sequence[SliceResult]]) -> list[SliceResult]:
    names = dict.fromkeys(row.name for table in tables for row in table)
    return [_mean_row([row for table in tables for row in table if row.name == name]) for name in names]


def _mean_row(rows: Sequence[SliceResult]) -> SliceResult:
    kinds = dict.fromkeys(kind for row in rows for kind in row.failures)
    return SliceResult(
        name=rows[0].name,
        episodes=round(fmean(row.episodes for row in rows)),
        metrics=_mean_numbers([row.metrics for row in rows]),
        failures={kind: round(fmean(row.failures.get(kind, 0) for row in rows)) for kind in kinds},
    )


def _mean_splits(tables: Sequence[Mapping[str, Mapping[str, Split]]]) -> dict[str, dict[str, Split]]:
    """The parts that all runs have, with the mean of their counts, rounded."""
    shared = [name for name in tables[0] if all(name in table for table in tables)]
    return {
        name: {
            part: Split(
                episodes=round(fmean(table[name][part].episodes for table in tables)),
                succeeded=round(fmean(table[name][part].succeeded for table in tables)),
            )
            for part in tables[0][name]
            if all(part in table[name] for table in tables)
        }
        for name in shared
    }


def _mean_numbers(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for table in tables for name in table)
    return {name: fmean(table[name] for table in tables if name in table) for name in names}


def _mean_training(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers, and curves point by point as far as the shortest goes."""
    numbers = [{name: v for name, v in table.items() if isinstance(v, int | float)} for table in tables]
    curves: dict[str, list[Sequence[float]]] = {}
    for table in tables:
        for name, value in table.items():
            if isinstance(value, list):
                curves.setdefault(name, []).append(value)
    return _mean_numbers(numbers) | {
        name: [fmean(point) for point in zip(*found, strict=False)] for name, found in curves.items()
    }
