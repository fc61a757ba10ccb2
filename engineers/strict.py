"""One value's JSON Schema in the strict subset that OpenAI's, Gemini's and the constrained decoders' modes all accept."""

from __future__ import annotations

from typing import Any

# What else a schema says goes into the description.
STRICT_KEYWORDS = ("type", "enum", "minimum", "maximum", "minItems", "maxItems")


def branches(root: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The alternatives of a schema with references followed; keywords beside a reference override it."""
    if "$ref" in schema:
        target = root
        for key in schema["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return [{**branch, **beside} for branch in branches(root, target)]
    for union in ("anyOf", "oneOf"):
        if union in schema:
            beside = {key: value for key, value in schema.items() if key not in (union, "discriminator")}
            return [{**branch, **beside} for option in schema[union] for branch in branches(root, option)]
    return [schema]


def strict_schema(root: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any] | None:
    """The value's schema in the strict subset, with null in a type union; None if it needs a nested object."""
    typed = [one for branch in branches(root, schema) for one in _of_one_type_each(branch)]
    options = [strict for branch in typed if (strict := _strict_option(root, branch)) is not None]
    null = {"type": "null"}
    others = [option for option in options if option != null]
    if not others:
        return None
    if len(others) > 1:
        return {"anyOf": options}
    only = others[0]
    if null not in options:
        return only
    nullable = {**only, "type": [only["type"], "null"]}
    return {**nullable, "enum": [*only["enum"], None]} if "enum" in only else nullable


def _strict_option(root: dict[str, Any], branch: dict[str, Any]) -> dict[str, Any] | None:
    if branch.get("type") not in ("number", "integer", "string", "boolean", "null", "array"):
        return None
    strict = {key: branch[key] for key in STRICT_KEYWORDS if key in branch}
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in branch:
            strict[bound] = branch[exclusive]
    if strict["type"] == "array":
        items = branch.get("items") or _any_of(branch.get("prefixItems", []))
        inner = strict_schema(root, items) if isinstance(items, dict) else None
        if inner is None:
            return None
        strict["items"] = inner
    return strict


def _of_one_type_each(branch: dict[str, Any]) -> list[dict[str, Any]]:
    """A choice without a type as one choice for each JSON type among its values, null by itself; whatever else as it is."""
    if "const" in branch:
        branch = {**branch, "enum": [branch["const"]]}
    if "enum" not in branch or "type" in branch:
        return [branch]
    by_type: dict[str, list[Any]] = {}
    for value in branch["enum"]:
        by_type.setdefault(_json_type(value), []).append(value)
    null = {"type": "null"}
    return [null if name == "null" else {**branch, "type": name, "enum": values} for name, values in by_type.items()]


def _any_of(places: list[dict[str, Any]]) -> dict[str, Any]:
    """The values allowed anywhere in a tuple: providers have no schema by place, and the config's own check follows."""
    different = [place for number, place in enumerate(places) if place not in places[:number]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _json_type(value: Any) -> str:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string")):
        if isinstance(value, kind):
            return name
    return "null"


def description(schema: dict[str, Any], options: list[dict[str, Any]], field: str) -> str:
    """The knob's meaning, and the bounds that the strict keywords cannot express."""
    description = schema.get("description") or next((b["description"] for b in options if "description" in b), None)
    words = [str(description or field.replace("_", " ")).strip()]
    spoken = {
        "exclusiveMinimum": "Must be above {}.",
        "exclusiveMaximum": "Must be below {}.",
        "multipleOf": "Must be a multiple of {}.",
        "minLength": "At least {} characters.",
        "maxLength": "At most {} characters.",
        "pattern": "Must match {}.",
    }
    for option in options:
        words += [text.format(option[key]) for key, text in spoken.items() if key in option]
    return " ".join(words)
