"""``RunSpec``: all that decides how a run goes, as one frozen model. A preset is a file of it, and so is what a user writes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    SerializeAsAny,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from engineers.sentences import in_sentences
from envtuning.extras import needs
from envtuning.loop.transitions import Rule
from envtuning.worlds.registry import UnknownWorld, make_world
from envtuning.worlds.world import World

try:
    import yaml
except ImportError as error:
    raise needs("a run", error) from None


class SpecError(ValueError):
    """A run's file or preset does not describe a run."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


AnyConfig = SerializeAsAny[InstanceOf[BaseModel]]  # a config of the run's world
Unit = Literal["env_steps", "episodes", "samples", "tokens"]
SUITE_SEED = 20_260_617


class _Unread(BaseModel):
    """Stands for a config that nobody can read, because its world cannot be made."""


class WorldSpec(_Frozen):
    """Which environment: in a run's file a name, or a name and options."""

    name: str = Field("lakes", description="A name from envtuning.worlds, or 'package.module:object' of your own.")
    options: dict[str, Any] = Field(default_factory=dict, description="Passed to the world as keyword arguments.")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given

    @cached_property
    def made(self) -> World[Any]:
        return make_world(self.name, **self.options)


class TraineeSpec(_Frozen):
    kind: str = Field("rllib", description="A kind from envtuning.trainees, or 'package.module:Class' of your own.")
    options: dict[str, Any] = Field(default_factory=dict, description="Passed to the trainee as keyword arguments.")


class EngineerSpec(_Frozen):
    name: str = Field("rules", description="As engineers.make takes it: rules, fixed, openai/…, local/…, replay/FILE.")
    options: dict[str, Any] = Field(default_factory=dict, description="Passed to engineers.make as keyword arguments.")
    timeout: float | None = Field(
        90_000.0,
        gt=0,
        description="Seconds until it counts as failed, null: never. Models and humans have shorter limits of their own.",
    )


class SuiteSpec(_Frozen):
    """How much is validated, probed and tested. Validation and probes are charged to the budget; the test is not.

    The held-out sets belong to the target and to these seeds, not to the run's seed: tables of different seeds are about the
    same cases. While you develop, leave the test out (``test_per_slice: 0``), or give the final one a ``test_seed`` of its own.
    """

    validation_per_slice: int = Field(
        50,
        ge=1,
        validation_alias=AliasChoices("validation_per_slice", "validation_per_size"),
        description="Held-out cases for each slice of the target.",
    )
    test_per_slice: int = Field(
        0,
        ge=0,
        validation_alias=AliasChoices("test_per_slice", "test_per_size"),
        description="Cases for each slice of the target, opened once after the last stage; 0: no test.",
    )
    probe_per_slice: int = Field(
        20,
        ge=0,
        validation_alias=AliasChoices("probe_per_slice", "probe_per_size"),
        description="Cases for each slice, drawn from the stage's own config after it.",
    )
    validate_every: int | None = Field(
        None, ge=1, description="Units of budget trained between validations inside a stage; null: only at its end."
    )
    failure_cases: int = Field(6, ge=0, description="Failed cases shown in the report.")
    seed: int = Field(SUITE_SEED, ge=0, description="What the validation set is drawn from.")
    test_seed: int | None = Field(None, ge=0, description="What the test set is drawn from; null: `seed`.")


class GuardSpec(_Frozen):
    """Limits on a proposal beyond its schema; ``engineers.guard.check`` applies them."""

    max_drop: float | None = Field(
        0.7, ge=0, le=1, description="Part of a working slice's share that may go at once; null: all (the ablation)."
    )
    check_feasible: bool = Field(True, description="Whether the generator is asked if it can draw the config.")


class Fade(_Frozen):
    """A number of the config that starts elsewhere and moves to its own value while the stage goes on."""

    knob: str = Field(description="Dotted path of a number of the config, such as hint_strength.")
    start: float = Field(1.0, description="Its value when the stage begins.")
    over: float = Field(0.5, gt=0.0, le=1.0, description="Share of the stage after which it has its own value.")


class Stage(_Frozen):
    """One stretch of training on one config."""

    name: str = ""
    config: AnyConfig | Literal["engineer"] = Field(
        "engineer", description="What to train on; 'engineer': what the engineer proposes after the stage before."
    )
    redraw: bool = Field(
        False, description="Whether the written config's editable knobs are redrawn from the run's seed."
    )
    budget: int = Field(ge=1, description="In the run's unit, validation and probes included.")
    advance_when: Rule | None = Field(None, description="Ends the stage before its budget is spent; null: never.")
    fade: Fade | None = Field(None, description="A number of the config to be moved to its value bit by bit.")

    @model_validator(mode="before")
    @classmethod
    def _hints_by_their_old_name(cls, given: Any) -> Any:
        """``fade_hints: 0.5`` is short for fading ``hint_strength`` from 1 over half of the stage."""
        if isinstance(given, dict) and "fade_hints" in given:
            given = dict(given)
            if over := given.pop("fade_hints"):
                given.setdefault("fade", {"knob": "hint_strength", "start": 1.0, "over": over})
        return given


class RunSpec(_Frozen):
    """A run, complete: two runs of one spec end in the same numbers (for trainees that keep their promise)."""

    name: str = Field("run", pattern=r"^[\w.+-]+$")
    description: str = ""
    seed: int = Field(0, ge=0)
    world: WorldSpec = Field(WorldSpec(), validate_default=True, description="The environment; lakes where nothing is said.")
    target: AnyConfig = Field(description="The distribution that is validated and tested on.")
    stages: tuple[Stage, ...] = Field(min_length=1)
    unit: Unit = Field("env_steps", description="What budgets count: env_steps, episodes, samples or tokens.")
    total: int | None = Field(
        None, ge=1, description="Budget of the whole run: the last stage is repeated until it is spent. null: no repetition."
    )
    trainee: TraineeSpec = TraineeSpec()
    engineer: EngineerSpec = EngineerSpec()
    editable: tuple[str, ...] | None = Field(
        None, description="Knobs the engineer may turn; null: the config class's own list."
    )
    suites: SuiteSpec = SuiteSpec()
    guard: GuardSpec = GuardSpec()
    retries: int = Field(2, ge=0, description="How often a stage is tried again after it diverged or lost a worker.")

    @model_validator(mode="before")
    @classmethod
    def _unit_of_the_world(cls, given: Any) -> Any:
        """Where the file names no unit, the world's own."""
        if isinstance(given, dict) and "unit" not in given and "world" in given:
            try:
                world = WorldSpec.model_validate(given["world"]).made
            except (UnknownWorld, ValidationError):
                return given  # the field's own validation says what is wrong
            return given | {"unit": world.about.unit}
        return given

    @field_validator("world")
    @classmethod
    def _can_be_made(cls, world: WorldSpec) -> WorldSpec:
        try:
            _ = world.made
        except UnknownWorld as error:
            raise ValueError(str(error)) from error
        return world

    @field_validator("target", mode="before")
    @classmethod
    def _target_of_the_world(cls, given: Any, info: ValidationInfo) -> Any:
        return _config_of(given, info)

    @field_validator("stages", mode="before")
    @classmethod
    def _configs_of_the_world(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, list | tuple):
            return given
        stages = []
        for number, stage in enumerate(given):
            if isinstance(stage, dict) and stage.get("config", "engineer") != "engineer":
                stage = stage | {"config": _config_of(stage["config"], info, number, "config")}
            stages.append(stage)
        return stages

    @model_validator(mode="after")
    def _can_be_run(self) -> RunSpec:
        if self.stages[0].config == "engineer":
            raise ValueError(
                "stages[0].config is 'engineer', but there is no report yet: write the first stage's config"
            )
        if self.total is not None and self.total < self.stage_budget:
            raise ValueError(
                f"total is {self.total:,}, but the stages have budgets of {self.stage_budget:,} together: give at least that"
            )
        return self

    @property
    def written_configs(self) -> list[Any]:
        """The target and every config that stands in the file."""
        return [self.target, *(stage.config for stage in self.stages if stage.config != "engineer")]

    @property
    def stage_budget(self) -> int:
        """Of the stages as they are listed, none repeated."""
        return sum(stage.budget for stage in self.stages)

    @property
    def budget(self) -> int:
        return self.total if self.total is not None else self.stage_budget

    def stage(self, number: int) -> Stage:
        """The plan of a stage; beyond the list, the last one again."""
        return self.stages[min(number, len(self.stages) - 1)]

    def allowed(self, number: int) -> int:
        """What may be spent up to this stage's end."""
        listed = sum(self.stage(earlier).budget for earlier in range(number + 1))
        return listed if self.total is None else min(listed, self.total)

    def with_rounds(self, count: int) -> RunSpec:
        """The first ``count`` stages; beyond the last, engineer-written copies of it."""
        if count < 1:
            raise SpecError(f"{count} stages: a run has at least 1")
        more = [self.stages[-1].model_copy(update={"config": "engineer", "name": ""})] * (count - len(self.stages))
        return self.model_copy(update={"stages": (*self.stages[:count], *more)})


def preset_names() -> list[str]:
    return sorted(entry.name.removesuffix(".yaml") for entry in _presets().iterdir() if entry.name.endswith(".yaml"))


def preset_text(name: str) -> str:
    return (_presets() / f"{name}.yaml").read_text(encoding="utf-8")


def load_spec(source: str | Path, *, changes: Mapping[str, Any] | None = None) -> RunSpec:
    """The run that a preset's name or a YAML or JSON file describes; ``SpecError`` says what is wrong with it.

    ``changes`` are values by dotted keys, which replace those of the file: ``{"trainee.options.lr": 3e-4}``.
    """
    if str(source) in preset_names():
        return parse_spec(preset_text(str(source)), f"preset {source}", changes=changes)
    path = Path(source)
    if not path.is_file():
        raise SpecError(f"{source} is neither a file nor a preset: the presets are {', '.join(preset_names())}")
    return parse_spec(path.read_text(encoding="utf-8", errors="replace"), str(path), name=path.stem, changes=changes)


def parse_spec(
    text: str, origin: str, name: str | None = None, *, changes: Mapping[str, Any] | None = None
) -> RunSpec:
    try:
        data = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise SpecError(f"{origin} is neither YAML nor JSON: {error}") from error
    if not isinstance(data, dict):
        raise SpecError(
            f"{origin} holds {type(data).__name__}, not a mapping: a run's file has keys such as target, stages"
        )
    if name is not None:
        data.setdefault("name", name)
    if (base := data.pop("extends", None)) is not None:
        if base not in preset_names():
            raise SpecError(f"{origin} extends {base!r}: the presets are {', '.join(preset_names())}")
        data = yaml.safe_load(preset_text(base)) | data  # whole sections are replaced, nothing is merged inside one
    data = _unshared(data)  # or a change of one place would change every place that YAML's anchors made the same
    for key, value in (changes or {}).items():
        _set(data, key, value)
    try:
        return RunSpec.model_validate(data)
    except ValidationError as error:
        raise SpecError(f"{origin}: {in_sentences(error)}") from error


def _config_of(given: Any, info: ValidationInfo, *place: str | int) -> Any:
    """The config that the world's own model makes of this; what is wrong is said with the place of the field."""
    world = info.data.get("world")
    if world is None:
        return _Unread()  # the world itself is at fault, and is said so
    config_type = world.made.config_type
    if isinstance(given, config_type):
        return given
    try:
        return config_type.model_validate(given)
    except ValidationError as error:
        faults = [
            InitErrorDetails(
                type=PydanticCustomError(fault["type"], "{what}", {"what": fault["msg"].removeprefix("Value error, ")}),
                loc=(*place, *fault["loc"]),
                input=fault["input"],
            )
            for fault in error.errors()
        ]
        raise ValidationError.from_exception_data(config_type.__name__, faults) from None


def _unshared(data: Any) -> Any:
    """The same data with no part of it in two places at once."""
    if isinstance(data, dict):
        return {key: _unshared(value) for key, value in data.items()}
    return [_unshared(value) for value in data] if isinstance(data, list) else data


def _set(data: Any, key: str, value: Any) -> None:
    """Put a value at a dotted key; sections on the way are made where there are none."""
    *way, last = key.split(".")
    for part in way:
        if isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        elif isinstance(data, dict):
            known = next((name for name in data if str(name) == part), part)  # YAML reads sizes as numbers
            data = data.setdefault(known, {})
        else:
            raise SpecError(f"--set {key}: there is no {part!r} to set anything in")
    if isinstance(data, list) and last.isdigit() and int(last) < len(data):
        data[int(last)] = value
    elif isinstance(data, dict):
        data[next((name for name in data if str(name) == last), last)] = value
    else:
        raise SpecError(f"--set {key}: there is no {last!r} to set")


def _presets() -> Any:
    return resources.files("envtuning") / "presets"
