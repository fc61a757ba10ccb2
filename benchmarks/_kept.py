"""Results that take long are kept one by one, so that a benchmark which was killed continues."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from envtuning import atomic

Task = TypeVar("Task")


def kept_or_made(path: Path, tasks: Mapping[str, Task], make: Callable[[Task], Any], jobs: int) -> dict[str, Any]:
    """What ``make`` gives for each task, by its key. Those that ``path`` does not have yet are made and appended to it, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = atomic.whole_lines(path, path.read_text(encoding="utf-8") if path.exists() else "")
    kept = {row["key"]: row["end"] for row in map(json.loads, lines)}
    missing = [key for key in tasks if key not in kept]
    with ProcessPoolExecutor(jobs) as pool:
        for key, made in zip(missing, pool.map(make, [tasks[key] for key in missing]), strict=True):
            kept[key] = made
            atomic.append_line(path, {"key": key, "end": made})
    return {key: kept[key] for key in tasks}
