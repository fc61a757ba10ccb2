"""Schema-constrained decoding for transformers: whatever the weights are, the text matches the JSON Schema and ends."""

from engineers.structured.bounds import finite, room
from engineers.structured.processor import SchemaLogits, TokenView

__all__ = ["SchemaLogits", "TokenView", "finite", "room"]
