"""Parses an environment's keyword arguments into those of a batch, for every interface."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from mapf_frozenlake.config import RULES, LakeConfig, Slice
from mapf_frozenlake.errors import LakeError, UnknownArgument
from mapf_frozenlake.maps import from_desc
from mapf_frozenlake.types import Instance

DRAW = (  # as LakeConfig.single takes them
    "size", "num_agents", "hole_ratio", "wait_ratio", "min_distance", "map_family", "loops", "room_size", "shelf_length", "aisle",
)  # fmt: skip
BATCH = (
    "observation", "dtype", "max_size", "max_agents", "window", "hints", "pool_size", "certify", "exclude", "num_threads",
)  # fmt: skip
KNOWN = ("config", "desc", "instance", *DRAW, *RULES, *BATCH)
# Every interface has these arguments, with these defaults. None is not given: the config says it, or LakeConfig and LakeBatch do.
DEFAULTS: dict[str, Any] = dict.fromkeys(KNOWN) | {
    "observation": "ego",
    "dtype": "float32",
    "hints": False,
    "num_threads": 1,
}
Sizes = int | tuple[int, int]  # a square's side; rows and columns
ELSEWHERE = {  # other environments' names -> our names
    "map_name": "size",
    "n_agents": "num_agents",
    "agents": "num_agents",
    "max_cycles": "horizon",
    "max_steps": "horizon",
    "max_episode_steps": "horizon",
    "obs_type": "observation",
    "grid_size": "size",
    "map_size": "size",
    "density": "hole_ratio",
    "obs_radius": "window",
}


def given_among(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What was given of ``KNOWN``, among all arguments of an env as ``locals()`` has them; and its ``unknown`` ones."""
    given = {name: arguments[name] for name in KNOWN if arguments.get(name, DEFAULTS[name]) is not DEFAULTS[name]}
    return given | arguments["unknown"]


def options_from(kwargs: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments of a ``LakeBatch`` from an env's keyword arguments; unknown or contradictory ones raise ``LakeError``.

    ``also`` names the env's other arguments, for the message.
    """
    raise_unless_known(kwargs, also=also)
    given = {name: value for name, value in kwargs.items() if name in KNOWN}
    rules = {name: given[name] for name in RULES if name in given}
    draw = {name: given[name] for name in DRAW if name in given}
    batch = {name: given[name] for name in BATCH if name in given}
    if callable(rules.get("reward")):
        batch["reward"] = rules.pop("reward")
    instance = _fixed_board(given.get("desc"), given.get("instance"))
    for name, excluded in (("config", given.get("config")), ("desc or instance", instance)):
        if excluded is not None and draw:
            raise LakeError(
                f"{next(iter(draw))} and {name} both say what is drawn: give one of them; ids with a size in their name "
                f"already set size, num_agents and hole_ratio"
            )
    if instance is not None:
        if given.get("config") is None:
            draw = {"size": max(instance.height, instance.width), "num_agents": instance.num_agents}
        batch.setdefault("max_size", max(instance.height, instance.width))
        batch.setdefault("max_agents", instance.num_agents)
        batch["instance"] = instance
    return batch | {"config": _config_of(given.get("config"), draw, rules)}


def raise_unless_known(kwargs: Mapping[str, Any], also: Sequence[str] = ()) -> None:
    """Raises ``UnknownArgument`` for a name that is no option. The message names the options and those in ``also``."""
    unknown = sorted(set(kwargs) - set(KNOWN))
    if unknown:
        raise UnknownArgument(_did_you_mean(unknown[0], kwargs[unknown[0]], (*KNOWN, *also)))


def _did_you_mean(name: str, value: Any, known: Sequence[str]) -> str:
    close = [ELSEWHERE[name]] if name in ELSEWHERE else get_close_matches(name, known, 1)
    if name == "map_name":  # FrozenLake's "8x8"
        side = str(value).partition("x")[0]
        value = int(side) if side.isdecimal() else value
    hint = f" (did you mean {close[0]}={value!r}?)" if close else ""
    return f"got an unexpected keyword argument {name!r}{hint}: known are {', '.join(known)}"


def as_config(config: LakeConfig | Mapping[str, Any] | str) -> LakeConfig:
    """A config, given as such, as a mapping or as a JSON text."""
    if isinstance(config, LakeConfig):
        return config
    if not isinstance(config, Mapping | str):
        raise LakeError(f"config of type {type(config).__name__}: give a LakeConfig, a dict of its fields, or its JSON")
    try:
        if isinstance(config, str):
            return LakeConfig.model_validate_json(config)
        return LakeConfig.model_validate(dict(config))
    except ValidationError as error:
        raise LakeError(_one_sentence(error)) from None


def as_instance(instance: Instance | Mapping[str, Any] | str) -> Instance:
    """An instance, given as such or as JSON, text or parsed."""
    if isinstance(instance, Instance):
        return instance
    if not isinstance(instance, Mapping | str):
        raise LakeError(f"instance of type {type(instance).__name__}: give an Instance, or its JSON")
    return Instance.from_json(instance)


def in_json_types(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as JSON values, so that an env can be made again from a record. Values that JSON cannot hold stay as they are."""
    held: dict[str, Any] = {}
    for name, value in kwargs.items():
        if isinstance(value, LakeConfig):
            held[name] = value.model_dump(mode="json")
        elif isinstance(value, Instance):
            held[name] = json.loads(value.to_json())
        else:
            held[name] = value
    return held


def _config_of(
    config: LakeConfig | Mapping[str, Any] | str | None, draw: Mapping[str, Any], rules: Mapping[str, Any]
) -> LakeConfig:
    try:
        if config is None:
            return LakeConfig.single(**draw, **rules)
        base = as_config(config)
        return LakeConfig.model_validate(base.model_dump() | dict(rules)) if rules else base
    except ValidationError as error:
        raise LakeError(_one_sentence(error)) from None


def _fixed_board(
    desc: str | Sequence[str] | None, instance: Instance | Mapping[str, Any] | str | None
) -> Instance | None:
    if desc is not None and instance is not None:
        raise LakeError("desc and instance both give the board: give one of them")
    if desc is not None:
        return from_desc(desc)
    return None if instance is None else as_instance(instance)


def _one_sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    where = "size" if first["loc"][-1] == "[key]" else ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        model = Slice if len(first["loc"]) > 1 else LakeConfig
        return f"unknown field {where!r}: known are {', '.join(model.model_fields)}"
    field = Slice.model_fields.get(str(first["loc"][-1])) or LakeConfig.model_fields.get(str(first["loc"][0]))
    meaning = f" ({field.description.rstrip('.')})" if field is not None and field.description else ""
    return f"{where}={first['input']!r}: {message[0].lower()}{message[1:]}{meaning}"
