"""The answer as a list of edits alone: ``{"changes": [{"path", "reason", "value"}, …]}``. An empty list changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from engineers.knobs import Knob, KnobError, with_values
from engineers.model.answer_format import AnswerFormat, ConfigT, closed, value_in
from engineers.model.replies import ReplyError, encodable
from engineers.proposal import Change

FIELDS: Final = ("path", "reason", "value")  # the reason before the value, as reasons come before a whole config


class EditsFormat(AnswerFormat[ConfigT]):
    """An answer names the knobs that it changes, and no others."""

    key: ClassVar[str] = "changes"

    @property
    def schema(self) -> dict[str, Any]:
        """The strict JSON Schema of an answer: an entry for each kind of value."""
        kinds: dict[str, list[Knob]] = {}
        for knob in self.knobs:
            kinds.setdefault(str(knob.schema), []).append(knob)
        entries = [
            closed(
                {
                    "path": {
                        "type": "string",
                        "enum": [knob.name for knob in same],
                        "description": "The knob that you change.",
                    },
                    "reason": {"type": "string", "description": "Why, in one sentence that names what you saw."},
                    "value": same[0].schema,
                },
                "One change and its reason.",
            )
            for same in kinds.values()
        ]
        changes = {
            "type": "array",
            "items": entries[0] if len(entries) == 1 else {"anyOf": entries},
            "maxItems": len(self.knobs),
            "description": "One entry for each knob whose value you change, and none for the others.",
        }
        return closed({"changes": changes}, "Your changes; an empty list keeps the config.")

    def example(self) -> dict[str, Any]:
        return {"changes": []}

    def shape(self) -> dict[str, Any]:
        """An entry as it is to be written; it keeps its knob as it is, in case that it is copied."""
        knob = self.knobs[0]
        return {"changes": [{"path": knob.name, "reason": "why", "value": knob.value}]}

    def merge(self, reply: Mapping[str, Any]) -> ConfigT:
        entries = reply.get("changes")
        if not isinstance(entries, list) or len(reply) > 1:
            raise ReplyError("changes", 'answer with {"changes": […]} and nothing else; an empty list keeps the config')
        knobs = {knob.name: knob for knob in self.knobs}
        values: dict[tuple[str, ...], Any] = {}
        faults: list[str] = []
        for place, entry in enumerate(entries):
            if not isinstance(entry, Mapping) or set(entry) != set(FIELDS):
                faults.append(f"entry {place} must be an object with {', '.join(FIELDS)}, not {entry!r:.60}")
                continue
            knob = knobs.get(str(entry["path"]))
            if knob is None:
                faults.append(f"{encodable(str(entry['path'])):.60} cannot be edited")
            elif knob.path in values:
                faults.append(f"{knob.name} is changed twice")
            else:
                values[knob.path] = value_in(knob, knob.name, entry["value"], faults)
        if faults:
            raise ReplyError("changes", "; ".join(faults))
        try:
            return with_values(self.current, values)
        except KnobError as error:
            raise ReplyError("changes", str(error)) from None

    def reasons(self, reply: Mapping[str, Any], config: BaseModel) -> list[Change]:
        return super().reasons({"reasons": reply["changes"]}, config)
