"""Kinds of trainees by name; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

from pydantic import ValidationError

from engineers.errors import Mendable
from engineers.from_file import allowed_in, raise_unless_allowed
from engineers.own import object_at
from engineers.sentences import in_sentences
from envtuning.extras import needs
from envtuning.trainees.base import Trainee, as_kind, as_trainee
from envtuning.worlds.registry import DEFAULT_WORLD, make_world
from envtuning.worlds.world import FORMS, Cases, Form, World

KINDS: dict[str, str] = {
    "menu": "envtuning.trainees.menu:MenuTrainee",
    "ppo": "envtuning.trainees.ppo.trainee:PPOTrainee",
    "grpo": "envtuning.trainees.language.trainee:GRPOTrainee",
    "lm": "envtuning.trainees.language.lm:LMTrainee",
    "rllib": "envtuning.trainees.rllib.trainee:RLlibTrainee",
    "sb3": "envtuning.trainees.sb3:SB3Trainee",
    "scripted": "envtuning.trainees.scripted:ScriptedTrainee",
}
FORM_OF: dict[
    str, Form
] = {  # what the classes declare, for who checks a config and makes no trainee: some take seconds to import
    "menu": "replies",
    "ppo": "acts",
    "grpo": "replies",
    "lm": "replies",
    "rllib": "acts",
    "sb3": "acts",
    "scripted": "plans",
}
LIVE = {  # engineers on the trainee's own model
    name: f"envtuning.trainees.language.live_engineers:{name}" for name in ("checkpoint", "base", "introspection")
}
EXTRAS = {
    "sb3": "sb3",
    "menu": "bfcl",
    "grpo": "grpo",
    "lm": "grpo",
}  # what to install for a kind; the others share one extra with the loop


class UnknownTrainee(Mendable, ValueError):
    """There is no trainee of this kind, or it does not take these options, or it cannot learn in this world."""


def make_trainee(
    kind: str,
    /,
    *,
    world: World[Any] | None = None,
    room: Mapping[str, Any],
    exclude: Sequence[Cases] = (),
    seed: int = 0,
    **options: Any,
) -> Trainee:
    """A trainee of a kind in ``KINDS``, or of the class that ``package.module:Class`` names; for lakes unless told otherwise."""
    factory = factory_of(kind)
    with _explained(kind):
        _raise_unless_from_file(kind, factory, options)
        given = {"world": world or make_world(DEFAULT_WORLD), "room": room, "exclude": tuple(exclude), "seed": seed}
        return as_trainee(factory(**given, **options))


def form_of_trainee(kind: str) -> Form:
    """The form of its policy, as it declares it. Raises ``UnknownTrainee`` where it declares none."""
    if kind in FORM_OF:
        return FORM_OF[kind]
    form = as_kind(factory_of(kind)).form
    if form not in FORMS:
        raise UnknownTrainee(
            f"trainee {kind!r} declares form={form!r}: set the class attribute `form` to one of "
            f"{', '.join(map(repr, FORMS))}, so that a run knows what its policy is"
        )
    return form


def reported_by(kind: str) -> frozenset[str] | None:
    """The training metrics that it says it has; None where it does not say."""
    reports = as_kind(factory_of(kind)).reports
    return None if reports is None else frozenset(reports)


def raise_unless_makeable(
    kind: str, options: dict[str, Any], world: World[Any], target: Any, unit: str = "env_steps"
) -> None:
    """Find out before there is a run whether this trainee can be had for this world, without making one."""
    factory = factory_of(kind)
    form = form_of_trainee(kind)
    if form not in world.forms:
        plays = " or ".join(f"{name!r} ({FORMS[name]})" for name in sorted(world.forms))
        raise UnknownTrainee(
            f"trainee {kind!r} {FORMS[form]}, and the world {world.about.name!r} cannot play that: it needs a policy of form {plays}"
        )
    world.check_target(target, form)
    declared = as_kind(factory)
    if (units := declared.units) is not None and unit not in units:
        raise UnknownTrainee(
            f"trainee {kind!r} counts {' and '.join(units)}, and the run's budgets are in {unit}: set unit to {units[0]!r}"
        )
    with _explained(kind):
        signature(factory).bind(world=world, room={}, exclude=(), seed=0, **unit_for(kind, unit), **options)
        declared.check_options(**options)
        _raise_unless_from_file(kind, factory, options)


def _raise_unless_from_file(kind: str, factory: Any, options: Mapping[str, Any]) -> None:
    """Raises ``NotAllowed`` for what such a trainee takes from its user alone, and a run's file says."""
    said = {name: value for name, value in options.items() if name != "unit"}  # which is the run's
    raise_unless_allowed("trainee.options", said, allowed_in(factory, KINDS.get(kind, kind)))


def unit_for(kind: str, unit: str) -> dict[str, str]:
    """The run's unit of budget as an argument, for factories that name it among theirs."""
    return {"unit": unit} if "unit" in signature(factory_of(kind)).parameters else {}


def factory_of(kind: str) -> Any:
    """The class or function that makes trainees of this kind. Raises ``UnknownTrainee``."""
    place = KINDS.get(kind, kind)
    if ":" not in place:
        raise UnknownTrainee(
            f"trainee kind {kind!r} is unknown: the kinds are {', '.join(sorted(KINDS))}; your own is 'package.module:Class'"
        )
    try:
        return object_at(place)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if place is not kind and missing not in ("envtuning", "mapf_frozenlake", "engineers"):
            raise UnknownTrainee(needs(f"trainee {kind!r}", error, EXTRAS.get(kind, "rllib")).msg) from error
        raise UnknownTrainee(f"trainee kind {kind!r}: {error}") from error


@contextmanager
def _explained(kind: str) -> Iterator[None]:
    """What is wrong with a trainee's options, in a sentence."""
    try:
        yield
    except ValidationError as error:
        raise UnknownTrainee(f"trainee {kind!r}: {in_sentences(error, 'options')}") from error
    except (TypeError, ValueError) as error:
        raise UnknownTrainee(f"trainee {kind!r} cannot be made with these options: {error}") from error
    except (AssertionError, AttributeError, LookupError) as error:
        # of an algorithm's own checks, or of somebody's trainee
        said = f"{type(error).__name__}: {error}"
        raise UnknownTrainee(f"trainee {kind!r} cannot be made with these options ({said})") from error
    except SystemExit as error:
        raise UnknownTrainee(f"trainee {kind!r} cannot be made: its code would end this process ({error})") from error
