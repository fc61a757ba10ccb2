"""The best open loop and the best oracle of each family, as ``python -m benchmarks.exam_ground`` found them; a test compares."""

from __future__ import annotations

from envtuning.exam.bounds import Arm, Blocks, Oracle, WarmUp

FOUND: dict[str, tuple[Arm, Arm]] = {
    "codes-slow": (Blocks(2, False, 0.4), Oracle(0.3, 1.0)),
    "algorithms-hopeless": (WarmUp(2 / 3, 0.2), Oracle(0.2, 1.0)),
}
