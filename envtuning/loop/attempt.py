"""One try at a stage with one config: train in stretches, validate, decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engineers.knobs import dump
from envtuning.loop import inside
from envtuning.loop.contract import amounts_in, as_trainee_failed, raise_unless_spent, read_metrics
from envtuning.loop.observer import Progress
from envtuning.loop.report import StageOutcome
from envtuning.loop.validation import draw_probe
from envtuning.runs.fading import faded, until_next_part
from envtuning.runs.seeds import derive
from envtuning.runs.tasks import closing_cost
from envtuning.runs.transitions import Decision, History
from envtuning.trainees.base import Metrics, Trainee, TrainingDiverged
from envtuning.worlds.episodes import Amounts, Episode, rates, total_cost

if TYPE_CHECKING:
    from envtuning.loop.stage import StageRunner


DRAWN_ANEW = ("diverged", "generation_failed")  # incidents after which the same seeds would fail in the same way


class Attempt:
    """One try at a stage with one config."""

    def __init__(self, runner: StageRunner, config: Any, trainee: Trainee, number: int) -> None:
        self.runner, self.config, self.trainee, self.number = runner, config, trainee, number
        self.spec, self.world = runner.log.plan.spec, runner.log.plan.world
        self.unit = runner.log.plan.unit
        # Other incidents keep the same seed: an attempt that repeats or continues another needs its seeds.
        self.draw = sum(incident.kind in DRAWN_ANEW for incident in runner.incidents)
        self.closing_cost = closing_cost(runner.log.plan, runner.log.state, runner.stage.number)
        self.history = History(unit=self.unit, objective=self.world.about.objective)
        self.trained: Counter[str] = Counter()
        self.validated: Counter[str] = Counter()
        self.episodes: Sequence[Episode] = []
        self.said: set[str] = set()  # sentences about odd metrics and policies, each recorded once
        self.stretch = 0  # how many stretches of training are behind us

    def run_to_end(self) -> StageOutcome:
        runner, suites = self.runner, self.spec.suites
        unvalidated = 0
        while (left := self._left()) > 0:
            until_validation = suites.validate_every - unvalidated if suites.validate_every else left
            unvalidated += self._train(min(left, until_validation, self._until_next_fade()), self.stretch)
            self.stretch += 1
            if suites.validate_every and unvalidated >= suites.validate_every:
                decision = self._validate_and_decide()
                unvalidated = 0
                if decision.advance:
                    break
                if self._left() > 0 and self.trainee.checkpoints_inside:
                    self._checkpoint()
        if not self.stretch:
            self._say_once("not_trained", self._why_not_trained())
        if not self.episodes or unvalidated:
            decision = self._validate_and_decide()
        spent_all = f"the budget of {max(0, runner.allowance):,} {self.unit.replace('_', ' ')} is spent"
        reason = decision.reason if decision.advance else spent_all
        if not decision.advance and decision.reason:
            reason += f" ({decision.reason})"
        runner.note("end", reason=reason)
        probe = draw_probe(runner.log.plan, self.config, self._seed("probe"), runner.suites.held_out)
        probe_episodes = self._play(probe, self._faded()) if probe is not None else []
        return StageOutcome(
            run=runner.log.name,
            number=runner.stage.number,
            trained_on=self.config,
            validation=runner.suites.validation,
            episodes=self.episodes,
            probe=probe,
            probe_episodes=probe_episodes,
            history=self.history,
            late_rates=self.trainee.late_rates,
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
            config=dump(self.config),
            stretch=self.stretch,
            lines=len(runner.lines),
            metrics_digest=inside.digest_of(runner.lines),
            spent=dict(runner.spent),
            trained=dict(self.trained),
            validated=dict(self.validated),
            history_spent=history.spent,
            iterations=history.iterations,
            validations=history.validations,
            incidents=runner.incidents,
            said=sorted(self.said),
        )
        with as_trainee_failed("save"):
            inside.keep(runner.log.files, runner.stage.path, state, self.trainee.save)

    def resume_from(self, interrupted: inside.Interrupted) -> None:
        """Become the attempt that a killed process was at."""
        state = interrupted.state
        with as_trainee_failed(f"load of {interrupted.trainee}"):
            self.trainee.load(interrupted.trainee)
        self.stretch, self.said = state.stretch, set(state.said)
        self.trained, self.validated = Counter(state.trained), Counter(state.validated)
        self.history.spent, self.history.iterations = state.history_spent, list(state.iterations)
        self.history.validations = list(state.validations)

    def _left(self) -> int:
        """What is left to train with once the closing validation and probe are paid, as far as is known."""
        return self.runner.allowance - self.runner.spent[self.unit] - self.closing_cost

    def _why_not_trained(self) -> str:
        unit, allowance = self.unit.replace("_", " "), self.runner.allowance
        said = f"stage {self.runner.stage.number} trains nothing:"
        if allowance < 0:
            return (
                f"{said} what came before spent {-allowance:,} {unit} more than it had; give larger budgets, or a trainee whose "
                "iterations cost less"
            )
        lost = self.runner.spent[self.unit]
        gone = f", of which earlier attempts spent {lost:,}" if lost else ""
        return (
            f"{said} its validation and probe cost {self.closing_cost:,} {unit}, and it has {allowance:,}{gone}; give a larger "
            "budget, or fewer cases (suites.validation_per_slice, suites.probe_per_slice)"
        )

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.spec.seed, "stage", self.runner.stage.number, self.draw, *purpose)

    # Training

    def _train(self, amount: int, stretch: int) -> int:
        """Train a stretch; returns what it really spent, in the budget's unit."""
        before = self.trained.copy()
        with as_trainee_failed("train"):
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
            if name in metrics and not math.isfinite(metrics[name]):
                unit = self.unit.replace("_", " ")
                raise TrainingDiverged(
                    f"{name} became {metrics[name]} after {self.trained[self.unit]:,} {unit} of the stage"
                )
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        if lost := int(finite.get("workers_lost", 0)):
            runner.record("worker_lost", f"{lost} worker(s) were lost; they are replaced where there is room")
        self.history.iterations.append(finite)
        for kind, warning in (("collapsed", self.trainee.collapse), ("not_trained", self.trainee.unrewarded)):
            if kind not in self.said and (why := warning(self.history.iterations)):
                self.said.add(kind)
                runner.record(kind, why)
        runner.note("iteration", spent=runner.spent[self.unit], **finite)
        runner.observer.progressed(
            Progress(runner.stage.number, runner.spent[self.unit], runner.allowance, self.unit, finite)
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
        with as_trainee_failed("policy"):
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
        rules = self.world.validated_as(runner.log.plan.target, self._faded())
        self.episodes = self._play(runner.suites.validation, rules)
        found = rates(self.episodes)
        self.history.validations.append(found)
        runner.note("validation", spent=runner.spent[self.unit], **found)
        runner.observer.validated(runner.stage, found)
        rule = runner.listed.advance_when
        return rule.decide(self.history) if rule is not None else Decision(False, "")

    # Fading

    def _faded(self) -> Any:
        """The config with the fading knob where it is now."""
        return faded(self.config, self.runner.listed.fade, self._progress())

    def _progress(self) -> float:
        """The part of the stage's training that is behind us, 0 to 1."""
        return self.history.spent / max(1, self.history.spent + self._left())

    def _until_next_fade(self) -> int:
        fade = self.runner.listed.fade
        if fade is None or self._progress() >= fade.over:
            return self._left()
        return until_next_part(fade, self.history.spent + self._left())
