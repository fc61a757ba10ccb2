"""``Plan``: a run's spec with all that it names: the world, the configs, the guard, and how to make the trainee and the engineer."""

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
from engineers.registry import needs_trainee, raise_unless_from_file
from engineers.sentences import in_sentences
from envtuning.runs.sections import as_data
from envtuning.runs.seeds import derive
from envtuning.runs.spec import RunSpec, SpecError
from envtuning.runs.unknown_fields import unknown_fields
from envtuning.trainees import LIVE, TraineeKind, form_of
from envtuning.trainees.base import Trainee
from envtuning.worlds.registry import make_world
from envtuning.worlds.world import Cases, World


@dataclass(frozen=True)
class Plan:
    """Made by ``Plan.of``, for whoever reads a run or changes a spec, or by ``resolve``, for whoever begins one."""

    spec: RunSpec  # written out in full, as run.json has it
    world: World[Any]
    target: Any
    configs: tuple[Any, ...]  # of the stages as they are listed; None where the engineer writes it

    @classmethod
    def of(cls, spec: RunSpec) -> Plan:
        """Makes the world and reads the configs. Raises ``UnknownWorld``, or ``SpecError`` for a config that the world does not know."""
        world = make_world(spec.world.name, **spec.world.options)
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
        """The same with another seed, on which nothing else in it depends."""
        return replace(self, spec=self.spec.model_copy(update={"seed": seed}))

    def config(self, number: int) -> Any:
        """The config that the file gives a stage; None if the engineer writes it. Beyond the list, the last stage is repeated."""
        return self.configs[min(number, len(self.configs) - 1)]

    @property
    def written(self) -> list[Any]:
        """The target and every config that stands in the file."""
        return [self.target, *(config for config in self.configs if config is not None)]

    @property
    def unit(self) -> str:
        """What budgets count."""
        return self.spec.unit or self.world.about.unit

    @cached_property
    def trainee(self) -> TraineeKind:
        """Raises ``SpecError`` where there is no such kind."""
        return TraineeKind.named(self.spec.trainee.kind)

    @property
    def asks_the_trainee(self) -> bool:
        """Whether the engineer asks the model under training."""
        return needs_trainee(self._engineer)

    @property
    def _engineer(self) -> str:
        """What ``engineers.make`` knows the engineer by."""
        return LIVE.get(self.spec.engineer.name, self.spec.engineer.name)

    @cached_property
    def guard(self) -> Guard:
        """What every config of this run must pass."""
        return Guard(self._check if self.spec.guard.check_feasible else None, self.spec.guard.max_drop)

    def _check(self, config: Any) -> None:
        """Raises where nothing could be drawn from the config, or the trainee could not be asked about it."""
        self.world.check(config)
        self.world.check_form(config, form_of(self.spec.trainee.kind))

    def make_trainee(self, exclude: Sequence[Cases] = (), *, configs: Sequence[Any] = (), **options: Any) -> Trainee:
        """The run's trainee, untrained, with room for these further configs. Raises ``SpecError``."""
        return self.trainee.make(
            self.spec.trainee.options | options,
            world=self.world,
            capacity=self.world.capacity([*self.written, *configs]),
            exclude=exclude,
            seed=derive(self.spec.seed, "trainee"),
            unit=self.unit,
        )

    def make_engineer(self, trainee: Callable[[], Any] | None = None, **options: Any) -> engineers.Engineer:
        """The run's engineer, with the run's guard; ``trainee`` loads the trainee for one that asks its model. Raises ``SpecError``."""
        asked = self.spec.engineer
        given = asked.options | options | {"guard": self.guard}
        try:
            raise_unless_from_file(self._engineer, asked.options)
            if isinstance(given.get("context"), dict):  # a context of one's own, written out in the run's file
                given["context"] = engineers.Context(**given["context"])
            if self.asks_the_trainee:
                given |= {"trainee": trainee and trainee(), "timeout": asked.timeout}
            return engineers.make(self._engineer, **given)
        except ValidationError as error:
            raise SpecError(in_sentences(error)) from error
        except (ImportError, TypeError, ValueError) as error:
            raise SpecError(str(error)) from error


def _config(place: str, given: Any, world: World[Any]) -> BaseModel:
    """The config that the world's own model makes of what a file says."""
    try:
        config = _read(world.config_type, given)
        as_data(config)
    except ValidationError as error:
        raise SpecError(in_sentences(error, place)) from error
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
