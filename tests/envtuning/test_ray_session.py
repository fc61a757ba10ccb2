"""A run has a Ray of its own, whatever else of Ray there is or was on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="needs ray: pip install 'mapf-frozenlake[rllib]'")

START = """
import ray
from envtuning.trainees.rllib.ray_session import start_ray
start_ray()
print(ray.get_runtime_context().gcs_address if hasattr(ray.get_runtime_context(), "gcs_address") else "up")
"""


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_address_file_of_a_killed_cluster_is_in_nobodys_way():
    with tempfile.TemporaryDirectory(prefix="r") as short:  # sockets have short names
        (Path(short) / "ray").mkdir()
        (Path(short) / "ray" / "ray_current_cluster").write_text("127.0.0.1:1")
        environment = os.environ | {"RAY_TMPDIR": short}
        environment.pop("RAY_ADDRESS", None)
        done = subprocess.run(
            [sys.executable, "-c", START], env=environment, capture_output=True, text=True, timeout=500
        )
        shutil.rmtree(Path(short) / "ray", ignore_errors=True)
    assert done.returncode == 0, done.stderr[-2000:]
