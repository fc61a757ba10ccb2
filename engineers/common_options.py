"""The options that a loop gives to every engineer; an engineer that does not take one is made without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engineers.from_file import DATA, PLAIN, Allowed

# A file may give these to any engineer:
COMMON_FROM_FILE: Allowed = {
    **dict.fromkeys(("seed", "max_attempts", "max_cost", "max_total_tokens"), PLAIN),
    **dict.fromkeys(("space", "context"), DATA),
}
LOOPS_OWN = ("guard", "transcript", "ledger", "desk")
COMMON_OPTIONS = (*COMMON_FROM_FILE, *LOOPS_OWN)


def require_common(engineer: str, unused: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` unless the options that an engineer does not take are ``COMMON_OPTIONS``."""
    strangers = sorted(unused.keys() - set(COMMON_OPTIONS))
    if strangers:
        raise TypeError(f"{engineer} has no option {', '.join(strangers)}")
