"""What the terminal prints of a run, word for word: while it goes, when it was interrupted, and at its end."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import engineers
from engineers import Proposal
from engineers.proposal import Change, Usage
from engineers.report import SliceResult
from engineers.shared.terminal import TextConsole
from envtuning import atomic
from envtuning.loop import run as loop
from envtuning.loop.observer import Progress
from envtuning.runs.log import RunLog
from envtuning.runs.state import Choice, RunState, TestRecord
from envtuning.show import console as shown
from envtuning.show.terminal import LOG_WIDTH, make_console, print_error
from envtuning.studies.table import drawn
from envtuning.trainees import TraineeKind
from envtuning.worlds.world import About
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig, CountTrainee, SkillsConfig

PLAIN = """run in RUN
stage 0 warm up (config by the file; 1,000 env steps): level 0.5; hint 0
        100 env steps  success_rate 0.020 grad_norm 1.000
        200 env steps  success_rate 0.040 grad_norm 1.000
        400 env steps  success_rate 0.080 grad_norm 1.000
        600 env steps  success_rate 0.120 grad_norm 1.000
  validation: success 10.0%
        770 env steps  success_rate 0.140 grad_norm 1.000
        970 env steps  success_rate 0.180 grad_norm 1.000
  validation: success 10.0%
  ended: the budget of 1,000 env steps is spent; 1,091 env steps, 12 s
asking fixed …
  level: 0.5 → 0.25  (too [hard])
stage 1 (config by fixed; 909 env steps): level 0.25; hint 0
        100 env steps  success_rate 0.206 grad_norm 1.000
        200 env steps  success_rate 0.226 grad_norm 1.000
        300 env steps  success_rate 0.246 grad_norm 1.000
        400 env steps  success_rate 0.266 grad_norm 1.000
        500 env steps  success_rate 0.286 grad_norm 1.000
        600 env steps  success_rate 0.306 grad_norm 1.000
  validation: success 30.0%
        770 env steps  success_rate 0.326 grad_norm 1.000
  validation: success 30.0%
  ended: the budget of 909 env steps is spent; 920 env steps, 12 s
"""

SUMMARY = """run: [b]none[/b] :warning:

 stage      data        env steps  success  all
 ───────────────────────────────────────────────
 0 warm up  level 0.5       1,091    10.0%  10%
            hint 0
 1 fixed    level 0.25        920    30.0%  30%
            hint 0
 2 kept     level 0.25      1,000    50.0%  50%
            hint 0

test suite: cases that nobody saw before, 95 % intervals

 slice  cases  success, stage 0  success, stage 2
 ─────────────────────────────────────────────────
   all      5    0.0% [0%, 43%]    0.0% [0%, 43%]

success on 5 unseen cases: 0.0% after the first stage, 0.0% after the last
engineer fixed: 1 proposal, 1,234 tokens, cost $0.5000
"""


def trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


class Trainee(CountTrainee):
    def train(self, config: Any, budget: int, *, seed: int, on_iteration: Any = None) -> dict[str, float]:
        def tell(metrics: dict[str, float]) -> None:
            on_iteration(metrics | {"grad_norm": 1.0, "success_rate": self.steps / 5000, "other": 1.0})

        return super().train(config, budget, seed=seed, on_iteration=tell)


class Engineer(engineers.Engineer):
    """Turns a knob after the first stage, of two that it has reasons for, and fails after the second."""

    def propose(self, report: Any, current: Any, editable: Any = None) -> Proposal:
        if report.stage:
            raise ValueError("no idea, and one so long that it is broken over two lines of the panel that tells it")
        reasons = [
            Change(path="level", old=0.5, new=0.25, reason="too [hard]"),
            Change(path="hint", old=0.0, new=0.0, reason="stays"),
        ]
        usage = Usage(attempts=2, prompt_tokens=1000, completion_tokens=234, cost=0.5)
        return Proposal(config=CountConfig(level=0.25), reasons=reasons, usage=usage)


@pytest.fixture
def run(tmp_path, monkeypatch) -> RunLog:
    monkeypatch.setattr("envtuning.loop.ask.make_engineer", lambda *_: Engineer())
    monkeypatch.setattr(TraineeKind, "make", lambda kind, options, unit, **given: Trainee(**given, **options))
    clock = iter(range(0, 10_000, 12))
    monkeypatch.setattr("envtuning.loop.stage.time.monotonic", lambda: float(next(clock)))
    stages = [{"name": "warm up"}, {}, {}]
    return loop.create(tmp_path / "run", spec_of(*stages, validate_every=600, description="[b]none[/b] :warning:"))


def test_a_run_is_told_as_it_goes_and_summed_up_at_its_end(run, capsys):
    console = make_console()
    observer = shown.ConsoleObserver(console)
    loop.continue_run(run, observer)
    told = trimmed(capsys.readouterr().out).replace(str(run.path), "RUN")
    assert told[: len(PLAIN)] == PLAIN, told
    failed = "  engineer_failed: fixed failed (ValueError: no idea, and one so long that it is broken over two lines of the panel that"
    assert failed in told  # in one line
    assert "\nstage 2 (config kept; 989 env steps): level 0.25" in told  # by nobody, as nobody wrote one
    assert told.endswith("opening the test suite: 5 cases\n")
    console.print(shown.summary(run))
    summary = trimmed(capsys.readouterr().out)
    assert summary[: len(SUMMARY)] == SUMMARY
    panel = summary[len(SUMMARY) :].splitlines()
    assert panel[0].startswith("╭─ what went wrong and was survived ─")
    inside = " ".join(line.strip("│ ") for line in panel[1:-1])
    assert inside == f"stage 1, engineer_failed: {run.state.incidents()[0].message}"  # to its end
    assert {len(line) for line in panel} == {LOG_WIDTH}


def test_what_was_not_begun_yet_is_told_with_its_budget(run, capsys):
    make_console().print(shown.summary(run))
    assert (
        trimmed(capsys.readouterr().out)
        == """run: [b]none[/b] :warning:

 stage      data             env steps  success  all
 ────────────────────────────────────────────────────
 0 warm up                   – / 1,000
 1                           – / 1,000
 2                           – / 1,000

engineer fixed: 0 proposals, 0 tokens, cost $0.0000
"""
    )


def test_an_unfinished_stage_has_a_bar_and_is_said_when_it_goes_on(run, capsys):
    loop.continue_run(run, stages=1)
    first = run.state.stages[0]
    run.chose(Choice(config=first.chosen.config, engineer="fixed"))
    stage = run.state.stages[1]
    console = make_console()
    lines = [
        {"kind": "iteration", "spent": 100},
        {"kind": "iteration", "spent": 250},
        {"kind": "incident", "message": ""},
    ]
    for count, bar in ((0, "─" * 20 + "\n  hint 0 0 / 1,000"), (3, "━" * 5 + "─" * 15)):
        atomic.write_lines((stage.path / "metrics.jsonl"), lines[:count])
        console.print(shown.run_table(run))
        told = capsys.readouterr().out
        assert " ".join(told.split()).count(" ".join(bar.split())) == 1
        shown.ConsoleObserver(console).run_began(run)
        began = capsys.readouterr().out.splitlines()
        assert began == [f"run in {run.path}"] + (
            ["stage 1 was interrupted after 250 env steps: from its last checkpoint again"] if count else []
        )
    assert shown.bar(stage, 200).plain == "━" * 20 + "\n250 / 200"  # it may overspend


def test_on_a_terminal_the_running_stage_has_a_bar_and_names_stand_out(run):
    console = Console(file=StringIO(), force_terminal=True, color_system="standard", width=100)
    observer = shown.ConsoleObserver(console)
    assert observer.status is not None
    heard: list[str] = []
    observer.status = SimpleNamespace(
        start=lambda: heard.append("start"), stop=lambda: heard.append("stop"), update=heard.append
    )
    loop.continue_run(run, observer, stages=2)
    assert heard[:2] == [
        "start",
        f"{'━' * 3}[dim]{'━' * 27}[/]  10%         100 env steps  success_rate 0.020 grad_norm 1.000, about 2 min left",
    ]
    assert [word for word in heard if word in ("start", "stop")] == ["start", "stop"] * 3 + [
        "stop"
    ]  # the engineer is between them
    told = console.file.getvalue()
    assert "grad_norm 1.000" not in told  # the bar tells it
    assert "\x1b[1mstage 0\x1b[0m warm up" in told
    assert "\x1b[1mfixed\x1b[0m" in told
    assert told.startswith("\x1b[1mrun in ")
    observer.progressed(Progress(0, 10, 0, "env_steps", {}))  # a stage that has nothing to spend
    assert heard[-1] == f"{'━' * 30}[dim][/] 100%          10 env steps  "


def test_what_went_wrong_and_what_is_not_done_yet_look_it(run):
    console = Console(file=StringIO(), force_terminal=True, color_system="standard", width=100)
    console.print(shown.run_table(run))
    told = console.file.getvalue()
    assert "\x1b[1mrun: " in told
    assert "\x1b[2m" in told
    shown.ConsoleObserver(console).went_wrong(SimpleNamespace(kind="other", message="odd"))
    assert "\x1b[33m  other:\x1b[0m odd" in console.file.getvalue()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (SimpleNamespace(proposal=Proposal(config=CountConfig())), "  nothing is changed\n"),
        (SimpleNamespace(proposal=Proposal(config=CountConfig(), kept={"x": "it [rises]", "y": "flat", "z": "it [rises]"})),
         "  nothing is changed\n  x, z: it [rises]\n  y: flat\n"),
        (SimpleNamespace(proposal=None), ""),  # it failed, which is told as what went wrong
        (SimpleNamespace(proposal=Proposal(config=CountConfig(), reasons=[Change(path="x", old=2 / 3, new=True)])),
         "  x: 0.667 → True\n"),
        (SimpleNamespace(proposal=Proposal(config=CountConfig(), reasons=[Change(path="x", old=1 / 3, new=0.3333)])),
         "  x: 0.33333 → 0.3333\n"),
    ],
)  # fmt: skip
def test_an_answer_is_told_knob_by_knob(answer, told, capsys):
    shown.ConsoleObserver(make_console()).engineer_answered(None, answer)
    assert capsys.readouterr().out == told


def rows(rate: float) -> list[SliceResult]:
    return [
        SliceResult(name="3", episodes=4, metrics={"a": rate, "b": 0.25}),
        SliceResult(name="10", episodes=8, metrics={"b": 0.5}),
    ]


def test_slices_of_a_test_are_rows_and_their_sum_the_last(capsys):
    about = About(
        name="x", environment="", objective="a", rates={"a": "good", "b": "best"}, case="board", slice_label="{0}×{0}"
    )
    record = TestRecord(first=rows(0.5), last=rows(1.0))
    run = SimpleNamespace(
        plan=SimpleNamespace(world=SimpleNamespace(about=about)), state=SimpleNamespace(test=record, done=[1, 2, 3])
    )
    console = make_console()
    console.print(shown.test_table(run))
    console.print(shown.gain_line(run))
    assert (
        trimmed(capsys.readouterr().out)
        == """test suite: boards that nobody saw before, 95 % intervals

 slice  boards     good, stage 0       good, stage 2              best
 ──────────────────────────────────────────────────────────────────────
   3×3       4  50.0% [15%, 85%]  100.0% [51%, 100%]             25.0%
 10×10       8                 –                   –             50.0%

   all      12   16.7% [5%, 45%]    33.3% [14%, 61%]  41.7% [19%, 68%]

good on 12 unseen boards: 16.7% after the first stage, 33.3% after the last
"""
    )
    run.state.test = TestRecord(start=rows(0.0), first=rows(0.5), last=rows(1.0))
    assert [column.header for column in shown.test_table(run).table.columns][2:5] == [
        "good, before",
        "good, stage 0",
        "good, stage 2",
    ]
    assert shown.gain_line(run).endswith(
        "boards: 0.0% before the first stage, 16.7% after the first stage, 33.3% after the last"
    )
    bold = Console(file=StringIO(), force_terminal=True, color_system="standard", width=100)
    bold.print(shown.test_table(run))
    assert "\x1b[1m41.7% [19%, 68%]" in bold.file.getvalue()
    run.state.test = None
    assert (shown.test_table(run), shown.gain_line(run)) == (None, "")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (shown.percent(None), "–"), (shown.percent(0.126), "13%"), (shown.percent(0.1264, 1), "12.6%"),
        (shown.counted(1, "case"), "1 case"), (shown.counted(0, "case"), "0 cases"), (shown.counted(1234, "case"), "1,234 cases"),
        (shown.in_words("env_steps"), "env steps"), (shown.rate_with_interval(0.5, 4), "50.0% [15%, 85%]"),
    ],
)  # fmt: skip
def test_numbers_in_words(given, said):
    assert given == said


def test_a_cost_that_nobody_knows_is_said(run, monkeypatch):
    monkeypatch.setattr(RunState, "usage", lambda state: Usage(cost=None))
    assert shown.usage_line(run) == "engineer fixed: 0 proposals, 0 tokens, cost unknown"


def test_without_an_engineer_nothing_is_told_of_one(tmp_path, capsys):
    run = loop.create(tmp_path / "run", spec_of({}, {"config": CountConfig()}))
    make_console().print(shown.summary(run))
    assert "engineer" not in capsys.readouterr().out


def test_an_error_is_one_line_on_the_error_stream(capsys):
    print_error("error", "[x] " + "y" * 300)
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: [x] {'y' * 300}\n")


@pytest.mark.parametrize(("terminal", "width"), [(False, 120), (True, None)])
def test_a_log_is_not_taken_for_80_columns_and_a_terminal_for_what_it_is(monkeypatch, terminal, width):
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)  # which is believed where it is set, as in the tests' own processes
    console = make_console()
    assert console._width == width
    assert console.soft_wrap


@pytest.mark.parametrize("width", [40, 80, 120, 400])
def test_a_table_that_is_too_wide_becomes_blocks_and_nothing_is_cut(width):
    headings = ["arm", "success", "− best open loop", "last stage", "ignited after", "tests", "tokens", "optimal"]
    rows = [[name, *["+12.3 (+4.5, +20.1)"] * (len(headings) - 1)] for name in ("uniform", "rising")]
    paper = TextConsole(width=width, file=StringIO(), soft_wrap=True)
    paper.print(drawn([headings, *rows], "a title", "what it means"))
    said = paper.file.getvalue()
    assert "…" not in said
    assert all(said.count(word) >= 1 for word in (*headings[1:], "a title", "what it means", "uniform", "rising"))
    assert said.count("+12.3 (+4.5, +20.1)") == 14
    assert ("arm  " in said) == (width == 400)


@pytest.mark.parametrize("width", [40, 80, 400])
def test_the_exams_table_cuts_nothing_either(width):
    pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[exam]'")
    from envtuning.cli.exam_report import table
    from envtuning.studies.intervals import Interval

    of = SimpleNamespace(success=0.5, below_even=True, over_open_loop=Interval(0.012, -0.034, 0.056))
    score = SimpleNamespace(
        engineer="rules", reads="shuffled scores", families={"codes-slow": of, "null": of}, part=Interval(0.31, 0.1, 0.5), failed=2, decided=20
    )  # fmt: skip
    paper = TextConsole(width=width, file=StringIO(), soft_wrap=True)
    paper.print(table([score], "4 roots"))
    said = paper.file.getvalue()
    assert "…" not in said
    headings = ("reads", "codes-slow, %", "null, %", "over best open loop", "of the oracle's gain", "failed")
    figures = (
        "rules",
        "shuffled scores",
        "50.0 ↓",
        "+1.2 (-3.4, +5.6)",
        "31 % (10, 50)",
        "2 of 20",
        "The exam: 4 roots",
    )
    assert [word for word in (*headings, *figures) if word not in said] == []


@pytest.fixture(scope="module")
def skilled(tmp_path_factory) -> RunLog:
    """A run with 24 slices, of which the last stage was not begun."""
    stages = [{"budget": 5000, "config": SkillsConfig(), "name": "warm up"}, {"budget": 5000, "config": SkillsConfig()}]
    changes = {
        "world": "tests.envtuning.counting_world:SkillsWorld",
        "target": SkillsConfig(),
        "suites": {"validation_per_slice": 2, "test_per_slice": 1, "probe_per_slice": 1},
    }
    run = loop.create(tmp_path_factory.mktemp("skilled") / "run", spec_of(*stages, {"budget": 5000}, **changes))
    loop.continue_run(run, stages=2)
    return run


@pytest.mark.parametrize("width", [40, 80, LOG_WIDTH])
def test_a_run_of_many_slices_is_readable_in_any_width(skilled, width):
    paper = TextConsole(width=width, file=StringIO(), soft_wrap=True)
    paper.print(shown.summary(skilled))
    said = paper.file.getvalue()
    assert "…" not in said
    assert max(len(line) for line in said.splitlines()) <= max(width, 60)  # a sentence is broken by the terminal
    rows = [line.split() for line in said.splitlines()]
    rates = {row[0]: row[1:] for row in rows if row and row[0].startswith("skill-") and len(row) == 3}
    assert list(rates) == [f"skill-{number:02}" for number in range(24)]
    for column, stage in enumerate(skilled.state.done):
        told = {row.name: f"{row.metrics['success_rate']:.0%}" for row in stage.report.results}
        assert {name: cells[column] for name, cells in rates.items()} == told
    assert ["slice", "0", "1"] in rows  # the stages, above their rates
    assert "and 21 more" in said
    assert "– / 5,000" in said


def test_many_stages_are_told_in_turn():
    """Where there is no room for all, the slices are named again."""
    columns = {str(number): ["100%", f"{number}%"] for number in range(20)}
    paper = TextConsole(width=40, file=StringIO(), soft_wrap=True)
    paper.print(shown.StagesInTurn("success", "as told", ["easy", "hard"], columns))
    lines = [line.split() for line in paper.file.getvalue().splitlines()]
    assert max(map(len, paper.file.getvalue().splitlines())) <= 40
    headings = [line[1:] for line in lines if line[:1] == ["slice"]]
    assert len(headings) > 1
    assert [heading for line in headings for heading in line] == list(columns)
    hard = [cell for line in lines if line[:1] == ["hard"] for cell in line[1:]]
    assert hard == [f"{number}%" for number in range(20)]


def test_a_wide_terminal_has_one_table_for_all(skilled):
    paper = TextConsole(width=400, file=StringIO(), soft_wrap=True)
    paper.print(shown.run_table(skilled))
    (head,) = (line.split() for line in paper.file.getvalue().splitlines() if line.split()[:1] == ["stage"])
    assert head[-24:] == [f"skill-{number:02}" for number in range(24)]
