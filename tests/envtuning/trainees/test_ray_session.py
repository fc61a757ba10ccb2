"""A run has a Ray of its own, whatever else of Ray there is or was on the machine."""

# ruff: noqa: E402
from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

ray = pytest.importorskip("ray", reason="needs ray: pip install 'mapf-frozenlake[rllib]'")

from envtuning.trainees.rllib.ray_session import start_ray

START = """
import ray
from envtuning.trainees.rllib.ray_session import start_ray
start_ray()
print(ray.get_runtime_context().gcs_address if hasattr(ray.get_runtime_context(), "gcs_address") else "up")
"""


@pytest.fixture
def no_ray_here(monkeypatch):
    """As in a process that has no Ray, whatever else this test session has."""
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    asked: list[dict] = []
    monkeypatch.setattr(ray, "init", lambda **options: asked.append(options))
    return asked


def test_a_named_cluster_that_does_not_answer_is_told_by_its_address(monkeypatch, no_ray_here):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")

    def nobody(**options):
        raise ConnectionError("Could not read from 127.0.0.1:1")

    monkeypatch.setattr(ray, "init", nobody)
    with pytest.raises(ConnectionError, match=r"RAY_ADDRESS=127\.0\.0\.1:1: no Ray answers there .*unset RAY_ADDRESS"):
        start_ray()


def test_a_named_cluster_keeps_its_own_object_store_and_an_unnamed_one_is_nobody_elses(monkeypatch, no_ray_here):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    start_ray()
    assert not {"object_store_memory", "address"} & no_ray_here.pop().keys()
    monkeypatch.delenv("RAY_ADDRESS")
    start_ray()
    assert no_ray_here.pop()["address"] == "local"


def test_rays_handler_of_sigterm_does_not_stay(monkeypatch, no_ray_here):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray, "init", lambda **_: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    start_ray()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.ray
@pytest.mark.prove  # starts and kills a cluster of its own
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


def test_sigterm_while_ray_starts_is_heard_as_the_process_hears_it(monkeypatch, no_ray_here):
    def asked_to_end(**options):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(signal.SIGTERM))  # as ray.init does
        os.kill(os.getpid(), signal.SIGTERM)

    def heard(number, frame):
        raise KeyboardInterrupt

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", asked_to_end)
    before = signal.signal(signal.SIGTERM, heard)
    try:
        with pytest.raises(KeyboardInterrupt):
            start_ray()
        assert signal.getsignal(signal.SIGTERM) is heard
    finally:
        signal.signal(signal.SIGTERM, before)


def test_ray_is_started_small_and_quiet_and_only_where_there_is_none(monkeypatch, no_ray_here):
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:6379")
    monkeypatch.delenv("RAY_USAGE_STATS_ENABLED", raising=False)
    logging.getLogger("ray.rllib").setLevel(logging.INFO)
    start_ray()
    assert no_ray_here == [quiet]
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"  # it tells nobody of itself
    assert logging.getLogger("ray.rllib").level == logging.ERROR
    monkeypatch.delenv("RAY_ADDRESS")
    start_ray()
    small = {"address": "local", "include_dashboard": False, "object_store_memory": 200 * 2**20}
    assert no_ray_here[1:] == [quiet | small]
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    start_ray()
    assert len(no_ray_here) == 2


def test_another_thread_leaves_the_handlers_alone(monkeypatch, no_ray_here):
    """Python lets only the main thread set one."""
    raised = []

    def start():
        try:
            start_ray()
        except Exception as error:
            raised.append(error)

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert (raised, len(no_ray_here)) == ([], 1)
