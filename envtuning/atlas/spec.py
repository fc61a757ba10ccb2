"""``AtlasSpec``: the description of a tree, as a file: a preset's target and trainee, a root, a menu, a depth, seeds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

import engineers
from engineers.guard import Guard
from engineers.knobs import KnobError, dump, find_knobs, get, validated
from engineers.report import StageReport
from engineers.roles import find_slices
from envtuning.runs.plan import Plan
from envtuning.runs.sections import EngineerSpec, Frozen, StageSpec
from envtuning.runs.spec import RunSpec, SpecError, load_spec, read_file
from envtuning.seeds import derive
from envtuning.worlds.world import About

Path_ = tuple[str, ...]  # the menu's entries taken one after the other; () is the root
Named = Literal["first", "target", "uniform"]  # an entry's values besides a written config
FIRST: Named = "first"
TARGET: Named = "target"
UNIFORM: Named = "uniform"


class AtlasSpec(Frozen):
    """A tree of stages: from every node the same menu, ``depth`` stages deep, once for each seed."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    preset: str = Field(
        description="The preset or file that gives target, trainee, suites, space and the first config."
    )
    changes: dict[str, Any] = Field(default_factory=dict, description="Changes to the preset, by dotted keys.")
    seeds: tuple[int, ...] = Field(min_length=1)
    depth: int = Field(3, ge=1, le=6)
    root_budget: int = Field(ge=1, description="Budget of the root, which is trained on the preset's first config.")
    stage_budget: int = Field(ge=1, description="Budget of every later stage, validation and probe included.")
    menu: dict[str, dict[str, Any] | Named] = Field(
        min_length=3,
        description="Entries by name. 'first': the preset's first config; 'target'; 'uniform': the whole space evenly, drawn "
        "again at every node; otherwise a config that changes the first one, in which every share is set to 0.",
    )
    diagnosis: str | None = Field(None, description="The entry that teaches what the root cannot do; null: unknown.")
    held_out: bool = Field(False, description="Whether this tree's scores are kept out of all tuning.")

    @model_validator(mode="after")
    def _has_its_entries(self) -> AtlasSpec:
        for name in self.menu:
            if not name.isalnum():
                raise ValueError(f"menu entry {name!r}: name it with letters and digits alone")
        often = {kind: list(self.menu.values()).count(kind) for kind in (FIRST, TARGET)}
        if often[FIRST] != 1:
            raise ValueError(f"menu: exactly one entry must be 'first', but there are {often[FIRST]}")
        if often[TARGET] > 1:
            raise ValueError(f"menu: at most one entry may be 'target', but there are {often[TARGET]}")
        if self.diagnosis is not None and self.diagnosis not in self.menu:
            raise ValueError(f"diagnosis {self.diagnosis!r} is not on the menu: {', '.join(self.menu)}")
        return self

    @cached_property
    def digest(self) -> str:
        """Equal for files with the same trees, preset included; further seeds do not change it.

        It does not include the preset's defaults, so that a new option does not change the digest of a stored tree.
        """
        said = self.model_dump(mode="json", exclude={"seeds", "held_out", "diagnosis", "preset"})
        run = self.run.model_dump(mode="json", exclude_defaults=True, exclude={"name", "description", "seed"})
        if run["unit"] == About.unit:
            del run["unit"]
        run["target"] = self.plan.target.model_dump(mode="json", exclude_defaults=True)
        run["stages"][0]["config"] = self.first.model_dump(mode="json", exclude_defaults=True)
        return hashlib.sha256(json.dumps([said, run], sort_keys=True).encode()).hexdigest()[:12]

    @property
    def first_entry(self) -> str:
        return next(name for name, said in self.menu.items() if said == FIRST)

    @property
    def target_entry(self) -> str | None:
        return next((name for name, said in self.menu.items() if said == TARGET), None)

    @cached_property
    def plan(self) -> Plan:
        """Of the run that a walk through the tree is: the root, then ``depth`` stages that an engineer writes."""
        base = load_spec(self.preset, changes=self.changes).with_test_seed(None)
        root = base.stages[0].model_copy(update={"name": "root", "budget": self.root_budget})
        stages = [StageSpec(name=f"round {number}", budget=self.stage_budget) for number in range(1, self.depth + 1)]
        return Plan.of(base.model_copy(update={"name": self.name, "stages": (root, *stages), "total": None}))

    @property
    def run(self) -> RunSpec:
        return self.plan.spec

    @property
    def first(self) -> Any:
        """The config of the root's training."""
        return self.plan.first

    @cached_property
    def written(self) -> dict[str, Any]:
        """The entries that are the same at every node."""
        first = self.first
        laid = {FIRST: dump(first), TARGET: dump(self.plan.target)}
        blank = _without_data(first)
        return {
            name: _entry(type(first), blank, name, laid[said] if isinstance(said, str) else said)
            for name, said in self.menu.items()
            if said != UNIFORM
        }

    def entries(self, seed: int, path: Path_) -> dict[str, Any]:
        """The configs that may be trained on at a node, by name."""
        return {name: self.written.get(name) or self._drawn(seed, path) for name in self.menu}

    def _drawn(self, seed: int, path: Path_) -> Any:
        run = self.run
        engineer = engineers.make(
            UNIFORM,
            seed=derive(seed, "atlas", *path),
            space=run.engineer.options.get("space"),
            guard=Guard(self.plan.world.check),
        )
        first = self.first
        blank = StageReport(stage=len(path), config=dump(first))
        return engineer.propose(blank, current=first, editable=run.editable).config

    def paths(self, length: int) -> Iterator[Path_]:
        """All ways of that many stages."""
        return product(self.menu, repeat=length)

    def along(self, seed: int, path: Path_) -> RunSpec:
        """The run along this path, with its configs written beforehand."""
        stages = list(self.run.stages)
        for number, name in enumerate(path):
            config = self.entries(seed, path[:number])[name]
            stages[number + 1] = stages[number + 1].model_copy(update={"config": dump(config)})
        return self.run.model_copy(
            update={"seed": seed, "stages": tuple(stages), "engineer": EngineerSpec(name="fixed")}
        )


def _without_data(config: BaseModel) -> dict[str, Any]:
    """The config as JSON, with every share at 0."""
    data = dump(config)
    for piece in find_slices(find_knobs(config, ("*",))):
        if piece.share is not None:
            get(data, piece.share.path[:-1])[piece.share.field] = 0.0
    return data


def _entry(config_type: type[BaseModel], blank: dict[str, Any], name: str, said: Any) -> Any:
    try:
        return validated(config_type, _laid_over(blank, said))
    except KnobError as error:
        raise SpecError(f"menu.{name}: {error}") from error


def _laid_over(below: Any, above: Any) -> Any:
    """``above`` where it says something, ``below`` elsewhere; YAML reads sizes as numbers, JSON has them as texts."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    said = {str(key): value for key, value in above.items()}
    return {key: _laid_over(below.get(key), said[key]) if key in said else below[key] for key in {**below, **said}}


def load_atlas(path: str | Path) -> AtlasSpec:
    """The tree that a YAML file describes; ``SpecError`` names the file's fault."""
    return read_file(path, AtlasSpec)
