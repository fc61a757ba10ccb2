"""``LakeConfig``: a stage's world. For each map size a share, a hole ratio, a wait ratio, a least distance; and the rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from mapf_frozenlake.map_families import MapFamily, least_ice
from mapf_frozenlake.types import MAX_SIZE, MIN_SIZE, Collisions, OnGoal
from mapf_frozenlake.world.rewards import REWARDS

# name -> the value that every config had before
LATER_RULES = {"on_goal": "wait"}
LATER_SLICE = {"width": None, "map_family": "random", "loops": 0.1, "room_size": 4, "shelf_length": 5, "aisle": 1}
Size = Annotated[int, Field(ge=MIN_SIZE, le=MAX_SIZE)]
if TYPE_CHECKING:
    RewardName = str
else:
    RewardName = Literal[tuple(REWARDS)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Slice(_Frozen):
    """The part of a config for one map size."""

    share: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="Weight of this map size in the data; the weights need not sum to 1, and 0 leaves the size out.",
    )
    # Engineers without a model search "space". Outside it, lakes are legal, but trivially easy or impossible to draw.
    hole_ratio: float = Field(
        0.2,
        ge=0.0,
        le=0.9,
        description="Fraction of cells that are holes, counted over the cells that are neither a start nor a goal; rounded to whole holes.",
        json_schema_extra={"space": [0.0, 0.5]},
    )
    wait_ratio: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="Fraction of this size's lakes on which an agent must wait for all to arrive in the fewest steps; null leaves it to chance.",
        json_schema_extra={"space": [0.0, 0.75]},
    )
    min_distance: int = Field(
        1, ge=1, le=2 * (MAX_SIZE - 1), description="Least Manhattan distance between each agent's start and its goal."
    )
    width: Size | None = Field(
        None, description="Number of columns of these lakes; null means as many columns as rows."
    )

    map_family: MapFamily = Field(
        "random",
        description="Kind of map: random holes, a maze, rooms with doors, or a warehouse with shelves. The last three ignore hole_ratio.",
    )
    loops: float = Field(
        0.1,
        ge=0.0,
        le=1.0,
        description="In a maze or rooms, the chance of a door in each wall beyond the doors that connect all cells.",
    )
    room_size: int = Field(4, ge=2, le=MAX_SIZE // 2, description="In rooms, the number of rows and columns of a room.")
    shelf_length: int = Field(
        5, ge=1, le=MAX_SIZE // 2, description="In a warehouse, the number of columns of a shelf."
    )
    aisle: int = Field(1, ge=1, le=8, description="In a warehouse, the number of cells between two shelves.")

    @model_serializer(mode="wrap")
    def _older_slices_say_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A square's slice is written without a width, and a random map's without the fields of other maps, so that texts and digests
        of older configs stay the same."""
        written = write(self)
        silent = {name: LATER_SLICE[name] for name in LATER_SLICE if name == "width" or self.map_family == "random"}
        return {name: value for name, value in written.items() if silent.get(name, ...) != value}


class LakeConfig(_Frozen):
    """What the generator draws and which rules the episodes follow. Immutable; equal configs have equal digests."""

    # The knobs that an engineer may change by default; * stands for every key.
    editable: ClassVar[tuple[str, ...]] = ("slices.*.share", "slices.*.hole_ratio", "slices.*.wait_ratio")

    slices: dict[Size, Slice] = Field(
        default_factory=lambda: {4: Slice()},
        min_length=1,
        description="What is drawn for each map size; the key is the number of rows.",
    )
    num_agents: int | dict[int, float] = Field(
        2, description="Number of agents; or a weight for each number of agents."
    )
    is_slippery: bool = Field(
        False, description="Whether the ice may turn a moving agent to its left or right, as in FrozenLake."
    )
    success_rate: float = Field(
        1.0 / 3.0,
        ge=0.0,
        le=1.0,
        description="On slippery ice, the probability that an agent moves in the direction it chose.",
    )
    on_goal: OnGoal = Field(
        "wait",
        description="What an agent does that has reached its goal: it stays and blocks the cell (wait), leaves the board (finish), or "
        "gets a new goal (next).",
    )
    collisions: Collisions = Field(
        "block",
        description="After a conflict the agents stay where they are and the episode continues (block), or it ends (end). The rules of "
        "POGEMA, under which holes are walls: agents move one after another (priority); no agent enters a cell that another stands on "
        "or wants (block_both); of those that want a cell, the first gets it (soft).",
    )
    horizon: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Number of steps after which an episode is truncated; null means 4 * (rows + columns).",
    )
    reward: RewardName = Field(
        "sparse",
        description=" ".join(("The reward.", *(f"{name}: {reward.description}." for name, reward in REWARDS.items()))),
    )
    feedback: bool = Field(
        True, description="Whether text environments explain each violation and name the moves that were possible."
    )
    hint_strength: float = Field(
        1.0,
        ge=0.0,
        le=1.0,
        description="Scale of the hint channels in the observation, where the environment has them; 0 turns them off.",
    )

    @model_serializer(mode="wrap")
    def _older_rules_say_nothing(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Rules that came later are not written where they are as before, so that texts and digests of older configs stay the same."""
        written = write(self)
        return {name: value for name, value in written.items() if LATER_RULES.get(name, ...) != value}

    @model_validator(mode="after")
    def _check(self) -> LakeConfig:
        raise_on_impossible(self)
        return self

    @classmethod
    def single(
        cls,
        size: int | tuple[int, int] = 4,
        num_agents: int | dict[int, float] = 2,
        *,
        hole_ratio: float = 0.2,
        wait_ratio: float | None = None,
        min_distance: int = 1,
        map_family: MapFamily = "random",
        loops: float = 0.1,
        room_size: int = 4,
        shelf_length: int = 5,
        aisle: int = 1,
        **rules: Any,
    ) -> LakeConfig:
        """The common case: one map size, a square's side or (rows, columns)."""
        rows, columns = size if isinstance(size, tuple | list) and len(size) == 2 else (size, None)
        only: dict[str, Any] = {
            "share": 1.0,
            "hole_ratio": hole_ratio,
            "wait_ratio": wait_ratio,
            "min_distance": min_distance,
            "map_family": map_family,
            "loops": loops,
            "room_size": room_size,
            "shelf_length": shelf_length,
            "aisle": aisle,
        }
        if columns is not None and columns != rows:
            only["width"] = columns
        return cls(slices={rows: only}, num_agents=num_agents, **rules)

    @property
    def agent_weights(self) -> dict[int, float]:
        """Weight per number of agents, smallest count first."""
        if isinstance(self.num_agents, int):
            return {self.num_agents: 1.0}
        return dict(sorted(self.num_agents.items()))

    @property
    def max_agents(self) -> int:
        return max(self.agent_weights)

    @property
    def max_size(self) -> int:
        """The longest side of any lake."""
        return max(max(size, slice_.width or 0) for size, slice_ in self.slices.items())

    def horizon_for(self, height: int, width: int) -> int:
        return self.horizon if self.horizon is not None else 4 * (height + width)

    def canonical_json(self) -> str:
        """One text for equal configs: sorted keys, no spaces."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @cached_property
    def digest(self) -> str:
        """Stable across processes and versions of Python: 16 hex digits of SHA-256."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()[:16]

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Pydantic's copy with a new digest: pydantic would copy the cached digest even if fields change."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("digest", None)
        return copied

    def __hash__(self) -> int:
        return hash(self.digest)


# All fields that do not affect which boards are drawn.
RULES = tuple(name for name in LakeConfig.model_fields if name not in ("slices", "num_agents"))


def raise_on_impossible(config: LakeConfig) -> None:
    """Refuse a config that cannot be drawn; the error has value, bound and remedy."""
    if not any(slice_.share > 0 for slice_ in config.slices.values()):
        raise ValueError("every slice has share 0: give at least one map size a share above 0")
    weights = config.agent_weights
    for count, weight in weights.items():
        if not 1 <= count <= MAX_SIZE:
            raise ValueError(f"num_agents={count}: between 1 and {MAX_SIZE} agents fit the rules")
        if not 0 <= weight < float("inf"):
            raise ValueError(f"num_agents: the weight {weight} of {count} agents must be 0 or more and finite")
    crowd = max((count for count, weight in weights.items() if weight > 0), default=0)
    if crowd == 0:
        raise ValueError("num_agents: every count has weight 0; give at least one a weight above 0")
    for size, slice_ in config.slices.items():
        if slice_.share > 0:
            _raise_on_impossible_slice(size, slice_.width or size, slice_, crowd)


def _raise_on_impossible_slice(size: int, width: int, slice_: Slice, crowd: int) -> None:
    """Refuse lakes of ``size`` rows and ``width`` columns that have no room for ``crowd`` agents, or not by their map or distance."""
    cells = size * width
    if 2 * crowd > cells:
        enough = next(side for side in range(MIN_SIZE, MAX_SIZE + 1) if side * side >= 2 * crowd)
        raise ValueError(
            f"num_agents={crowd} on a {size}×{width} lake needs {2 * crowd} cells, there are {cells}: "
            f"at most {cells // 2} agents, or size ≥ {enough}"
        )
    if slice_.map_family != "random":
        family, knobs = slice_.map_family, (slice_.room_size, slice_.shelf_length, slice_.aisle)
        ice, wrong = least_ice(family, size, width, *knobs)
        if wrong:
            raise ValueError(wrong)
        if 2 * crowd > ice:
            raise ValueError(
                f"num_agents={crowd} on a {family} of {size}×{width} needs {2 * crowd} cells, it may have only {ice}: "
                f"at most {ice // 2} agents, or a larger size"
            )
    farthest = size + width - 2
    if slice_.min_distance > farthest:
        raise ValueError(
            f"min_distance={slice_.min_distance} on a {size}×{width} lake: cells are at most {farthest} apart; "
            f"lower it or use a larger size"
        )
