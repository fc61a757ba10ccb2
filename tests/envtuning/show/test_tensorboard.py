"""Event files against the run's own lines, read back by TensorBoard's format as protocol buffers."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.spec import parse_spec
from envtuning.show.tensorboard import EventFiles
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import ITERATION

pytest.importorskip("tensorboardX")

SMALL = """
extends: scripted
name: small
suites: {validation_per_slice: 4, test_per_slice: 0, probe_per_slice: 2, failure_cases: 2, validate: every 2000}
"""


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    """(step, value) of a tag, file by file; what a later file purges is left out."""
    from tensorboardX.proto.event_pb2 import Event

    found: list[tuple[int, float]] = []
    for path in sorted(folder.iterdir()):
        data, at = path.read_bytes(), 0
        while at < len(data):  # TFRecord: length uint64, its checksum, the event, its checksum
            length = int.from_bytes(data[at : at + 8], "little")
            event = Event.FromString(data[at + 12 : at + 12 + length])
            at += 16 + length
            if event.session_log.status == 1:  # START: forget from this step on
                found = [(step, value) for step, value in found if step < event.step]
            found += [(event.step, value.simple_value) for value in event.summary.value if value.tag == tag]
    return found


def lines(run: RunLog, kind: str, metric: str) -> list[tuple[int, Any]]:
    return [(step, pytest.approx(value, rel=1e-6)) for step, value in lines_with(run, kind, metric)]


def lines_with(run: RunLog, kind: str, entry: str) -> list[tuple[int, Any]]:
    found: list[tuple[int, Any]] = []
    before = 0
    for stage in run.state.stages:
        found += [(before + line["spent"], line[entry]) for line in stage.metrics() if line["kind"] == kind]
        before += stage.done.spent["env_steps"] if stage.done else 0
    return found


@pytest.fixture
def run(tmp_path) -> RunLog:
    return loop.start(parse_spec(SMALL, "test"), tmp_path / "run")


def test_every_iteration_and_validation_is_there_once(run):
    for _ in range(2):  # made anew the second time, not doubled
        files = EventFiles(run)
        folder = files.catch_up()
        files.catch_up()
        files.close()
        assert scalars(folder, "training/success_rate") == lines(run, "iteration", "success_rate")
        assert scalars(folder, "validation/valid_rate") == lines(run, "validation", "valid_rate")
        assert {value for _, value in scalars(folder, "stage")} == {0, 1, 2, 3}
        shown = [
            (step, counts["4"].get("successes", 0) / counts["4"]["episodes"])
            for step, outcomes in lines_with(run, "iteration", "outcomes")
            if "4" in (counts := outcomes["first"])
        ]
        assert shown
        assert scalars(folder, "success/4") == [(step, pytest.approx(rate, rel=1e-6)) for step, rate in shown]


def test_success_and_score_of_a_slice_are_drawn_apart(tmp_path):
    """An episode may fail and still score: of ten, ``n`` succeed and the others score a half."""
    telling = {"kind": "tests.envtuning.counting_world:Telling"}
    run = loop.start(spec_of({"budget": 400}, trainee=telling), tmp_path / "run")
    files = EventFiles(run)
    folder = files.catch_up()
    files.close()
    steps = [ITERATION * number for number in range(1, 4)]
    assert scalars(folder, "success/all")[:3] == [(step, pytest.approx(step / 1000)) for step in steps]
    assert scalars(folder, "score/all")[:3] == [(step, pytest.approx(0.5 + step / 2000)) for step in steps]


def test_a_stage_that_started_again_replaces_its_first_try(run):
    files = EventFiles(run)
    files.catch_up()
    last = run.state.stages[-1].path / "metrics.jsonl"
    again = [
        json.loads(line) | {"success_rate": 0.5} for line in last.read_text().splitlines() if "success_rate" in line
    ]
    run.files.write_text(last, "".join(json.dumps(line) + "\n" for line in again))
    folder = files.catch_up()
    files.close()
    assert scalars(folder, "training/success_rate") == lines(run, "iteration", "success_rate")


def test_each_restart_is_a_file_of_its_own_and_leaves_no_thread(run):
    threads = threading.active_count()
    files = EventFiles(run)
    files.catch_up()
    last = run.state.stages[-1].path / "metrics.jsonl"
    first_try = last.read_text().splitlines()
    for rate in (0.25, 0.75):  # within a second, as a test is
        again = [json.dumps(json.loads(line) | {"success_rate": rate}) for line in first_try if "success_rate" in line]
        run.files.write_text(last, "\n".join(again) + "\n")
        folder = files.catch_up()
    assert len(list(folder.iterdir())) == 3
    files.close()
    assert scalars(folder, "training/success_rate") == lines(run, "iteration", "success_rate")
    deadline = time.monotonic() + 20
    while threading.active_count() > threads:
        assert time.monotonic() < deadline, threading.enumerate()
        time.sleep(0.01)
