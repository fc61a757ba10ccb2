"""``Context``: which sections a prompt has, its token budget, and the six contexts of the published ablation."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from engineers.tiers import Tier


class Context(BaseModel):
    """Which sections of a report go into the prompt. The environment, the knobs and the current config always do."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = "custom"
    failures: bool = Field(True, description="Number of failed episodes of each kind, per slice.")
    metrics: bool = Field(False, description="Rates with their intervals, per slice and from stage to stage.")
    guideline: bool = Field(False, description="Written advice on how to change a config.")
    target: bool = Field(False, description="The target's own knobs, and what each kind of failure means.")
    rounds: bool = Field(False, description="How many answers and how much of the budget are left.")
    history: Literal["none", "all", "without_default"] = Field(
        "none",
        description="Earlier configs with their failures: none, all, or all but the first one, which no engineer wrote.",
    )
    changes: bool = Field(False, description="Show earlier configs by what changed, not in full.")
    summary: bool = Field(False, description="Ask the model first, in a separate call, to sum up its failures.")
    training: bool = Field(False, description="Details of the training: the round's index, steps, gradient norms.")
    cases: bool = Field(False, description="Pictures of failed episodes.")
    case_tokens: int = Field(2_000, ge=0, description="Largest estimated number of tokens of these pictures.")
    behaviour: bool = Field(
        False, description="How the trainee behaves, and on which parts of the episodes it succeeds."
    )
    environment_stats: bool = Field(False, description="What the generator drew for each slice.")
    incidents: bool = Field(False, description="Incidents: what went wrong without stopping the run.")
    token_budget: int = Field(
        12_000,
        ge=500,
        description="Largest estimated number of tokens in the prompt; failed episodes are left out first.",
    )

    @property
    def tier(self) -> Tier:
        """The tier of an engineer with this context."""
        if self.cases:
            return Tier.CASES
        reads = self.failures or self.behaviour or self.environment_stats or self.training or self.incidents
        if reads or self.summary or self.history != "none":
            return Tier.REPORT
        if self.metrics:
            return Tier.SLICE_SUCCESS
        if self.rounds:
            return Tier.HORIZON
        return Tier.TARGET if self.target else Tier.NOTHING


_V1 = Context(name="V1")
_V2 = _V1.model_copy(update={"name": "V2", "guideline": True})
_V3 = _V2.model_copy(update={"name": "V3", "history": "all"})
_V4 = _V2.model_copy(update={"name": "V4", "history": "without_default"})
_V5 = _V4.model_copy(update={"name": "V5", "summary": True})
_V6 = _V4.model_copy(update={"name": "V6", "training": True})

# A reader of the published contexts missed the target, the comparison of training and target with its noise, requested
# against drawn numbers, and the rounds left. It preferred earlier configs as differences, without curves and pictures.
_MISSED = dict.fromkeys(("target", "rounds", "metrics", "behaviour", "environment_stats", "incidents"), True)
INFORMED = _V3.model_copy(update={"name": "informed", "changes": True} | _MISSED)
_FULL = _V6.model_copy(update={"name": "full", "cases": True} | _MISSED)

CONTEXTS: dict[str, Context] = {context.name: context for context in (INFORMED, _V1, _V2, _V3, _V4, _V5, _V6, _FULL)}


WITH_CASES = "+cases"  # after a context's name: it, and pictures of failed episodes
NAMES = (*CONTEXTS, *(f"{name}{WITH_CASES}" for name, context in CONTEXTS.items() if not context.cases))


def context_named(context: str | Context) -> Context:
    """A preset by its name, which may end on ``WITH_CASES``, or the context itself."""
    if isinstance(context, Context):
        return context
    if context not in NAMES:
        raise ValueError(
            f"context {context!r} is unknown: give one of {', '.join(CONTEXTS)} (each also with {WITH_CASES}), "
            "or a Context of your own"
        )
    named = CONTEXTS[context.removesuffix(WITH_CASES)]
    return named if named.name == context else named.model_copy(update={"name": context, "cases": True})
