"""``RunState``: the content of a run's folder, read once. Small files are part of it; large files are read and checked on request."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
)

from engineers.knobs import validated
from engineers.model.transcript import Exchange
from engineers.proposal import Proposal, Usage
from engineers.report import Incident, SliceResult, StageRecord, StageReport
from envtuning.outcomes import Tally
from envtuning.runs.checked import Files
from envtuning.runs.sections import MOST_SPENT, with_todays_names
from envtuning.runs.spec import RunSpec
from envtuning.worlds.episodes import Amounts, Episode

FORMAT = 3
COMPARISON = "comparison.json"  # `envtuning compare` writes it beside its runs

Charged = dict[str, Annotated[int, Field(ge=0, le=MOST_SPENT)]]


def _config_of_the_world(given: Any, info: ValidationInfo) -> BaseModel:
    """JSON as a config of the class that the reader gives as context; an object is kept as it is."""
    if isinstance(given, BaseModel):
        return given
    assert info.context is not None, "whoever reads a config from JSON gives its class as context"
    config: BaseModel = validated(info.context, given)
    return config


WorldConfig = Annotated[SerializeAsAny[BaseModel], BeforeValidator(_config_of_the_world)]


def _proposal_of_the_world(given: Any, info: ValidationInfo) -> Any:
    if isinstance(given, dict) and "config" in given:
        return given | {"config": _config_of_the_world(given["config"], info)}
    return given


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class RunRecord(_Record):
    """run.json"""

    format: int = FORMAT
    created: str
    versions: dict[str, str]
    spec: Annotated[RunSpec, BeforeValidator(with_todays_names)]


class Choice(_Record):
    """config.json: the config that a stage trains on, and how it was chosen."""

    config: WorldConfig
    engineer: str = Field(
        description="Who wrote the config: 'default' for the first, 'file' for others from the run's file, else the engineer's name."
    )
    proposal: Annotated[Proposal[Any] | None, BeforeValidator(_proposal_of_the_world)] = Field(
        None,
        description="The engineer's proposal; null if no engineer was asked, or if it failed. A refused one has the config that was kept.",
    )
    incidents: list[Incident] = Field(
        default_factory=list, description="Why the config before was kept; empty if the proposed config was taken."
    )

    @property
    def by_asking(self) -> bool:
        """Whether an engineer was asked for it."""
        return self.proposal is not None or bool(self.incidents)


class StageResult(_Record):
    """done.json: why a stage ended, and what it cost."""

    reason: str = Field(description="Why the stage ended.")
    spent: Charged = Field(
        description="What the stage was charged, by unit: training, validation and probes, diverged attempts included."
    )
    trained: Charged = Field(description="What training spent in the attempt that counts.")
    validated: Charged = Field(description="What validation and probes spent in the attempt that counts.")
    validations: int = Field(ge=0, description="How often the attempt that counts was validated.")
    attempts: int = Field(1, ge=1)
    seconds: float = Field(0.0, ge=0)
    metrics: dict[str, float] = Field(default_factory=dict, description="The closing validation, all slices together.")


class TestRecord(_Record):
    """test.json: the first stage's and the last stage's trainee on the test suite."""

    __test__ = False  # not a pytest class

    start: list[SliceResult] | None = Field(
        None, description="Before the first stage; absent unless `suites.test_start` asks for it."
    )
    first: list[SliceResult]
    last: list[SliceResult]

    @model_serializer(mode="wrap")
    def _as_played(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without ``suites.test_start``, the key ``start`` is left out, as in files from before it existed."""
        written: dict[str, Any] = write(self)
        if self.start is None:
            del written["start"]
        return written


class Measured(BaseModel):
    """A line of metrics.jsonl with numbers."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, float]

    kind: Literal["iteration", "validation"]
    spent: int = Field(ge=0)
    outcomes: Tally | None = None


class Said(BaseModel):
    """A line of metrics.jsonl with a text."""

    kind: Literal["incident", "end"]


@dataclass(frozen=True)
class Stage:
    """A stage with a chosen config. With ``done`` it is complete."""

    number: int
    path: Path
    chosen: Choice
    files: Files = field(compare=False, repr=False)
    done: StageResult | None = None
    report: StageReport | None = None
    trained_on: BaseModel | None = None  # the config that it ended on; the chosen one, unless that one failed

    @property
    def config(self) -> BaseModel:
        """The config of the stage; once the stage is done, the final one, which differs if a number fades."""
        return self.chosen.config if self.trained_on is None else self.trained_on

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
        """The engineer's exchanges about this stage's report. They are complete once the next config is chosen."""
        chosen = self.path.with_name(f"{self.number + 1:02d}") / "config.json"
        return self.files.lines(self.transcript_file, Exchange, whole=chosen.exists())

    def episodes(self) -> list[Episode]:
        """The episodes of the closing validation."""
        stored = self.files.value(self.path / "episodes.json", list[Episode]) if self.done is not None else None
        return stored or []

    @cached_property
    def record(self) -> StageRecord:
        """The stage's entry in the history of later reports."""
        assert self.report is not None, "a stage that is done has a report"
        return self.report.records()[-1].model_copy(update={"engineer": self.chosen.engineer})

    def incidents(self) -> list[Incident]:
        """Incidents of the choice of its config, and of the stage itself."""
        own = [one for one in self.report.incidents if one.stage == self.number] if self.report else []
        return [*self.chosen.incidents, *own]


@dataclass(frozen=True)
class RunState:
    """The work done so far in a run. Stages are in order, and all except the last are complete."""

    stages: tuple[Stage, ...] = ()
    survived: tuple[Incident, ...] = ()  # outside of a stage
    test: TestRecord | None = None

    @cached_property
    def done(self) -> tuple[Stage, ...]:
        return tuple(stage for stage in self.stages if stage.done is not None)

    @cached_property
    def spent(self) -> Amounts:
        """The cost of the finished stages, by unit."""
        charged: Counter[str] = Counter()
        for stage in self.stages:
            charged.update(stage.done.spent if stage.done else {})
        return dict(charged)

    @property
    def proposals(self) -> list[Proposal[Any]]:
        """The engineer's proposals, the refused ones too."""
        return [stage.chosen.proposal for stage in self.stages if stage.chosen.proposal is not None]

    def usage(self) -> Usage:
        """The engineer's usage in the whole run."""
        return Usage.total(proposal.usage for proposal in self.proposals)

    def incidents(self) -> list[Incident]:
        """All incidents, oldest first."""
        return [*self.survived, *(incident for stage in self.stages for incident in stage.incidents())]
