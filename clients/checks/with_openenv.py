# /// script
# dependencies = ["mapf-frozenlake[openenv]"]
# [tool.client]
# title = "OpenEnv"
# quick = true
# how = "`envtuning openenv export FOLDER` and the server in it; `reset(seed=…, num_agents=3, slices=…)`"
# ///
"""An exported folder: validated as it lies there and while it serves, and 64 sessions at once."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import gymnasium as gym

import mapf_frozenlake as mfl

PACKAGES = ["openenv", "fastapi", "pydantic"]
SESSIONS = 64
PATIENCE = 300  # seconds to compile and to begin to answer


def program(name):
    return str(Path(sys.executable).with_name(name))


@contextlib.contextmanager
def served(*options):
    """An exported folder and the address of its server, in a process of its own."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where) / "lake-env"
        subprocess.run([program("envtuning"), "openenv", "export", str(folder), *options], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process = subprocess.Popen([sys.executable, "-m", "server.app", "--port", str(port)], cwd=folder)
        try:
            yield folder, answering(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            process.wait()


def answering(url, process):
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE:
        assert process.poll() is None, f"the server ended with {process.returncode}"
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/health", timeout=5).close()
            return url
        time.sleep(0.2)
    raise TimeoutError(f"no answer in {PATIENCE} s")


def fields_of(k):
    """A config for each session: other agents, other sizes, with and without waits."""
    return {"num_agents": 2 + k % 2, "slices": {str(3 + k % 3): {"wait_ratio": 0.5 if k % 4 else None}}}


def replies(question):
    """The first move of a plan, as a move and as a plan: what happens depends on the board."""
    instance = mfl.from_text(question)
    first = [plan[0] if plan else mfl.Action.WAIT for plan in mfl.solve(instance).plan]
    said = "\n".join(f"Agent {agent}: {mfl.Action(move).name}" for agent, move in enumerate(first))
    return [said, "Agent 0: UP", said]


async def session(url, k, gate):
    """What one client is told, and paid, by its own session; all begin when the last one is there."""
    from envtuning.openenv.client import TextEnv

    async with TextEnv(base_url=url) as env:
        await gate.wait()
        result = await env.reset(seed=k, **fields_of(k))
        told = [(result.observation.message, 0.0, False)]
        for reply in replies(told[0][0]):
            if not result.done:
                result = await env.step(reply)
                told.append((result.observation.message, result.reward, result.done))
        state = await env.state()
        assert state.seed == k
        assert state.step_count == len(told) - 1
        return told


async def all_sessions(url):
    gate = asyncio.Barrier(SESSIONS)
    return await asyncio.gather(*(session(url, k, gate) for k in range(SESSIONS)))


def by_gym(mode, k):
    env = gym.make("MAPFFrozenLakeText-v0", mode=mode, config=mfl.LakeConfig(**fields_of(k)))
    question, _ = env.reset(seed=k)
    told = [(question, 0.0, False)]
    for reply in replies(question):
        if not told[-1][2]:
            observation, reward, terminated, truncated, _ = env.step(reply)
            told.append((observation, reward, terminated or truncated))
    return told


def sessions_play_as_gym_does(url, mode):
    played = asyncio.run(all_sessions(url))
    for k, told in enumerate(played):
        assert told == by_gym(mode, k), f"session {k}"
    assert len({told[0][0] for told in played}) > SESSIONS // 2  # they are not all on one board


def check_plans():
    """`openenv validate`, as it lies there and by URL; 64 sessions at once play what `gym.make` plays, seed by seed: plans"""
    with served() as (folder, url):
        subprocess.run([program("openenv"), "validate", "--level", "static", str(folder)], check=True)
        subprocess.run([program("openenv"), "validate", "--url", url], check=True)
        sessions_play_as_gym_does(url, "plan")


def check_turns():
    """the same sessions in turns, each reset with a config of its own"""
    with served("--set", "mode=turns") as (_, url):
        sessions_play_as_gym_does(url, "turns")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import _checks

    _checks.run(globals())
