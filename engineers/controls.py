"""Controls: the same engineer with outcomes that carry no information about this policy. If it does as well, reading gains nothing.

A control changes *outcomes* alone: success by slice, failures, behaviour and training curves, of this stage and of earlier
ones. The configs, the doses, the target and the rounds left stay the run's own.

- *average*: the mean outcomes of development runs. This engineer follows the same schedule for every policy.
- *permuted*: the run's own outcomes, with the slices' names exchanged by one fixed permutation.

``engineers.make`` knows them as ``average/ENGINEER`` and ``permuted/ENGINEER``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from engineers.engineer import Engineer
from engineers.knobs import Knob
from engineers.proposal import Proposal
from engineers.report import SliceResult, StageRecord, StageReport
from engineers.roles import natural_key
from engineers.shared.sentences import in_sentences
from engineers.shared.untrusted import NotReadable, parsed, read_bytes
from engineers.tiers import Tier

ConfigT = TypeVar("ConfigT", bound=BaseModel)
Told = Callable[[StageReport], StageReport]
Run = Sequence[StageReport]  # a run's reports, one for each stage, in order

TABLES = ("results", "training_results", "own_config_results")  # of a report, and of an earlier stage's record
# Entries of `training` that are settings and not outcomes.
DOSE = ("round", "rounds", "iterations", "why_it_ended")
DOSE_PREFIXES = ("trained_", "validated_")


class ControlledEngineer(Engineer):
    """An engineer that reads other outcomes than those of its run.

    ``guard`` stays None: the guard of the engineer inside judges by these other outcomes, so the run must judge by the real ones.
    """

    def __init__(self, engineer: Engineer, told: Told, control: str, tier: Tier) -> None:
        self.engineer, self.told, self.name = engineer, told, f"{engineer.name} ({control})"
        self.tier, self.transcript = tier, engineer.transcript

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
        return self.engineer.propose(self.told(report), current=current, editable=editable)


def under_control(engineer: Engineer) -> Engineer:
    """The engineer inside of its controls; any other engineer itself."""
    while isinstance(engineer, ControlledEngineer):
        engineer = engineer.engineer
    return engineer


def average(engineer: Engineer, run: Run) -> ControlledEngineer:
    """The engineer with the outcomes of this run, usually the mean of several."""
    return ControlledEngineer(engineer, lambda report: with_outcomes_of(run, report), "average", Tier.FAMILY)


def permuted(engineer: Engineer, seed: int) -> ControlledEngineer:
    """The engineer with its own outcomes under other slices' names."""
    return ControlledEngineer(engineer, lambda report: under_other_names(report, seed), "permuted", engineer.tier)


def read_run(path: Path) -> list[StageReport]:
    """Raises ``ValueError`` for a file without reports."""
    try:
        content = read_bytes(path)
        if content is None:
            raise ValueError(f"{path} does not exist: give the file of a run's reports")
        found = parsed(content)
        if not isinstance(found, dict) or not found.get("reports"):
            raise ValueError(
                f'{path} holds no reports: write {{"reports": […]}} with the report.json of each stage of another run'
            )
        return TypeAdapter(list[StageReport]).validate_python(found["reports"])
    except NotReadable as error:
        raise ValueError(f"{path} {error}") from error
    except ValidationError as error:
        raise ValueError(f"{path}: {in_sentences(error, 'reports')}") from error


def with_outcomes_of(run: Run, report: StageReport) -> StageReport:
    """The report with the outcomes that this run had after the same stages. Raises ``ValueError`` if the run is shorter."""
    if len(run) <= report.stage:
        raise ValueError(
            f"the other run has {len(run)} stages, and the report is of stage {report.stage}: give a longer run"
        )
    theirs = run[report.stage]
    return report.model_copy(
        update=_tables(report, theirs)
        | {
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
        update=_renamed_tables(report, seed)
        | {
            "blind_scores": {trained.get(name, name): score for name, score in report.blind_scores.items()},
            "failure_cases": [
                case.model_copy(update={"slice": other.get(case.slice, case.slice)}) for case in report.failure_cases
            ],
            "behaviour": {other.get(name, name): numbers for name, numbers in report.behaviour.items()},
            "splits": {other.get(name, name): parts for name, parts in report.splits.items()},
            "history": [record.model_copy(update=_renamed_tables(record, seed)) for record in report.history],
        }
    )


def _renamed_tables(told: StageReport | StageRecord, seed: int) -> dict[str, list[SliceResult]]:
    return {name: _renamed(getattr(told, name), seed) for name in TABLES}


def _renamed(rows: Sequence[SliceResult], seed: int) -> list[SliceResult]:
    other = _exchange([row.name for row in rows], seed)
    found = [row.model_copy(update={"name": other[row.name]}) for row in rows]
    return sorted(found, key=lambda row: natural_key(row.name))


def _exchange(names: Sequence[str], seed: int) -> dict[str, str]:
    """A permutation that moves every name (unless there is only one) to the next on a circle, which the seed orders."""
    circle = sorted(names, key=lambda name: random.Random(f"permuted:{seed}:{name}").random())
    return dict(zip(circle, [*circle[1:], *circle[:1]], strict=True))


def _record(record: StageRecord, theirs: StageReport) -> StageRecord:
    training = _training(record.training, theirs.training)
    numbers = {name: value for name, value in training.items() if isinstance(value, int | float)}
    return record.model_copy(update=_tables(record, theirs) | {"training": numbers})


def _tables(own: StageReport | StageRecord, theirs: StageReport) -> dict[str, Any]:
    return {name: _rows(getattr(own, name), getattr(theirs, name)) for name in TABLES}


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
