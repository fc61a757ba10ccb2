"""The sections of a run's file: world, trainee, engineer, suites, guard, stages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from engineers.common_options import COMMON_OPTIONS, LOOPS_OWN
from engineers.knobs import KnobError, dump, validated
from engineers.registry import DEFAULT_ENGINEER
from engineers.shared import own
from envtuning.runs.reading import storable, without_secrets
from envtuning.runs.transitions import Rule
from envtuning.runs.trust import Written
from envtuning.trainees.base import DEFAULT_KIND
from envtuning.worlds.registry import DEFAULT_WORLD


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def as_data(config: Any) -> Any:
    """A config as JSON values. Raises ``KnobError`` if its class reads them as another config, because later steps would train on that."""
    if not isinstance(config, BaseModel):
        return config
    data = dump(config)
    try:
        if validated(type(config), data) == config:
            return data
        said = "it becomes another config"
    except KnobError as error:
        said = str(error)
    raise KnobError(f"the config cannot be restored from its own JSON ({said}): fix its validators and serializers")


# a config of the run's world, which reads it when the run is resolved
Config = Annotated[dict[Any, Any], BeforeValidator(as_data)]
FOLDER = r"^[\w+-][\w.+-]*$"  # a name that is also a folder's: it must not lead to a folder above
MOST_CASES = 1_000_000  # of a held-out set, per slice
MOST_SPENT = 10**15  # of any unit of budget
MOST_STAGES = 10_000
HIGHEST_SEED = 2**63 - 1


def _without(names: Iterable[str]) -> AfterValidator:
    """Refuses options with these names."""

    def checked(options: dict[str, Any]) -> dict[str, Any]:
        if taken := sorted(options.keys() & set(names)):
            raise ValueError(f"{taken[0]} is set by the run: leave it out")
        return options

    return AfterValidator(checked)


Options = Annotated[dict[str, Any], AfterValidator(storable)]
Unit = Literal["env_steps", "episodes", "samples", "tokens"]
SUITE_SEED = 20_260_617


class Named(Frozen, metaclass=Written):
    """A name with options. In a file the name alone is enough: ``engineer: rules``."""

    section: ClassVar[str]  # of a run's file
    options: dict[str, Any] = Field(description="Its own options.")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, given: Any) -> Any:
        name = next(field for field in cls.model_fields if field != "options")
        if isinstance(given, str):
            return {name: given}
        if not isinstance(given, dict | cls):
            raise ValueError(f"{given!r:.60} is not a name: write a name, or {{{name}: …, options: {{…}}}}")
        return given

    def was_written(self) -> None:
        """A script wrote this section, so what it names is trusted."""
        given = {name: value for name, value in self if name != "options"}
        own.chosen(self.section, given | {f"options.{name}": value for name, value in self.options.items()})


class WorldSpec(Named):
    """Which environment."""

    section = "world"
    name: str = Field(
        DEFAULT_WORLD, description="A name from envtuning.worlds, or 'package.module:object' of your own."
    )
    options: Options = Field(default_factory=dict, description="Passed to the world as keyword arguments.")


class TraineeSpec(Named):
    section = "trainee"
    kind: str = Field(
        DEFAULT_KIND, description="A kind from envtuning.trainees, or 'package.module:Class' of your own."
    )
    options: Annotated[Options, _without(("world", "capacity", "exclude", "seed", "unit"))] = Field(
        default_factory=dict, description="Passed to the trainee as keyword arguments."
    )


class EngineerSpec(Named):
    section = "engineer"
    name: str = Field(
        DEFAULT_ENGINEER, description="As engineers.make takes it: steady, rules, openai/…, local/…, replay/FILE."
    )
    options: Annotated[Options, AfterValidator(without_secrets), _without(LOOPS_OWN)] = Field(
        default_factory=dict, description="Passed to engineers.make as keyword arguments; no keys."
    )
    timeout: float | None = Field(
        90_000.0,
        gt=0,
        description="Seconds after which an engineer that has not answered counts as failed; null: never. Models and humans have shorter limits of their own.",
    )

    @property
    def common_options(self) -> dict[str, Any]:
        """The options that every engineer takes, such as ``space``."""
        return {name: value for name, value in self.options.items() if name in COMMON_OPTIONS}

    def replaced_by(self, name: str) -> EngineerSpec:
        """Another engineer in this one's place, which the caller chose. It gets the common options, but not this engineer's own options."""
        own.chosen(self.section, {"name": name})
        return self if name == self.name else self.model_copy(update={"name": name, "options": self.common_options})


OLD_VALIDATE = "validate_every"


def _when_to_validate(given: str) -> str:
    if not re.fullmatch(r"last|stages|every [1-9]\d{0,15}", given):
        raise ValueError(f"{given!r:.40} is no time to validate: write last, stages, or every N (every 2500)")
    return given


def _validate_of(every: int | None) -> str:
    return "stages" if every is None else f"every {every}"


def with_todays_names(spec: Any) -> Any:
    """A stored run's spec whose suites may have a name of before."""
    suites = spec.get("suites") if isinstance(spec, dict) else None
    if not isinstance(suites, dict) or OLD_VALIDATE not in suites:
        return spec
    renamed = {name: value for name, value in suites.items() if name != OLD_VALIDATE}
    return spec | {"suites": renamed | {"validate": _validate_of(suites[OLD_VALIDATE])}}


class SuiteSpec(Frozen):
    """How much is validated, probed and tested, and when. Validation and probes are charged to the budget; the test is not.

    The held-out sets belong to the target and to these seeds, not to the run's seed: tables of different seeds are about the
    same cases. While you develop, leave the test out (``test_per_slice: 0``), or give the final one a ``test_seed`` of its own.
    """

    model_config = ConfigDict(populate_by_name=True)  # BaseModel has a method ``validate``

    validation_per_slice: int = Field(
        50,
        ge=1,
        le=MOST_CASES,
        description="Number of validation cases for each slice of the target.",
    )
    test_per_slice: int = Field(
        0,
        ge=0,
        le=MOST_CASES,
        description="Number of test cases for each slice of the target, played once after the last stage; 0: no test.",
    )
    test_start: bool = Field(
        False,
        description="Whether the test is also played with the trainee as the run began, so that it shows what the first stage brought.",
    )
    probe_per_slice: int | None = Field(
        None,
        ge=0,
        le=MOST_CASES,
        description="Number of cases for each slice that are drawn from the stage's own config and played after the stage; null: 20 "
        "if the trainee gives no outcomes of training, else none is played.",
    )
    validates: Annotated[str, AfterValidator(_when_to_validate)] = Field(
        "stages",
        alias="validate",
        description="When the policy is validated: 'last' (after the last stage alone), 'stages' (after each), or 'every N' (also inside a "
        "stage, each time that N of the budget is spent).",
    )
    training_per_slice: int = Field(
        8,
        ge=0,
        le=MOST_CASES,
        description="Where only the last stage is validated: about how many training questions a stage has of each slice of the target at "
        "least, whatever the engineer writes, because a slice without any cannot be seen.",
    )
    failure_cases: int = Field(6, ge=0, le=1_000, description="Number of failed cases shown in the report.")
    seed: int = Field(SUITE_SEED, ge=0, le=HIGHEST_SEED, description="Seed of the validation set.")
    test_seed: int | None = Field(
        None, ge=0, le=HIGHEST_SEED, description="Seed of the test set; null: the same as `seed`."
    )

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, given: Any) -> Any:
        if isinstance(given, dict) and OLD_VALIDATE in given:
            raise ValueError(
                f"{OLD_VALIDATE} is called validate now: write validate: {_validate_of(given[OLD_VALIDATE])}"
            )
        return given

    @model_validator(mode="after")
    def _charges_nothing_before_the_end(self) -> SuiteSpec:
        if self.last_alone and self.probe_per_slice:
            raise ValueError(
                f"validate: last charges no test before the end, and probe_per_slice: {self.probe_per_slice} would after every stage: "
                "leave one of them out"
            )
        return self

    @property
    def last_alone(self) -> bool:
        """Whether no test is charged before the end."""
        return self.validates == "last"

    @property
    def every(self) -> int | None:
        """How much of the budget is spent between two validations inside a stage; None: none is inside."""
        _, _, amount = self.validates.partition("every ")
        return int(amount) if amount else None

    @property
    def seed_of_test(self) -> int:
        return self.seed if self.test_seed is None else self.test_seed


class GuardSpec(Frozen):
    """Limits on a proposal beyond its schema; ``engineers.guard.check`` applies them."""

    max_drop: float | None = Field(
        0.7,
        ge=0,
        le=1,
        description="Largest part of a working slice's share that one proposal may take away; null: no limit.",
    )
    check_feasible: bool = Field(True, description="Whether a proposal is refused when the generator cannot draw it.")


class Fade(Frozen):
    """A number of the config that starts elsewhere and moves to its own value during the stage."""

    knob: str = Field(description="Dotted path of a number of the config, such as hint_strength.")
    start: float = Field(1.0, description="The knob's value when the stage begins.")
    over: float = Field(
        0.5, gt=0.0, le=1.0, description="Fraction of the stage after which the knob has reached the config's value."
    )


class StageSpec(Frozen):
    """A stage of the run's file: training on one config."""

    name: str = ""
    config: Config | Literal["engineer"] = Field(
        "engineer",
        description="The config to train on; 'engineer': the one that the engineer proposes after the previous stage.",
    )
    redraw: bool = Field(
        False, description="Whether the editable knobs of this config are drawn again from the run's seed."
    )
    budget: int = Field(
        ge=1, le=MOST_SPENT, description="What the stage may spend, in the run's unit; validation and probes count."
    )
    advance_when: Rule | None = Field(
        None, description="Rule that ends the stage before its budget is spent; null: no rule."
    )
    fade: Fade | None = Field(
        None, description="A number of the config that moves to its value step by step during the stage."
    )

    @field_validator("config", mode="before")
    @classmethod
    def _is_written_or_the_engineers(cls, given: Any) -> Any:
        if not isinstance(given, dict | BaseModel) and given != "engineer":
            raise ValueError(f"{given!r:.60} is not a config: write a mapping, or the word engineer")
        return as_data(given)

    def on(self, config: BaseModel | dict[str, Any]) -> StageSpec:
        """This stage on exactly this config, neither redrawn nor faded."""
        return self.model_copy(update={"config": as_data(config), "redraw": False, "fade": None})

    @property
    def asks(self) -> bool:
        """Whether the engineer writes the config."""
        return self.config == "engineer"
