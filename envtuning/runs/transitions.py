"""When a stage is over: pure functions of the stage's history that return a decision and the reason for it.

A rule is data, so it can be written in a run's file. A stage always ends when its budget is spent, whatever its rule says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from engineers.shared.counts import counted


@dataclass
class History:
    """A stage's metrics and cost so far."""

    iterations: list[dict[str, float]] = field(default_factory=list)  # the trainee's metrics, one entry per iteration
    validations: list[dict[str, float]] = field(default_factory=list)  # the rates of each
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


class _MetricRule(_Rule):
    """Looks at one validation metric."""

    metric: str | None = Field(None, description="Validation metric to look at; null: the world's objective.")

    def looks_at(self) -> frozenset[str]:
        return frozenset({self.metric} if self.metric else ())


class Converged(_MetricRule):
    """The validation metric has stopped rising: the mean of the last window is at most ``min_gain`` above the one before."""

    rule: Literal["converged"] = "converged"
    window: int = Field(2, ge=1, description="Validations per window; two windows are compared.")
    min_gain: float = Field(0.02, ge=0.0, description="A rise of at most this much counts as no rise.")

    def decide(self, history: History) -> Decision:
        metric = self.metric or history.objective
        values = [entry[metric] for entry in history.validations if metric in entry]
        needed = 2 * self.window
        if len(values) < needed:
            return Decision(False, f"{metric}: {len(values)} of {needed} validations needed to judge convergence")
        before, now = fmean(values[-needed : -self.window]), fmean(values[-self.window :])
        over = f"{before:.3f} to {now:.3f} over {counted(self.window, 'validation')}"
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
    """The latest validation metric is at least ``value``."""

    rule: Literal["reached"] = "reached"
    value: float

    def decide(self, history: History) -> Decision:
        metric = self.metric or history.objective
        latest = next((entry[metric] for entry in reversed(history.validations) if metric in entry), None)
        if latest is None:
            return Decision(False, f"{metric}: not validated yet")
        reached = latest >= self.value
        return Decision(reached, f"{metric} {latest:.3f} is {'at least' if reached else 'below'} {self.value:g}")


class Spent(_Rule):
    """The stage has spent at least ``amount`` in its budget's unit, with validation."""

    rule: Literal["spent"] = "spent"
    amount: int = Field(ge=1)

    def decide(self, history: History) -> Decision:
        return Decision(
            history.spent >= self.amount, f"{history.spent:,} of {self.amount:,} {history.unit.replace('_', ' ')} spent"
        )


class _Rules(_Rule):
    rules: tuple[Rule, ...] = Field(min_length=1)

    def looks_at(self) -> frozenset[str]:
        return frozenset().union(*(rule.looks_at() for rule in self.rules))


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
