"""The same seed gives the same episode in another process."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import hashlib
import numpy as np
from mapf_frozenlake import LakeBatch, LakeConfig
batch = LakeBatch(LakeConfig.single(5, 3, is_slippery=True, reward="progress"), 4, pool_size=64, certify="reachable")
batch.seed(np.arange(4))
digest = hashlib.sha256(batch.reset().tobytes())
for actions in np.random.default_rng(0).integers(0, 5, (50, 4, 3)):
    for part in batch.step(actions):
        digest.update(part.tobytes())
print(digest.hexdigest())
"""


def test_two_processes_play_the_same_episodes() -> None:
    one, other = (
        subprocess.run(
            [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    )
    assert len(one.strip()) == 64
    assert one == other
