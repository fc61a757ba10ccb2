"""A process that compiles says so once, on stderr; one that finds all in the cache, a worker, and one that is told to be quiet do not."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from numba.core.event import EventStatus

from mapf_frozenlake.compiling import NOTICE, QUIET, WORKERS_HAVE, Notice
from mapf_frozenlake.numba_private import Event

FEW_KERNELS = (
    "import numpy as np; from mapf_frozenlake import joint_move; joint_move(np.zeros((3, 3), bool), [(1, 1)], [2])"
)
IN_A_PROCESS = """
import multiprocessing
from mapf_frozenlake import joint_move
import numpy as np

if __name__ == "__main__":
    process = multiprocessing.get_context("fork").Process(target=joint_move, args=(np.zeros((3, 3), bool), [(1, 1)], [2]))
    process.start()
    process.join()
"""


def said(code: str, cache, **more: str) -> str:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)} | more
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stderr


def test_compiling_is_announced_once_and_never_again(tmp_path):
    assert said(FEW_KERNELS, tmp_path).splitlines() == [NOTICE]
    assert said(FEW_KERNELS, tmp_path) == "", "everything is cached"


def test_a_worker_compiles_in_silence(tmp_path):
    assert said(IN_A_PROCESS, tmp_path) == ""
    assert list(tmp_path.rglob("*.nbc")), "it did compile"


def compiled(module: str) -> Event:
    function = SimpleNamespace(__module__=module)
    return Event("numba:compile", EventStatus.START, {"dispatcher": SimpleNamespace(py_func=function)})


@pytest.mark.parametrize(
    ("module", "variables", "count"),
    [
        ("mapf_frozenlake.world.move", {}, 1),
        ("somebody.elses", {}, 0),
        ("mapf_frozenlake.world.move", {QUIET: "1"}, 0),
        *(("mapf_frozenlake.world.move", {name: "7"}, 0) for name in WORKERS_HAVE),
    ],
)
def test_who_hears_it(module, variables, count, monkeypatch, capsys):
    for name in (QUIET, *WORKERS_HAVE):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    notice = Notice()
    for _ in range(3):
        notice.notify(compiled(module))
    assert capsys.readouterr().err.splitlines() == [NOTICE] * count


AFTER_THE_WARMUP = """
import gymnasium as gym
import mapf_frozenlake as mfl
from mapf_frozenlake.warmup import _AlwaysWaits

lakes = mfl.generate(mfl.LakeConfig.single(4, 2, wait_ratio=0.5), n=4, seed=0)
mfl.solve(lakes[0])
mfl.evaluate(_AlwaysWaits(), lakes)
env = gym.make_vec("MAPFFrozenLake-v0", num_envs=2, size=4, num_agents=2)
env.reset(seed=0)
env.step(env.action_space.sample())
one = gym.make("MAPFFrozenLake-v0", size=4, num_agents=2)
one.reset(options={"instance": lakes[0]})
text = gym.make("MAPFFrozenLakeText-v0", mode="plan")
text.reset(seed=0)
text.step("Agent 0: wait")
"""


@pytest.mark.prove
def test_nothing_is_compiled_after_the_warmup(tmp_path):
    said("from mapf_frozenlake.warmup import main; main([])", tmp_path)
    assert said(AFTER_THE_WARMUP, tmp_path) == ""
