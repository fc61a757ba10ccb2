"""``Plan``: a run's spec, with the objects that it names: the world, the configs, the guard, the trainee and the engineer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

import engineers
from engineers.guard import Guard
from engineers.knobs import KnobError, dump
from engineers.plain.open_loop import OPEN_LOOP, OpenLoopEngineer
from engineers.registry import named_in_a_file as engineer_in_a_file
from engineers.registry import needs_trainee, raise_unless_from_file
from engineers.shared.sentences import in_sentences
from envtuning.runs.sections import as_data
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.unknown_fields import unknown_fields
from envtuning.seeds import derive
from envtuning.trainees import LIVE, TraineeKind, form_of
from envtuning.trainees.base import Trainee
from envtuning.worlds.registry import named_in_a_file as world_in_a_file
from envtuning.worlds.world import Cases, World


@dataclass(frozen=True)
class Plan:
    """``Plan.of`` makes one for changing a spec, ``Plan.stored`` for reading a run. ``resolve`` makes one for beginning a run."""

    spec: RunSpec  # with all defaults filled in, as in run.json
    world: World[Any]
    target: BaseModel
    configs: tuple[BaseModel | None, ...]  # of the listed stages; None if the engineer writes it

    @classmethod
    def of(cls, spec: RunSpec) -> Plan:
        """The plan of a spec that somebody wrote. Raises as ``stored`` does, and ``SpecError`` for an engineer that cannot write its configs."""
        plan, engineer = cls.stored(spec), OPEN_LOOP.get(spec.engineer.name)
        return plan if engineer is None else cls.stored(written_ahead(plan, engineer))

    @classmethod
    def stored(cls, spec: RunSpec) -> Plan:
        """The plan of a run's folder, in whose spec an open-loop engineer has already written its configs.

        Makes the world and reads the configs. Raises ``UnknownWorld``, or ``SpecError`` for a config that the world does not know."""
        world = world_in_a_file(spec.world.name, spec.world.options)
        target = _config("target", spec.target, world)
        configs = tuple(
            None if stage.asks else _config(f"stages.{number}.config", stage.config, world)
            for number, stage in enumerate(spec.stages)
        )
        stages = tuple(
            stage if config is None else stage.model_copy(update={"config": as_data(config)})
            for stage, config in zip(spec.stages, configs)
        )
        unit = spec.unit or world.about.unit
        full = spec.model_copy(update={"target": as_data(target), "stages": stages, "unit": unit})
        try:
            return cls(RunSpec.model_validate(dump(full)), world, target, configs)
        except ValidationError as error:
            raise SpecError(in_sentences(error)) from error

    def seeded(self, seed: int) -> Plan:
        """The same plan with another seed. Nothing else in a plan depends on the seed."""
        return replace(self, spec=self.spec.model_copy(update={"seed": seed}))

    def config(self, number: int) -> BaseModel | None:
        """A stage's config in the file; None if the engineer writes it. After the list, the last stage is repeated."""
        return self.configs[min(number, len(self.configs) - 1)]

    @property
    def first(self) -> BaseModel:
        """The first stage's config, which is always in the file."""
        return self.given[0]  # RunSpec refuses a first stage by the engineer

    @property
    def given(self) -> list[BaseModel]:
        """The stages' configs in the file."""
        return [config for config in self.configs if config is not None]

    @property
    def written(self) -> list[BaseModel]:
        """The target and every config in the file."""
        return [self.target, *self.given]

    @property
    def unit(self) -> str:
        """The unit of all budgets."""
        return self.spec.unit or self.world.about.unit

    @cached_property
    def trainee(self) -> TraineeKind:
        """The kind of trainee. Raises ``SpecError`` if there is no such kind."""
        return TraineeKind.named(self.spec.trainee.kind)

    @property
    def asks_the_trainee(self) -> bool:
        """Whether the engineer asks the model under training."""
        return needs_trainee(self._engineer)

    @property
    def _engineer(self) -> str:
        """The engineer's name for ``engineers.make``."""
        return LIVE.get(self.spec.engineer.name, self.spec.engineer.name)

    @cached_property
    def guard(self) -> Guard:
        """The check that every config of this run must pass."""
        return Guard(self._check if self.spec.guard.check_feasible else None, self.spec.guard.max_drop)

    def _check(self, config: BaseModel) -> None:
        """Raises if nothing can be drawn from the config, or if the trainee cannot read its questions."""
        self.world.check(config)
        self.world.check_form(config, form_of(self.spec.trainee.kind))

    def make_trainee(
        self, exclude: Sequence[Cases] = (), *, configs: Sequence[BaseModel] = (), **options: Any
    ) -> Trainee:
        """The run's trainee, untrained, with room for these further configs. Raises ``SpecError``."""
        return self.trainee.make(
            self.spec.trainee.options | options,
            world=self.world,
            capacity=self.world.capacity([*self.written, *configs]),
            exclude=exclude,
            seed=derive(self.spec.seed, "trainee"),
            unit=self.unit,
        )

    def make_engineer(self, trainee: Callable[[], Trainee] | None = None, **options: Any) -> engineers.Engineer:
        """The run's engineer, with the run's guard; ``trainee`` loads the trainee for one that asks its model. Raises ``SpecError``."""
        asked = self.spec.engineer
        given = asked.options | options | {"guard": self.guard}
        try:
            raise_unless_from_file(self._engineer, asked.options)
            if isinstance(given.get("context"), dict):  # a user's own context, as the run's file has it
                given["context"] = engineers.Context(**given["context"])
            if self.asks_the_trainee:
                given |= {"trainee": trainee and trainee(), "timeout": asked.timeout}
            return engineer_in_a_file(self._engineer, given)
        except ValidationError as error:
            raise SpecError(in_sentences(error)) from error
        except (ImportError, TypeError, ValueError) as error:
            raise SpecError(str(error)) from error


def written_ahead(plan: Plan, engineer: type[OpenLoopEngineer]) -> RunSpec:
    """The spec with the configs of an engineer that needs no report."""
    spec, (first, *later) = plan.spec, plan.spec.stages
    try:
        ahead = engineer.ahead(plan.first, plan.target, spec.editable)
    except KnobError as error:
        raise SpecError(f"{spec.name}: {error}") from error
    if ahead.later is None and not spec.asks_an_engineer:
        raise SpecError(f"{engineer.name} would draw nothing: no stage of {spec.name} has config: engineer")
    if ahead.later is not None:
        later = [stage.on(ahead.later) for stage in later]
    if ahead.first is not None:
        is_asked = ahead.later is None  # then the first stage is that of the other arms, without some slices
        first = first.model_copy(update={"config": as_data(ahead.first)}) if is_asked else first.on(ahead.first)
    changed = {} if ahead.editable is None else {"editable": ahead.editable}
    return spec.model_copy(update={"stages": (first, *later), **changed})


def _config(place: str, given: Any, world: World[Any]) -> BaseModel:
    """A config of the file as the world's own model."""
    try:
        config = _read(world.config_type, given)
        as_data(config)
    except ValidationError as error:
        raise SpecError(in_sentences(error, place, of=world.config_type)) from error
    except KnobError as error:
        raise SpecError(f"{place}: {error}") from error
    if unknown := "; ".join(unknown_fields(given, config, place)):
        raise SpecError(unknown)
    return config


def _read(config_type: type[BaseModel], given: Any) -> BaseModel:
    """The config of a file. A strict class takes a list for a tuple, and text for an enum's member, from JSON alone."""
    try:
        return config_type.model_validate(given)
    except ValidationError as error:
        try:
            return config_type.model_validate_json(json.dumps(given))
        except (ValidationError, TypeError, ValueError):
            raise error from None
