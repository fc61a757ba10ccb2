"""Schema-constrained decoding for transformers: whatever the weights are, the text matches the JSON Schema and ends."""

from engineers.model.structured.bounds import finite, room
from engineers.model.structured.processor import SchemaLogits, TokenView

__all__ = ["SchemaLogits", "TokenView", "finite", "room"]
