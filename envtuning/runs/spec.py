"""``RunSpec``: all that decides how a run goes, as one frozen model. A preset is a file of it, and so is what a user writes."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from envtuning.extras import needs
from envtuning.loop.transitions import Rule
from mapf_frozenlake import LakeConfig

try:
    import yaml
except ImportError as error:
    raise needs("a run", error) from None


class SpecError(ValueError):
    """A run's file or preset does not describe a run."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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
    """How much is validated, probed and tested. Validation and probes are charged to the budget; the test is not."""

    validation_per_size: int = Field(50, ge=1, description="Held-out boards per map size of the target distribution.")
    test_per_size: int = Field(100, ge=0, description="Boards per size, opened once after the last stage.")
    probe_per_size: int = Field(20, ge=0, description="Boards per size drawn from the stage's own config, after it.")
    validate_every: int | None = Field(
        None, ge=1, description="Env steps of training between validations inside a stage; null: only at its end."
    )
    failure_cases: int = Field(6, ge=0, description="Failed boards drawn into the report.")


class GuardSpec(_Frozen):
    """Limits on a proposal beyond its schema; ``engineers.guard.check`` applies them."""

    max_drop: float | None = Field(
        0.7, ge=0, le=1, description="Part of a working slice's share that may go at once; null: all (the ablation)."
    )
    check_feasible: bool = Field(True, description="Whether the generator is asked if it can draw the config.")


class Stage(_Frozen):
    """One stretch of training on one config."""

    name: str = ""
    config: LakeConfig | Literal["engineer"] = Field(
        "engineer", description="What to train on; 'engineer': what the engineer proposes after the stage before."
    )
    redraw: bool = Field(
        False, description="Whether the written config's editable knobs are redrawn from the run's seed."
    )
    budget: int = Field(ge=1, description="Env steps, validation and probes included; one step moves all agents once.")
    advance_when: Rule | None = Field(None, description="Ends the stage before its budget is spent; null: never.")
    fade_hints: float = Field(
        0.0, ge=0.0, le=1.0, description="Share of the stage in which hints fade from full to the config's strength."
    )


class RunSpec(_Frozen):
    """A run, complete: two runs of one spec end in the same numbers (for trainees that keep their promise)."""

    name: str = Field("run", pattern=r"^[\w.+-]+$")
    description: str = ""
    seed: int = Field(0, ge=0)
    target: LakeConfig = Field(description="The distribution that is validated and tested on.")
    stages: tuple[Stage, ...] = Field(min_length=1)
    trainee: TraineeSpec = TraineeSpec()
    engineer: EngineerSpec = EngineerSpec()
    editable: tuple[str, ...] | None = Field(
        None, description="Knobs the engineer may turn; null: LakeConfig's own list."
    )
    suites: SuiteSpec = SuiteSpec()
    guard: GuardSpec = GuardSpec()
    retries: int = Field(2, ge=0, description="How often a stage is tried again after it diverged or lost a worker.")

    @model_validator(mode="after")
    def _can_be_run(self) -> RunSpec:
        if self.target.is_slippery:
            raise ValueError(
                "target.is_slippery is true, but validation judges plans, and on ice that slips a plan has no fixed "
                "outcome: train on slippery stages if you like, and validate on a target that does not slip"
            )
        if self.stages[0].config == "engineer":
            raise ValueError(
                "stages[0].config is 'engineer', but there is no report yet: write the first stage's config"
            )
        return self

    @property
    def written_configs(self) -> list[LakeConfig]:
        """The target and every config that stands in the file."""
        return [self.target, *(stage.config for stage in self.stages if isinstance(stage.config, LakeConfig))]

    @property
    def max_size(self) -> int:
        return max(config.max_size for config in self.written_configs)

    @property
    def max_agents(self) -> int:
        return max(config.max_agents for config in self.written_configs)

    @property
    def budget(self) -> int:
        return sum(stage.budget for stage in self.stages)

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


def load_spec(source: str | Path) -> RunSpec:
    """The run that a preset's name or a YAML or JSON file describes; ``SpecError`` says what is wrong with it."""
    if str(source) in preset_names():
        return parse_spec(preset_text(str(source)), f"preset {source}")
    path = Path(source)
    if not path.is_file():
        raise SpecError(f"{source} is neither a file nor a preset: the presets are {', '.join(preset_names())}")
    return parse_spec(path.read_text(encoding="utf-8", errors="replace"), str(path), name=path.stem)


def parse_spec(text: str, origin: str, name: str | None = None) -> RunSpec:
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
    try:
        return RunSpec.model_validate(data)
    except ValidationError as error:
        raise SpecError(f"{origin}: {sentences(error)}") from error


def sentences(error: ValidationError) -> str:
    """A pydantic error as short as it can be: where, and what."""
    faults = [f"{'.'.join(str(part) for part in fault['loc']) or 'file'}: {fault['msg']}" for fault in error.errors()]
    return "; ".join(faults)


def _presets() -> Any:
    return resources.files("envtuning") / "presets"
