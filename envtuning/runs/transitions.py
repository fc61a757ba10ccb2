"""When a stage is over: pure functions of the stage's history that return a decision and the reason for it.

A rule is data, so it can be written in a run's file. A stage always ends when its budget is spent, whatever its rule says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from engineers.shared.counts import counted, in_words
from envtuning.outcomes import MEANS, Tally


@dataclass
class History:
    """A stage's metrics and cost so far."""

    iterations: list[dict[str, float]] = field(default_factory=list)  # the trainee's metrics, one entry per iteration
    validations: list[dict[str, float]] = field(default_factory=list)  # the rates of each
    outcomes: list[Tally] = field(default_factory=list)  # of training, by iteration
    spent: int = 0  # in this stage, in the budget's unit, with validation
    unit: str = "env_steps"  # the budget's
    objective: str = "success_rate"  # the default metric of the rules


@dataclass(frozen=True)
class Decision:
    advance: bool
    reason: str


class _Rule(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str

    def needs(self) -> frozenset[str]:
        """The training metrics that the rule cannot do without."""
        return frozenset()

    def looks_at(self) -> frozenset[str]:
        """The validation metrics that it names."""
        return frozenset()

    @property
    def reads_validation(self) -> bool:
        return False


class _MetricRule(_Rule):
    """Looks at one metric: of validation, or of training's outcomes by iteration."""

    on: Literal["validation", "training"] = Field("validation", description="Where the metric is measured.")
    metric: str | None = Field(
        None,
        description="Metric to look at. Of validation, null is the world's objective; of training it is success or score, null: success.",
    )

    @model_validator(mode="after")
    def _is_measured_there(self) -> Self:
        if not self.reads_validation and self.metric not in (None, *MEANS):
            raise ValueError(
                f"metric is {self.metric!r:.40}, and training has {' and '.join(MEANS)}: give one of these"
            )
        return self

    def looks_at(self) -> frozenset[str]:
        return frozenset({self.metric} if self.metric and self.reads_validation else ())

    @property
    def reads_validation(self) -> bool:
        return self.on == "validation"

    def seen(self, history: History) -> tuple[str, list[float]]:
        """The metric's name and its values, oldest first."""
        if self.reads_validation:
            metric = self.metric or history.objective
            return metric, [entry[metric] for entry in history.validations if metric in entry]
        metric = self.metric or MEANS[0]
        means = (tally.mean(metric) for tally in history.outcomes)
        return f"{metric} in training", [mean for mean in means if mean is not None]


class Converged(_MetricRule):
    """The metric has stopped rising: the mean of the last window is at most ``min_gain`` above the one before."""

    rule: Literal["converged"] = "converged"
    window: int = Field(
        2, ge=1, description="Validations (or iterations of training) per window; two windows are compared."
    )
    min_gain: float = Field(0.02, ge=0.0, description="A rise of at most this much counts as no rise.")

    def decide(self, history: History) -> Decision:
        metric, values = self.seen(history)
        needed, noun = 2 * self.window, "validation" if self.reads_validation else "iteration"
        if len(values) < needed:
            return Decision(False, f"{metric}: {len(values)} of {needed} {noun}s needed to judge convergence")
        before, now = fmean(values[-needed : -self.window]), fmean(values[-self.window :])
        over = f"{before:.3f} to {now:.3f} over {counted(self.window, noun)}"
        if now - before <= self.min_gain:
            return Decision(True, f"{metric} converged: {over}")
        return Decision(False, f"{metric} still rises: {over}")


class GradNormStable(_Rule):
    """The gradient norm moves little around its level: coefficient of variation over a window, and no drift across it."""

    rule: Literal["grad_norm_stable"] = "grad_norm_stable"
    window: int = Field(10, ge=4, description="Number of iterations to look at.")
    max_variation: float = Field(
        0.45, gt=0.0, description="Largest ratio of standard deviation to mean that counts as stable."
    )
    max_drift: float = Field(
        0.25, gt=0.0, description="Largest relative change from the window's first half to its second half."
    )

    def needs(self) -> frozenset[str]:
        return frozenset({"grad_norm"})

    def decide(self, history: History) -> Decision:
        values = [entry["grad_norm"] for entry in history.iterations if "grad_norm" in entry]
        if len(values) < self.window:
            return Decision(
                False, f"gradient norm: {len(values)} of {self.window} iterations needed to judge stability"
            )
        recent = values[-self.window :]
        level = fmean(recent)
        if level == 0.0:
            return Decision(True, f"gradient norm is 0 over {self.window} iterations: nothing is left to learn here")
        variation = pstdev(recent) / level
        half = self.window // 2
        drift = abs(fmean(recent[-half:]) - fmean(recent[:half])) / level
        stable = variation <= self.max_variation and drift <= self.max_drift
        return Decision(
            stable,
            f"gradient norm {'stable' if stable else 'unstable'}: variation {variation:.2f} (at most "
            f"{self.max_variation:g}), drift {drift:.2f} (at most {self.max_drift:g}) over {self.window} iterations",
        )


class Reached(_MetricRule):
    """The latest value of the metric is at least ``value``."""

    rule: Literal["reached"] = "reached"
    value: float

    def decide(self, history: History) -> Decision:
        metric, values = self.seen(history)
        if not values:
            return Decision(False, f"{metric}: not {'validated' if self.reads_validation else 'measured'} yet")
        latest = values[-1]
        reached = latest >= self.value
        return Decision(reached, f"{metric} {latest:.3f} is {'at least' if reached else 'below'} {self.value:g}")


class Spent(_Rule):
    """The stage has spent at least ``amount`` in its budget's unit, with validation."""

    rule: Literal["spent"] = "spent"
    amount: int = Field(ge=1)

    def decide(self, history: History) -> Decision:
        return Decision(
            history.spent >= self.amount, f"{history.spent:,} of {self.amount:,} {in_words(history.unit)} spent"
        )


class _Rules(_Rule):
    rules: tuple[Rule, ...] = Field(min_length=1)

    def looks_at(self) -> frozenset[str]:
        return frozenset().union(*(rule.looks_at() for rule in self.rules))

    @property
    def reads_validation(self) -> bool:
        return any(rule.reads_validation for rule in self.rules)


class All(_Rules):
    """Every rule ends the stage."""

    rule: Literal["all"] = "all"

    def needs(self) -> frozenset[str]:
        return frozenset().union(*(rule.needs() for rule in self.rules))

    def decide(self, history: History) -> Decision:
        decisions = [rule.decide(history) for rule in self.rules]
        holding_back = [decision for decision in decisions if not decision.advance]
        return Decision(not holding_back, _join(holding_back or decisions, "; and "))


class AnyOf(_Rules):
    """At least one rule ends the stage."""

    rule: Literal["any"] = "any"

    def needs(self) -> frozenset[str]:
        return frozenset.intersection(*(rule.needs() for rule in self.rules))

    def decide(self, history: History) -> Decision:
        decisions = [rule.decide(history) for rule in self.rules]
        advancing = [decision for decision in decisions if decision.advance]
        return Decision(bool(advancing), _join(advancing or decisions, "; "))


Rule = Annotated[Converged | GradNormStable | Reached | Spent | All | AnyOf, Field(discriminator="rule")]


def _join(decisions: Sequence[Decision], separator: str) -> str:
    return separator.join(decision.reason for decision in decisions)
