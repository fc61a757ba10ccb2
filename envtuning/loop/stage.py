"""One stage: train in stretches, validate, decide, report. Killed anywhere, it starts again from the checkpoint before it.

A stage's result depends on that checkpoint, its config, its allowance and the run's seed alone.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from engineers.knobs import KnobError, dump, get, with_values
from engineers.report import Incident
from envtuning.loop import inside
from envtuning.loop.contract import (
    TraineeFailed,
    amounts_in,
    held_to,
    raise_unless_spent,
    read_metrics,
    save_checkpoint,
)
from envtuning.loop.observer import Observer, Progress
from envtuning.loop.report import StageOutcome, build_report
from envtuning.loop.transitions import Decision, History
from envtuning.loop.validation import Suites, draw_probe
from envtuning.runs import atomic
from envtuning.runs.folder import Done, RunFolder, StageConfig, StageFolder, closing_cost
from envtuning.runs.seeds import derive
from envtuning.runs.spec import Stage
from envtuning.trainees.base import Metrics, Trainee, TrainingDiverged, WorkerLost
from envtuning.worlds.episodes import Amounts, Episode, rates, total_cost
from envtuning.worlds.world import InfeasibleConfig

FADE_PARTS = 10  # a knob fades in this many equal parts


class RunStopped(RuntimeError):
    """The run cannot go on by itself; the message says what to do. ``resume`` goes on from where it stopped."""


@dataclass
class StageRunner:
    """Runs one stage of a run to its end."""

    run: RunFolder
    folder: StageFolder
    plan: Stage
    chosen: StageConfig[Any]
    allowance: int  # what this stage may spend: its budget, and what earlier stages saved or overspent
    suites: Suites
    load_trainee: Callable[[bool], Trainee]  # as it was before this stage; True: in new processes
    observer: Observer
    spent: Counter[str] = field(default_factory=Counter)  # by unit, attempts that diverged included
    incidents: list[Incident] = field(default_factory=list)

    def go(self) -> None:
        """Afterwards the stage is done. Raises ``RunStopped`` when it failed too often."""
        begin = time.monotonic()
        config, renew = self.chosen.config, False
        interrupted = inside.latest(self.folder.path)
        if interrupted is not None:
            config = type(config).model_validate(interrupted.state.config)
            self.incidents, self.spent = list(interrupted.state.incidents), Counter(interrupted.state.spent)
        for attempt in range(interrupted.state.attempt if interrupted else 0, 1 + self.run.spec.retries):
            if interrupted is None:
                atomic.clear(self.folder.path, keep=(self.folder.config_file.name,))
                for incident in self.incidents:
                    self.note("incident", message=incident.message)
            self.observer.stage_began(self.folder, self.allowance)
            before = self.spent.copy()
            try:
                tried = Attempt(self, config, self.load_trainee(renew), attempt)
                if interrupted is not None:
                    tried.go_on_from(interrupted)
                    interrupted = None
                outcome = tried.go()
            except (TrainingDiverged, InfeasibleConfig, WorkerLost, TraineeFailed) as error:
                config, renew = self._survive(error, config)
                if isinstance(error, WorkerLost | TraineeFailed):
                    self.spent = before  # no fault of the config's: the stage is repeated as if nothing had been
                continue
            self._finish(tried.trainee, outcome, attempt + 1, time.monotonic() - begin)
            return
        faults = "; ".join(incident.message for incident in self.incidents[-1 - self.run.spec.retries :])
        raise RunStopped(
            f"stage {self.folder.number} failed {1 + self.run.spec.retries} times ({faults}). The stages before it stand: "
            f"lower the learning rate or change the config in a new run, or mend the cause and "
            f"`envtuning resume {self.run.path}`"
        )

    def _survive(self, error: Exception, config: Any) -> tuple[Any, bool]:
        """Record what happened; the config to try next, and whether the trainee needs new processes."""
        if isinstance(error, WorkerLost):
            self.record("worker_lost", f"{error}; the stage starts again from its checkpoint")
            return config, True
        if isinstance(error, TraineeFailed):
            self.record("trainee_failed", f"{error}; the stage starts again from its checkpoint")
            return config, True
        good = self._last_good_config()
        if isinstance(error, InfeasibleConfig):
            self.record("generation_failed", f"{error}; the last good config goes on")
            if good is None or good == config:
                raise RunStopped(f"stage {self.folder.number}'s config cannot be drawn: {error}") from error
            return good, False
        self.record("diverged", f"{error}; the last good checkpoint and config go on")
        return good or config, False

    def _last_good_config(self) -> Any | None:
        if self.folder.number == 0:
            return None
        report = self.run.stage(self.folder.number - 1).report
        return self.run.world.config_type.model_validate(report.config) if report else None

    def record(self, kind: Any, message: str) -> None:
        incident = Incident(kind=kind, message=message, stage=self.folder.number)
        self.incidents.append(incident)
        self.observer.went_wrong(incident)

    def note(self, kind: str, **values: object) -> None:
        atomic.append_line(self.folder.metrics_file, {"kind": kind, **values})

    def _finish(self, trainee: Trainee, outcome: StageOutcome, attempts: int, seconds: float) -> None:
        inside.remove(inside.folders(self.folder.path))
        try:
            with atomic.new_folder(self.folder.checkpoint) as draft:
                save_checkpoint(trainee.save, draft)
        except TraineeFailed as error:
            raise RunStopped(f"stage {self.folder.number} is trained, but {error}; mend it and resume") from error
        atomic.write_json(self.folder.episodes_file, [episode.to_json() for episode in outcome.episodes])
        report = build_report(self.run, self.suites.validation, outcome)
        atomic.write_text(self.folder.report_file, report.model_dump_json(indent=1) + "\n")
        done = Done(
            reason=outcome.reason,
            spent=dict(self.spent),
            trained=outcome.trained,
            validated=outcome.validated,
            attempts=attempts,
            seconds=round(seconds, 3),
            metrics=rates(outcome.episodes),
        )
        atomic.write_text(self.folder.done_file, done.model_dump_json(indent=1) + "\n")
        self.observer.stage_ended(self.folder)


class Attempt:
    """One try at a stage with one config."""

    def __init__(self, runner: StageRunner, config: Any, trainee: Trainee, number: int = 0) -> None:
        self.runner, self.config, self.trainee, self.number = runner, config, trainee, number
        self.spec, self.world = runner.run.spec, runner.run.world
        self.unit = self.spec.unit
        # A stage that diverged draws anew; one that lost a worker repeats itself.
        again = ("worker_lost", "trainee_failed", "policy_failed", "odd_metrics")
        self.draw = sum(incident.kind not in again for incident in runner.incidents)
        self.closing_cost = closing_cost(runner.run, runner.folder.number)
        self.history = History(unit=self.unit, objective=self.world.about.objective)
        self.trained: Counter[str] = Counter()
        self.validated: Counter[str] = Counter()
        self.episodes: Sequence[Episode] = []
        self.said: set[str] = set()  # sentences about odd metrics and policies, each recorded once
        self.stretch = 0  # how many stretches of training are behind us

    def go(self) -> StageOutcome:
        runner, suites = self.runner, self.spec.suites
        unvalidated = 0
        decision = Decision(False, "")
        while (left := self._left()) > 0:
            until_validation = suites.validate_every - unvalidated if suites.validate_every else left
            unvalidated += self._train(min(left, until_validation, self._until_next_fade()), self.stretch)
            self.stretch += 1
            if suites.validate_every and unvalidated >= suites.validate_every:
                decision = self._validate_and_decide()
                unvalidated = 0
                if decision.advance:
                    break
                if self._left() > 0 and getattr(self.trainee, "checkpoints_inside", False):
                    self._checkpoint()
        if not self.episodes or unvalidated:
            decision = self._validate_and_decide()
        spent_all = f"the budget of {runner.allowance:,} {self.unit.replace('_', ' ')} is spent"
        reason = decision.reason if decision.advance else spent_all
        if not decision.advance and decision.reason:
            reason += f" ({decision.reason})"
        runner.note("end", reason=reason)
        probe = draw_probe(self.spec, self.config, self._seed("probe"), runner.suites.held_out)
        probe_episodes = self._play(probe, self._faded()) if probe is not None else []
        return StageOutcome(
            number=runner.folder.number,
            chosen=runner.chosen,
            trained_on=self.config,
            episodes=self.episodes,
            probe=probe,
            probe_episodes=probe_episodes,
            history=self.history,
            reason=reason,
            trained=dict(self.trained),
            validated=dict(self.validated),
            incidents=runner.incidents,
        )

    def _checkpoint(self) -> None:
        """Keep what this attempt knows, so that a killed process need not begin the stage anew."""
        runner, history = self.runner, self.history
        state = inside.Inside(
            attempt=self.number,
            config=self.config.model_dump(mode="json"),
            stretch=self.stretch,
            lines=len(runner.folder.metrics()),
            spent=dict(runner.spent),
            trained=dict(self.trained),
            validated=dict(self.validated),
            history_spent=history.spent,
            iterations=history.iterations,
            validations=history.validations,
            incidents=runner.incidents,
            said=sorted(self.said),
        )
        with held_to("save"):
            inside.keep(runner.folder.path, state, self.trainee.save)

    def go_on_from(self, interrupted: inside.Interrupted) -> None:
        """Become the attempt that a killed process was at."""
        state = interrupted.state
        with held_to("load"):
            self.trainee.load(interrupted.trainee)
        self.stretch, self.said = state.stretch, set(state.said)
        self.trained, self.validated = Counter(state.trained), Counter(state.validated)
        self.history.spent, self.history.iterations = state.history_spent, list(state.iterations)
        self.history.validations = list(state.validations)

    def _left(self) -> int:
        """What is left to train with once the closing validation and probe are paid, as far as is known."""
        return self.runner.allowance - self.runner.spent[self.unit] - self.closing_cost

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.spec.seed, "stage", self.runner.folder.number, self.draw, *purpose)

    # Training

    def _train(self, amount: int, stretch: int) -> int:
        """Train a stretch; returns what it really spent, in the budget's unit."""
        before = self.trained.copy()
        with held_to("train"):
            given = self.trainee.train(
                self._faded(), amount, seed=self._seed("train", stretch), on_iteration=self._on_iteration
            )
        returned = self._read(given, "train")
        told = self.trained - before
        rest = Counter(amounts_in(returned, "train")) - told
        if rest:  # spent, and not told to on_iteration
            self._charge(rest, self.trained)
            if not told:
                self._take_in(returned)
        raise_unless_spent(self.trained - before, self.unit, amount)
        return (self.trained - before)[self.unit]

    def _on_iteration(self, given: Metrics) -> None:
        metrics = self._read(given, "on_iteration")
        self._charge(amounts_in(metrics, "on_iteration"), self.trained)
        self._take_in(metrics)

    def _read(self, given: Any, method: str) -> Metrics:
        metrics, odd = read_metrics(given, method)
        for sentence in odd:
            self._say_once("odd_metrics", sentence)
        return metrics

    def _take_in(self, metrics: Metrics) -> None:
        """An iteration: into the history and the metrics file. Raises ``TrainingDiverged``."""
        runner = self.runner
        for name in ("grad_norm", "loss"):
            if not math.isfinite(metrics.get(name, 0.0)):
                unit = self.unit.replace("_", " ")
                raise TrainingDiverged(
                    f"{name} became {metrics[name]} after {self.trained[self.unit]:,} {unit} of the stage"
                )
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        if lost := int(finite.get("workers_lost", 0)):
            runner.record("worker_lost", f"{lost} worker(s) died and were replaced")
        self.history.iterations.append(finite)
        collapse = getattr(self.trainee, "collapse", None)
        if collapse is not None and "collapsed" not in self.said and (why := collapse(self.history.iterations)):
            self.said.add("collapsed")
            runner.record(
                "collapsed", f"{why}; what is learnt from here on is of little use: a shorter stage, or more KL"
            )
        runner.note("iteration", spent=runner.spent[self.unit], **finite)
        runner.observer.progressed(
            Progress(runner.folder.number, runner.spent[self.unit], runner.allowance, self.unit, finite)
        )

    def _charge(self, amounts: Amounts, account: Counter[str]) -> None:
        account.update(amounts)
        self.runner.spent.update(amounts)
        self.history.spent += amounts.get(self.unit, 0)

    def _say_once(self, kind: str, sentence: str) -> None:
        if sentence not in self.said:
            self.said.add(sentence)
            self.runner.record(kind, sentence)

    # Validation

    def _play(self, cases: Any, rules: Any) -> Sequence[Episode]:
        with held_to("policy"):
            policy = self.trainee.policy()
            episodes = self.world.play(policy, cases, rules, seed=derive(self.spec.suites.seed, "play"))
        self._charge(total_cost(episodes), self.validated)
        raised = [episode for episode in episodes if episode.failure == "policy_error"]
        if raised:
            counted = f"{len(raised)} of {len(episodes)}"
            self._say_once(
                "policy_failed", f"the policy raised an error on {counted} cases, the first: {raised[0].note}"
            )
        return episodes

    def _validate_and_decide(self) -> Decision:
        runner = self.runner
        rules = self.world.validated_as(self.spec.target, self._faded())
        self.episodes = self._play(runner.suites.validation, rules)
        found = rates(self.episodes)
        self.history.validations.append(found)
        runner.note("validation", spent=runner.spent[self.unit], **found)
        runner.observer.validated(runner.folder, found)
        rule = runner.plan.advance_when
        return rule.decide(self.history) if rule is not None else Decision(False, "")

    # Fading

    def _progress(self) -> float:
        """The part of the stage's training that is behind us, 0 to 1."""
        return self.history.spent / max(1, self.history.spent + self._left())

    def _faded(self) -> Any:
        """The config with the fading knob where it is now."""
        fade = self.runner.plan.fade
        if fade is None:
            return self.config
        path = tuple(fade.knob.split("."))
        own = get(dump(self.config), path)
        passed = math.floor(min(1.0, self._progress() / fade.over) * FADE_PARTS) / FADE_PARTS
        value = fade.start + passed * (own - fade.start)
        return with_values(self.config, {path: round(value) if isinstance(own, int) else value})

    def _until_next_fade(self) -> int:
        fade = self.runner.plan.fade
        if fade is None or self._progress() >= fade.over:
            return self._left()
        return max(1, round(fade.over / FADE_PARTS * (self.history.spent + self._left())))


def raise_unless_fades(plan: Stage, config: Any) -> None:
    """Raises ``KnobError`` where the stage's fading knob is no number of the config, or may not have its first value."""
    if plan.fade is None:
        return
    path = tuple(plan.fade.knob.split("."))
    try:
        own = get(dump(config), path)
    except (KeyError, IndexError, TypeError, ValueError):
        own = None
    if isinstance(own, bool) or not isinstance(own, int | float):
        raise KnobError(
            f"fade.knob={plan.fade.knob!r} is no number of {type(config).__name__}: name one by its dotted path"
        )
    with_values(config, {path: round(plan.fade.start) if isinstance(own, int) else plan.fade.start})
