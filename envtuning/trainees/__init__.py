"""Kinds of trainees by name; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

from pydantic import ValidationError

from envtuning.spec import sentences
from envtuning.trainee import Trainee

KINDS: dict[str, str] = {
    "rllib": "envtuning.trainees.rllib:RLlibTrainee",
    "scripted": "envtuning.trainees.scripted:ScriptedTrainee",
}


class UnknownTrainee(ValueError):
    """No trainee of this kind, or not with these options."""


def make_trainee(kind: str, **arguments: Any) -> Trainee:
    """A trainee of a kind in ``KINDS``, or of the class that ``package.module:Class`` names."""
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
            raise UnknownTrainee(f"trainee {kind!r} needs {missing}: pip install 'mapf-frozenlake[rllib]'") from error
        raise UnknownTrainee(f"trainee kind {kind!r}: {module_name} cannot be imported ({error})") from error
    if not hasattr(module, class_name):
        raise UnknownTrainee(f"trainee kind {kind!r}: {module_name} has no {class_name}")
    factory = getattr(module, class_name)
    try:
        signature(factory).bind(**arguments)
        return factory(**arguments)
    except ValidationError as error:
        raise UnknownTrainee(f"trainee {kind!r}: options.{sentences(error)}") from error
    except (TypeError, ValueError) as error:
        raise UnknownTrainee(f"trainee {kind!r} cannot be made with these options: {error}") from error
