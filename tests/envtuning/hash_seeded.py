"""Trainees in two processes in which Python's hashes of texts, and so the order of a set of them, differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

PROGRAM = """
import hashlib, json, sys, tempfile
from pathlib import Path
from envtuning.trainees import make_trainee
from envtuning.worlds.registry import make_world

def ended(kind, world, config, budget, options):
    world = make_world(world["name"], **world["options"])
    config = world.config_type.model_validate(config)
    held_out = world.draw(config, 2, seed=1, purpose="validation", exclude=())
    trainee = make_trainee(kind, world=world, capacity=world.capacity([config]), exclude=(held_out,), seed=3, **options)
    metrics = [trainee.train(config, budget, seed=seed) for seed in (1, 2)]
    episodes = [one.to_json() for one in world.play(trainee.policy(), held_out, config, seed=4)]
    with tempfile.TemporaryDirectory() as folder:
        trainee.save(Path(folder))
        files = {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path(folder).rglob("*")) if path.is_file()}
    trainee.close()
    return [repr(metrics), episodes, files]

print("FOUND", json.dumps([ended(*job) for job in json.loads(sys.stdin.read())]))
"""

Job = tuple[
    str, dict[str, Any], dict[str, Any], int, dict[str, Any]
]  # a trainee's kind, its world, config, budget and options


def results(hash_seed: int, jobs: Sequence[Job]) -> list[Any]:
    """For each job the metrics, episodes and the checkpoint's files, of one process with this hash seed for all of them."""
    env = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(jobs), env=env, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.rpartition("FOUND ")[2])


def assert_the_same(*jobs: Job) -> None:
    for job, (metrics, episodes, files), other in zip(jobs, results(1, jobs), results(2, jobs), strict=True):
        assert files, job
        assert metrics == other[0], job
        assert episodes == other[1], job
        assert files == other[2], job


def world(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "options": options}
