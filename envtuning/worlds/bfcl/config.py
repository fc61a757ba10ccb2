"""``BFCLConfig``: the config of a stage of tool use: its tasks, the feedback on errors, and the reward."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES, Split, ToolClass
from envtuning.worlds.bfcl.prompts import ToolStyle
from envtuning.worlds.bfcl.reply_format import ReplyFormat
from envtuning.worlds.bfcl.rewards import Reward

Weight = Annotated[
    float,
    Field(
        ge=0.0,
        le=1.0,
        description="How often tasks with this tool class are drawn; a task with several classes has the smallest of their weights.",
        json_schema_extra={"role": "none"},
    ),
]
Hint = Annotated[
    str,
    Field(
        max_length=400,
        description="The hint given after errors of this template; empty means the built-in rule's hint.",
    ),
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class BFCLSlice(_Frozen):
    """One split's part of a stage."""

    share: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="Weight of this split in the data; the weights need not sum to 1, and 0 leaves the split out.",
    )


class BFCLConfig(_Frozen):
    """A stage of multi-turn tool use. Training draws from the training scenarios only, whatever is written here."""

    editable: ClassVar[tuple[str, ...]] = ("slices.*.share", "tools.*", "hints.*")

    slices: dict[Split, BFCLSlice] = Field(
        default_factory=lambda: {split: BFCLSlice() for split in SPLITS},
        description="What is drawn from each split. base: everything needed is given. miss_func: a tool becomes available late. miss_param: the user gives a value late. "
        "long_context: tool results are long.",
    )
    tools: dict[ToolClass, Weight] = Field(
        default_factory=lambda: dict.fromkeys(TOOL_CLASSES, 1.0),
        description="Weight of each tool class in the data.",
    )
    max_turns: int = Field(
        8, ge=1, le=8, description="Largest number of turns of a task.", json_schema_extra={"role": "none"}
    )
    feedback: Literal["standard", "augmented", "replaced"] = Field(
        "standard",
        description="standard: the tools' own messages. augmented: each message about an error is followed by a hint. replaced: the hint "
        "stands in place of the message.",
    )
    hints: dict[str, Hint] = Field(
        default_factory=dict,
        description="Hints by error template: the key is 'tool: message' with its values replaced by {}. Not used with standard feedback.",
    )
    reward: Reward = Field(
        "progress",
        description="progress: the fraction of turns done right. syntax: credit for readable replies and calls without errors. "
        "binary: 1 for a solved task.",
    )
    pool_size: int = Field(
        0,
        ge=0,
        le=320,
        description="Number of draws, by weight, that make the pool of tasks that a stage trains on: a task may be drawn twice. 0: as many draws as tasks fit "
        "this config, and other draws for each seed.",
        json_schema_extra={"role": "none"},
    )
    epochs: int = Field(
        1,
        ge=1,
        le=100,
        description="Number of passes over the pool before another is drawn; after a validation, and for each prompt of a language model, dealing begins "
        "with the first pool.",
        json_schema_extra={"role": "none"},
    )
    tool_style: ToolStyle = Field(
        "json",
        description="How the tools are described to the agent: documents, signatures, or not at all.",
    )
    reply_format: ReplyFormat = Field(
        "readable",
        description="readable: calls in the benchmark's syntax or as JSON, anything else is an answer. xml: thoughts, then calls or an answer, each "
        "in its tag; a reply in another format is unreadable.",
    )

    @model_validator(mode="after")
    def _can_be_drawn(self) -> BFCLConfig:
        if not any(piece.share > 0 for piece in self.slices.values()):
            raise ValueError("every share is 0: give at least one split a share")
        return self
