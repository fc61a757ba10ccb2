"""A run's folder: what lies where, and what is left to do. Everything a run knows stands in its files.

::

    RUN/run.json             the spec and the versions of what ran it; written once
        validation.cases     the held-out cases that stages are validated on
        test.cases, test.json  the cases opened once after the last stage, and the results on them
        start/               the untrained trainee
        incidents.jsonl      what went wrong outside of a stage
        stages/00/config.json       what the stage trains on, and who chose it
                  metrics.jsonl     a line per iteration, validation and incident
                  episodes.json     every validation episode with its trace, for replays
                  checkpoint/       the trainee at the stage's end
                  report.json       the StageReport
                  done.json         written last: the stage counts from here on
                  transcript.jsonl  the engineer's exchanges about this report
                  proposal.json     the engineer's answer
"""

from __future__ import annotations

import platform
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.proposal import Proposal, Usage
from engineers.report import Incident, SliceResult, StageReport
from engineers.sentences import in_sentences
from envtuning.runs import atomic
from envtuning.runs.spec import RunSpec
from envtuning.worlds.episodes import Amounts, Episode
from envtuning.worlds.world import World

FORMAT = 2
RECORDED_VERSIONS = ("mapf-frozenlake", "numpy", "numba", "gymnasium", "pydantic", "ray", "torch")

C = TypeVar("C", bound=BaseModel)  # a config of the run's world


class RunError(RuntimeError):
    """The folder is not what the command needs; the message says what to do."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _AnyFormat(BaseModel):
    """What every format of run.json says."""

    format: int
    versions: dict[str, str] = Field(default_factory=dict)


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
        description="Who wrote it: 'default' the first, 'file' other given ones, or the engineer's name."
    )


class Answer(_Record, Generic[C]):
    """proposal.json: what the engineer answered, and what came of it."""

    proposal: Proposal[C] | None = Field(description="None when it failed to answer.")
    config: C = Field(description="The config that goes on: the proposed one, or the old one.")
    incidents: list[Incident] = Field(default_factory=list)


class Done(_Record):
    """done.json"""

    reason: str = Field(description="Why the stage ended.")
    spent: Amounts = Field(
        description="Charged, by unit: training, validation and probes, attempts that diverged included."
    )
    trained: Amounts = Field(description="By training, in the attempt that counts.")
    validated: Amounts = Field(description="By validation and probes, in the attempt that counts.")
    attempts: int = 1
    seconds: float = 0.0
    metrics: dict[str, float] = Field(default_factory=dict, description="The closing validation, all slices together.")

    @property
    def env_steps(self) -> int:
        return self.spent.get("env_steps", 0)


class TestRecord(_Record):
    """test.json: the first stage's and the last stage's trainee on the test suite."""

    __test__ = False  # not a pytest class

    first: list[SliceResult]
    last: list[SliceResult]


class StageFolder:
    """One stage's files. Reading never sees half a file; only ``done`` stages are complete."""

    def __init__(self, path: Path, number: int, config_type: type[BaseModel]) -> None:
        self.path, self.number, self.config_type = path, number, config_type

    config_file = property(lambda self: self.path / "config.json")
    metrics_file = property(lambda self: self.path / "metrics.jsonl")
    episodes_file = property(lambda self: self.path / "episodes.json")
    report_file = property(lambda self: self.path / "report.json")
    done_file = property(lambda self: self.path / "done.json")
    proposal_file = property(lambda self: self.path / "proposal.json")
    transcript_file = property(lambda self: self.path / "transcript.jsonl")
    checkpoint = property(lambda self: self.path / "checkpoint")

    @property
    def is_done(self) -> bool:
        return self.done_file.exists()

    @property
    def config(self) -> StageConfig[Any] | None:
        return _load(StageConfig[self.config_type], self.config_file)  # type: ignore[name-defined]

    @property
    def report(self) -> StageReport | None:
        return _load(StageReport, self.report_file)

    @property
    def answer(self) -> Answer[Any] | None:
        return _load(Answer[self.config_type], self.proposal_file)  # type: ignore[name-defined]

    @property
    def done(self) -> Done | None:
        return _load(Done, self.done_file)

    def metrics(self) -> list[dict[str, Any]]:
        return atomic.read_lines(self.metrics_file)

    def transcript(self) -> list[dict[str, Any]]:
        return atomic.read_lines(self.transcript_file)

    def episodes(self) -> list[Episode]:
        """Of the closing validation."""
        stored = atomic.read_json(self.episodes_file) if self.episodes_file.exists() else []
        return [Episode.from_json(data) for data in stored]


class RunFolder:
    """A run on the disk: opened from its path, or created from a spec."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "run.json").is_file():
            raise RunError(f"{path} is no run folder (it has no run.json): `envtuning run` makes one")

    @classmethod
    def create(cls, path: str | Path, spec: RunSpec) -> RunFolder:
        """Make the folder, or open it when it already holds the very same spec."""
        path = Path(path)
        if (path / "run.json").exists():
            existing = cls(path)
            if existing.spec != spec:
                raise RunError(f"{path} already holds another run: choose another --out, or remove that folder")
            return existing
        if path.exists() and any(not entry.name.startswith(".") for entry in path.iterdir()):
            raise RunError(f"{path} is not empty and is no run: choose another --out")
        atomic.make_folder(path)
        record = RunRecord(created=datetime.now(UTC).isoformat(timespec="seconds"), versions=_versions(), spec=spec)
        atomic.write_text(path / "run.json", record.model_dump_json(indent=1) + "\n")
        return cls(path)

    @cached_property
    def record(self) -> RunRecord:
        made = _load(_AnyFormat, self.path / "run.json")
        if made.format != FORMAT:
            raise RunError(
                f"{self.path} has run format {made.format}, this version reads {FORMAT}: use the version that made it "
                f"({made.versions.get('mapf-frozenlake', 'unknown')})"
            )
        return _load(RunRecord, self.path / "run.json")

    @property
    def spec(self) -> RunSpec:
        return self.record.spec

    @property
    def world(self) -> World[Any]:
        return self.spec.world.made

    @property
    def name(self) -> str:
        return self.path.name

    validation_file = property(lambda self: self.path / "validation.cases")
    test_suite_file = property(lambda self: self.path / "test.cases")
    incidents_file = property(lambda self: self.path / "incidents.jsonl")
    test_file = property(lambda self: self.path / "test.json")
    start = property(lambda self: self.path / "start")

    def stage(self, number: int) -> StageFolder:
        return StageFolder(self.path / "stages" / f"{number:02d}", number, self.world.config_type)

    @property
    def stages(self) -> list[StageFolder]:
        """The stages begun so far."""
        return list(takewhile(lambda stage: stage.config_file.exists(), map(self.stage, count())))

    @property
    def done_stages(self) -> list[StageFolder]:
        return [stage for stage in self.stages if stage.is_done]

    @property
    def test(self) -> TestRecord | None:
        return _load(TestRecord, self.test_file)

    @property
    def spent(self) -> Amounts:
        """Charged so far by the stages that are done, by unit."""
        charged: Counter[str] = Counter()
        for stage in self.done_stages:
            charged.update(stage.done.spent if stage.done else {})
        return dict(charged)

    @property
    def env_steps(self) -> int:
        return self.spent.get("env_steps", 0)

    @property
    def budget_spent(self) -> int:
        """The same in the unit of the budget."""
        return self.spent.get(self.spec.unit, 0)

    def usage(self) -> Usage:
        """What the engineer took in all."""
        answers = [stage.answer for stage in self.done_stages if stage.answer]
        return Usage.total(answer.proposal.usage for answer in answers if answer.proposal)

    def incidents(self) -> list[Incident]:
        """All that went wrong and was survived, oldest first."""
        found = [Incident.model_validate(line) for line in atomic.read_lines(self.incidents_file)]
        for stage in self.done_stages:
            report, answer = stage.report, stage.answer
            found += [incident for incident in (report.incidents if report else []) if incident.stage == stage.number]
            found += answer.incidents if answer else []
        return found


@dataclass(frozen=True)
class Choose:
    """Settle the stage's config, asking the engineer where it is its turn."""

    stage: int


@dataclass(frozen=True)
class Train:
    """Train, validate and report the stage, from the checkpoint before it."""

    stage: int


@dataclass(frozen=True)
class Test:
    """Open the test suite."""

    __test__ = False


def next_task(run: RunFolder) -> Choose | Train | Test | None:
    """What a run does next depends on its files alone: that is all there is to resuming. None: the run is finished."""
    for number in count():
        stage = run.stage(number)
        if not stage.config_file.exists():
            if is_planned(run, number):
                return Choose(number)
            break
        if not stage.is_done:
            return Train(number)
    if run.spec.suites.test_per_slice and not run.test_file.exists():
        return Test()
    return None


def is_planned(run: RunFolder, number: int) -> bool:
    """Whether there is such a stage: one that is listed, or a repetition of the last that can still train."""
    if number < len(run.spec.stages):
        return True
    return run.spec.total is not None and run.spec.total - run.budget_spent > closing_cost(run, number)


def closing_cost(run: RunFolder, number: int) -> int:
    """What the validation and probe after this stage will cost, by what the last stage's cost; 0 before the first."""
    if number == 0:
        return 0
    done = run.stage(number - 1).done
    validations = max(1, sum(line["kind"] == "validation" for line in run.stage(number - 1).metrics()))
    return done.validated.get(run.spec.unit, 0) // validations if done else 0


def _load(model: Any, path: Path) -> Any:
    """The record in a file; None where there is none, also when a stage that starts again takes it away just now."""
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise RunError(
            f"{path} is damaged or from another version ({in_sentences(error)}): bring it back from a copy, or remove "
            "this run and start anew"
        ) from error


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in RECORDED_VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
