"""The answer format: what a model may answer, as a strict JSON Schema, and how its answer becomes a config.

Every key that the current config has is an explicit property; every object is closed; every field is required,
described and bounded. An answer is ``{"reasons": [{"path", "reason"}, …], "config": {…editable knobs…}}``; reasons come
first so that a model that writes from left to right argues before it decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel

from engineers.knobs import Knob, KnobError, changes, dump, find_knobs, get, with_values
from engineers.model.replies import ReplyError, encodable
from engineers.proposal import Change
from engineers.redaction import scrub
from engineers.space import Space, raise_unless_knobs

ConfigT = TypeVar("ConfigT", bound=BaseModel)

REASON_LENGTH = 2_000  # characters kept of a reason

JSON_TYPES: dict[str, tuple[type, ...]] = {
    "number": (int, float),
    "integer": (int,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
}


class AnswerFormat(Generic[ConfigT]):
    """What an answer looks like for one current config and its editable knobs."""

    key: ClassVar[str] = "config"  # by which an answer is known in a reply, and the template that asks for it

    def __init__(self, current: ConfigT, editable: Sequence[str] | None = None) -> None:
        self.current, self.editable = current, editable
        self.knobs = find_knobs(current, editable)
        if not self.knobs:
            raise KnobError(f"{type(current).__name__} has no editable knobs: name some in editable=")
        _raise_unless_json(self.knobs)

    @property
    def schema(self) -> dict[str, Any]:
        """The strict JSON Schema of an answer."""
        reason = closed(
            {
                "path": {
                    "type": "string",
                    "enum": [knob.name for knob in self.knobs],
                    "description": "The knob that you change.",
                },
                "reason": {"type": "string", "description": "Why, in one sentence that names what you saw."},
            },
            "One change and its reason.",
        )
        reasons = {
            "type": "array",
            "items": reason,
            "maxItems": len(self.knobs),
            "description": "One entry for each knob whose value you change, and none for the others.",
        }
        config = _nested(self.knobs, 0, type(self.current).__name__)
        config["description"] = "The next config: every knob, also those that stay as they are."
        return closed({"reasons": reasons, "config": config}, "Your reasons, then the next config.")

    def example(self) -> dict[str, Any]:
        """The answer that changes nothing."""
        return {"reasons": [], "config": self.values_of(self.current)}

    def shape(self) -> dict[str, Any]:
        """An answer as a prompt shows it."""
        return self.example()

    def values_of(self, config: BaseModel) -> dict[str, Any]:
        """A config's editable knobs in the shape of an answer's ``config``."""
        data = dump(config)
        nested: dict[str, Any] = {}
        for knob in self.knobs:
            place: dict[str, Any] = nested
            for key in knob.group:
                place = place.setdefault(key, {})
            place[knob.field] = get(data, knob.path)
        return nested

    def merge(self, reply: Mapping[str, Any]) -> ConfigT:
        """The current config with the answer's knobs. Raises ``ReplyError`` that says where and why."""
        body = reply.get("config", reply) if isinstance(reply, Mapping) else reply
        values: dict[tuple[str, ...], Any] = {}
        faults: list[str] = []
        _collect(self.knobs, 0, body, (), values, faults)
        if faults:
            raise ReplyError("config", "; ".join(faults))
        try:
            return with_values(self.current, values)
        except KnobError as error:
            raise ReplyError("config", str(error)) from None

    def reasons(self, reply: Mapping[str, Any], config: BaseModel) -> list[Change]:
        """The changed knobs with the reasons that the answer gives for them ("" where it gives none)."""
        given = reply.get("reasons")
        entries = [entry for entry in given if isinstance(entry, Mapping)] if isinstance(given, list) else []
        reasons = {str(entry.get("path")): encodable(str(entry.get("reason", "")))[:REASON_LENGTH] for entry in entries}
        return [
            Change(path=".".join(path), old=old, new=new, reason=reasons.get(".".join(path), ""))
            for path, old, new in changes(self.current, config)
        ]


def _raise_unless_json(knobs: Sequence[Knob]) -> None:
    """Raise ``KnobError`` where a value cannot be written in an answer: even the one that changes nothing would be refused."""
    for knob in knobs:
        try:
            json.dumps(knob.value, allow_nan=False)
        except ValueError:
            raise KnobError(
                f"{knob.name} is {knob.value!r:.60}, which JSON cannot express: give it a finite "
                "value, or null for none, or leave it out of editable"
            ) from None


def answer_format_of(
    current: ConfigT, editable: Sequence[str] | None, space: Space, form: type[AnswerFormat[Any]] = AnswerFormat
) -> AnswerFormat[ConfigT]:
    """The answer format of a question; raises ``KnobError`` for a config without knobs to change or with infinite ones, or without those of ``space``."""
    raise_unless_knobs(space, current)
    return form(current, editable)


def closed(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _nested(knobs: Sequence[Knob], depth: int, title: str) -> dict[str, Any]:
    """The closed object that holds these knobs below the given depth."""
    properties: dict[str, Any] = {}
    for key, inside in _by_key(knobs, depth).items():
        is_leaf = len(inside[0].path) == depth + 1
        properties[key] = (
            inside[0].schema if is_leaf else _nested(inside, depth + 1, ".".join(inside[0].path[: depth + 1]))
        )
    return closed(properties, title)


def _by_key(knobs: Sequence[Knob], depth: int) -> dict[str, list[Knob]]:
    groups: dict[str, list[Knob]] = {}
    for knob in knobs:
        groups.setdefault(knob.path[depth], []).append(knob)
    return groups


def _collect(
    knobs: Sequence[Knob],
    depth: int,
    body: Any,
    path: tuple[str, ...],
    values: dict[tuple[str, ...], Any],
    faults: list[str],
) -> None:
    """Read the knobs' values out of an answer; note each missing, unknown or ill-typed one."""
    groups = _by_key(knobs, depth)
    where = ".".join(path)
    if not isinstance(body, Mapping):
        faults.append(f"{where or 'the answer'} must be an object with {sorted(groups)}, not {_shown(body)}")
        return
    dot = f"{where}." if where else ""
    known = [key for key in body if key in groups or (depth == 0 and key == "reasons")]
    strangers = [f"{dot}{encodable(key):.40}" for key in body if key not in known]
    if strangers:
        faults.append(f"{', '.join(strangers[:5])} cannot be edited: {where or 'config'} has {', '.join(groups)}")
    for key, inside in groups.items():
        if key not in body:
            faults.append(f"{dot}{key} is missing: write every knob, also those that stay as they are")
        elif len(inside[0].path) > depth + 1:
            _collect(inside, depth + 1, body[key], (*path, key), values, faults)
        else:
            values[inside[0].path] = value_in(inside[0], f"{dot}{key}", body[key], faults)


def value_in(knob: Knob, where: str, answered: Any, faults: list[str]) -> Any:
    """The value that an answer gives to a knob; one of another type is noted as a fault."""
    if not _has_type(answered, knob.schema):
        wanted = " or ".join(sorted(knob.types)) or "another type"
        faults.append(f"{where} is {_shown(answered)}: give a value of type {wanted}")
    return _as_it_was(knob.value, answered)


def _as_it_was(now: Any, answered: Any) -> Any:
    """The answered value; a text that the prompt showed with blanks (a path, a key) and that came back so stays."""
    if isinstance(now, list) and isinstance(answered, list):
        shown = [scrub(entry) if isinstance(entry, str) else None for entry in now]
        return [_entry_as_it_was(now, shown, place, entry) for place, entry in enumerate(answered)]
    return now if isinstance(now, str) and answered == scrub(now) else answered


def _entry_as_it_was(now: list[Any], shown: list[str | None], place: int, answered: Any) -> Any:
    """The same for an entry of a list. For an entry that moved, or before which others were left out, it is the first that was shown like this."""
    if not isinstance(answered, str) or answered not in shown:
        return answered
    return now[place if shown[place : place + 1] == [answered] else shown.index(answered)]


def _has_type(value: Any, schema: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        return any(_has_type(value, option) for option in schema["anyOf"])
    named = schema["type"]
    kinds = [named] if isinstance(named, str) else named
    if isinstance(value, bool):  # Python counts True as a number; JSON does not
        return "boolean" in kinds
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return True
    return any(isinstance(value, JSON_TYPES[kind]) for kind in kinds)


def _shown(value: Any) -> str:
    return f"{value!r:.60}"
