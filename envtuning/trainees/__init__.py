"""The kinds of trainees by name. Each is imported at first use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

from pydantic import ValidationError

from engineers.from_file import allowed_in, raise_unless_allowed
from engineers.shared.extras import needs
from engineers.shared.own import chosen, object_at
from engineers.shared.sentences import in_sentences
from envtuning.errors import SpecError
from envtuning.trainees.base import Trainee, WorkerLost, trainee_class
from envtuning.worlds.registry import DEFAULT_WORLD, make_world
from envtuning.worlds.world import FORMS, Cases, Form, World


class Known(NamedTuple):
    """Facts about a kind, without an import of its class, which may take seconds."""

    place: str
    form: Form  # as the class declares it
    extra: str = "rllib"  # the extra to install


KINDS = {
    "ppo": Known("envtuning.trainees.ppo:PPOTrainee", "acts"),
    "grpo": Known("envtuning.trainees.language.trainee:GRPOTrainee", "replies", "grpo"),
    "lm": Known("envtuning.trainees.language.lm:LMTrainee", "replies", "grpo"),
    "rllib": Known("envtuning.trainees.rllib.trainee:RLlibTrainee", "acts"),
    "sb3": Known("envtuning.trainees.sb3:SB3Trainee", "acts", "sb3"),
    "exam": Known("envtuning.exam.trainee:ExamTrainee", "replies", "exam"),
    "scripted": Known("envtuning.trainees.scripted:ScriptedTrainee", "plans"),
}
LIVE = {  # engineers on the trainee's own model
    name: f"envtuning.trainees.language.live_engineers:{name}" for name in ("checkpoint", "base")
}


def form_of(name: str) -> Form:
    """The form of a kind's policy, without importing this package's own classes. Raises ``SpecError``."""
    return KINDS[name].form if name in KINDS else TraineeKind.named(name).form


@dataclass(frozen=True)
class TraineeKind:
    """A maker of trainees of one kind, with their declarations."""

    name: str
    factory: Any
    declared: type[Trainee]

    @classmethod
    def named(cls, name: str) -> TraineeKind:
        """The kind of this name in ``KINDS``, or of the class or function at ``package.module:Class``. Raises ``SpecError``."""
        known = KINDS.get(name)
        place = known.place if known else name
        if ":" not in place:
            raise SpecError(
                f"trainee kind {name!r} is unknown: the kinds are {', '.join(sorted(KINDS))}; your own is 'package.module:Class'"
            )
        try:
            factory = object_at(place)
        except ImportError as error:
            missing = (error.name or "").partition(".")[0]
            if known and missing not in ("envtuning", "mapf_frozenlake", "engineers"):
                raise SpecError(needs(f"trainee {name!r}", error, known.extra).msg) from error
            raise SpecError(f"trainee kind {name!r}: {error}") from error
        try:
            return cls(name, factory, trainee_class(factory))
        except TypeError as error:
            raise SpecError(f"trainee kind {name!r}: {error}") from error

    @property
    def form(self) -> Form:
        """The form of its policy. Raises ``SpecError`` if it declares none."""
        form = self.declared.form
        if form not in FORMS:
            raise SpecError(
                f"trainee {self.name!r} declares form={form!r}: set the class attribute `form` to one of "
                f"{', '.join(map(repr, FORMS))}, so that a run knows what its policy is"
            )
        return form

    def check(self, options: Mapping[str, Any], world: World[Any], target: Any, unit: str = "env_steps") -> None:
        """Check before a run that such a trainee can learn in this world, without making one. Raises ``SpecError``."""
        if self.form not in world.forms:
            plays = " or ".join(f"{name!r} ({FORMS[name]})" for name in sorted(world.forms))
            raise SpecError(
                f"trainee {self.name!r} {FORMS[self.form]}, and the world {world.about.name!r} cannot play that: it needs a policy of "
                f"form {plays}"
            )
        with _explained(self.name):
            self.declared.check_world(world)
        world.check_target(target, self.form)
        if (units := self.declared.units) is not None and unit not in units:
            raise SpecError(
                f"trainee {self.name!r} counts {' and '.join(units)}, and the run's budgets are in {unit}: set unit to {units[0]!r}"
            )
        with _explained(self.name):
            given = {"world": world, "capacity": {}, "exclude": (), "seed": 0, **self._told(unit)}
            signature(self.factory).bind(**given, **options)
            self.declared.check_options(**options)
            self._raise_unless_from_file(options)

    def make(
        self,
        options: Mapping[str, Any],
        *,
        world: World[Any],
        capacity: Mapping[str, Any],
        exclude: Sequence[Cases],
        seed: int,
        unit: str | None,
    ) -> Trainee:
        """An untrained trainee. Raises ``SpecError``."""
        with _explained(self.name):
            self._raise_unless_from_file(options)
            self.declared.check_world(world)
            given = {"world": world, "capacity": capacity, "exclude": tuple(exclude), "seed": seed, **self._told(unit)}
            made = self.factory(**given, **options)
            if not isinstance(made, Trainee):
                raise TypeError(f"it made a {type(made).__name__}, which does not derive from envtuning.Trainee")
            return made

    def _told(self, unit: str | None) -> dict[str, str]:
        """The run's unit of budget as an argument, for factories that have such an argument."""
        return {"unit": unit} if unit is not None and "unit" in signature(self.factory).parameters else {}

    def _raise_unless_from_file(self, options: Mapping[str, Any]) -> None:
        """Raises ``NotAllowed`` for an option that a run's file must not set for such a trainee."""
        place = KINDS[self.name].place if self.name in KINDS else self.name
        raise_unless_allowed("trainee.options", options, allowed_in(self.factory, place))


def make_trainee(
    kind: str,
    /,
    *,
    world: World[Any] | None = None,
    capacity: Mapping[str, Any],
    exclude: Sequence[Cases] = (),
    seed: int = 0,
    unit: str | None = None,
    **options: Any,
) -> Trainee:
    """A trainee of a kind in ``KINDS``, or of the class at ``package.module:Class``; for lakes by default.

    The caller chose the kind and the options, so they are trusted.
    """
    chosen("trainee", {"kind": kind, **{f"options.{option}": value for option, value in options.items()}})
    world = world or make_world(DEFAULT_WORLD)
    return TraineeKind.named(kind).make(options, world=world, capacity=capacity, exclude=exclude, seed=seed, unit=unit)


@contextmanager
def _explained(kind: str) -> Iterator[None]:
    """Turns an error about a trainee's options into a ``SpecError``."""
    try:
        yield
    except ValidationError as error:
        raise SpecError(f"trainee {kind!r}: {in_sentences(error, 'options')}") from error
    except (TypeError, ValueError) as error:
        raise SpecError(f"trainee {kind!r} cannot be made with these options: {error}") from error
    except WorkerLost:
        raise
    except (AssertionError, AttributeError, LookupError, RuntimeError) as error:
        # an error of an algorithm's own checks, or of a user's trainee
        said = f"{type(error).__name__}: {error}"
        raise SpecError(f"trainee {kind!r} cannot be made with these options ({said})") from error
    except SystemExit as error:
        raise SpecError(f"trainee {kind!r} cannot be made: its code would end this process ({error})") from error
