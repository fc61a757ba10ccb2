"""The log's state is what its folder says: after every append, at every kill, and read once for it."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from envtuning.loop import run as loop
from envtuning.runs.checked import NAME as TABLE
from envtuning.runs.log import RunLog
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from envtuning.show.console import summary
from envtuning.show.page import write_page
from envtuning.show.terminal import make_console
from tests.envtuning.counting_runs import spec_of

APPENDS = ("chose", "finished", "tested", "survived")
SMALL = SuiteSpec(validation_per_slice=2, test_per_slice=2, probe_per_slice=1, failure_cases=1)
LAZY = ("metrics.jsonl", "episodes.json", "transcript.jsonl", "validation.cases", "test.cases")


def scripted(stages: int) -> RunSpec:
    spec = load_spec("scripted").with_rounds(stages)
    short = tuple(stage.model_copy(update={"budget": 500, "advance_when": None}) for stage in spec.stages)
    return spec.model_copy(update={"suites": SMALL, "stages": short})


def test_after_every_append_the_folder_says_what_the_log_says(tmp_path, monkeypatch):
    appended: Counter[str] = Counter()
    for name in APPENDS:
        real = getattr(RunLog, name)

        def append(log: RunLog, *given, name=name, real=real):
            state = real(log, *given)
            assert RunLog.open(log.path).state == log.state == state
            appended[name] += 1
            return state

        monkeypatch.setattr(RunLog, name, append)
    loop.start(scripted(3), tmp_path / "run")
    assert appended == {"chose": 3, "finished": 3, "tested": 1}


class Killed(BaseException):
    pass


def test_at_every_kill_the_folder_says_what_the_log_said_or_what_it_was_about_to_say(tmp_path, monkeypatch):
    """Before the kill's append or after it: nothing else is ever seen."""
    real, left, states = os.replace, [0], []

    def replace(draft: object, path: object) -> None:
        if left[0] == 0:
            raise Killed
        left[0] -= 1
        real(draft, path)

    whole = loop.start(spec_of({}, {}), tmp_path / "whole")
    become = RunLog._become
    monkeypatch.setattr(RunLog, "_become", lambda log, state: states.append(state) or become(log, state))
    killed = 0
    for moment in range(4, 200):  # from the first one that leaves a run.json
        folder = tmp_path / f"at-{moment}" / "whole"
        folder.parent.mkdir()
        left[0] = moment
        states.clear()
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", replace)
            try:
                loop.start(spec_of({}, {}), folder)
                break
            except Killed:
                killed += 1
        before = states[-1] if states else None
        found = RunLog.open(folder).state
        if before is not None and found != before:
            assert len(found.stages) + len(found.done) == 1 + len(before.stages) + len(before.done)
        again = loop.resume(folder)
        assert again.state.test == whole.state.test
        assert [stage.report for stage in again.state.stages] == [stage.report for stage in whole.state.stages]
    assert killed > 20


@pytest.mark.parametrize("command", ["show", "report", "resume"])
def test_no_file_of_a_run_is_opened_twice_but_lazy_ones(tmp_path, command):
    path = loop.start(scripted(4), tmp_path / "run").path
    opened: Counter[str] = Counter()
    watching = [True]

    def watch(event: str, arguments: tuple) -> None:
        if watching and event == "open" and str(arguments[0]).startswith(str(path)):
            name = os.path.relpath(str(arguments[0]), path)
            if os.path.isfile(str(arguments[0])) and not name.startswith("."):
                opened[name] += 1

    sys.addaudithook(watch)
    run = RunLog.open(path)
    if command == "show":
        make_console().print(summary(run))
    elif command == "report":
        write_page([run], tmp_path / "page.html")
    else:
        loop.continue_run(run)
    watching.clear()
    assert opened[TABLE] == opened["run.json"] == opened["stages/00/report.json"] == 1
    assert {name for name, times in opened.items() if times > 1 and Path(name).name not in LAZY} == set()


@pytest.mark.prove
def test_stages_cost_the_same_however_many_there_are(tmp_path):
    loop.start(scripted(4), tmp_path / "warm")
    took = {}
    for stages in (100, 400):
        begin = time.process_time()
        loop.start(scripted(stages), tmp_path / str(stages))
        took[stages] = time.process_time() - begin
    assert took[400] <= 5 * took[100]


def test_the_functions_from_a_command_to_the_first_training_step_are_those_of_the_page():
    page = (Path(__file__).parents[3] / "docs" / "design.md").read_text(encoding="utf-8")
    named = re.findall(r"^\d+\. `([\w.]+):([\w.]+)`", page, flags=re.MULTILINE)
    assert 0 < len(named) <= 12
    for module, name in named:
        assert callable(attrgetter(name)(import_module(module))), name
