"""The answer format: what a model may answer, as a strict JSON Schema, and how its answer becomes a config.

An answer is ``{"changes": [{"path", "reason", "value"}, …]}``: the knobs that change, and no others. An empty list keeps the
config. Every object of the schema is closed; every field is required, described and bounded. A reason stands before its
value, so that a model that writes from left to right argues before it decides.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel

from engineers.knobs import Knob, KnobError, changes, dump, find_knobs, get, nested, with_values
from engineers.model.replies import ReplyError, encodable
from engineers.proposal import Change
from engineers.redaction import scrub
from engineers.space import Space, raise_unless_knobs

ConfigT = TypeVar("ConfigT", bound=BaseModel)

FIELDS: Final = ("path", "reason", "value")  # of an entry, in this order
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

    def __init__(self, current: ConfigT, editable: Sequence[str] | None = None) -> None:
        self.current, self.editable = current, editable
        self.knobs = find_knobs(current, editable)
        if not self.knobs:
            raise KnobError(f"{type(current).__name__} has no editable knobs: name some in editable=")
        _raise_unless_json(self.knobs)

    @property
    def schema(self) -> dict[str, Any]:
        """The strict JSON Schema of an answer: one kind of entry for all knobs that take the same values."""
        alike: dict[str, list[Knob]] = {}
        for knob in self.knobs:
            alike.setdefault(str(knob.schema), []).append(knob)
        entries = [_entry(knobs) for knobs in alike.values()]
        listed = {
            "type": "array",
            "items": entries[0] if len(entries) == 1 else {"anyOf": entries},
            "maxItems": len(self.knobs),
            "description": "One entry for each knob whose value you change, and none for the others.",
        }
        return _closed({"changes": listed}, "Your changes; an empty list keeps the config.")

    def shape(self) -> dict[str, Any]:
        """An answer as a prompt shows it. Its entry repeats the current value, so a model that copies it changes nothing."""
        knob = self.knobs[0]
        return {"changes": [{"path": knob.name, "reason": "why", "value": knob.value}]}

    def blank(self) -> dict[str, Any]:
        """An answer to edit by hand: an entry for every knob, each with the value that the knob has."""
        return {"changes": [{"path": knob.name, "reason": "", "value": knob.value} for knob in self.knobs]}

    def values_of(self, config: BaseModel) -> dict[str, Any]:
        """A config's editable knobs, nested as in the config."""
        data = dump(config)
        return nested({knob.path: get(data, knob.path) for knob in self.knobs})

    def merge(self, reply: Mapping[str, Any]) -> ConfigT:
        """The current config with the answer's knobs. Raises ``ReplyError`` that says where and why."""
        entries = reply.get("changes")
        if not isinstance(entries, list) or len(reply) > 1:
            raise ReplyError("changes", 'answer with {"changes": […]} and nothing else; an empty list keeps the config')
        knobs = {knob.name: knob for knob in self.knobs}
        values: dict[tuple[str, ...], Any] = {}
        faults: list[str] = []
        for place, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or set(entry) != set(FIELDS):
                faults.append(f"entry {place} must be an object with {', '.join(FIELDS)}, not {_shown(entry)}")
                continue
            knob = knobs.get(str(entry["path"]))
            if knob is None:
                faults.append(f"{encodable(str(entry['path'])):.60} cannot be edited")
            elif knob.path in values:
                faults.append(f"{knob.name} is changed twice")
            else:
                values[knob.path] = _value_in(knob, entry["value"], faults)
        if faults:
            raise ReplyError("changes", "; ".join(faults))
        try:
            return with_values(self.current, values)
        except KnobError as error:
            raise ReplyError("changes", str(error)) from None

    def reasons(self, reply: Mapping[str, Any], config: BaseModel) -> list[Change]:
        """The knobs that have changed in the merged config, with the reasons that the answer gives for them."""
        reasons = {str(entry["path"]): encodable(str(entry["reason"]))[:REASON_LENGTH] for entry in reply["changes"]}
        return [
            Change(path=".".join(path), old=old, new=new, reason=reasons.get(".".join(path), ""))
            for path, old, new in changes(self.current, config)
        ]


def _entry(alike: Sequence[Knob]) -> dict[str, Any]:
    """The schema of an entry for these knobs, which take the same values."""
    return _closed(
        {
            "path": {
                "type": "string",
                "enum": [knob.name for knob in alike],
                "description": "The knob that you change.",
            },
            "reason": {"type": "string", "description": "Why, in one sentence that names what you saw."},
            "value": alike[0].schema,
        },
        "One change and its reason.",
    )


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


def answer_format_of(current: ConfigT, editable: Sequence[str] | None, space: Space) -> AnswerFormat[ConfigT]:
    """The answer format of a question; raises ``KnobError`` for a config without knobs to change or with infinite ones, or without those of ``space``."""
    raise_unless_knobs(space, current)
    return AnswerFormat(current, editable)


def _closed(properties: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value_in(knob: Knob, answered: Any, faults: list[str]) -> Any:
    """The value that an answer gives to a knob; one of another type is noted as a fault."""
    if not _has_type(answered, knob.schema):
        wanted = " or ".join(sorted(knob.types)) or "another type"
        faults.append(f"{knob.name} is {_shown(answered)}: give a value of type {wanted}")
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
