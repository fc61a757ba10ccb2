"""A long command is never silent: a line says what goes on whenever nothing else was printed."""

from __future__ import annotations

import io
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console

from engineers import Engineer, Proposal
from envtuning.loop.observer import Progress
from envtuning.show import pulse as shown
from envtuning.show.pulse import Pulse
from tests.envtuning.commands import called
from tests.envtuning.counting_runs import TESTED, spec_of
from tests.envtuning.counting_world import CountWorld


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(shown, "QUIET", 0.1)


def until(condition, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_what_goes_on_is_said_again_and_again_until_something_is_printed():
    out = io.StringIO()
    console = Console(file=out, width=100)
    with Pulse(console) as pulse:
        time.sleep(0.3)
        assert out.getvalue() == ""  # nothing is known
        pulse.now("the table is made")
        assert until(lambda: out.getvalue().count("  … the table is made (") >= 3)
        before = pulse._printed
        console.print("a line")
        assert pulse._printed > before
    said = out.getvalue()
    time.sleep(0.3)
    assert out.getvalue() == said


def test_it_ends_with_the_command_that_fails():
    console = Console(file=io.StringIO())
    with pytest.raises(KeyboardInterrupt), Pulse(console) as pulse:
        raise KeyboardInterrupt
    assert not pulse._thread.is_alive()
    assert console._render_hooks == []


def test_a_run_tells_where_it_is():
    heard: list[str] = []
    pulse = Pulse(Console(file=io.StringIO()))
    pulse.now = heard.append
    stage = SimpleNamespace(number=1)
    pulse.run_began(None)
    pulse.stage_began(stage, 5000)
    pulse.progressed(Progress(1, 1200, 5000, "env_steps", {}))
    assert pulse._what == "stage 1, 1,200 of 5,000 env steps"  # its seconds count from the stage's begin
    pulse.validated(stage, {})
    pulse.stage_ended(stage)
    pulse.engineer_asked(stage, "rules")
    pulse.engineer_answered(stage, None)
    pulse.test_opened(10)
    pulse.run_left()
    assert heard == [
        "the run begins",
        "stage 1 begins",
        "stage 1 is validated",
        "stage 1 has ended",
        "rules is asked",
        "the engineer has answered",
        "the test suite is played",
        "the run is over",
    ]


class Slow(Engineer):
    def propose(self, report, current, editable=None):
        time.sleep(0.5)
        return Proposal(config=current)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_comparison_is_never_silent(jobs, tmp_path, monkeypatch):
    """Neither while an engineer thinks and a test is played, nor while other processes work."""
    play = CountWorld.play

    def slowly(self, policy, cases, config, *, seed):
        time.sleep(0.5 if len(cases) == TESTED else 0.0)
        return play(self, policy, cases, config, seed=seed)

    monkeypatch.setattr(CountWorld, "play", slowly)
    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: Slow())
    monkeypatch.setattr("envtuning.studies.study.ProcessPoolExecutor", lambda count, **_: ThreadPoolExecutor(count))
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(spec_of({}, {}).model_dump(mode="json")))
    words = ["--engineers", "fixed,random", "--seeds", "1", "--out", tmp_path / "out", "--jobs", jobs]
    code, said = called("compare", tmp_path / "small.yaml", *words, "--trust", "tests.envtuning.counting_world")
    assert code == 0, said
    expected = ("fixed is asked", "the test suite is played") if jobs == 1 else ("at work: fixed/seed0",)
    for what in expected:
        assert f"  … {what}" in said
