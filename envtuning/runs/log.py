"""``RunLog``: a run on disk. It is read once, into a ``RunState``. After that, each append writes files and returns the next state.

::

    RUN/run.json             the spec and the versions of what ran it; written once
        checksums.json       the checksums of the files below (see ``checked``)
        validation.cases     the held-out cases that stages are validated on
        test.cases, test.json  the cases opened once after the last stage, and the results on them
        start/               the untrained trainee
        incidents.jsonl      what went wrong outside of a stage
        stages/00/config.json       the Choice: what the stage trains on, and the engineer's proposal for it
                  metrics.jsonl     a line per iteration, validation and incident
                  episodes.json     every validation episode with its trace, for replays
                  checkpoint/       the trainee at the stage's end
                  report.json       the StageReport, without its history: that is the reports before it
                  done.json         written last: with this file the stage is complete
                  transcript.jsonl  the engineer's exchanges about this report

Each append is synced to the disk before it becomes part of the state. So after a kill, ``RunLog.open`` gives the last state.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel, Field

from engineers.knobs import KnobError, validated
from engineers.report import Incident, StageReport
from engineers.shared import own
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.runs import checked, format2
from envtuning.runs.checked import Files, damaged, parsed
from envtuning.runs.plan import Plan
from envtuning.runs.spec import SpecError
from envtuning.runs.state import FORMAT, Choice, RunRecord, RunState, Stage, StageResult, TestRecord
from envtuning.worlds.episodes import Episode
from envtuning.worlds.registry import UnknownWorld
from envtuning.worlds.world import Cases, Film

MISSING = "is missing, though its stage is complete"
RECORDED_VERSIONS = ("mapf-frozenlake", "numpy", "numba", "gymnasium", "pydantic", "ray", "torch")


class _AnyFormat(BaseModel):
    """The fields of run.json in every format."""

    format: int
    versions: dict[str, str] = Field(default_factory=dict)


class RunLog:
    """``state`` is the work done so far. Only the holder of the folder's lock (``atomic.locked``) may append."""

    def __init__(self, path: Path, files: Files, record: RunRecord, plan: Plan) -> None:
        self.path, self.files, self.record, self.plan = path, files, record, plan
        self.state = RunState()
        self._read()

    @classmethod
    def open(cls, path: str | Path, *, trust: Iterable[str] = ()) -> RunLog:
        """The run in a folder. Raises ``RunError`` for damaged files, and for missing files that a later step has used.

        Any other missing file can be made again from earlier files, so it does not count as damage. Of what the folder's files
        name, only what is trusted is imported: ``trust`` adds modules, hosts and options (docs/trust.md).
        """
        own.trust(trust)
        path = Path(path)
        if not (path / "run.json").is_file():
            raise RunError(f"{path} is not a run folder (it has no run.json): {_what_to_open(path)}")
        checked.raise_on_links_out(path)
        files = Files(path)
        record = _run_record(path / "run.json", files)
        return cls(path, files, record, _plan_of(record, path / "run.json"))

    @classmethod
    def create(cls, path: str | Path, plan: Plan) -> RunLog:
        """Make the folder, or open it if it already holds the same run. If several processes call this at once, one makes the folder."""
        path = Path(path)
        if (held := cls._held(path, plan)) is not None:
            return held
        with atomic.locked(atomic.make_folder(path)):
            if (held := cls._held(path, plan)) is not None:  # another process was quicker
                return held
            record = RunRecord(
                created=datetime.now(UTC).isoformat(timespec="seconds"), versions=_versions(), spec=plan.spec
            )
            files = Files.begin(path)
            files.write_record(path / "run.json", record)
            return cls(path, files, _run_record(path / "run.json", files), plan)

    @classmethod
    def _held(cls, path: Path, plan: Plan) -> RunLog | None:
        """The run, if the folder already holds it; None if the folder is free. Raises ``RunError`` if it holds anything else."""
        if (path / "run.json").exists():
            existing = cls.open(path)
            existing.raise_unless_of(plan)
            return existing
        if not path.exists():
            return None
        if not path.is_dir():
            raise RunError(f"{path} is a file: choose another --out")
        if any(not entry.name.startswith(".") and entry.name != checked.NAME for entry in path.iterdir()):
            raise RunError(f"{path} is not empty and is not a run: choose another --out")
        checked.raise_on_links_out(path)
        return None

    def raise_unless_of(self, plan: Plan) -> None:
        """Raise ``RunError`` if this is a run of another spec; the description does not count."""
        if self.plan.spec != plan.spec.model_copy(update={"description": self.plan.spec.description}):
            raise self.holds_another()

    def holds_another(self) -> RunError:
        return RunError(f"{self.path} already holds another run: choose another --out, or remove that folder")

    def __repr__(self) -> str:
        return f"RunLog({str(self.path)!r})"

    @property
    def name(self) -> str:
        return self.path.absolute().name  # "." has no name

    def stage_path(self, number: int) -> Path:
        return self.path / "stages" / f"{number:02d}"

    # Appending

    def chose(self, choice: Choice) -> RunState:
        """The next stage's config is chosen, by an engineer that was asked about the last stage or without one."""
        number = len(self.state.stages)
        if number:
            self.files.note(self.state.stages[-1].transcript_file)
        path = atomic.make_folder(self.stage_path(number))
        self.files.write_record(path / "config.json", choice)
        return self._with_stage(Stage(number, path, choice, self.files))

    def finished(
        self,
        save: Callable[[Path], None],
        episodes: Sequence[Episode],
        report: StageReport,
        result: StageResult,
        trained_on: BaseModel,
    ) -> RunState:
        """The last stage is complete; ``save`` writes the trainee into a folder."""
        stage = self.state.stages[-1]
        with self.files.new_folder(stage.checkpoint) as draft:
            save(draft)
        self.files.note(stage.path / "metrics.jsonl")
        self.files.write_json(stage.path / "episodes.json", [episode.to_json() for episode in episodes])
        self.files.write_record(stage.path / "report.json", report.model_copy(update={"history": []}))
        self.files.write_record(stage.path / "done.json", result)
        return self._with_stage(self._with_results(stage, trained_on))

    def tested(self, record: TestRecord) -> RunState:
        """The test has been played."""
        self.files.write_record(self.path / "test.json", record)
        return self._become(replace(self.state, test=self._read_test()))

    def survived(self, incident: Incident) -> RunState:
        """An incident outside of a stage has been survived."""
        self.files.append_line(self.path / "incidents.jsonl", incident.model_dump())
        return self._become(replace(self.state, survived=self._read_survived()))

    def begin_with(self, source: RunLog) -> RunState:
        """Copy the first stage of another run into this one, with its held-out cases and its untrained trainee."""
        if source.record.format < self.record.format:  # then the copies are of that earlier format
            self._is_of_format(source.record.format)
        for original in (source.path / "start", source.stage_path(0)):
            copy = self.path / original.relative_to(source.path)
            atomic.make_folder(copy.parent)
            if not copy.exists():
                parts = [original] if original.name == "start" else sorted(original.iterdir())
                with atomic.new_folder(copy) as draft:
                    shutil.copytree(original, draft, dirs_exist_ok=True)
                    self.files.note_copies(source.files, {part: copy / part.relative_to(original) for part in parts})
        for original in (source.path / "validation.cases", source.path / "test.cases"):
            copy = self.path / original.name
            if original.exists() and not copy.exists():
                with self.files.new_file(copy) as draft:
                    shutil.copyfile(original, draft)
        return self._read()

    def _with_stage(self, stage: Stage) -> RunState:
        return self._become(replace(self.state, stages=(*self.state.stages[: stage.number], stage)))

    def _become(self, state: RunState) -> RunState:
        self.state = state
        return state

    # Large things

    def cases(self, name: str, draw: Callable[[], Cases] | None = None) -> Cases:
        """The held-out cases of this name, drawn and stored the first time. Raises ``RunError`` if they have changed since."""
        path = self.path / f"{name}.cases"
        if draw is not None and not path.exists():
            cases = draw()
            with self.files.new_file(path) as draft:
                cases.save(draft)
        self.files.raise_unless_as_written(path)
        try:
            return self.plan.world.load(path)
        except Exception as error:  # a world's own reader may raise anything on a file that it did not write
            raise damaged(path, f"is damaged ({type(error).__name__}: {error})") from error

    def film(self, stage: int, cases: Cases, episode: Episode) -> Film | None:
        """The episode of a stage's validation as a film; None where the world has no pictures."""
        try:
            return self.plan.world.film(cases, episode)
        except Exception as error:  # a world may raise anything on a trace that it did not write
            why = f"has an episode that cannot be drawn ({type(error).__name__}: {error})"
            raise damaged(self.stage_path(stage) / "episodes.json", why) from error

    def start(self, save: Callable[[Path], None]) -> Path:
        """The untrained trainee, which ``save`` writes the first time."""
        path = self.path / "start"
        if not path.exists():
            with self.files.new_folder(path) as draft:
                save(draft)
        return path

    def upgrade(self) -> None:
        """Write a folder of an earlier format in today's. If the process dies meanwhile, the folder is still of the earlier one."""
        if self.record.format == format2.FORMAT:
            format2.rewrite(self.files, self.state.stages)
            self._is_of_format(FORMAT)
            format2.remove_the_rest(self.state.stages)

    def _is_of_format(self, number: int) -> None:
        self.record = self.record.model_copy(update={"format": number})
        self.files.replace_record(self.path / "run.json", self.record)

    # Reading

    def refresh(self) -> None:
        """Read the run again if another process has written to it since."""
        if not self.files.is_current():
            self.files = Files(self.path)
            self._read()

    def verify(self, *, checkpoints: bool = False) -> None:
        """Raise ``RunError`` if a large file that a later step needs is damaged or missing.

        Checkpoints are checked only on request, because the loop checks each one when it loads it.
        """
        if checkpoints:
            for folder in (self.path / "start", *(stage.checkpoint for stage in self.state.done)):
                self.files.raise_unless_as_written(folder)
        for stage in self.state.done:
            for name in ("episodes.json", "metrics.jsonl"):
                if not (stage.path / name).exists():
                    raise damaged(stage.path / name, MISSING)
                self.files.raise_unless_as_written(stage.path / name)
            stage.transcript()

    def _read(self) -> RunState:
        self.state = RunState(survived=self._read_survived(), test=self._read_test())
        while (stage := self._read_stage(len(self.state.stages))) is not None:
            self._with_stage(stage)
        return self.state

    def _read_stage(self, number: int) -> Stage | None:
        path, config_type = self.stage_path(number), self.plan.world.config_type
        if self.record.format == format2.FORMAT:
            chosen = format2.choice(self.files, path, self.plan)
        else:
            chosen = self.files.value(path / "config.json", Choice, config_type)
        if chosen is None:
            return None
        if number and self.state.stages[number - 1].done is None:
            raise damaged(self.stage_path(number - 1) / "done.json", f"is missing, and stage {number} depends on it")
        return self._with_results(Stage(number, path, chosen, self.files))

    def _with_results(self, stage: Stage, trained_on: BaseModel | None = None) -> Stage:
        """The stage with its results. A report's history is not stored: it is made of the earlier reports."""
        path = stage.path
        if self.record.format == format2.FORMAT:
            done = format2.result(self.files, path)
        else:
            done = self.files.value(path / "done.json", StageResult)
        if done is None:
            return stage
        self._raise_unless_rates([done.metrics], path / "done.json")
        report = self.files.value(path / "report.json", StageReport)
        if report is None:
            raise damaged(path / "report.json", MISSING)
        self._raise_unless_rates(
            [row.metrics for row in (*report.results, *report.training_results, *report.own_config_results)],
            path / "report.json",
        )
        try:
            if trained_on is None:
                trained_on = validated(self.plan.world.config_type, report.config)
        except KnobError as error:
            raise damaged(path / "report.json", f"has another world's config ({error})") from error
        history = [before.record for before in self.state.stages[: stage.number]]
        return replace(stage, done=done, report=report.model_copy(update={"history": history}), trained_on=trained_on)

    def _read_survived(self) -> tuple[Incident, ...]:
        path = self.path / "incidents.jsonl"
        return tuple(Incident.model_validate(line) for line in self.files.lines(path, Incident))

    def _read_test(self) -> TestRecord | None:
        path = self.path / "test.json"
        record = self.files.value(path, TestRecord)
        if record is not None:
            tables = [record.first, record.last] if record.start is None else [record.start, record.first, record.last]
            self._raise_unless_rates([row.metrics for rows in tables for row in rows], path)
            if any([row.name for row in rows] != [row.name for row in record.last] for rows in tables):
                raise damaged(path, "has other slices for an earlier stage than for the last")
        return record

    def _raise_unless_rates(self, rows: Iterable[Mapping[str, float]], path: Path) -> None:
        for row in rows:
            for name in self.plan.world.about.rates:
                if not 0 <= row.get(name, 0.0) <= 1:
                    raise damaged(path, f"has {name}={row[name]:g}, but a rate is from 0 to 1")


def runs_below(path: Path) -> list[Path]:
    """The run folders of a study or a comparison, ``ARM/seedN``; empty for any other folder."""
    return sorted(record.parent for record in path.glob("*/seed*/run.json"))


def _what_to_open(path: Path) -> str:
    if held := runs_below(path):
        return f"it holds runs of a comparison, such as {held[0]}; the same `envtuning compare` command continues it"
    return "`envtuning run` makes one"


def _run_record(path: Path, files: Files) -> RunRecord:
    written = files.read(path) or b""
    made = parsed(path, written, _AnyFormat)
    if made.format not in (FORMAT, format2.FORMAT):
        raise RunError(
            f"{path.parent} has run format {made.format}, this version reads {format2.FORMAT} and {FORMAT}: use the version that made it "
            f"({made.versions.get('mapf-frozenlake', 'unknown')})"
        )
    record = parsed(path, written, RunRecord)
    own.note_file(record.spec.model_dump(include={"world", "trainee", "engineer"}))
    return record


def _plan_of(record: RunRecord, path: Path) -> Plan:
    try:
        return Plan.stored(record.spec)
    except UnknownWorld as error:
        remedy = "" if error.untrusted else "; install the run's world, or start where its module can be imported"
        raise RunError(f"{path}: {error}{remedy}") from error
    except SpecError as error:
        raise damaged(path, f"is damaged or from another version ({error})") from error


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in RECORDED_VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
