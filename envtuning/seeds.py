"""Derives a seed for every random draw of a run from the run's one seed."""

from __future__ import annotations

import hashlib


def derive(seed: int, *purpose: str | int) -> int:
    """A seed in 0 … 2³¹ − 1 from the run's seed and the purpose. Different purposes have independent seeds."""
    text = "/".join([str(seed), *(str(part) for part in purpose)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % 2**31
