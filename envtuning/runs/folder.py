"""A run's folder: what lies where, and what is left to do. Everything a run knows stands in its files.

::

    RUN/run.json             the spec and the versions of what ran it; written once
        validation.npz       the held-out boards that stages are validated on
        test.npz, test.json  the boards opened once after the last stage, and the results on them
        start/               the untrained trainee
        stages/00/config.json       what the stage trains on, and who chose it
                  metrics.jsonl     a line per iteration, validation and incident
                  episodes.json     every validation episode with its moves, for replays
                  checkpoint/       the trainee at the stage's end
                  report.json       the StageReport
                  done.json         written last: the stage counts from here on
                  transcript.jsonl  the engineer's exchanges about this report
                  proposal.json     the engineer's answer
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engineers.proposal import Proposal
from engineers.report import Incident, SliceResult, StageReport
from envtuning.runs import atomic
from envtuning.runs.spec import RunSpec, sentences
from mapf_frozenlake import LakeConfig

FORMAT = 1
RECORDED_VERSIONS = ("mapf-frozenlake", "numpy", "numba", "gymnasium", "pydantic", "ray", "torch")


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


class StageConfig(_Record):
    """config.json"""

    name: str
    config: LakeConfig
    engineer: str = Field(
        description="Who wrote it: 'default' the first, 'file' other given ones, or the engineer's name."
    )


class Answer(_Record):
    """proposal.json: what the engineer answered, and what came of it."""

    proposal: Proposal[LakeConfig] | None = Field(description="None when it failed to answer.")
    config: LakeConfig = Field(description="The config that goes on: the proposed one, or the old one.")
    incidents: list[Incident] = Field(default_factory=list)


class Done(_Record):
    """done.json"""

    reason: str = Field(description="Why the stage ended.")
    env_steps: int = Field(description="Charged: training, validation and probes, attempts that diverged included.")
    train_steps: int
    validation_steps: int
    attempts: int = 1
    seconds: float = 0.0
    metrics: dict[str, float] = Field(default_factory=dict, description="The closing validation, all slices together.")


class TestRecord(_Record):
    """test.json: the first stage's and the last stage's trainee on the test suite."""

    __test__ = False  # not a pytest class

    first: list[SliceResult]
    last: list[SliceResult]


class StageFolder:
    """One stage's files. Reading never sees half a file; only ``done`` stages are complete."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number

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
    def config(self) -> StageConfig | None:
        return _load(StageConfig, self.config_file)

    @property
    def report(self) -> StageReport | None:
        return _load(StageReport, self.report_file)

    @property
    def answer(self) -> Answer | None:
        return _load(Answer, self.proposal_file)

    @property
    def done(self) -> Done | None:
        return _load(Done, self.done_file)

    def metrics(self) -> list[dict[str, Any]]:
        return atomic.read_lines(self.metrics_file)

    def transcript(self) -> list[dict[str, Any]]:
        return atomic.read_lines(self.transcript_file)

    def episodes(self) -> list[dict[str, Any]]:
        return atomic.read_json(self.episodes_file) if self.episodes_file.exists() else []


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
    def name(self) -> str:
        return self.path.name

    validation_file = property(lambda self: self.path / "validation.npz")
    test_suite_file = property(lambda self: self.path / "test.npz")
    test_file = property(lambda self: self.path / "test.json")
    start = property(lambda self: self.path / "start")

    def stage(self, number: int) -> StageFolder:
        return StageFolder(self.path / "stages" / f"{number:02d}", number)

    @property
    def stages(self) -> list[StageFolder]:
        """The stages begun so far."""
        all_stages = [self.stage(number) for number in range(len(self.spec.stages))]
        return [stage for stage in all_stages if stage.config_file.exists()]

    @property
    def done_stages(self) -> list[StageFolder]:
        return [stage for stage in self.stages if stage.is_done]

    @property
    def test(self) -> TestRecord | None:
        return _load(TestRecord, self.test_file)

    @property
    def env_steps(self) -> int:
        """Charged so far by the stages that are done."""
        return sum(stage.done.env_steps for stage in self.done_stages if stage.done)

    def incidents(self) -> list[Incident]:
        """All that went wrong and was survived, oldest first."""
        found: list[Incident] = []
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
    for number in range(len(run.spec.stages)):
        stage = run.stage(number)
        if not stage.config_file.exists():
            return Choose(number)
        if not stage.is_done:
            return Train(number)
    if run.spec.suites.test_per_size and not run.test_file.exists():
        return Test()
    return None


def _load(model: Any, path: Path) -> Any:
    """The record in a file; None where there is none, also when a stage that starts again takes it away just now."""
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise RunError(
            f"{path} is damaged or from another version ({sentences(error)}): bring it back from a copy, or remove "
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
