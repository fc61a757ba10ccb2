"""The loop: choose a config, train, validate, report, ask, and once at the end open the test suite.

``continue_run`` looks at the folder, does the one thing that is due, and looks again. It keeps nothing between two looks that is not
on the disk, so a first start and a resumption after a kill are the same code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engineers.knobs import KnobError, find_knobs
from engineers.report import Incident
from envtuning.loop import contract
from envtuning.loop.ask import ask, raise_unless_askable, redraw
from envtuning.loop.contract import TraineeFailed, held_to, load_checkpoint, save_checkpoint
from envtuning.loop.fading import raise_unless_fades
from envtuning.loop.observer import Observer, Observers
from envtuning.loop.stage import RunStopped, StageRunner
from envtuning.loop.transitions import Rule
from envtuning.loop.validation import Suites, open_suites
from envtuning.runs import atomic, checked
from envtuning.runs.folder import (
    Choose,
    RunError,
    RunFolder,
    StageConfig,
    Test,
    TestRecord,
    Train,
    next_task,
    raise_unless_whole,
)
from envtuning.runs.seeds import derive
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.trainees import arguments_of, make_trainee, raise_unless_makeable, reported_by
from envtuning.trainees.base import Trainee, WorkerLost
from envtuning.worlds.episodes import slice_results


def create(folder: str | Path, spec: RunSpec) -> RunFolder:
    """A new run's folder, made only when its trainee and its engineer can be had; or the folder that holds this very run."""
    if not (Path(folder) / "run.json").exists():
        raise_unless_runnable(spec)
    return RunFolder.create(folder, spec)


def raise_unless_runnable(spec: RunSpec) -> None:
    """Find out before the first stage what would stop a later one: trainee, engineer, rules and fades."""
    raise_unless_makeable(spec.trainee.kind, spec.trainee.options, spec.world.made, spec.target, spec.unit)
    raise_unless_editable(spec)
    raise_unless_askable(spec)
    for number, stage in enumerate(spec.stages):
        raise_unless_asked(spec, f"stages.{number}.advance_when", stage.advance_when)
        try:
            raise_unless_fades(stage, spec.target if stage.config == "engineer" else stage.config)
        except ValueError as error:
            raise SpecError(f"stages.{number}.{error}") from error


def raise_unless_asked(spec: RunSpec, place: str, rule: Rule | None) -> None:
    """Raises ``SpecError`` for a rule that could not end its stage: it is never asked, or nobody has the metric that it looks at."""
    if rule is None:
        return
    trained, validated = reported_by(spec.trainee.kind), spec.world.made.reports
    if missing := rule.needs() - trained if trained is not None else None:
        raise SpecError(
            f"{place} needs {', '.join(sorted(missing))}, and trainee {spec.trainee.kind!r} reports "
            f"only {', '.join(sorted(trained or ()))}: choose another rule"
        )
    if missing := rule.looks_at() - validated if validated is not None else None:
        raise SpecError(
            f"{place} looks at {', '.join(sorted(missing))}, and the world {spec.world.name!r} has "
            f"{', '.join(sorted(validated or ()))}"
        )
    if spec.suites.validate_every is None:
        raise SpecError(
            f"{place} is asked at each validation inside a stage, and suites.validate_every is null: give it an amount, or leave "
            "the rule out"
        )


def raise_unless_editable(spec: RunSpec) -> None:
    """Raises ``SpecError`` where a path of ``editable`` is no knob of a config that engineers may be given."""
    given = [stage.config for stage in spec.stages if stage.config != "engineer"]  # never the target itself
    for config in given if spec.editable is not None else ():
        try:
            find_knobs(config, spec.editable)
        except KnobError as error:
            raise SpecError(f"editable: {error}") from error


def start(spec: RunSpec, folder: str | Path, observer: Observer | None = None) -> RunFolder:
    """Run a spec to its end in a new folder; a folder that already holds this very run is continued."""
    run = create(folder, spec)
    continue_run(run, observer)
    return run


def resume(folder: str | Path, observer: Observer | None = None) -> RunFolder:
    """Continue a run that was interrupted; it ends as if it had not been."""
    run = RunFolder(folder)
    continue_run(run, observer)
    return run


def continue_run(run: RunFolder, observer: Observer | None = None, *, stages: int | None = None) -> None:
    """Do what is left to do, at most up to the given number of stages."""
    with atomic.locked(run.path):
        raise_unless_whole(run)
        raise_unless_askable(run.spec)
        observer = Observers([observer] if observer is not None else [])
        observer.run_began(run)
        loop = _Loop(run, observer)
        try:
            while (task := next_task(run)) is not None:
                if stages is not None and (isinstance(task, Test) or task.stage >= stages):
                    return
                loop.do(task)
        finally:
            try:
                loop.close()
            finally:
                observer.run_left()


class _Loop:
    """The processes and arrays that a run needs while it runs; nothing in here is the run's state."""

    def __init__(self, run: RunFolder, observer: Observer) -> None:
        self.run, self.spec, self.world, self.observer = run, run.spec, run.world, observer
        self.trainee: Trainee | None = None
        self._suites: Suites | None = None

    @property
    def suites(self) -> Suites:
        if self._suites is None:
            self._suites = open_suites(self.run)
        return self._suites

    def do(self, task: Choose | Train | Test) -> None:
        if isinstance(task, Choose):
            self.choose(task.stage)
        elif isinstance(task, Train):
            self.train(task.stage)
        else:
            self.test()

    def close(self) -> None:
        """Give the trainee's processes back; one that fails at that has done its work all the same."""
        trainee, self.trainee = self.trainee, None
        if trainee is None:
            return
        try:
            contract.close(trainee)
        except TraineeFailed as error:
            self.record("trainee_failed", str(error))

    def record(self, kind: Any, message: str) -> None:
        """Something that went wrong outside of a stage and was survived."""
        incident = Incident(kind=kind, message=message, stage=max(0, len(self.run.done_stages) - 1))
        checked.append_line(self.run.incidents_file, incident.model_dump())
        self.observer.went_wrong(incident)

    def choose(self, number: int) -> None:
        """Settle what the stage trains on and put it on the disk."""
        plan, folder = self.spec.stage(number), self.run.stage(number)
        chosen_by = StageConfig[folder.config_type]  # type: ignore[name-defined]
        if plan.config != "engineer":
            config = redraw(self.spec, plan.config) if plan.redraw else plan.config
            chosen = chosen_by(name=plan.name, config=config, engineer="default" if number == 0 else "file")
        else:
            before = self.run.stage(number - 1)
            self.observer.engineer_asked(before, self.spec.engineer.name)
            answer = ask(self.run, before, lambda: self.trainee_before(number))
            self.observer.engineer_answered(before, answer)
            for incident in answer.incidents:
                self.observer.went_wrong(incident)
            by = answer.proposal.engineer if answer.proposal else ""  # a replay has the recorded engineer's name
            chosen = chosen_by(name=plan.name, config=answer.config, engineer=by or self.spec.engineer.name)
        atomic.make_folder(folder.path)
        checked.write_record(folder.config_file, chosen)

    def train(self, number: int) -> None:
        folder = self.run.stage(number)
        chosen = folder.config
        assert chosen is not None, "a stage is trained after its config was chosen"
        self.slim(number - 1)
        StageRunner(
            run=self.run,
            folder=folder,
            plan=self.spec.stage(number),
            chosen=chosen,
            allowance=self.spec.allowed(number) - self.run.budget_spent,
            suites=self.suites,
            load_trainee=lambda renew: self.trainee_before(number, renew),
            observer=self.observer,
        ).run_to_end()

    def slim(self, kept: int) -> None:
        """Let the trainee take out of older checkpoints what only training on from them needs: moments of gigabytes, say."""
        slim = getattr(self.trainee, "slim", None)
        if slim is None:
            return
        for earlier in range(kept):
            checkpoint = self.run.stage(earlier).checkpoint
            if checkpoint.is_dir():
                try:
                    with checked.changing(checkpoint), held_to("slim"):
                        slim(checkpoint)
                except TraineeFailed as error:  # it takes more room, and nothing else is lost
                    self.record("trainee_failed", str(error))
                    return

    def trainee_before(self, number: int, renew: bool = False) -> Trainee:
        """The trainee as the stage before left it, always from the disk: a resumed stage begins exactly like this."""
        if renew:
            self.close()
        if self.trainee is None:
            self.trainee = make_trainee(
                self.spec.trainee.kind,
                exclude=self.suites.held_out,
                **arguments_of(self.spec),
            )
        try:
            if not self.run.start.exists():
                with checked.new_folder(self.run.start) as draft:
                    save_checkpoint(self.trainee.save, draft)
            checkpoint = self.run.start if number == 0 else self.run.stage(number - 1).checkpoint
            if not checkpoint.is_dir():
                raise RunError(f"{checkpoint} is gone, and stage {number} begins from it: bring it back from a copy")
            load_checkpoint(self.trainee, checkpoint)
        except TraineeFailed as error:
            raise RunStopped(f"trainee {self.spec.trainee.kind!r} cannot begin stage {number}: {error}") from error
        return self.trainee

    def test(self) -> None:
        """Open the test suite, once, for the first stage's trainee and the last one's."""
        suite = self.suites.test
        assert suite is not None, "a run without a test suite has no test to open"
        self.observer.test_opened(len(suite))
        self.slim(len(self.run.done_stages) - 1)
        tables = {}
        for name, number in (("first", 1), ("last", len(self.run.done_stages))):
            try:
                trainee = self.trainee_before(number)
                with held_to("policy"):
                    seed = derive(self.spec.suites.seed, "play the test")
                    episodes = self.world.play(trainee.policy(), suite, self.spec.target, seed=seed)
            except (TraineeFailed, WorkerLost) as error:
                raise RunStopped(f"the test of {self.run.path} could not be played: {error}") from error
            tables[name] = slice_results(episodes)
        checked.write_record(self.run.test_file, TestRecord(**tables))
