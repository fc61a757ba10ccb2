"""``BFCLConfig``: what a stage of tool use trains on: which tasks, what is said about mistakes, and what is paid."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES, Split, ToolClass
from envtuning.worlds.bfcl.prompts import ToolStyle
from envtuning.worlds.bfcl.rewards import Reward

Weight = Annotated[
    float,
    Field(
        ge=0.0,
        le=1.0,
        description="How often tasks with this tool class are drawn; a task with several counts by the least of them.",
        json_schema_extra={"role": "none"},
    ),
]
Hint = Annotated[
    str,
    Field(max_length=400, description="What is said about errors of this template; empty: what the rules say."),
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class BFCLSlice(_Frozen):
    """One split's part of a stage."""

    share: float = Field(
        1.0, ge=0.0, le=1.0, description="Weight of this split in the data; weights need not sum to 1."
    )


class BFCLConfig(_Frozen):
    """A stage of multi-turn tool use. Training draws from the training scenarios only, whatever is written here."""

    editable: ClassVar[tuple[str, ...]] = ("slices.*.share", "tools.*", "hints.*")

    slices: dict[Split, BFCLSlice] = Field(
        default_factory=lambda: {split: BFCLSlice() for split in SPLITS},
        description="base: all that is needed is there. miss_func: a tool appears late. miss_param: a value is said late. "
        "long_context: results are long.",
    )
    tools: dict[ToolClass, Weight] = Field(
        default_factory=lambda: dict.fromkeys(TOOL_CLASSES, 1.0),
        description="Weight of each tool class.",
    )
    min_turns: int = Field(1, ge=1, le=8, description="Fewest turns of a task.", json_schema_extra={"role": "none"})
    max_turns: int = Field(8, ge=1, le=8, description="Most turns of a task.", json_schema_extra={"role": "none"})
    feedback: Literal["standard", "augmented"] = Field(
        "standard", description="augmented: a hint stands beside each result that went wrong."
    )
    hints: dict[str, Hint] = Field(
        default_factory=dict,
        description="Hints by error template ('tool: message' with values blanked as {}); only with augmented feedback.",
    )
    reward: Reward = Field(
        "progress",
        description="progress: part of the turns that are right. syntax: readable replies and calls without errors. "
        "binary: 1 for a solved task.",
    )
    pool_size: int = Field(
        0,
        ge=0,
        le=320,
        description="Tasks in the pool that a stage trains on; 0: all that fit.",
        json_schema_extra={"role": "none"},
    )
    epochs: int = Field(
        1, ge=1, le=100, description="Passes over the pool before another is drawn.", json_schema_extra={"role": "none"}
    )
    tool_style: ToolStyle = Field(
        "json",
        description="How the agent is told of tools: documents, signatures, nothing, or a menu of calls to choose from.",
    )

    @model_validator(mode="after")
    def _can_be_drawn(self) -> BFCLConfig:
        if not any(piece.share > 0 for piece in self.slices.values()):
            raise ValueError("every share is 0: give at least one split a share")
        if self.min_turns > self.max_turns:
            raise ValueError(f"min_turns={self.min_turns} is more than max_turns={self.max_turns}: lower it")
        return self
