"""``RunState``: the content of a run's folder, read once. Small files are part of it; large files are read and checked on request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from engineers.model.transcript import Exchange
from engineers.proposal import Proposal, Usage
from engineers.report import Incident, SliceResult, StageRecord, StageReport
from envtuning.runs.checked import Files
from envtuning.runs.sections import MOST_SPENT
from envtuning.runs.spec import RunSpec
from envtuning.worlds.episodes import Amounts, Episode

FORMAT = 2
COMPARISON = "comparison.json"  # `envtuning compare` writes it beside its runs

Charged = dict[str, Annotated[int, Field(ge=0, le=MOST_SPENT)]]
C = TypeVar("C", bound=BaseModel)  # a config of the run's world


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class RunRecord(_Record):
    """run.json"""

    format: int = FORMAT
    created: str
    versions: dict[str, str]
    spec: RunSpec


class StageConfig(_Record, Generic[C]):
    """config.json"""

    name: str
    config: C
    engineer: str = Field(
        description="Who wrote the config: 'default' for the first, 'file' for others from the run's file, else the engineer's name."
    )


class Answer(_Record, Generic[C]):
    """proposal.json: the engineer's answer, and the config that follows from it."""

    proposal: Proposal[C] | None = Field(description="The engineer's proposal; None when the engineer failed.")
    config: C = Field(description="The config of the next stage: the proposed one, or the current one.")
    incidents: list[Incident] = Field(
        default_factory=list, description="Why the current config was kept; empty if the proposed config was taken."
    )


class Done(_Record):
    """done.json"""

    reason: str = Field(description="Why the stage ended.")
    spent: Charged = Field(
        description="What the stage was charged, by unit: training, validation and probes, diverged attempts included."
    )
    trained: Charged = Field(description="What training spent in the attempt that counts.")
    validated: Charged = Field(description="What validation and probes spent in the attempt that counts.")
    validations: int = Field(0, ge=0, description="How often the attempt that counts was validated.")
    attempts: int = Field(1, ge=1)
    seconds: float = Field(0.0, ge=0)
    metrics: dict[str, float] = Field(default_factory=dict, description="The closing validation, all slices together.")


class TestRecord(_Record):
    """test.json: the first stage's and the last stage's trainee on the test suite."""

    __test__ = False  # not a pytest class

    first: list[SliceResult]
    last: list[SliceResult]


class Measured(BaseModel):
    """A line of metrics.jsonl with numbers."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, float]

    kind: Literal["iteration", "validation"]
    spent: int = Field(ge=0)


class Said(BaseModel):
    """A line of metrics.jsonl with a text."""

    kind: Literal["incident", "end"]


@dataclass(frozen=True)
class StageState:
    """A stage with a chosen config. With ``done`` it is complete."""

    number: int
    path: Path
    chosen: StageConfig[Any]
    files: Files = field(compare=False, repr=False)
    done: Done | None = None
    report: StageReport | None = None
    answer: Answer[Any] | None = None

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def transcript_file(self) -> Path:
        return self.path / "transcript.jsonl"

    def spent(self, unit: str) -> int:
        """The stage's cost; 0 before it is done."""
        return self.done.spent.get(unit, 0) if self.done else 0

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl so far."""
        return self.files.lines(self.path / "metrics.jsonl", Measured | Said, whole=self.done is not None)

    def transcript(self) -> list[dict[str, Any]]:
        return self.files.lines(self.transcript_file, Exchange, whole=self.answer is not None)

    def episodes(self) -> list[Episode]:
        """The episodes of the closing validation."""
        stored = self.files.value(self.path / "episodes.json", list[Episode]) if self.done is not None else None
        return stored or []

    @cached_property
    def record(self) -> StageRecord:
        """The stage's entry in the history of later reports."""
        report = self.report
        assert report is not None, "a stage that is done has a report"
        numbers = {name: value for name, value in report.training.items() if isinstance(value, int | float)}
        return StageRecord(
            stage=self.number,
            config=report.config,
            results=report.results,
            engineer=self.chosen.engineer,
            training={name: float(value) for name, value in numbers.items()},
            training_results=report.training_results,
            cost=report.cost,
        )

    def incidents(self) -> list[Incident]:
        """Incidents of the stage and of the question after it."""
        own = [one for one in self.report.incidents if one.stage == self.number] if self.report else []
        return own + (self.answer.incidents if self.answer else [])


@dataclass(frozen=True)
class RunState:
    """The work done so far in a run. Stages are in order, and all except the last are complete."""

    stages: tuple[StageState, ...] = ()
    survived: tuple[Incident, ...] = ()  # outside of a stage
    test: TestRecord | None = None

    @cached_property
    def done(self) -> tuple[StageState, ...]:
        return tuple(stage for stage in self.stages if stage.done is not None)

    @cached_property
    def spent(self) -> Amounts:
        """The cost of the finished stages, by unit."""
        charged: Counter[str] = Counter()
        for stage in self.stages:
            charged.update(stage.done.spent if stage.done else {})
        return dict(charged)

    @property
    def answers(self) -> list[Answer[Any]]:
        return [stage.answer for stage in self.stages if stage.answer]

    def usage(self) -> Usage:
        """The engineer's usage in the whole run."""
        return Usage.total(answer.proposal.usage for answer in self.answers if answer.proposal)

    def incidents(self) -> list[Incident]:
        """All incidents, oldest first."""
        return [*self.survived, *(incident for stage in self.stages for incident in stage.incidents())]
