"""The talk between the loop's process and a group of workers: reports on the way, an end asked for on the way, a group that dies."""

from __future__ import annotations

import threading
from multiprocessing import Pipe

import pytest

from envtuning.trainees.language.workers import WorkerGroup, WorkerLost


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
