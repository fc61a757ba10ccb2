"""A trainee in two processes in which Python's hashes of texts, and so the order of a set of them, differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

PROGRAM = """
import hashlib, json, sys, tempfile
from pathlib import Path
from envtuning.trainees import make_trainee
from envtuning.worlds.registry import make_world

kind, world, config, budget, options = json.loads(sys.stdin.read())
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
print("FOUND", json.dumps([repr(metrics), episodes, files]))
"""


def result(hash_seed: int, *job: Any) -> list[Any]:
    """Metrics, episodes and the checkpoint's files, of a process with this hash seed."""
    env = os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(HERE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(job), env=env, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.rpartition("FOUND ")[2])


def assert_the_same(*job: Any) -> None:
    (metrics, episodes, files), other = result(1, *job), result(2, *job)
    assert files
    assert metrics == other[0]
    assert episodes == other[1]
    assert files == other[2]


def world(name: str, **options: Any) -> dict[str, Any]:
    return {"name": name, "options": options}
