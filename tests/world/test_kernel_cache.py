"""A kernel is compiled again when any of its parts has changed, wherever the part stands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from mapf_frozenlake.kernel_cache import PACKAGE, SOURCES

# One agent in the middle of a row, told to go right on ice where every second move slips: which columns it reaches.
REACHED = """
import numpy as np
from mapf_frozenlake import joint_move
lake = np.zeros((3, 3), bool)
print(*sorted({int(joint_move(lake, [(1, 1)], [2], key=key, ahead=0.5)[0][0, 1]) for key in range(50)}))
"""


def reached(copy: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    run = subprocess.run(
        [sys.executable, "-c", REACHED], env=environment | {"PYTHONPATH": str(copy)}, cwd=copy, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    return run.stdout.strip()


def test_a_changed_part_is_compiled_into_the_kernels_of_other_files(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    assert reached(tmp_path) == "1 2"
    part = tmp_path / PACKAGE.name / "world" / "rng.py"  # the kernel stands in move.py
    text = part.read_text()
    assert "return np.float64(mix(" in text
    part.write_text(text.replace("return np.float64(mix(", "return 0.0 * np.float64(mix("))
    assert reached(tmp_path) == "2", "a draw of 0 never slips: the old kernel was taken from the cache"
    part = tmp_path / PACKAGE.name / "constants.py"  # which move.py has from types.py
    text = part.read_text()
    assert "[0, 1], [-1, 0]" in text
    part.write_text(text.replace("[0, 1], [-1, 0]", "[0, -1], [-1, 0]"))
    assert reached(tmp_path) == "0", "right is left now: the old kernel was taken from the cache"


def test_every_file_with_kernels_is_looked_at() -> None:
    watched = {path for patterns in SOURCES.values() for pattern in patterns for path in PACKAGE.glob(pattern)}
    compiled = {path for path in PACKAGE.rglob("*.py") if re.search(r"^(from|import) numba", path.read_text(), re.M)}
    compile_nothing = {PACKAGE / "uncompiled.py"}
    assert compiled - compile_nothing <= watched
