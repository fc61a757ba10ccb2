"""Finds fields in a written config that its model does not have. By default, pydantic drops them silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel


def unknown_fields(given: Any, config: Any, place: str) -> Iterator[str]:
    """A sentence for each key of ``given`` that is missing in ``config``, the config made from it.

    Models with a validator for raw data, or with aliases for validation alone, are skipped: their keys may differ from their fields.
    """
    if isinstance(config, BaseModel) and isinstance(given, Mapping):
        fields = type(config).model_fields
        aliases = {field.alias: name for name, field in fields.items()}
        names = {name: name for name in fields} | aliases
        for key, value in given.items():
            if key in names:
                yield from unknown_fields(value, getattr(config, names[key]), f"{place}.{key}")
            elif _ignores_extras(type(config)):
                yield f"{place}.{key}: {type(config).__name__} has no such field: it has {', '.join(fields)}"
    elif isinstance(config, Mapping) and isinstance(given, Mapping):
        by_text = {str(key): value for key, value in config.items()}
        for key, value in given.items():
            yield from unknown_fields(value, by_text.get(str(key)), f"{place}.{key}")
    elif isinstance(config, list | tuple) and isinstance(given, list | tuple):
        for number, (value, made) in enumerate(zip(given, config)):
            yield from unknown_fields(value, made, f"{place}.{number}")


def _ignores_extras(model: type[BaseModel]) -> bool:
    validators = model.__pydantic_decorators__.model_validators.values()
    return (
        model.model_config.get("extra", "ignore") == "ignore"
        and not any(validator.info.mode in ("before", "wrap") for validator in validators)
        and all(field.validation_alias == field.alias for field in model.model_fields.values())
    )
