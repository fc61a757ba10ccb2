"""Kinds of trainees by name; each is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from inspect import signature
from typing import Any

from pydantic import ValidationError

from envtuning.extras import needs
from envtuning.runs.spec import sentences
from envtuning.trainees.base import Trainee

KINDS: dict[str, str] = {
    "rllib": "envtuning.trainees.rllib.trainee:RLlibTrainee",
    "scripted": "envtuning.trainees.scripted:ScriptedTrainee",
}


class UnknownTrainee(ValueError):
    """No trainee of this kind, or not with these options."""


def make_trainee(kind: str, **arguments: Any) -> Trainee:
    """A trainee of a kind in ``KINDS``, or of the class that ``package.module:Class`` names."""
    factory = _factory(kind)
    with _told(kind):
        signature(factory).bind(**arguments)
        return factory(**arguments)


def raise_unless_makeable(kind: str, options: dict[str, Any]) -> None:
    """Find out before there is a run whether this trainee can be had with these options, without making one.

    A factory may have ``check_options(**options)``, which raises what is wrong with them.
    """
    factory = _factory(kind)
    with _told(kind):
        signature(factory).bind(max_size=2, max_agents=1, exclude=None, seed=0, **options)
        if hasattr(factory, "check_options"):
            factory.check_options(**options)


def _factory(kind: str) -> Any:
    place = KINDS.get(kind, kind)
    module_name, _, class_name = place.partition(":")
    if not class_name:
        raise UnknownTrainee(
            f"trainee kind {kind!r}: the kinds are {', '.join(sorted(KINDS))}; your own is 'package.module:Class'"
        )
    try:
        module = import_module(module_name)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if place is not kind and missing in ("ray", "torch"):
            raise UnknownTrainee(needs(f"trainee {kind!r}", error).msg) from error
        raise UnknownTrainee(f"trainee kind {kind!r}: {module_name} cannot be imported ({error})") from error
    if not hasattr(module, class_name):
        raise UnknownTrainee(f"trainee kind {kind!r}: {module_name} has no {class_name}")
    return getattr(module, class_name)


@contextmanager
def _told(kind: str) -> Iterator[None]:
    """What is wrong with a trainee's options, in a sentence."""
    try:
        yield
    except ValidationError as error:
        raise UnknownTrainee(f"trainee {kind!r}: options.{sentences(error)}") from error
    except (TypeError, ValueError) as error:
        raise UnknownTrainee(f"trainee {kind!r} cannot be made with these options: {error}") from error
