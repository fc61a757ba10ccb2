"""One stage: train in stretches, validate, decide, report. Killed anywhere, it starts again from the checkpoint before it.

A stage's result depends on that checkpoint, its config, its allowance and the run's seed alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from engineers.report import Incident
from envtuning.loop.observer import Observer, Progress
from envtuning.loop.report import StageOutcome, build_report
from envtuning.loop.transitions import Decision, History
from envtuning.loop.validation import Suites, draw_probe
from envtuning.runs import atomic
from envtuning.runs.folder import Done, RunFolder, StageConfig, StageFolder
from envtuning.runs.seeds import derive
from envtuning.runs.spec import Stage
from envtuning.trainees.base import Metrics, Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.lakes.episodes import Episode, rates
from envtuning.worlds.lakes.play import play
from mapf_frozenlake import GenerationError, LakeConfig
from mapf_frozenlake.instance_set import InstanceSet

FADE_PARTS = 10  # hints fade in this many equal parts


class RunStopped(RuntimeError):
    """The run cannot go on by itself; the message says what to do. ``resume`` goes on from where it stopped."""


@dataclass
class StageRunner:
    """Runs one stage of a run to its end."""

    run: RunFolder
    folder: StageFolder
    plan: Stage
    chosen: StageConfig
    allowance: int  # env steps this stage may spend: its budget, and what earlier stages saved or overspent
    suites: Suites
    load_trainee: Callable[[bool], Trainee]  # as it was before this stage; True: in new processes
    observer: Observer
    spent: int = 0  # attempts that diverged included
    incidents: list[Incident] = field(default_factory=list)

    def go(self) -> None:
        """Afterwards the stage is done. Raises ``RunStopped`` when it failed too often."""
        begin = time.monotonic()
        config, renew = self.chosen.config, False
        for attempt in range(1 + self.run.spec.retries):
            atomic.clear(self.folder.path, keep=(self.folder.config_file.name,))
            for incident in self.incidents:
                self._note("incident", message=incident.message)
            self.observer.stage_began(self.folder, self.allowance)
            before = self.spent
            try:
                tried = Attempt(self, config, self.load_trainee(renew))
                outcome = tried.go()
            except (TrainingDiverged, GenerationError, WorkerLost) as error:
                config, renew = self._survive(error, config)
                if isinstance(error, WorkerLost):
                    self.spent = before  # the machine's fault: the stage is repeated as if nothing had been
                continue
            self._finish(tried.trainee, outcome, attempt + 1, time.monotonic() - begin)
            return
        faults = "; ".join(incident.message for incident in self.incidents[-1 - self.run.spec.retries :])
        raise RunStopped(
            f"stage {self.folder.number} failed {1 + self.run.spec.retries} times ({faults}). The stages before it stand: "
            f"lower the learning rate or change the config in a new run, or mend the cause and "
            f"`envtuning resume {self.run.path}`"
        )

    def _survive(self, error: Exception, config: LakeConfig) -> tuple[LakeConfig, bool]:
        """Record what happened; the config to try next, and whether the trainee needs new processes."""
        if isinstance(error, WorkerLost):
            self._record("worker_lost", f"{error}; the stage starts again from its checkpoint")
            return config, True
        good = self._last_good_config()
        if isinstance(error, GenerationError):
            self._record("generation_failed", f"{error}; the last good config goes on")
            if good is None or good == config:
                raise RunStopped(f"stage {self.folder.number}'s config cannot be drawn: {error}") from error
            return good, False
        self._record("diverged", f"{error}; the last good checkpoint and config go on")
        return good or config, False

    def _last_good_config(self) -> LakeConfig | None:
        if self.folder.number == 0:
            return None
        report = self.run.stage(self.folder.number - 1).report
        return LakeConfig.model_validate(report.config) if report else None

    def _record(self, kind: Any, message: str) -> None:
        incident = Incident(kind=kind, message=message, stage=self.folder.number)
        self.incidents.append(incident)
        self.observer.went_wrong(incident)

    def _note(self, kind: str, **values: object) -> None:
        atomic.append_line(self.folder.metrics_file, {"kind": kind, **values})

    def _finish(self, trainee: Trainee, outcome: StageOutcome, attempts: int, seconds: float) -> None:
        with atomic.new_folder(self.folder.checkpoint) as draft:
            trainee.save(draft)
        atomic.write_json(self.folder.episodes_file, [episode.to_json() for episode in outcome.episodes])
        report = build_report(self.run, self.suites.validation, outcome)
        atomic.write_text(self.folder.report_file, report.model_dump_json(indent=1) + "\n")
        done = Done(
            reason=outcome.reason,
            env_steps=self.spent,
            train_steps=outcome.train_steps,
            validation_steps=outcome.validation_steps,
            attempts=attempts,
            seconds=round(seconds, 3),
            metrics=rates(outcome.episodes),
        )
        atomic.write_text(self.folder.done_file, done.model_dump_json(indent=1) + "\n")
        self.observer.stage_ended(self.folder)


class Attempt:
    """One try at a stage with one config."""

    def __init__(self, runner: StageRunner, config: LakeConfig, trainee: Trainee) -> None:
        self.runner, self.config, self.trainee = runner, config, trainee
        # A stage that diverged draws anew; one that lost a worker repeats itself.
        self.draw = sum(incident.kind != "worker_lost" for incident in runner.incidents)
        self.closing_cost = closing_cost(runner.run, runner.folder.number)
        self.history = History()
        self.train_steps = self.validation_steps = 0
        self.episodes: list[Episode] = []

    def go(self) -> StageOutcome:
        runner, suites = self.runner, self.runner.run.spec.suites
        stretch, unvalidated = 0, 0
        decision = Decision(False, "")
        while (left := self._left()) > 0:
            until_validation = suites.validate_every - unvalidated if suites.validate_every else left
            unvalidated += self._train(min(left, until_validation, self._until_next_fade()), stretch)
            stretch += 1
            if suites.validate_every and unvalidated >= suites.validate_every:
                decision = self._validate_and_decide()
                unvalidated = 0
                if decision.advance:
                    break
        if not self.episodes or unvalidated:
            decision = self._validate_and_decide()
        reason = decision.reason if decision.advance else f"the budget of {runner.allowance:,} env steps is spent"
        if not decision.advance and decision.reason:
            reason += f" ({decision.reason})"
        runner._note("end", reason=reason)
        probe = draw_probe(self.config, suites.probe_per_size, self._seed("probe"), runner.suites.held_out)
        probe_episodes = self._play(probe) if probe is not None else []
        return StageOutcome(
            number=runner.folder.number,
            chosen=runner.chosen,
            trained_on=self.config,
            episodes=self.episodes,
            probe=probe,
            probe_episodes=probe_episodes,
            history=self.history,
            reason=reason,
            train_steps=self.train_steps,
            validation_steps=self.validation_steps,
            incidents=runner.incidents,
        )

    def _left(self) -> int:
        """Env steps of training that are left once the closing validation and probe are paid, as far as is known."""
        return self.runner.allowance - self.runner.spent - self.closing_cost

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.runner.run.spec.seed, "stage", self.runner.folder.number, self.draw, *purpose)

    def _train(self, steps: int, stretch: int) -> int:
        """Train a stretch; returns the env steps it really took."""
        before = self.train_steps
        config = self.config.model_copy(update={"hint_strength": self._hint_strength()})
        self.trainee.train(config, steps, seed=self._seed("train", stretch), on_iteration=self._on_iteration)
        return self.train_steps - before

    def _on_iteration(self, metrics: Metrics) -> None:
        runner = self.runner
        steps = int(metrics.get("env_steps", 0))
        self.train_steps += steps
        self._charge(steps)
        for name in ("grad_norm", "loss"):
            if not math.isfinite(metrics.get(name, 0.0)):
                raise TrainingDiverged(
                    f"{name} became {metrics[name]} after {self.train_steps:,} env steps of the stage"
                )
        if lost := int(metrics.get("workers_lost", 0)):
            runner._record("worker_lost", f"{lost} worker(s) died and were replaced")
        finite = {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
        self.history.iterations.append(finite)
        runner._note("iteration", spent=runner.spent, **finite)
        runner.observer.progressed(Progress(runner.folder.number, runner.spent, runner.allowance, finite))

    def _charge(self, steps: int) -> None:
        self.runner.spent += steps
        self.history.env_steps += steps

    def _play(self, suite: InstanceSet) -> list[Episode]:
        rules = self.runner.run.spec.target.model_copy(update={"hint_strength": self._hint_strength()})
        episodes = play(self.trainee.policy(), suite, rules)
        steps = sum(episode.steps for episode in episodes)
        self.validation_steps += steps
        self._charge(steps)
        return episodes

    def _validate_and_decide(self) -> Decision:
        runner = self.runner
        self.episodes = self._play(runner.suites.validation)
        found = rates(self.episodes)
        self.history.validations.append(found)
        runner._note("validation", spent=runner.spent, **found)
        runner.observer.validated(runner.folder, found)
        rule = runner.plan.advance_when
        return rule.decide(self.history) if rule is not None else Decision(False, "")

    def _progress(self) -> float:
        """The part of the stage's training that is behind us, 0 to 1."""
        return self.history.env_steps / max(1, self.history.env_steps + self._left())

    def _hint_strength(self) -> float:
        """From full to the config's own strength while the hints fade."""
        if not self.runner.plan.fade_hints:
            return self.config.hint_strength
        faded = min(1.0, self._progress() / self.runner.plan.fade_hints)
        faded = math.floor(faded * FADE_PARTS) / FADE_PARTS
        return 1.0 + faded * (self.config.hint_strength - 1.0)

    def _until_next_fade(self) -> int:
        fade = self.runner.plan.fade_hints
        if not fade or self._progress() >= fade:
            return self._left()
        return max(1, round(fade / FADE_PARTS * (self.history.env_steps + self._left())))


def closing_cost(run: RunFolder, number: int) -> int:
    """What the validation and probe after this stage will cost, by what the last stage's cost; 0 before the first."""
    if number == 0:
        return 0
    done = run.stage(number - 1).done
    validations = max(1, sum(line["kind"] == "validation" for line in run.stage(number - 1).metrics()))
    return done.validation_steps // validations if done else 0
