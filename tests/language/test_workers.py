"""The talk between the loop's process and a group of workers: reports on the way, an end asked for on the way, a group that dies."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from multiprocessing import AuthenticationError, Pipe
from multiprocessing.connection import Client
from pathlib import Path
from types import SimpleNamespace

import pytest

from engineers.shared import own
from envtuning.trainees.language.options import LanguageOptions
from envtuning.trainees.language.trainee import GRPOTrainee
from envtuning.trainees.language.workers import RemoteChat, RemotePolicy, WorkerGroup, WorkerLost, command
from tests.lazily import needed

needed("torch", extra="grpo")


class NeverStarted:
    """A group's process that has no exit status yet."""

    def poll(self):
        return None


@pytest.fixture
def talk():
    """A group without processes, and the other end of its line."""
    group, (group.line, theirs) = (made := WorkerGroup.__new__(WorkerGroup)), Pipe()
    made.process = NeverStarted()
    yield group, theirs
    group.line.close()
    theirs.close()


def answering(line, reports, last):
    """Workers that report so often, and keep what they were told to do: go on, or end."""
    heard = []

    def work():
        heard.append(line.recv())
        for report in reports:
            line.send(("told", report))
            heard.append(line.recv())
        line.send(last)

    thread = threading.Thread(target=work)
    thread.start()
    return heard, thread


def test_workers_go_on_while_nobody_objects(talk):
    group, line = talk
    told = []
    heard, thread = answering(line, [1, 2], ("done", "trained"))
    assert group.call("train", 5, told=told.append, seed=3) == "trained"
    thread.join()
    assert told == [1, 2]
    assert heard == [("train", (5,), {"seed": 3}), True, True]


def test_workers_are_told_to_end_once_somebody_objects_and_the_objection_is_what_is_raised(talk):
    group, line = talk

    def objects(report):
        told.append(report)
        raise KeyboardInterrupt

    told = []
    heard, thread = answering(line, [1, 2], ("done", "cut short"))
    with pytest.raises(KeyboardInterrupt):
        group.call("train", told=objects)
    thread.join()
    assert told == [1]
    assert heard[1:] == [False, False]


def test_what_the_workers_raise_is_raised_here(talk):
    group, line = talk
    _, thread = answering(line, [], ("raised", ValueError("no weights")))
    with pytest.raises(ValueError, match="no weights"):
        group.call("load", "folder")
    thread.join()


def test_a_group_that_dies_is_said_to_be_lost(talk):
    group, line = talk
    line.close()
    with pytest.raises(WorkerLost, match="the group of workers is gone"):
        group.call("train")


class Line:
    """One end of a line: what was sent over it, and whether it is closed."""

    def __init__(self, breaks=False):
        self.sent, self.breaks, self.closed = [], breaks, False

    def send(self, what):
        if self.breaks:
            raise BrokenPipeError
        self.sent.append(what)

    def close(self):
        self.closed = True


class Process:
    """A group's process that ends when it is asked to, or only when it is ended; or that has died already."""

    def __init__(self, ends=True, status=None):
        self.ends, self.status, self.asked = ends, status, []

    def poll(self):
        return self.status

    def wait(self, limit):
        self.asked.append(f"wait {limit}")
        if not self.ends:
            raise subprocess.TimeoutExpired("group", limit)

    def terminate(self):
        self.asked.append("terminate")
        self.ends = True


@pytest.mark.parametrize(
    ("breaks", "ends", "asked"),
    [
        (False, True, ["wait 30"]),
        (False, False, ["wait 30", "terminate", "wait 30"]),
        (True, False, ["terminate", "wait 30"]),
    ],
)
def test_a_group_ends_by_itself_within_half_a_minute_or_is_ended(tmp_path, breaks, ends, asked):
    group = WorkerGroup.__new__(WorkerGroup)
    group.line, group.process, group.folder = Line(breaks), Process(ends), tempfile.TemporaryDirectory(dir=tmp_path)
    group.close()
    assert group.line.sent == ([] if breaks else [("stop", (), {})])
    assert group.process.asked == asked
    assert group.line.closed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("silent", "status", "line"), [(0, None, "the line"), (599, None, "the line"), (600, None, None), (1, 3, None)]
)
def test_a_group_has_ten_minutes_to_call_back_and_one_that_died_is_not_waited_for(silent, status, line):
    waited = []

    def accept():
        assert socket.limit == 1.0
        if len(waited) == silent:
            return "the line"
        waited.append(True)
        raise TimeoutError

    socket = SimpleNamespace(limit=None)
    socket.settimeout = lambda limit: setattr(socket, "limit", limit)
    listener = SimpleNamespace(accept=accept, _listener=SimpleNamespace(_socket=socket))
    group = WorkerGroup.__new__(WorkerGroup)
    group.process = Process(status=status)
    if line:
        assert group._accepted(listener) == line
    else:
        silent += 1  # it never calls
        with pytest.raises(WorkerLost, match=rf"the workers did not start within 600 s \(exit status {status}\)"):
            group._accepted(listener)
    assert len(waited) == {(599, None): 599, (601, None): 600, (2, 3): 1, (0, None): 0}[silent, status]


def test_a_group_is_started_with_a_key_of_its_own_and_then_made(monkeypatch):
    started, called = [], []
    monkeypatch.setattr(
        subprocess, "Popen", lambda command, env, stdin: started.append((command, env, stdin)) or Process()
    )
    monkeypatch.setattr(WorkerGroup, "_accepted", lambda self, listener: called.append(listener.address) or Line())
    monkeypatch.setattr(WorkerGroup, "call", lambda self, *given, **named: called.append((given, named)))
    options = LanguageOptions(model="m", processes=2)
    groups = [WorkerGroup(GRPOTrainee, options, world="lakes", seed=1) for _ in range(2)]
    for group, (command_line, environment, stdin) in zip(groups, started, strict=True):
        assert command_line == command(options)
        assert environment["ENVTUNING_WORKERS_ADDRESS"] == os.path.join(group.folder.name, "line")
        assert Path(group.folder.name).name.startswith("workers-")
        assert len(bytes.fromhex(environment["ENVTUNING_WORKERS_KEY"])) == 16
        assert stdin == subprocess.DEVNULL
        group.folder.cleanup()
    assert started[0][1]["ENVTUNING_WORKERS_KEY"] != started[1][1]["ENVTUNING_WORKERS_KEY"]
    made = (
        ("make", GRPOTrainee),
        {"trusted": own.trusted(), "options": options.model_dump(), "world": "lakes", "seed": 1},
    )
    assert called == [
        os.path.join(groups[0].folder.name, "line"),
        made,
        os.path.join(groups[1].folder.name, "line"),
        made,
    ]


@pytest.mark.parametrize("error", [WorkerLost, KeyboardInterrupt])
def test_a_group_that_does_not_connect_leaves_no_process(monkeypatch, error):
    popen, started = subprocess.Popen, []

    def sleeping(command, env, stdin):
        started.append(popen([sys.executable, "-c", "import time; time.sleep(600)"], stdin=stdin))
        return started[-1]

    def interrupted(self, listener):
        raise error

    monkeypatch.setattr(subprocess, "Popen", sleeping)
    monkeypatch.setattr(WorkerGroup, "_accepted", interrupted)
    with pytest.raises(error):
        WorkerGroup(GRPOTrainee, LanguageOptions(model="m", processes=2))
    assert started[0].poll() is not None


def test_nobody_without_the_key_gets_the_line(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda command, env, stdin: Process())
    refused = []

    def accepted(self, listener):
        stranger = threading.Thread(target=lambda: refused.append(_refused(listener.address)))
        stranger.start()
        with pytest.raises(AuthenticationError):
            listener.accept()
        stranger.join()
        return Line()

    monkeypatch.setattr(WorkerGroup, "_accepted", accepted)
    monkeypatch.setattr(WorkerGroup, "call", lambda self, *given, **named: None)
    WorkerGroup(GRPOTrainee, LanguageOptions(model="m", processes=2)).folder.cleanup()
    assert refused == [True]


def _refused(address):
    try:
        Client(address, authkey=b"another")
    except (AuthenticationError, EOFError, OSError):
        return True
    return False


@pytest.mark.parametrize(
    ("gpu", "launch", "expected"),
    [
        (False, (), "-m torch.distributed.run --standalone --nproc_per_node 3 -m envtuning.trainees.language.worker"),
        (True, (), "-m accelerate.commands.launch --num_processes 3 --multi_gpu -m envtuning.trainees.language.worker"),
        (
            True,
            ("--use_deepspeed", "--zero_stage=2"),
            "-m accelerate.commands.launch --num_processes 3 --use_deepspeed --zero_stage=2 -m envtuning.trainees.language.worker",
        ),
    ],
)
def test_how_a_group_is_started(gpu, launch, expected, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: gpu)
    options = LanguageOptions(model="m", processes=3, launch=launch, grpo={"num_generations": 8})
    assert command(options) == [sys.executable, *expected.split()]


def test_the_workers_reply_and_complete_in_the_groups_name():
    asked = []
    group = SimpleNamespace(call=lambda *given, **named: asked.append((*given, named)) or "answer")
    policy, chat = RemotePolicy(group), RemoteChat(group, "base", {"seed": 1})
    talks = ({"role": "user", "content": "a"},)
    assert policy.reply([talks]) == policy.reply([talks], seed=4) == "answer"
    assert chat.complete(["message"], {"type": "object"}, max_tokens=9) == "answer"
    assert chat.model == "live/base"
    assert asked == [
        ("reply", [list(talks)], {"seed": 0}), ("reply", [list(talks)], {"seed": 4}),
        ("complete", "base", {"seed": 1}, ["message"], {"type": "object"}, 9, {}),
    ]  # fmt: skip


def test_reports_that_nobody_asked_for_are_passed_over(talk):
    group, line = talk
    heard, thread = answering(line, [1], ("done", "trained"))
    assert group.call("train") == "trained"
    thread.join()
    assert heard == [("train", (), {}), True]


def test_what_a_report_raises_ends_real_workers_and_is_what_the_loop_hears(foreign):
    pytest.importorskip("trl")

    from envtuning.trainees.base import TrainingDiverged
    from envtuning.trainees.language.trainee import GRPOTrainee
    from envtuning.worlds.lakes.world import LakeWorld
    from tests.language.conftest import CONFIG, QUICK

    world = LakeWorld(mode="plan", style="short")
    one = GRPOTrainee(
        world=world, model=str(foreign), processes=2, grpo=QUICK | {"per_device_train_batch_size": 4}, torch_threads=1
    )

    def objects(step):
        raise TrainingDiverged("the loss left the finite numbers")

    try:
        with pytest.raises(TrainingDiverged, match="the loss left the finite numbers"):
            one.train(CONFIG, 64, seed=1, on_iteration=objects)
        assert one.policy().reply([[{"role": "user", "content": "Lake"}]])  # the group is there for the next attempt
    finally:
        one.close()
