"""One try at a stage with one config: train in stretches, validate, decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engineers.knobs import validated
from envtuning.loop import inside
from envtuning.loop.contract import amounts_in, as_trainee_failed, raise_unless_spent, read_metrics
from envtuning.loop.observer import Progress
from envtuning.loop.report import StageOutcome
from envtuning.loop.validation import draw_probe
from envtuning.runs.fading import faded, until_next_part
from envtuning.runs.tasks import closing_cost
from envtuning.runs.transitions import Decision, History
from envtuning.seeds import derive
from envtuning.trainees.base import Metrics, Trainee, TrainingDiverged
from envtuning.worlds.episodes import Amounts, Episode, rates, total_cost

if TYPE_CHECKING:
    from envtuning.loop.stage import StageRunner


DRAWN_ANEW = ("diverged", "generation_failed")  # incidents after which the same seeds would fail in the same way


class Attempt:
    """One try at a stage with one config. ``so_far`` has its state."""

    def __init__(self, runner: StageRunner, trainee: Trainee) -> None:
        self.runner, self.so_far, self.trainee = runner, runner.so_far, trainee
        self.spec, self.world = runner.log.plan.spec, runner.log.plan.world
        self.unit = runner.log.plan.unit
        self.config = validated(self.world.config_type, self.so_far.config)
        # Other incidents keep the same seed: an attempt that repeats or continues another needs its seeds.
        self.draw = sum(incident.kind in DRAWN_ANEW for incident in self.so_far.incidents)
        self.closing_cost = closing_cost(runner.log.plan, runner.log.state, runner.stage.number)
        self.episodes: Sequence[Episode] = []

    def run_to_end(self) -> StageOutcome:
        runner, suites = self.runner, self.spec.suites
        unvalidated = 0
        while (left := self._left()) > 0:
            until_validation = suites.validate_every - unvalidated if suites.validate_every else left
            unvalidated += self._train(min(left, until_validation, self._until_next_fade()))
            self.so_far.stretch += 1
            if suites.validate_every and unvalidated >= suites.validate_every:
                decision = self._validate_and_decide()
                unvalidated = 0
                if decision.advance:
                    break
                if self._left() > 0 and self.trainee.checkpoints_inside:
                    with as_trainee_failed("save"):
                        inside.keep(runner.log.files, runner.stage.path, self.so_far, self.trainee.save)
        if not self.so_far.stretch:
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
            so_far=self.so_far,
            validation=runner.suites.validation,
            episodes=self.episodes,
            probe=probe,
            probe_episodes=probe_episodes,
            late_rates=self.trainee.late_rates,
            reason=reason,
        )

    def _left(self) -> int:
        """The budget that is left for training after the closing validation and probe, as far as their cost is known."""
        return self.runner.allowance - self.so_far.spent[self.unit] - self.closing_cost

    def _why_not_trained(self) -> str:
        unit, allowance = self.unit.replace("_", " "), self.runner.allowance
        said = f"stage {self.runner.stage.number} trains nothing:"
        if allowance < 0:
            return (
                f"{said} what came before spent {-allowance:,} {unit} more than it had; give larger budgets, or a trainee whose "
                "iterations cost less"
            )
        lost = self.so_far.spent[self.unit]
        gone = f", of which earlier attempts spent {lost:,}" if lost else ""
        return (
            f"{said} its validation and probe cost {self.closing_cost:,} {unit}, and it has {allowance:,}{gone}; give a larger "
            "budget, or fewer cases (suites.validation_per_slice, suites.probe_per_slice)"
        )

    def _seed(self, *purpose: str | int) -> int:
        return derive(self.spec.seed, "stage", self.runner.stage.number, self.draw, *purpose)

    # Training

    def _train(self, amount: int) -> int:
        """Train a stretch; returns its real cost, in the budget's unit."""
        before, seed = self.so_far.trained.copy(), self._seed("train", self.so_far.stretch)
        with as_trainee_failed("train"):
            given = self.trainee.train(self._faded(), amount, seed=seed, on_iteration=self._on_iteration)
        returned = self._read(given, "train")
        told = self.so_far.trained - before
        rest = Counter(amounts_in(returned, "train")) - told
        if rest:  # cost that on_iteration did not get
            self._charge(rest, self.so_far.trained)
            if not told:
                self._take_in(returned)
        spent = self.so_far.trained - before
        raise_unless_spent(spent, self.unit, amount)
        return spent[self.unit]

    def _on_iteration(self, given: Metrics) -> None:
        metrics = self._read(given, "on_iteration")
        self._charge(amounts_in(metrics, "on_iteration"), self.so_far.trained)
        self._take_in(metrics)

    def _read(self, given: Any, method: str) -> Metrics:
        metrics, odd = read_metrics(given, method)
        for sentence in odd:
            self._say_once("odd_metrics", sentence)
        return metrics

    def _take_in(self, metrics: Metrics) -> None:
        """Add an iteration to the history and the metrics file. Raises ``TrainingDiverged``."""
        runner, so_far = self.runner, self.so_far
        for name in ("grad_norm", "loss"):
            if name in metrics and not math.isfinite(metrics[name]):
                trained = f"{so_far.trained[self.unit]:,} {self.unit.replace('_', ' ')}"
                raise TrainingDiverged(f"{name} became {metrics[name]} after {trained} of the stage")
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        if lost := int(finite.get("workers_lost", 0)):
            runner.record("worker_lost", f"{lost} worker(s) were lost; they are replaced where there is room")
        so_far.iterations.append(finite)
        for kind, warning in (("collapsed", self.trainee.collapse), ("not_trained", self.trainee.unrewarded)):
            if kind not in so_far.said and (why := warning(so_far.iterations)):
                so_far.said.append(kind)
                runner.record(kind, why)
        spent = so_far.spent[self.unit]
        runner.note("iteration", spent=spent, **finite)
        runner.observer.progressed(Progress(runner.stage.number, spent, runner.allowance, self.unit, finite))

    def _charge(self, amounts: Amounts, account: Counter[str]) -> None:
        account.update(amounts)
        self.so_far.spent.update(amounts)
        self.so_far.history_spent += amounts.get(self.unit, 0)

    def _say_once(self, kind: str, sentence: str) -> None:
        if sentence not in self.so_far.said:
            self.so_far.said.append(sentence)
            self.runner.record(kind, sentence)

    # Validation

    def _play(self, cases: Any, rules: Any) -> Sequence[Episode]:
        with as_trainee_failed("policy"):
            policy = self.trainee.policy()
            episodes = self.world.play(policy, cases, rules, seed=derive(self.spec.suites.seed, "play"))
        self._charge(total_cost(episodes), self.so_far.validated)
        raised = [episode for episode in episodes if episode.failure == "policy_error"]
        if raised:
            counted = f"{len(raised)} of {len(episodes)}"
            self._say_once(
                "policy_failed", f"the policy raised an error on {counted} cases, the first: {raised[0].note}"
            )
        return episodes

    def _validate_and_decide(self) -> Decision:
        runner, so_far = self.runner, self.so_far
        rules = self.world.validated_as(runner.log.plan.target, self._faded())
        self.episodes = self._play(runner.suites.validation, rules)
        found = rates(self.episodes)
        so_far.validations.append(found)
        runner.note("validation", spent=so_far.spent[self.unit], **found)
        runner.observer.validated(runner.stage, found)
        rule, objective = runner.listed.advance_when, self.world.about.objective
        history = History(so_far.iterations, so_far.validations, so_far.history_spent, self.unit, objective)
        return rule.decide(history) if rule is not None else Decision(False, "")

    # Fading

    def _faded(self) -> Any:
        """The config with the fading knob's current value."""
        return faded(self.config, self.runner.listed.fade, self._progress())

    def _progress(self) -> float:
        """The part of the stage's training that is done, 0 to 1."""
        return self.so_far.history_spent / max(1, self.so_far.history_spent + self._left())

    def _until_next_fade(self) -> int:
        fade = self.runner.listed.fade
        if fade is None or self._progress() >= fade.over:
            return self._left()
        return until_next_part(fade, self.so_far.history_spent + self._left())
