"""A run's folder: where each file is, and what is left to do. The whole state of a run is in its files.

::

    RUN/run.json             the spec and the versions of what ran it; written once
        checksums.json       what the files below are checked against when they are read (see ``checked``)
        validation.cases     the held-out cases that stages are validated on
        test.cases, test.json  the cases opened once after the last stage, and the results on them
        start/               the untrained trainee
        incidents.jsonl      what went wrong outside of a stage
        stages/00/config.json       what the stage trains on, and who chose it
                  metrics.jsonl     a line per iteration, validation and incident
                  episodes.json     every validation episode with its trace, for replays
                  checkpoint/       the trainee at the stage's end
                  report.json       the StageReport
                  done.json         written last: with this file the stage is complete
                  transcript.jsonl  the engineer's exchanges about this report
                  proposal.json     the engineer's answer
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import count, takewhile
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from engineers import untrusted
from engineers.knobs import KnobError, as_text, validated
from engineers.model.transcript import Exchange
from engineers.proposal import Proposal, Usage
from engineers.report import Incident, SliceResult, StageRecord, StageReport
from engineers.sentences import in_sentences
from engineers.untrusted import NotReadable
from envtuning.runs import atomic, checked
from envtuning.runs.checked import RunError
from envtuning.runs.sections import MOST_SPENT
from envtuning.runs.spec import RunSpec
from envtuning.worlds.episodes import Amounts, Episode
from envtuning.worlds.registry import UnknownWorld
from envtuning.worlds.world import Film, World

FORMAT = 2
COMPARISON = "comparison.json"  # what `envtuning compare` writes beside its runs
RECORDED_VERSIONS = ("mapf-frozenlake", "numpy", "numba", "gymnasium", "pydantic", "ray", "torch")

Charged = dict[str, Annotated[int, Field(ge=0, le=MOST_SPENT)]]
C = TypeVar("C", bound=BaseModel)  # a config of the run's world


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


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
        description="Who wrote the config: 'default' for the first, 'file' for others from the run's file, else the engineer's name."
    )


class Answer(_Record, Generic[C]):
    """proposal.json: what the engineer answered, and what came of it."""

    proposal: Proposal[C] | None = Field(description="The engineer's proposal; None when the engineer failed.")
    config: C = Field(description="The config of the next stage: the proposed one, or the current one.")
    incidents: list[Incident] = Field(
        default_factory=list, description="Why the current config goes on; none where the proposed one does."
    )


class Done(_Record):
    """done.json"""

    reason: str = Field(description="Why the stage ended.")
    spent: Charged = Field(
        description="What the stage was charged, by unit: training, validation and probes, diverged attempts included."
    )
    trained: Charged = Field(description="What training spent in the attempt that counts.")
    validated: Charged = Field(description="What validation and probes spent in the attempt that counts.")
    attempts: int = Field(1, ge=1)
    seconds: float = Field(0.0, ge=0)
    metrics: dict[str, float] = Field(default_factory=dict, description="The closing validation, all slices together.")

    @property
    def env_steps(self) -> int:
        return self.spent.get("env_steps", 0)


class TestRecord(_Record):
    """test.json: the first stage's and the last stage's trainee on the test suite."""

    __test__ = False  # not a pytest class

    first: list[SliceResult]
    last: list[SliceResult]


class _Measured(BaseModel):
    """A line of metrics.jsonl with what was measured so far."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)
    __pydantic_extra__: dict[str, float]

    kind: Literal["iteration", "validation"]
    spent: int = Field(ge=0)


class _Said(BaseModel):
    """A line of metrics.jsonl in words."""

    kind: Literal["incident", "end"]


class StageFolder:
    """One stage's files. Reading never sees half a file; only ``done`` stages are complete."""

    def __init__(self, path: Path, number: int, world: World[Any]) -> None:
        self.path, self.number, self.world, self.config_type = path, number, world, world.config_type

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
        report: StageReport | None = _load(StageReport, self.report_file)
        if report is not None:
            tables: list[StageReport | StageRecord] = [report, *report.history]
            rows = [row for table in tables for row in (*table.results, *table.training_results)]
            _raise_unless_rates([row.metrics for row in rows], self.world, self.report_file)
            try:
                for table in tables:
                    validated(self.config_type, table.config)
            except KnobError as error:
                raise checked.damaged(self.report_file, f"has another world's config ({error})") from error
        return report

    @property
    def answer(self) -> Answer[Any] | None:
        return _load(Answer[self.config_type], self.proposal_file)  # type: ignore[name-defined]

    @property
    def done(self) -> Done | None:
        done: Done | None = _load(Done, self.done_file)
        if done is not None:
            _raise_unless_rates([done.metrics], self.world, self.done_file)
        return done

    def metrics(self) -> list[dict[str, Any]]:
        """Of a stage that is not done also while it is written to."""
        found = checked.lines(self.metrics_file, checked=self.is_done)
        _validated(list[_Measured | _Said], found, self.metrics_file)
        return found

    def transcript(self) -> list[dict[str, Any]]:
        return exchanges_in(self.transcript_file, whole=self.proposal_file.exists())

    def episodes(self) -> list[Episode]:
        """Of the closing validation."""
        return _validated(list[Episode], checked.value(self.episodes_file) or [], self.episodes_file)


def exchanges_in(path: Path, *, whole: bool) -> list[dict[str, Any]]:
    """The lines of a transcript; ``whole`` when its last one was written."""
    found = checked.lines(path, checked=whole)
    _validated(list[Exchange], found, path)
    return found


def runs_below(path: Path) -> list[Path]:
    """The run folders of a study or a comparison, ``ARM/seedN``; empty for any other folder."""
    return sorted(record.parent for record in path.glob("*/seed*/run.json"))


def _what_to_open(path: Path) -> str:
    if held := runs_below(path):
        return f"it holds runs of a comparison, such as {held[0]}; the same `envtuning compare` command continues it"
    return "`envtuning run` makes one"


class RunFolder:
    """A run on the disk: opened from its path, or created from a spec."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / "run.json").is_file():
            raise RunError(f"{path} is not a run folder (it has no run.json): {_what_to_open(self.path)}")
        checked.raise_on_links_out(self.path)
        if not (self.path / checked.NAME).exists():
            raise checked.damaged(self.path / checked.NAME, "is missing, so nothing in this run can be checked")

    @classmethod
    def create(cls, path: str | Path, spec: RunSpec) -> RunFolder:
        """Make the folder, or open it when it already holds the very same spec."""
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file: choose another --out")
        if (path / "run.json").exists():
            existing = cls(path)
            existing.raise_unless_of(spec)
            return existing
        if path.exists() and any(
            not entry.name.startswith(".") for entry in path.iterdir() if entry.name != checked.NAME
        ):
            raise RunError(f"{path} is not empty and is not a run: choose another --out")
        if path.exists():
            checked.raise_on_links_out(path)
        record = RunRecord(created=datetime.now(UTC).isoformat(timespec="seconds"), versions=_versions(), spec=spec)
        raise_unless_it_comes_back(record)
        atomic.make_folder(path)
        checked.begin(path)
        checked.write_record(path / "run.json", record)
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

    def raise_unless_of(self, spec: RunSpec) -> None:
        """Raise ``RunError`` where this is a run of another spec; one that is only described in other words is the same."""
        if self.spec != spec.model_copy(update={"description": self.spec.description}):
            raise self.holds_another()

    def holds_another(self) -> RunError:
        return RunError(f"{self.path} already holds another run: choose another --out, or remove that folder")

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from envtuning.show.console import as_html  # which imports this module

        return as_html(self)

    @property
    def world(self) -> World[Any]:
        return self.spec.world.made

    @property
    def name(self) -> str:
        return self.path.absolute().name  # of "." too

    validation_file = property(lambda self: self.path / "validation.cases")
    test_suite_file = property(lambda self: self.path / "test.cases")
    incidents_file = property(lambda self: self.path / "incidents.jsonl")
    test_file = property(lambda self: self.path / "test.json")
    start = property(lambda self: self.path / "start")

    def film(self, stage: StageFolder, cases: Any, episode: Episode) -> Film | None:
        """The episode of a stage's validation as a film; None where the world has no pictures."""
        try:
            return self.world.film(cases, episode)
        except Exception as error:  # a world may stumble in any way over a trace that it did not write
            why = f"has an episode that cannot be drawn ({type(error).__name__}: {error})"
            raise checked.damaged(stage.episodes_file, why) from error

    def held_out(self, path: Path) -> Any:
        """The cases in one of the two files. Raises ``RunError`` where they are not what was drawn."""
        checked.raise_unless_as_written(path)
        try:
            return self.world.load(path)
        except Exception as error:  # a world's own reader may stumble in any way over what it did not write
            raise RunError(f"{path} is damaged ({type(error).__name__}: {error}): {checked.REMEDY}") from error

    def stage(self, number: int) -> StageFolder:
        return StageFolder(self.path / "stages" / f"{number:02d}", number, self.world)

    @property
    def stages(self) -> list[StageFolder]:
        """The stages begun so far."""
        return list(takewhile(lambda stage: stage.config_file.exists(), map(self.stage, count())))

    @property
    def done_stages(self) -> list[StageFolder]:
        return [stage for stage in self.stages if stage.is_done]

    @property
    def test(self) -> TestRecord | None:
        record: TestRecord | None = _load(TestRecord, self.test_file)
        if record is not None:
            _raise_unless_rates([row.metrics for row in (*record.first, *record.last)], self.world, self.test_file)
            if [row.name for row in record.first] != [row.name for row in record.last]:
                raise checked.damaged(self.test_file, "has other slices before than after")
        return record

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
        found = _validated(list[Incident], checked.lines(self.incidents_file), self.incidents_file)
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
    """The run's next task, a function of its files alone; resuming needs nothing else. None: the run is finished."""
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


def raise_unless_whole(run: RunFolder, *, checkpoints: bool = False) -> None:
    """Read all that a later step stands on. Raises ``RunError`` for what is damaged, and for what is gone though it was used.

    A missing file that can be made again from what is before it is no damage: it is made again. Checkpoints, which may be
    large, are read only where asked for: a loop checks each as it loads it.
    """
    _ = run.test, run.incidents()
    for folder in (run.start, *(stage.checkpoint for stage in run.done_stages)) if checkpoints else ():
        checked.raise_unless_as_written(folder)
    for stage in run.stages:
        following = run.stage(stage.number + 1)
        if not stage.is_done:
            if following.config_file.exists():
                raise RunError(
                    f"{stage.done_file} is missing, and stage {following.number} depends on it: {checked.REMEDY}"
                )
            continue
        for file in (stage.report_file, stage.episodes_file, stage.metrics_file):
            if not file.exists():
                raise RunError(f"{file} is missing, though its stage is complete: {checked.REMEDY}")
        asked = run.spec.stage(following.number).config == "engineer"
        if asked and following.config_file.exists() and not stage.proposal_file.exists():
            raise RunError(
                f"{stage.proposal_file} is missing, and stage {following.number} depends on it: {checked.REMEDY}"
            )
        _ = stage.config, stage.report, stage.answer, stage.done
        stage.metrics(), stage.episodes(), stage.transcript()


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


def raise_unless_it_comes_back(record: RunRecord) -> None:
    """Raise ``RunError`` where a config's class does not read what it writes: later steps would use another config."""
    try:
        if RunRecord.model_validate_json(as_text(record)).spec == record.spec:
            return
        said = "it is another one then"
    except ValidationError as error:
        said = in_sentences(error)
    raise RunError(f"the config does not come back from its own JSON ({said}): mend its validators and serializers")


def _load(model: Any, path: Path) -> Any:
    """The record in a file; None where there is none, also when a stage that starts again takes it away just now."""
    written = checked.read_bytes(path)
    if written is None:
        return None
    try:
        untrusted.parsed(written)  # which has bounds where a model of JSON takes anything
        return model.model_validate_json(written)
    except NotReadable as error:
        raise checked.damaged(path, error) from error
    except ValidationError as error:
        if missing := _missing_world(error):
            remedy = "" if missing.untrusted else "; install the run's world, or start where its module can be imported"
            raise RunError(f"{path}: {in_sentences(error)}{remedy}") from error
        raise RunError(
            f"{path} is damaged or from another version ({in_sentences(error)}): {checked.REMEDY}"
        ) from error


def _validated(kind: Any, found: Any, path: Path) -> Any:
    """What was read from a file, as a value of that type."""
    try:
        return TypeAdapter(kind).validate_python(found)
    except ValidationError as error:
        raise checked.damaged(path, f"is damaged ({in_sentences(error):.300})") from error


def _raise_unless_rates(rows: Iterable[Mapping[str, float]], world: World[Any], path: Path) -> None:
    for row in rows:
        for name in world.about.rates:
            if not 0 <= row.get(name, 0.0) <= 1:
                raise checked.damaged(path, f"has {name}={row[name]:g}, and a rate is from 0 to 1")


def _missing_world(error: ValidationError) -> UnknownWorld | None:
    causes = (fault.get("ctx", {}).get("error") for fault in error.errors())
    return next((cause for cause in causes if isinstance(cause, UnknownWorld)), None)


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in RECORDED_VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
