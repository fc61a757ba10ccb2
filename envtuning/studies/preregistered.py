"""What a comparison compares: a target, arms and seeds, as `envtuning compare` has them from its command line or from a file.

A file with a question is a preregistered study: target, metric, arms, seeds and trivial answers, written down before the first run. Commit
it before the final runs begin. It then shows that the claim was chosen before the results were known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from engineers.plain.open_loop import OPEN_LOOP
from engineers.shared import own
from engineers.tiers import Tier
from envtuning.runs.plan import Plan
from envtuning.runs.sections import FOLDER, HIGHEST_SEED
from envtuning.runs.spec import EngineerSpec, RunSpec, SpecError, load_spec, read_file
from envtuning.studies.study import FIRST_STAGE, Arms, comparable
from envtuning.studies.table import Known

EXAMPLE = Path(__file__).with_name("example_comparison.yaml")  # a complete file, to copy
BASELINES = ("fixed", "uniform", "target-only")


class ArmSpec(BaseModel):
    """One arm: an engineer, options of the trainee, and the first config."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    engineer: EngineerSpec = Field(description="As engineers.make takes it.")
    trainee: dict[str, Any] = Field(
        default_factory=dict, description="Options of the preset's trainee that this arm changes."
    )
    start: Literal["preset", "target", "random"] = Field(
        "preset",
        description="The first stage's config: the preset's, the target itself, or the preset's redrawn from each seed.",
    )
    tier: Tier | None = Field(
        None,
        description="What the arm knows; null: what its engineer and its start do. Say it where its trainee reads more.",
    )
    tuning_runs: int = Field(0, ge=0, description="Runs on other seeds that went into the arm.")

    @property
    def known(self) -> Known:
        found = Known.of(self.engineer, self.tuning_runs)
        start = Tier.TARGET if self.start == "target" else Tier.NOTHING
        return replace(found, tier=max(start, found.tier) if self.tier is None else self.tier)


class StudySpec(BaseModel):
    """The arms of a comparison, their seeds and their test."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=FOLDER)
    question: str = Field("", description="The question that a study answers; empty: nothing was preregistered.")
    preset: str = Field(description="The preset or file that says target, budget, trainee, suites and first stage.")
    metric: str | None = Field(
        None, description="What is compared: the objective of the preset's world; null: the same."
    )
    seeds: tuple[Annotated[int, Field(ge=0, le=HIGHEST_SEED)], ...] = Field(min_length=1)
    test_seed: int | None = Field(
        None,
        ge=0,
        le=HIGHEST_SEED,
        description="Seed of the final test and of the further sets, the study's own; null: the preset's `suites.seed`.",
    )
    pilot: str = Field(
        "", description="The pilot's spread and the n that it asks for; empty: n was chosen without one."
    )
    arms: dict[str, ArmSpec] = Field(min_length=1)
    trivial: tuple[str, ...] = Field((), description="Arms that need no engineering; every other is set against them.")
    beyond: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Further test sets by name: what each changes in the target, as dotted keys with new values.",
    )
    beyond_per_slice: int = Field(200, ge=1, description="Cases for each slice of a further test set.")
    added_later: dict[str, str] = Field(
        default_factory=dict,
        description="Arms, or `beyond`, that were written down after the test was opened, and what was known of them by then.",
    )

    _base: RunSpec | None = PrivateAttr(None)  # the run that all arms vary, where it is not that of the preset

    @classmethod
    def of(cls, spec: RunSpec, engineers: Sequence[str], seeds: Sequence[int]) -> StudySpec:
        """One arm per engineer, all with this run and its test."""
        if not engineers or len(set(engineers)) < len(engineers):
            raise SpecError(f"engineers {', '.join(engineers) or 'none'}: give at least one, none twice")
        found = cls(
            name=spec.name,
            preset=spec.name,
            seeds=tuple(seeds),
            arms={name: ArmSpec(engineer=spec.engineer.replaced_by(name)) for name in engineers},
            trivial=tuple(name for name in BASELINES if name in engineers),
        )
        found.vary(comparable(spec))
        return found

    @model_validator(mode="after")
    def _names_its_arms(self) -> StudySpec:
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds {', '.join(map(str, self.seeds))}: give none twice")
        for name in self.arms:
            if name.startswith(FIRST_STAGE):
                raise ValueError(
                    f"arms.{name}: folders named {FIRST_STAGE}… hold first stages that arms share: choose another name"
                )
        for name in self.beyond:
            if "/" in name or "\\" in name:
                raise ValueError(
                    f"beyond.{name}: a file in the study's folder is named after it, so write it without slashes"
                )
        for name in self.trivial:
            if name not in self.arms:
                raise ValueError(f"{name!r} is not an arm: the arms are {', '.join(self.arms)}")
        for name in self.added_later:
            if name not in self.arms and name != "beyond":
                raise ValueError(
                    f"added_later.{name} is neither an arm nor `beyond`: the arms are {', '.join(self.arms)}"
                )
        return self

    def vary(self, spec: RunSpec) -> None:
        """All arms vary this run, and not that of the preset."""
        self._base = spec

    @property
    def base(self) -> RunSpec:
        """The preset's run with the study's own test. The preset's ``test_seed`` is for its users' runs, so a study never uses it."""
        if self._base is not None:
            return self._base
        spec = comparable(load_spec(self.preset).with_test_seed(self.test_seed))
        objective = Plan.of(spec).world.about.objective
        if self.metric not in (None, objective):
            raise SpecError(
                f"metric={self.metric!r}: a study compares the objective of its world, {objective} for {self.preset}; "
                "the table of `envtuning compare` has the other rates"
            )
        return spec

    def specs(self) -> Arms:
        """The spec of every arm, without a seed. Raises ``SpecError`` for an engineer that would write nothing."""
        base, engineers = self.base, [arm.engineer.name for arm in self.arms.values()]
        if not base.asks_an_engineer and (idle := [name for name in engineers if name not in ("fixed", *OPEN_LOOP)]):
            raise SpecError(
                f"{idle[0]} would write nothing: no stage of {base.name} has config: engineer; compare fixed with target-only"
            )
        return {name: arm_of(base, arm) for name, arm in self.arms.items()}

    def known(self) -> dict[str, Known]:
        """What is known of every arm before its runs."""
        return {name: arm.known for name, arm in self.arms.items()}


def arm_of(base: RunSpec, arm: ArmSpec) -> RunSpec:
    """The preset's run with the arm's engineer and first config. Every engineer gets the options that all engineers take."""
    first = base.stages[0]
    if arm.start == "target":
        first = first.on(base.target)
    elif arm.start == "random":
        first = first.model_copy(update={"redraw": True})
    trainee = base.trainee.model_copy(update={"options": base.trainee.options | arm.trainee})
    options = base.engineer.common_options | arm.engineer.options
    engineer = arm.engineer.model_copy(update={"options": options})
    return base.model_copy(update={"trainee": trainee, "engineer": engineer, "stages": (first, *base.stages[1:])})


def load_study(path: str | Path, *, trust: Iterable[str] = ()) -> StudySpec:
    """The study in a YAML file. Raises ``SpecError``. ``trust``: what this file and its preset may name, as in ``load_spec``."""
    own.trust(trust)
    return read_file(path, StudySpec)


def part_of(study: StudySpec, names: str | None) -> Arms:
    """The specs of these arms, separated by commas; None: of all arms."""
    arms = study.specs()
    chosen = list(arms) if names is None else [name.strip() for name in names.split(",")]
    for name in chosen:
        if name not in arms:
            raise SpecError(f"{name!r} is not an arm of {study.name}: the arms are {', '.join(arms)}")
    return {name: arms[name] for name in chosen}
