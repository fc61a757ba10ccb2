"""One try at a stage with one config: train in stretches, validate, decide."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from engineers.knobs import as_text
from engineers.report import Incident, IncidentKind
from engineers.shared.counts import in_words
from envtuning import atomic
from envtuning.errors import RunError
from envtuning.loop import inside
from envtuning.loop.contract import amounts_in, as_trainee_failed, raise_unless_spent, read_metrics, read_outcomes
from envtuning.loop.observer import Progress
from envtuning.loop.session import Session
from envtuning.loop.validation import draw_probe
from envtuning.outcomes import Tally
from envtuning.runs.fading import faded, until_next_part
from envtuning.runs.sections import StageSpec
from envtuning.runs.state import WorldConfig
from envtuning.runs.tasks import closing_cost
from envtuning.runs.transitions import Decision, History
from envtuning.seeds import derive
from envtuning.trainees.base import OUTCOMES, Metrics, Trainee, TrainingDiverged
from envtuning.worlds.episodes import Amounts, Episode, rates, total_cost
from envtuning.worlds.world import Cases

RULE_CHECKS = 10  # in a stage, of a rule that reads no validation
DRAWN_ANEW = ("diverged", "generation_failed")  # incidents after which the same seeds would fail in the same way


class Attempt(BaseModel):
    """One try at the run's last stage with one config. A checkpoint inside the stage stores it; what is not stored is found again."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    number: int = 0
    config: WorldConfig  # that this attempt trains on
    incidents: list[Incident] = []  # of earlier attempts, too
    spent: Counter[str] = Field(default_factory=Counter)  # by unit, including attempts that diverged
    trained: Counter[str] = Field(default_factory=Counter)  # by this attempt; so are all fields below
    validated: Counter[str] = Field(default_factory=Counter)
    stretch: int = 0  # number of finished stretches of training
    iterations: list[dict[str, float]] = []
    outcomes: list[Tally] = []  # of the iterations that had any
    validations: list[dict[str, float]] = []
    said: list[str] = []  # warnings that are recorded once
    lines: list[dict[str, Any]] = []  # of metrics.jsonl

    session: SkipValidation[Session] = Field(exclude=True, repr=False)
    episodes: SkipValidation[Sequence[Episode]] = Field((), exclude=True, repr=False)  # of the latest validation
    probe: SkipValidation[Cases | None] = Field(None, exclude=True, repr=False)
    probe_episodes: SkipValidation[Sequence[Episode]] = Field((), exclude=True, repr=False)
    reason: str = Field("", exclude=True)  # why it ended

    @classmethod
    def restored(cls, session: Session, checkpoint: Path) -> Attempt:
        """The attempt as a checkpoint inside the stage has it. Raises ``RunError``."""
        try:
            state = json.loads((checkpoint / "state.json").read_bytes())
            return cls.model_validate(state | {"session": session}, context=session.plan.world.config_type)
        except (OSError, ValueError, TypeError) as error:
            raise RunError(
                f"{checkpoint} has changed since it was written: restore it from a copy, or remove the folders {inside.PREFIX}* "
                "beside it to restart the stage"
            ) from error

    def again(self, config: BaseModel, *, charged: bool) -> Attempt:
        """The next attempt, on this config. If this attempt is not charged, it leaves no trace."""
        spent = self.spent if charged else self.spent - self.trained - self.validated
        return Attempt(
            session=self.session, number=self.number + 1, config=config, incidents=self.incidents, spent=spent
        )

    def run_to_end(self) -> None:
        """Train in stretches, each up to the next check or step of a fade, until the budget is spent or the stage's rule ends it. Then validate and play the probe."""
        suites = self.session.spec.suites
        every = suites.every or self._until_rule_is_checked
        since = 0  # of the budget, since the last check
        while (left := self._left()) > 0:
            until_check = every - since if every else left
            since += self._train(min(left, until_check, self._until_next_fade()))
            self.stretch += 1
            if every and since >= every:
                since = 0
                decision = self._validate_and_decide() if suites.every else self._decide()
                if decision.advance:
                    break
                if self._left() > 0 and self.trainee.checkpoints_inside:
                    self._keep_checkpoint()
        self._end(self._decision_at_the_end(since))

    def _keep_checkpoint(self) -> None:
        session = self.session
        with as_trainee_failed("save"):
            inside.keep(session.log.files, session.stage.path, self.stretch, as_text(self), self.trainee.save)

    def _decision_at_the_end(self, since: int) -> Decision:
        """Validate, unless this is left to the last stage or nothing was trained ``since`` the last validation, and decide."""
        suites = self.session.spec.suites
        if not self.stretch:
            self._say_once("not_trained", self._why_not_trained())
        if suites.last_alone and not self._ends_the_run:
            self._warn_if_nothing_is_seen()
            return self._decide()
        if not self.episodes or (suites.every and since):
            return self._validate_and_decide()
        return self._decide()

    def _end(self, decision: Decision) -> None:
        """Say why it ended, and play the probe."""
        session = self.session
        spent_all = f"the budget of {max(0, session.allowance):,} {in_words(self.unit)} is spent"
        self.reason = decision.reason if decision.advance else spent_all
        if not decision.advance and decision.reason:
            self.reason += f" ({decision.reason})"
        self.note("end", reason=self.reason)
        self.probe = draw_probe(session.plan, self.config, self._seed("probe"), session.suites.held_out)
        if self.probe is not None and self.plays_probe:
            self.probe_episodes = self._play(self.probe, self._faded())

    @property
    def plays_probe(self) -> bool:
        """By default, only after training that reported no outcomes. Otherwise the probe is drawn for statistics alone."""
        suites = self.session.spec.suites
        untold = self.stretch > 0 and not self.outcomes
        return not suites.last_alone and (untold or suites.probe_per_slice is not None)

    @property
    def trainee(self) -> Trainee:
        trainee = self.session.trainee
        assert trainee is not None, "an attempt begins with a loaded trainee"
        return trainee

    @property
    def unit(self) -> str:
        """The unit of the budget."""
        return self.session.plan.unit

    @property
    def cost(self) -> Amounts:
        """The cost of this attempt, by unit."""
        return dict(self.trained + self.validated)

    def record(self, kind: IncidentKind, message: str) -> None:
        incident = Incident(kind=kind, message=message, stage=self.session.stage.number)
        self.incidents.append(incident)
        self.session.observer.went_wrong(incident)

    def note(self, kind: str, **values: object) -> None:
        """Write a line of the stage's metrics.jsonl."""
        line = {"kind": kind, **values}
        self.lines.append(line)
        atomic.append_line(self.session.stage.path / "metrics.jsonl", line)

    @property
    def _listed(self) -> StageSpec:
        """The stage in the run's file."""
        return self.session.spec.stage(self.session.stage.number)

    @property
    def _closing_cost(self) -> int:
        return closing_cost(self.session.plan, self.session.log.state, self.session.stage.number)

    @property
    def _spent_now(self) -> int:
        """The cost of this attempt, in the budget's unit."""
        return self.trained[self.unit] + self.validated[self.unit]

    def _left(self) -> int:
        """The budget that is left for training after the closing validation and probe, as far as their cost is known."""
        return self.session.allowance - self.spent[self.unit] - self._closing_cost

    def _why_not_trained(self) -> str:
        unit, allowance = in_words(self.unit), self.session.allowance
        said = f"stage {self.session.stage.number} trains nothing:"
        if allowance < 0:
            return (
                f"{said} what came before spent {-allowance:,} {unit} more than it had; give larger budgets, or a trainee whose "
                "iterations cost less"
            )
        lost = self.spent[self.unit]
        gone = f", of which earlier attempts spent {lost:,}" if lost else ""
        return (
            f"{said} its validation and probe cost {self._closing_cost:,} {unit}, and it has {allowance:,}{gone}; give a larger "
            "budget, or fewer cases (suites.validation_per_slice, suites.probe_per_slice)"
        )

    def _seed(self, *purpose: str | int) -> int:
        # Other incidents keep the same seed: an attempt that repeats or continues another needs its seeds.
        draw = sum(incident.kind in DRAWN_ANEW for incident in self.incidents)
        return derive(self.session.spec.seed, "stage", self.session.stage.number, draw, *purpose)

    # Training

    def _train(self, amount: int) -> int:
        """Train a stretch; returns its real cost, in the budget's unit."""
        before, seed = self.trained.copy(), self._seed("train", self.stretch)
        with as_trainee_failed("train"):
            given = self.trainee.train(self._faded(), amount, seed=seed, on_iteration=self._on_iteration)
        returned = self._read(given, "train")
        told = self.trained - before
        rest = Counter(amounts_in(returned, "train")) - told
        if rest:  # cost that on_iteration did not get
            self._charge(rest, self.trained)
            if not told:
                self._take_in(returned, self._outcomes_in(given, "train"))
        spent = self.trained - before
        raise_unless_spent(spent, self.unit, amount)
        return spent[self.unit]

    def _on_iteration(self, given: dict[str, Any]) -> None:
        metrics = self._read(given, "on_iteration")
        self._charge(amounts_in(metrics, "on_iteration"), self.trained)
        self._take_in(metrics, self._outcomes_in(given, "on_iteration"))

    def _outcomes_in(self, given: Any, method: str) -> Tally:
        return read_outcomes(given, method, self.session.plan.world.slices(self.config))

    def _read(self, given: Any, method: str) -> Metrics:
        metrics, odd = read_metrics(given, method)
        for sentence in odd:
            self._say_once("odd_metrics", sentence)
        return metrics

    def _take_in(self, metrics: Metrics, outcomes: Tally) -> None:
        """Add an iteration to the history and the metrics file. Raises ``TrainingDiverged``."""
        for name in ("grad_norm", "loss"):
            if name in metrics and not math.isfinite(metrics[name]):
                trained = f"{self.trained[self.unit]:,} {in_words(self.unit)}"
                raise TrainingDiverged(f"{name} became {metrics[name]} after {trained} of the stage")
        finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
        if lost := int(finite.get("workers_lost", 0)):
            self.record("worker_lost", f"{lost} worker(s) were lost; they are replaced where there is room")
        self.iterations.append(finite)
        if outcomes.episodes:
            self.outcomes.append(outcomes)
        if "collapsed" not in self.said and (why := self.trainee.collapse(self.iterations)):
            self.said.append("collapsed")
            self.record("collapsed", why)
        if "not_trained" not in self.said and (why := self.trainee.unrewarded(self.iterations)):
            self.said.append("not_trained")
            self.record("not_trained", why)
        session, spent = self.session, self.spent[self.unit]
        self.note("iteration", spent=spent, **finite, **({OUTCOMES: outcomes.dump()} if outcomes.episodes else {}))
        session.observer.progressed(
            Progress(session.stage.number, spent, session.allowance, self.unit, finite, outcomes)
        )

    def _charge(self, amounts: Amounts, account: Counter[str]) -> None:
        account.update(amounts)
        self.spent.update(amounts)

    def _say_once(self, kind: IncidentKind, sentence: str) -> None:
        if sentence not in self.said:
            self.said.append(sentence)
            self.record(kind, sentence)

    # Validation

    def _play(self, cases: Cases, rules: BaseModel) -> Sequence[Episode]:
        with as_trainee_failed("policy"):
            policy, seed = self.trainee.policy(), derive(self.session.spec.suites.seed, "play")
            episodes = self.session.plan.world.play(policy, cases, rules, seed=seed)
        self._charge(total_cost(episodes), self.validated)
        raised = [episode for episode in episodes if episode.failure == "policy_error"]
        if raised:
            counted = f"{len(raised)} of {len(episodes)}"
            self._say_once(
                "policy_failed", f"the policy raised an error on {counted} cases, the first: {raised[0].note}"
            )
        return episodes

    def _validate_and_decide(self) -> Decision:
        session, plan = self.session, self.session.plan
        rules = plan.world.validated_as(plan.target, self._faded())
        self.episodes = self._play(session.suites.validation, rules)
        found = rates(self.episodes)
        self.validations.append(found)
        self.note("validation", spent=self.spent[self.unit], **found)
        session.observer.validated(session.stage, found)
        return self._decide()

    def _decide(self) -> Decision:
        rule, objective = self._listed.advance_when, self.session.plan.world.about.objective
        history = History(self.iterations, self.validations, self.outcomes, self._spent_now, self.unit, objective)
        return rule.decide(history) if rule is not None else Decision(False, "")

    @property
    def _until_rule_is_checked(self) -> int | None:
        """How much is trained before a rule that reads no validation is checked; None without such a rule."""
        rule = self._listed.advance_when
        return max(1, self.session.allowance // RULE_CHECKS) if rule is not None and not rule.reads_validation else None

    @property
    def _ends_the_run(self) -> bool:
        """Whether no stage follows, as far as this attempt has come."""
        spec, log = self.session.spec, self.session.log
        if self.session.stage.number < len(spec.stages) - 1:
            return False
        return spec.total is None or spec.total <= log.state.spent.get(self.unit, 0) + self.spent[self.unit]

    def _warn_if_nothing_is_seen(self) -> None:
        if not self.outcomes and self.session.spec.asks_an_engineer:
            self._say_once(
                "other",
                "the trainee gives no outcomes of training, and suites.validate is 'last', so the engineer sees nothing: let it give "
                "outcomes, or set suites.validate to 'stages'",
            )

    # Fading

    def _faded(self) -> BaseModel:
        """The config with the fading knob's current value."""
        return faded(self.config, self._listed.fade, self._progress())

    def _progress(self) -> float:
        """The part of the stage's training that is done, 0 to 1."""
        return self._spent_now / max(1, self._spent_now + self._left())

    def _until_next_fade(self) -> int:
        fade = self._listed.fade
        if fade is None or self._progress() >= fade.over:
            return self._left()
        return until_next_part(fade, self._spent_now + self._left())
