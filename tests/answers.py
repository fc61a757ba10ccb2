"""What a model or a person writes: the text of an answer."""

from __future__ import annotations

import json
from typing import Any


def answer_of(values: dict[str, Any], reason: str = "as it was seen") -> str:
    """The answer that gives these knobs these values, ``{"tasks.copy.share": 0.5}``."""
    return json.dumps({"changes": [{"path": path, "reason": reason, "value": value} for path, value in values.items()]})
