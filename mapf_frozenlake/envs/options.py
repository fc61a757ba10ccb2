"""From the keyword arguments that users type to a config, an optional fixed board, and a batch: one place for every form."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from mapf_frozenlake.config import LakeConfig, Slice
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import Instance
from mapf_frozenlake.world.batch import LakeBatch

DRAW = ("size", "num_agents", "hole_ratio", "wait_ratio", "min_distance")  # as LakeConfig.single takes them
RULES = tuple(name for name in LakeConfig.model_fields if name not in ("slices", "num_agents"))
BATCH = tuple(
    name
    for name in inspect.signature(LakeBatch).parameters
    if name not in ("config", "num_envs", "autoreset", "reward", "instance")
)
KNOWN = ("config", "desc", "instance", *DRAW, *RULES, *BATCH)


@dataclass(frozen=True)
class EnvOptions:
    """What an env was made with, understood: the rules and draws, and the batch's other kwargs."""

    config: LakeConfig
    batch: dict[str, Any]

    def make_batch(self, num_envs: int, autoreset: str = "disabled") -> LakeBatch:
        return LakeBatch(self.config, num_envs, autoreset=autoreset, **self.batch)  # type: ignore[arg-type]


def understand(kwargs: Mapping[str, Any]) -> EnvOptions:
    """Sort an env's keyword arguments; unknown or contradictory ones are a ``LakeError``."""
    unknown = sorted(set(kwargs) - set(KNOWN))
    if "max_episode_steps" in unknown:
        raise LakeError(
            f"max_episode_steps={kwargs['max_episode_steps']}: the env counts its steps itself; give horizon"
        )
    if unknown:
        raise LakeError(f"unknown argument {unknown[0]!r}: known are {', '.join(KNOWN)}")
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
                f"bring their own"
            )
    if instance is not None:
        if given.get("config") is None:
            draw = {"size": max(instance.height, instance.width), "num_agents": instance.num_agents}
        batch.setdefault("max_size", max(instance.height, instance.width))
        batch.setdefault("max_agents", instance.num_agents)
        batch["instance"] = instance
    return EnvOptions(_config_of(given.get("config"), draw, rules), batch)


def as_config(config: LakeConfig | Mapping[str, Any]) -> LakeConfig:
    """A config, or a mapping that is one."""
    if isinstance(config, LakeConfig):
        return config
    if not isinstance(config, Mapping):
        raise LakeError(f"config of type {type(config).__name__}: give a LakeConfig or a dict of its fields")
    try:
        return LakeConfig.model_validate(dict(config))
    except ValidationError as error:
        raise LakeError(_one_sentence(error)) from None


def _config_of(
    config: LakeConfig | Mapping[str, Any] | None, draw: Mapping[str, Any], rules: Mapping[str, Any]
) -> LakeConfig:
    try:
        if config is None:
            return LakeConfig.single(**draw, **rules)
        base = as_config(config)
        return LakeConfig.model_validate(base.model_dump() | dict(rules)) if rules else base
    except ValidationError as error:
        raise LakeError(_one_sentence(error)) from None


def _fixed_board(desc: str | Sequence[str] | None, instance: Instance | None) -> Instance | None:
    if desc is not None and instance is not None:
        raise LakeError("desc and instance both give the board: give one of them")
    if desc is None:
        if not isinstance(instance, Instance | None):
            raise LakeError(f"instance of type {type(instance).__name__}: give an Instance")
        return instance
    from mapf_frozenlake.maps import from_desc

    return from_desc(desc)


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
