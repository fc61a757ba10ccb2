"""Between two stages: what the engineer is given, what it may spend, and what is kept of what it was told before a kill."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import engineers
import envtuning.loop.ask
import envtuning.runs.plan
import envtuning.runs.resolve
from engineers import Proposal
from engineers.guard import Guard
from engineers.knobs import KnobError
from engineers.model.context import context_named
from engineers.model.ledger import Ledger, Taken
from engineers.model.transcript import Exchange
from engineers.report import SliceResult, StageReport
from envtuning import atomic
from envtuning.errors import RunError, SpecError
from envtuning.loop import run as loop
from envtuning.loop.ask import ask_engineer, make_engineer, recorded_replies, redraw, spent_before
from envtuning.runs import checked
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.resolve import resolve
from envtuning.runs.state import Choice
from envtuning.trainees import LIVE
from envtuning.trainees.language import live_engineers
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig, CountTrainee, CountWorld

REPORT = StageReport(stage=0, config=CountConfig().model_dump(), objective="success_rate")


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


EXCHANGE = Exchange(
    engineer="e", model="m", context=context_named("informed"), max_attempts=1, stage=0, number=0, kind="proposal",
    messages=said("a"), json_schema=None, max_tokens=9, reply="one", prompt_tokens=3, completion_tokens=2, cost=0.5,
).model_dump(mode="json")  # fmt: skip


class Engineer(engineers.Engineer):
    """Answers by a function, and remembers how it was asked."""

    name = "stub"

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer, self.asked = answer, []

    def propose(self, report: Any, current: Any, editable: Any = None) -> Any:
        thread = threading.current_thread()
        self.asked.append((report, current, editable, thread.name, thread.daemon))
        return self.answer()


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """Ask one that answers so about stage 0 of a run; the answer, how it was asked, and what it was made with."""

    def ask(answer: Callable[[], Any], report: StageReport = REPORT, **changes: Any) -> tuple[Any, Engineer, tuple]:
        run = RunLog.create(tmp_path / "run", Plan.of(spec_of({}, {}, **changes)))
        run.chose(Choice(config=CountConfig(), engineer="default"))
        run.state = replace(run.state, stages=(replace(run.state.stages[0], report=report, trained_on=CountConfig()),))
        engineer, made = Engineer(answer), []
        monkeypatch.setattr(envtuning.loop.ask, "make_engineer", lambda *given: made.append(given) or engineer)
        found = ask_engineer(run, trainee)
        return found, engineer, made[0][1]

    def trainee() -> None:
        """Loads nothing."""

    return ask


def to(level: float, hint: float = 0.0) -> Proposal:
    return Proposal(config=CountConfig(level=level, hint=hint))


def test_an_engineer_is_asked_with_what_it_may_edit_in_a_thread_that_cannot_keep_the_process(asked):
    answer, engineer, given = asked(lambda: to(0.25), editable=("level",))
    assert engineer.asked == [(REPORT, CountConfig(), ("level",), "engineer", True)]
    assert given is None  # it needs no trainee
    assert (answer.config.level, answer.incidents) == (0.25, [])
    assert answer.proposal == to(0.25).with_changes(CountConfig())
    changed = [(change.path, change.new, change.reason) for change in answer.proposal.reasons]
    assert changed == [("level", 0.25, "")]  # an engineer that gives no reasons is still told by its changes


@pytest.mark.parametrize("name", LIVE)
def test_one_that_needs_the_trainee_gets_it_and_is_asked_where_the_trainee_lives(asked, name):
    _, engineer, given = asked(lambda: to(0.25), engineer={"name": name})
    assert engineer.asked[0][3] == "MainThread"
    assert given is not None


def test_one_that_gave_no_config_and_no_reason_is_said(asked):
    answer, _, _ = asked(lambda: Proposal(config=CountConfig(), fallback=True))
    (incident,) = answer.incidents
    assert incident.message == "fixed gave no usable config (it gave no config); the current config is kept"
    assert (incident.kind, incident.stage) == ("engineer_failed", 0)
    assert answer.config == CountConfig()


@pytest.mark.parametrize(("editable", "kept"), [(None, False), (("hint",), True), (("level", "hint"), False)])
def test_only_what_is_editable_may_be_changed(asked, editable, kept):
    """``level`` was changed; the class of the config lists it alone."""
    answer, _, _ = asked(lambda: to(0.25), editable=editable)
    assert [one.kind for one in answer.incidents] == ["refused_proposal"] * kept
    assert answer.config.level == (0.5 if kept else 0.25)


@pytest.mark.parametrize(("check", "kinds"), [(True, ["refused_proposal"]), (False, [])])
def test_what_cannot_be_drawn_is_refused_where_the_guard_is_to_ask(asked, check, kinds):
    answer, _, _ = asked(lambda: to(0.75), guard={"check_feasible": check})
    assert [one.kind for one in answer.incidents] == kinds
    assert all("cannot be drawn" in one.message for one in answer.incidents)
    assert answer.config.level == (0.5 if check else 0.75)


def test_a_working_slice_is_one_that_works_by_the_worlds_own_objective(monkeypatch, asked):
    """The guard is given the report's history and objective, not those of another world."""
    seen = []
    monkeypatch.setattr(Guard, "rules", lambda self, *given, **named: seen.append((given, named)) or [])
    report = REPORT.model_copy(update={"results": [SliceResult(name="all", episodes=4)]})
    asked(lambda: to(0.25), report)
    ((given, named),) = seen
    assert given[2] == report.records()
    assert named == {"editable": None, "objective": "success_rate"}


def test_the_runs_guard_is_what_the_file_says():
    assert Plan.of(spec_of({}, guard={"max_drop": 0.25, "check_feasible": False})).guard == Guard(None, 0.25)
    assert Plan.of(spec_of({})).guard.feasible is not None


# What an engineer is made with


def test_an_engineer_that_is_never_asked_need_not_exist():
    nobody = {"engineer": {"name": "nobody"}}
    resolve(spec_of({}, {"config": CountConfig()}, **nobody))
    with pytest.raises(SpecError, match="'nobody' is unknown"):
        resolve(spec_of({}, {}, **nobody))


@pytest.mark.parametrize("name", LIVE)
def test_a_trainee_that_is_no_language_model_cannot_be_asked(name):
    with pytest.raises(SpecError, match=f"engineer '{name}' asks the trainee's own model"):
        resolve(spec_of({}, {}, engineer={"name": name}))


@pytest.mark.parametrize("name", LIVE)
def test_a_model_that_writes_configs_needs_no_slices(monkeypatch, name):
    monkeypatch.setattr(CountTrainee, "check_asked_by", lambda name: None)
    resolve(spec_of({}, {}, engineer={"name": name}))


@pytest.mark.parametrize(
    ("stages", "shown"),
    [
        ([{}, {"config": CountConfig()}], []),  # nobody is asked
        ([{}, {}, {}], [0.5]),  # the third gets what it wrote for the second
        ([{}, {"config": CountConfig(level=0.25)}, {}], [0.25]),
        ([{}, {}, {"config": CountConfig(level=0.25)}, {}], [0.5, 0.25]),
    ],
)
def test_an_engineer_is_asked_beforehand_about_each_written_config_that_it_will_be_shown(monkeypatch, stages, shown):
    seen = []

    def able(current: CountConfig, editable: Any) -> None:
        seen.append((current.level, editable))

    askable = SimpleNamespace(check_askable=lambda: None, check_able=able)
    monkeypatch.setattr(Plan, "make_engineer", lambda plan: askable)
    resolve(spec_of(*stages, editable=("level",)))
    assert seen == [(level, ("level",)) for level in shown]


def test_what_it_has_against_such_a_config_stops_the_run(monkeypatch):
    def unable(current: Any, editable: Any) -> None:
        raise KnobError("nothing to turn")

    askable = SimpleNamespace(check_askable=lambda: None, check_able=unable)
    monkeypatch.setattr(Plan, "make_engineer", lambda plan: askable)
    with pytest.raises(SpecError, match="nothing to turn"):
        resolve(spec_of({}, {}))


@pytest.mark.parametrize(("name", "loaded"), [("base", 1), ("fixed", 0)])
def test_the_trainee_is_loaded_for_those_who_need_it_alone_with_the_files_patience(monkeypatch, name, loaded):
    made, loads = [], []
    monkeypatch.setattr(
        live_engineers, "live_engineer", lambda *given, **named: made.append((given, named)) or Engineer(to)
    )
    plan = Plan.of(spec_of({}, engineer={"name": name, "timeout": 12.5}))
    plan.make_engineer(lambda: loads.append(1) or "the trainee")
    assert len(loads) == len(made) == loaded
    assert made == [(("base", "the trainee"), {"timeout": 12.5, "guard": plan.guard})] * loaded


def with_exchanges(run: RunLog, taken: list[Taken | None]) -> None:
    """Each stage's questions: a ledger's total, or nothing."""
    for number, one in enumerate(taken):
        folder = run.state.stages[number]
        if one is not None:
            Ledger(folder.path / "asked.jsonl").asks(one)


@pytest.fixture(scope="module")
def three_stages(tmp_path_factory) -> Path:
    return loop.start(spec_of({}, {}, {}), tmp_path_factory.mktemp("asking") / "run").path


def after(run: RunLog, number: int) -> RunLog:
    """The run as it was when this stage was the last."""
    run.state = replace(run.state, stages=run.state.stages[: number + 1])
    return run


@pytest.fixture
def run(three_stages, tmp_path) -> RunLog:
    copy = RunLog.open(shutil.copytree(three_stages, tmp_path / "run"))
    for stage in copy.state.stages[1:]:
        (stage.path / "config.json").unlink()
    return copy


@pytest.mark.parametrize(
    ("taken", "stage", "tokens", "cost"),
    [
        ([None, None, None], 2, 0, 0.0),
        ([Taken(100, 1.0), Taken(10, 0.5), Taken(1, 0.25)], 0, 100, 1.0),
        ([Taken(100, 1.0), Taken(10, 0.5), Taken(1, 0.25)], 1, 110, 1.5),  # its own included, later ones not
        ([Taken(100, 1.0), Taken(10, None)], 1, 110, None),  # a price that nobody knows
    ],
)
def test_a_cap_counts_what_the_stages_so_far_took(run, taken, stage, tokens, cost):
    with_exchanges(run, taken)
    assert spent_before(after(run, stage)) == Taken(tokens, cost)


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({}, {}),
        ({"max_total_tokens": 1000, "max_cost": 2.0}, {"max_total_tokens": 890, "max_cost": 0.5}),
        ({"max_total_tokens": 100, "max_cost": 1.0}, {"max_total_tokens": 0, "max_cost": 0.0}),
        ({"max_total_tokens": None}, {"max_total_tokens": None}),
    ],
)
def test_an_engineer_is_given_the_rest_of_its_caps(run, monkeypatch, options, given):
    made = []
    monkeypatch.setattr(Plan, "make_engineer", lambda plan, trainee, **options: made.append(options) or Engineer(to))
    with_exchanges(run, [Taken(100, 1.0), Taken(10, 0.5)])
    engineer = run.plan.spec.engineer.model_copy(update={"options": options})
    run.plan = Plan.of(run.plan.spec.model_copy(update={"engineer": engineer}))
    make_engineer(after(run, 1))
    (found,) = made
    assert {name: found[name] for name in given} == given
    assert found["transcript"] == run.state.stages[1].transcript_file
    assert found["ledger"] == run.state.stages[1].path / "asked.jsonl"
    assert found["desk"] == run.path / "desk"  # two runs beside one another have two


def test_replies_are_kept_over_any_number_of_interruptions(run):
    """The transcript starts afresh each time; what was answered before stays, and what was not is asked again."""
    stage = run.state.stages[0]
    atomic.write_lines(stage.transcript_file, [EXCHANGE, EXCHANGE | {"messages": said("b"), "reply": None}])
    assert recorded_replies(stage) == [EXCHANGE]
    assert not stage.transcript_file.exists()
    assert recorded_replies(stage) == [EXCHANGE]
    atomic.write_lines(stage.transcript_file, [EXCHANGE | {"messages": said("c")}])
    assert recorded_replies(stage) == [EXCHANGE, EXCHANGE | {"messages": said("c")}]


def test_of_a_transcript_whose_only_line_was_cut_off_nothing_is_kept(run):
    stage = run.state.stages[0]
    stage.transcript_file.write_text('{"messages": [], "rep')
    assert recorded_replies(stage) == []
    assert not stage.transcript_file.exists()


def test_what_was_answered_before_a_kill_is_given_to_the_engineer(run, monkeypatch):
    engineer, given = Engineer(to), []
    engineer.recall = given.append
    monkeypatch.setattr(Plan, "make_engineer", lambda *_, **options: engineer)
    atomic.write_lines(run.state.stages[0].transcript_file, [EXCHANGE])
    assert make_engineer(after(run, 0)) is engineer
    assert given == [[EXCHANGE]]


def test_an_answer_is_written_for_readers_and_checked_like_every_file(run):
    stage = run.state.stages[0]
    stage.transcript_file.write_text("")
    for later in run.state.stages[1:]:
        shutil.rmtree(later.path)
    loop.resume(run.path)
    chosen = run.state.stages[1].path / "config.json"
    assert '\n "proposal": {\n  "config": {' in chosen.read_text()
    assert "stages/01/config.json" in (run.path / checked.NAME).read_text()


# A first config that is drawn


def test_only_what_is_editable_is_drawn():
    spec = spec_of({}, editable=("hint",), engineer={"name": "fixed", "options": {"space": {"hint": (0.25, 0.5)}}})
    drawn = redraw(Plan.of(spec), CountConfig())
    assert drawn.level == 0.5
    assert 0.25 <= drawn.hint <= 0.5


def test_a_config_that_no_draw_can_meet_is_told_with_the_last_reason(monkeypatch):
    draws = []

    def check(self: CountWorld, config: CountConfig) -> None:
        draws.append(config.level)
        raise ValueError("too deep")

    monkeypatch.setattr(CountWorld, "check", check)
    with pytest.raises(RunError, match=r"none of 100 random configs can be drawn .*too deep.*: narrow the first stage"):
        redraw(Plan.of(spec_of({})), CountConfig())
    assert len(draws) == 100
    assert len(set(draws)) > 90
