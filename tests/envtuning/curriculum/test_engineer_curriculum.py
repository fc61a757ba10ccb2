"""An engineer drives any training: what it reads, when it is asked, what happens when it fails, and what a saved state brings back."""

from __future__ import annotations

import json
import linecache
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pytest_httpserver import HTTPServer

import engineers
from engineers.proposal import Change, Proposal, Usage
from envtuning import CurriculumEnv
from envtuning.curriculum.curriculum import Curriculum
from envtuning.curriculum.engineer_curriculum import EngineerCurriculum
from envtuning.errors import RunError, SpecError
from envtuning.outcomes import Outcome


class Piece(BaseModel):
    share: float = Field(1.0, ge=0.0, le=1.0, description="Part of the data.")


class Tasks(BaseModel):
    easy: Piece = Piece()
    middle: Piece = Piece()
    hard: Piece = Piece()


class Stub(engineers.Engineer):
    """Halves the share of the first slice with the most success, and keeps what it has read."""

    name = "stub"

    def __init__(self) -> None:
        self.read: list[engineers.StageReport] = []

    def propose(self, report: Any, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
        self.read.append(report)
        best = max(report.training_results, key=lambda row: row.metrics["success_rate"]).name
        share = getattr(current, best).share / 2
        return Proposal(config=current.model_copy(update={best: Piece(share=share)}), engineer=self.name)


class Says(engineers.Engineer):
    """Does what a test says."""

    name = "says"

    def __init__(self, do: Any) -> None:
        self.do, self.asked = do, 0

    def propose(self, report: Any, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
        self.asked += 1
        return self.do(current)


def succeeds(slice_: str, number: int) -> bool:
    """Easy ones nearly always, the others more and more often."""
    if slice_ == "easy":
        return number % 10 > 0
    return number % 20 < (4 if slice_ == "middle" else 1) + number // 60


class Coin(gym.Env[int, int]):
    """Every episode is one step long, of one of three tasks, and a success."""

    observation_space = action_space = gym.spaces.Discrete(2)

    def set_config(self, config: Any) -> None:
        pass

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, 1.0, True, False, {"slice": "easy", "success": True}


def fed(curriculum: Curriculum, count: int, begin: int = 0) -> list[Any]:
    """The configs that it chooses over this many episodes, whose outcomes depend on their numbers alone."""
    found = []
    for number in range(begin, begin + count):
        slice_ = ("easy", "middle", "hard")[number % 3]
        success = succeeds(slice_, number)
        curriculum.observe(Outcome(slice_, success, 1.0 if success else 0.25))
        config = curriculum.next()
        if config is not None:
            found.append(config)
    return found


def shares(configs: list[Any]) -> list[tuple[float, ...]]:
    return [tuple(piece.share for piece in (one.easy, one.middle, one.hard)) for one in configs]


def test_the_engineer_reads_the_exact_counts_of_the_stage_by_half():
    stub = Stub()
    curriculum = EngineerCurriculum(stub, Tasks(), target=Tasks(), every=60, environment="Three tasks.")
    assert shares(fed(curriculum, 120)) == [(0.5, 1.0, 1.0), (0.25, 1.0, 1.0)]
    first, second = stub.read
    by_hand: dict[str, list[bool]] = {}
    for number in range(60):
        name = ("easy", "middle", "hard")[number % 3]
        by_hand.setdefault(name, []).append(succeeds(name, number))
    for row in first.training_results:
        won = by_hand[row.name]
        assert (row.episodes, row.metrics["success_rate"]) == (20, sum(won) / 20)
        assert row.metrics["score"] == pytest.approx((sum(won) + 0.25 * (20 - sum(won))) / 20)
        assert [half.succeeded for half in row.halves] == [sum(won[:10]), sum(won[10:])]
    assert (first.stage, first.environment, first.rounds_left) == (0, "Three tasks.", None)
    assert (first.config, first.target) == (Tasks().model_dump(), Tasks().model_dump())
    assert [record.stage for record in second.history] == [0]
    assert second.history[0].training_results == first.training_results
    assert second.config["easy"] == {"share": 0.5}
    assert [one.reasons[0].path for one in curriculum.proposals] == ["easy.share", "easy.share"]
    assert curriculum.report.training_results == []


def test_many_outcomes_at_once_count_as_one_by_one():
    one, many = (EngineerCurriculum(Stub(), Tasks(), every=1_000) for _ in range(2))
    names, won = ["easy", "hard", "easy"], [True, False, False]
    for name, success in zip(names, won, strict=True):
        one.observe(Outcome(name, success, float(success)))
    many.observe_many(np.array(names), np.array(won))
    assert many.state_dict() == one.state_dict()


EPISODES = st.lists(
    st.tuples(st.sampled_from(["easy", "middle", "hard"]), st.booleans(), st.integers(0, 8)), max_size=40
)


def looked_at(curriculum: EngineerCurriculum, look: str) -> EngineerCurriculum:
    """After this look; the curriculum that training goes on with."""
    if look == "metrics":
        curriculum.metrics()
    elif look == "report":
        assert curriculum.report
    elif look == "load":
        again = EngineerCurriculum("rules", Tasks(), target=Tasks(), every=20, editable=["*.share"])
        again.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
        return again
    return curriculum


@settings(max_examples=60)
@given(st.lists(st.tuples(EPISODES, st.sampled_from(["none", "metrics", "report", "load"])), max_size=30))
def test_whenever_somebody_looks_the_same_outcomes_give_the_same_configs_and_state(steps):
    """Scores are multiples of 1/8, so that sums of floats are exact in any order."""
    seldom, often = (
        EngineerCurriculum("rules", Tasks(), target=Tasks(), every=20, editable=["*.share"]) for _ in range(2)
    )
    for episodes, look in steps:
        columns = (
            np.array([name for name, _, _ in episodes], object),
            np.array([success for _, success, _ in episodes], bool),
            np.array([eighths / 8 for _, _, eighths in episodes]),
        )
        for curriculum in (seldom, often):
            curriculum.observe_many(*columns)
        often = looked_at(often, look)
        assert seldom.next() == often.next()
    assert seldom.state_dict() == often.state_dict()


@pytest.mark.parametrize("name", ["rules", "reader", "rising", "steady", "learnability", "failure-share"])
def test_engineers_of_the_package_make_at_least_three_configs(name):
    curriculum = EngineerCurriculum(name, Tasks(), target=Tasks(), every=60, editable=["*.share"])
    assert len(set(shares(fed(curriculum, 600)))) >= 3
    assert curriculum.incidents == []


class Hill(BaseModel):
    slope: float = Field(0.2, ge=0.0, le=0.5, description="Steepness.")


def slopes(stages: int, success: float, **options: Any) -> list[float]:
    """The slope after each stage of twenty episodes, of which this part succeed; the target is never tested."""
    curriculum = EngineerCurriculum("rules", Hill(), target=Hill(slope=0.3), every=20, **options)
    found = []
    for _ in range(stages):
        curriculum.observe_many(np.full(20, "all", object), np.arange(20) < 20 * success)
        curriculum.next()
        found.append(curriculum.config.slope)
    return found


@pytest.mark.parametrize(("options", "least"), [({}, 0.0), ({"space": {"slope": (0.1, 0.3)}}, 0.1)])
def test_where_nothing_succeeds_rules_ease_below_the_first_config_as_far_as_the_space_goes(options, least):
    eased = slopes(30, success=0.0, **options)
    assert eased == sorted(eased, reverse=True)
    assert least <= eased[-1] < least + 0.001 < eased[0] < 0.2


def test_rules_that_know_how_many_decisions_there_are_reach_the_target_soon_after_half_of_them():
    """Half succeeds: untold, they stay where they are."""
    assert set(slopes(20, success=0.5)) == {0.2}
    told = slopes(20, success=0.5, max_questions=20)
    assert told.index(0.3) in range(9, 14)
    assert told == sorted(told)


@pytest.mark.parametrize(("unit", "count"), [("iterations", 4), ("steps", 400)])
def test_a_stage_may_be_iterations_of_the_trainer_or_environment_steps(unit, count):
    stub = Stub()
    curriculum = EngineerCurriculum(stub, Tasks(), every=count, unit=unit)
    for iteration in range(9):
        fed(curriculum, 30)
        assert len(stub.read) == iteration // 4
        curriculum.advance(steps=100, iterations=1)
        curriculum.next()
    assert [row.episodes for row in stub.read[0].training_results] == [40, 40, 40]
    assert [half.episodes for half in stub.read[0].training_results[0].halves] == [20, 20]


def test_an_engineer_that_fails_or_is_refused_keeps_the_config_with_the_reason():
    def raises(current):
        raise OSError("no such host")

    def leaves(current):
        sys.exit(3)

    def too_many(current):
        return Proposal(config=current.model_copy(update={"hard": Piece(share=0.0)}))

    raised, left = (f" (test_engineer_curriculum.py, line {do.__code__.co_firstlineno + 1})" for do in (raises, leaves))

    for do, kind, said, limits in (
        (raises, "engineer_failed", f"says failed (OSError: no such host{raised}); the current config is kept", {}),
        (leaves, "engineer_failed", f"says failed (SystemExit: 3{left}); the current config is kept", {}),
        (
            leaves,
            "engineer_failed",
            f"says failed (SystemExit: 3{left}); the current config is kept",
            {"timeout": None},
        ),
        (lambda current: 5, "engineer_failed", "propose returned a int, not a Proposal", {}),
        (lambda current: time.sleep(60), "engineer_failed", "no answer within 0.05 s", {"timeout": 0.05}),
        (too_many, "refused_proposal", "hard.share was changed from 1.0 to 0.0", {"editable": ["easy.share"]}),
        (
            too_many,
            "refused_proposal",
            "the config cannot be drawn: hard is needed",
            {"guard": engineers.Guard(lambda config: "hard is needed" if config.hard.share == 0 else None)},
        ),
    ):
        curriculum = EngineerCurriculum(Says(do), Tasks(), every=10, **limits)
        with pytest.warns(UserWarning, match="the current config is kept") as told:
            assert fed(curriculum, 25) == []
        assert len(told) == 1  # of the two incidents
        assert curriculum.config == Tasks()
        assert [(one.kind, one.stage) for one in curriculum.incidents] == [(kind, 0), (kind, 1)]
        assert said in curriculum.incidents[0].message
        assert curriculum.report.incidents == curriculum.incidents


def test_an_edit_in_place_of_a_frozen_config_is_told_in_one_line():
    class Frozen(BaseModel, frozen=True):
        size: int = Field(3, ge=1, le=9)

    def edits(current):
        current.size = 4

    curriculum = EngineerCurriculum(Says(edits), Frozen(), every=10)
    curriculum.observe_many(["all"] * 10, [True] * 10)
    with pytest.warns(UserWarning, match=r"a Frozen is frozen: build another one, such as by model_copy\(update=…\)"):
        curriculum.next()
    assert "\n" not in curriculum.incidents[0].message
    assert "https" not in curriculum.incidents[0].message


def test_an_engineer_that_never_gave_a_config_is_told_of_once_more_at_the_third_failure():
    curriculum = EngineerCurriculum(Says(lambda current: 1 / 0), Tasks(), every=10)
    with pytest.warns(UserWarning, match="says") as told:
        fed(curriculum, 65)
    assert len(curriculum.incidents) == 6
    assert [str(one.message).partition(" (")[0] for one in told] == [
        "says failed",
        "says has given no usable config 3 times in a row: training goes on with the first config; `incidents` says why",
    ]


def test_an_engineer_that_fails_after_an_answer_is_told_of_once():
    answers = iter([Tasks(easy=Piece(share=0.5))])
    curriculum = EngineerCurriculum(
        Says(lambda current: Proposal(config=next(answers), engineer="says")), Tasks(), every=10
    )
    with pytest.warns(UserWarning, match="says") as told:
        fed(curriculum, 65)
    assert (len(curriculum.incidents), len(told)) == (5, 1)


def test_a_training_that_ends_before_the_first_question_says_so_once():
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=2_000)
    fed(curriculum, 1_037)
    with pytest.warns(
        UserWarning,
        match="after 1,037 of 2,000 episodes, so the engineer was never asked: train on, as these stay counted, or give a smaller",
    ):
        curriculum.training_ended()
    asked = EngineerCurriculum(Stub(), Tasks(), every=30)
    fed(asked, 45)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curriculum.training_ended()
        asked.training_ended()


def test_a_training_of_which_nothing_counted_says_what_the_environment_lacks():
    with pytest.warns(UserWarning, match="none of its episodes counted, .*: let the environment end its episodes"):
        EngineerCurriculum(Stub(), Tasks()).training_ended()


def test_a_warning_points_at_the_users_own_line():
    env = CurriculumEnv(Coin(), EngineerCurriculum(Says(lambda current: 1 / 0), Tasks(), every=1))
    env.reset()
    with pytest.warns(UserWarning, match="says failed") as told:
        env.step(0)
    assert told[0].filename == __file__
    assert linecache.getline(__file__, told[0].lineno).strip() == "env.step(0)"


def test_a_config_that_does_not_fit_the_trainers_environments_is_refused_before_they_get_it():
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=10)

    def fits(config):
        if config.easy.share < 1:
            raise ValueError("easy must be whole")

    curriculum.attach(fits)
    assert fed(curriculum, 10) == []
    assert "easy must be whole" in curriculum.incidents[0].message


def test_an_accepted_config_is_checked_once():
    tried = []
    guard = engineers.Guard(feasible=lambda config: tried.append(("drawn", config)))
    curriculum = EngineerCurriculum("rising", Tasks(), target=Tasks(), every=30, guard=guard)
    curriculum.attach(lambda config: tried.append(("fits", config)))
    tried.clear()  # that of the first config
    (config,) = fed(curriculum, 30)
    assert tried == [("fits", config), ("drawn", config)]


def test_an_edit_in_place_is_a_proposal_like_any_other_and_reaches_nothing_else():
    class Kept(BaseModel):
        tasks: dict[str, Piece]

    class InPlace(engineers.Engineer):
        name = "in place"

        def propose(self, report: Any, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
            current.tasks["easy"].share /= 2
            report.config["tasks"]["easy"]["share"] = 0.75
            for record in report.history:
                record.config["tasks"]["easy"]["share"] = 0.75
                record.training_results.clear()
            return Proposal(config=current)

    start = Kept(tasks={name: Piece() for name in ("easy", "middle", "hard")})
    curriculum = EngineerCurriculum(InPlace(), start, every=30)
    assert [one.tasks["easy"].share for one in fed(curriculum, 90)] == [0.5, 0.25, 0.125]
    assert start.tasks["easy"].share == 1.0
    assert [record.config["tasks"]["easy"]["share"] for record in curriculum.history] == [1.0, 0.5, 0.25]
    assert all(len(record.training_results) == 3 for record in curriculum.history)
    assert [one.reasons[0].path for one in curriculum.proposals] == ["tasks.easy.share"] * 3


def test_an_edit_in_place_before_a_failure_is_no_swap():
    def breaks(current):
        current.easy.share = 0.5
        raise OSError("no such host")

    curriculum = EngineerCurriculum(Says(breaks), Tasks(), every=30)
    with pytest.warns(UserWarning, match="the current config is kept"):
        assert fed(curriculum, 30) == []
    assert curriculum.config == Tasks()


def test_every_refused_answer_is_a_proposal_that_keeps_the_config_and_says_why():
    """What it took is counted, and `proposals` has only configs that were in force."""
    usage = Usage(prompt_tokens=5)

    def proposed(share):
        config = Tasks().model_copy(update={"easy": Piece.model_construct(share=share)})
        reasons = [Change(path="easy.share", reason="more")]
        return lambda current: Proposal(config=config, reasons=reasons, usage=usage, engineer="says")

    def gave_up(current):
        return Proposal(config=proposed(0.5)(None).config, usage=usage, engineer="says", fallback=True, refusals=["no"])

    for do, kind, why in (
        (proposed(7.0), "refused_proposal", "less than or equal to 1"),  # it cannot be read back
        (proposed(0.5), "refused_proposal", "easy.share was changed from 1.0 to 0.5"),  # the guard refuses it
        (gave_up, "engineer_failed", "no"),  # the engineer itself says so
    ):
        curriculum = EngineerCurriculum(Says(do), Tasks(), every=30, editable=["hard.share"])
        with pytest.warns(UserWarning, match="the current config is kept"):
            assert fed(curriculum, 30) == []
        (proposal,), (incident,) = curriculum.proposals, curriculum.incidents
        assert (proposal.config, proposal.fallback, proposal.usage) == (Tasks(), True, usage)
        assert (proposal.reasons, proposal.kept) == ([], {})
        assert len(proposal.refusals) == 1
        assert why in proposal.refusals[0]
        assert (incident.kind, why in incident.message) == (kind, True)
        head, line = str(curriculum).splitlines()
        assert head.startswith("says: 1 stages, 1 proposals (1 not used), 1 incidents; ")
        assert line.endswith(f"; no change ({kind.replace('_', ' ')}, in `incidents`)")


def answering(server: HTTPServer, values: dict[str, float]) -> str:
    """The name of a model that always gives these values."""
    from tests.answers import answer_of  # here, because a killed process imports this file without the tests' package

    server.expect_request("/v1/chat/completions").respond_with_json(
        {
            "id": "1", "object": "chat.completion", "created": 0, "model": "m",
            "choices": [
                {
                    "index": 0, "finish_reason": "stop",
                    "message": {"role": "assistant", "content": answer_of(values)},
                }
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1_000},
        }
    )  # fmt: skip
    return f"server/{server.url_for('/v1')}#m"


def test_a_language_model_is_asked_and_the_first_answer_says_what_all_will_cost(httpserver, tmp_path, capsys):
    pytest.importorskip("openai")
    name = answering(httpserver, {"easy.share": 0.25})
    transcript = tmp_path / "transcript.jsonl"
    curriculum = EngineerCurriculum(name, Tasks(), every=60, transcript=transcript, max_questions=3)
    assert shares(fed(curriculum, 60)) == [(0.25, 1.0, 1.0)]
    assert "the first answer took 1,000 tokens; 3 questions will take about 3,000" in capsys.readouterr().err
    assert fed(curriculum, 500) == []  # it says the same again
    assert len(httpserver.log) == 3  # at most that many questions
    question = httpserver.log[0][0].get_data(as_text=True)
    assert "easy" in question
    assert len(transcript.read_text().splitlines()) == 3
    configs = [json.loads(line) for line in (tmp_path / "configs_transcript.jsonl").read_text().splitlines()]
    assert [one["stage"] for one in configs] == [0, 1, 2]
    assert [Tasks(**one["config"]) for one in configs] == [curriculum.config] * 3  # what came of each answer
    assert curriculum.report.rounds_left == 0
    capped = EngineerCurriculum(name, Tasks(), every=60, transcript=transcript, max_total_tokens=3_500)
    assert fed(capped, 60) == []
    assert "token" in capped.incidents[0].message


@pytest.mark.parametrize("control", ["", "permuted/", "permuted/permuted/"])
def test_a_language_model_under_a_control_is_asked_as_often_and_says_its_cost_too(control, httpserver, capsys):
    pytest.importorskip("openai")
    name = answering(httpserver, {"easy.share": 0.25})
    curriculum = EngineerCurriculum(f"{control}{name}", Tasks(), every=6)
    fed(curriculum, 200)
    assert (curriculum.max_questions, len(httpserver.log)) == (20, 20)
    assert capsys.readouterr().err.count("took 1,000 tokens; 20 questions will take about 20,000") == 1
    assert EngineerCurriculum("permuted/rules", Tasks(), target=Tasks()).max_questions is None


def test_the_cost_is_said_after_the_first_question_that_was_answered(httpserver, capsys):
    pytest.importorskip("openai")
    httpserver.expect_oneshot_request("/v1/chat/completions").respond_with_data("no", status=400)
    curriculum = EngineerCurriculum(answering(httpserver, {"easy.share": 0.25}), Tasks(), every=6, max_questions=5)
    with pytest.warns(UserWarning, match="400"):
        fed(curriculum, 6)
    assert capsys.readouterr().err == ""
    fed(curriculum, 100)
    assert capsys.readouterr().err.count("took 1,000 tokens; 5 questions will take about 5,000") == 1


@pytest.mark.parametrize("rule", ["learnability", "permuted/learnability"])
def test_whoever_asks_nobody_leaves_the_configs_beside_an_earlier_transcript_as_they_are(rule, httpserver, tmp_path):
    pytest.importorskip("openai")
    name, transcript = answering(httpserver, {"easy.share": 0.25}), tmp_path / "asked.jsonl"
    configs = tmp_path / "configs_asked.jsonl"
    found = []
    for engineer in (name, rule, f"permuted/{name}"):
        curriculum = EngineerCurriculum(engineer, Tasks(), every=60, transcript=transcript)
        fed(curriculum, 120)
        assert len(curriculum.history) == 2
        assert curriculum.incidents == []
        found.append(configs.read_text())
        configs.write_text(found[-1].replace("0.25", "0.5"))
    assert found[1] == found[0].replace("0.25", "0.5")  # a rule wrote nothing
    assert found[2] == found[0]  # a control asks a model


class Counts(engineers.Engineer):
    """Says how often it was asked, as far as it remembers."""

    name = "counts"
    asked = 0

    def propose(self, report: Any, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
        self.asked += 1
        return Proposal(config=current.model_copy(update={"easy": Piece(share=1 / self.asked)}), engineer=self.name)


def test_a_named_engineer_is_made_anew_for_every_question_and_an_object_stays():
    shares = []
    for engineer in (f"{__name__}:Counts", Counts()):
        curriculum = EngineerCurriculum(engineer, Tasks(), every=10)
        fed(curriculum, 20)
        shares.append(curriculum.config.easy.share)
    assert shares == [1.0, 0.5]


class Flaky(Counts):
    """Its server is gone after the first question."""

    made = 0

    def __init__(self) -> None:
        Flaky.made += 1
        if Flaky.made > 2:  # one looked whether it can be asked, one was
            raise ConnectionError("the server is down")


@pytest.mark.parametrize("background", [False, True])
def test_an_engineer_that_can_no_longer_be_made_keeps_the_config_with_the_reason(background):
    Flaky.made = 0
    curriculum = EngineerCurriculum(f"{__name__}:Flaky", Tasks(), every=10, background=background)

    def three_stages() -> None:
        deadline = time.monotonic() + 30
        while curriculum.stage < 3 and time.monotonic() < deadline:
            fed(curriculum, 10)

    with pytest.warns(UserWarning, match="counts failed .ConnectionError: the server is down"):
        three_stages()
    assert [incident.stage for incident in curriculum.incidents] == [*range(1, curriculum.stage)]
    assert {incident.kind for incident in curriculum.incidents} == {"engineer_failed"}
    assert len(curriculum.proposals) == 1


def test_ctrl_c_still_ends_training():
    def interrupted(current):
        raise KeyboardInterrupt

    for timeout in (None, 60.0):
        with pytest.raises(KeyboardInterrupt):
            fed(EngineerCurriculum(Says(interrupted), Tasks(), every=10, timeout=timeout), 10)


def test_a_kill_while_the_engineer_is_asked_still_ends_training():
    def killed(current):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    def leave(number, frame):  # as Ray's handler in the driver does
        sys.exit(15)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit) as ended:
            fed(EngineerCurriculum(Says(killed), Tasks(), every=10, timeout=60.0), 10)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 15


def test_where_an_engineer_failed_is_its_own_last_line_and_no_library_s():
    def without_a_share(current):
        Piece(share=5.0)

    curriculum = EngineerCurriculum(Says(without_a_share), Tasks(), every=10)
    with pytest.warns(UserWarning, match="ValidationError"):
        fed(curriculum, 10)
    line = without_a_share.__code__.co_firstlineno + 1
    assert f"(test_engineer_curriculum.py, line {line}))" in curriculum.incidents[0].message


def test_dollars_of_a_model_without_a_price_cannot_be_capped():
    pytest.importorskip("openai")
    with pytest.raises(
        engineers.ChatError, match=r"no price is known for 'server/http://127.0.0.1:9/v1#m'; cap max_total_tokens"
    ):
        EngineerCurriculum("server/http://127.0.0.1:9/v1#m", Tasks(), max_cost=0.05)
    EngineerCurriculum("server/http://127.0.0.1:9/v1#m", Tasks(), max_total_tokens=1000)


def test_a_server_that_is_not_there_keeps_the_config():
    pytest.importorskip("openai")
    curriculum = EngineerCurriculum("server/http://127.0.0.1:9/v1#m", Tasks(), every=30, max_attempts=1)
    assert curriculum.max_questions == 20
    assert fed(curriculum, 30) == []
    assert curriculum.incidents[0].kind == "engineer_failed"


def test_in_the_background_training_goes_on_and_outcomes_count_for_the_config_they_began_on():
    go, stub = threading.Event(), Stub()

    def wait(current):
        go.wait(30)
        return Proposal(config=current.model_copy(update={"easy": Piece(share=0.5)}))

    curriculum = EngineerCurriculum(Says(wait), Tasks(), every=30, background=True)
    assert fed(curriculum, 45) == []
    state = json.loads(json.dumps(curriculum.state_dict()))
    go.set()
    deadline = time.monotonic() + 30
    while (config := curriculum.next()) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert config.easy.share == 0.5
    assert sum(row.episodes for row in curriculum.history[0].training_results) == 45
    assert curriculum.report.training_results == []
    again = EngineerCurriculum(stub, Tasks(), every=30)  # the question was open when the state was saved
    again.load_state_dict(state)
    assert shares([again.next()]) == [(0.5, 1.0, 1.0)]
    assert sum(row.episodes for row in stub.read[0].training_results) == 30


@pytest.mark.parametrize("name", ["rules", "learnability", "random"])
def test_after_loading_the_same_outcomes_give_the_same_configs_and_questions(name, tmp_path):
    def made():
        return EngineerCurriculum(name, Tasks(), target=Tasks(), every=50, editable=["*.share"], seed=3)

    whole = made()
    expected = shares(fed(whole, 700))
    part = made()
    begun = shares(fed(part, 333))
    part.save(tmp_path / "state.json")
    after = made()
    after.load(tmp_path / "state.json")
    assert begun + shares(fed(after, 700 - 333, begin=333)) == expected
    assert after.state_dict() == whole.state_dict()
    assert after.version == len(expected)


KILLED = """
import sys
sys.path.insert(0, sys.argv[2])
from test_engineer_curriculum import EngineerCurriculum, Tasks, fed
curriculum = EngineerCurriculum("rules", Tasks(), target=Tasks(), every=50, editable=["*.share"])
for begin in range(0, 100_000, 30):
    fed(curriculum, 30, begin)
    curriculum.save(sys.argv[1])
    print(begin + 30, flush=True)
"""


def test_a_state_that_a_killed_process_left_goes_on_as_if_it_was_not_killed(tmp_path):
    state = tmp_path / "state.json"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(state), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 300:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    after, whole = (
        EngineerCurriculum("rules", Tasks(), target=Tasks(), every=50, editable=["*.share"]) for _ in range(2)
    )
    after.load(state)
    done = 50 * after.stage + sum(row.episodes for row in after.report.training_results)
    fed(whole, done)
    assert after.state_dict() == whole.state_dict()
    assert shares(fed(after, 500, done)) == shares(fed(whole, 500, done))


def test_the_picture_has_a_line_a_slice_and_the_shares_of_every_stage(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=60)
    fed(curriculum, 150)
    figure = curriculum.plot()
    above, beneath = figure.axes
    lines = {line.get_label(): line.get_ydata() for line in above.get_lines()}
    assert set(lines) == {"easy", "middle", "hard"}
    assert lines["easy"].tolist() == [
        row.metrics["success_rate"]
        for table in [*(one.training_results for one in curriculum.history), curriculum.report.training_results]
        for row in table
        if row.name == "easy"
    ]
    assert above.get_lines()[0].get_xdata().tolist() == [30, 90, 135]
    assert len(beneath.collections) == 3
    bottom = beneath.collections[0].get_paths()[0].vertices
    assert 0.5 / 2.5 in bottom[:, 1].round(6)  # the second stage's share of easy
    curriculum.plot(tmp_path / "picture.svg")
    assert "</svg>" in (tmp_path / "picture.svg").read_text()
    poles = EngineerCurriculum("rules", Pole(), target=Pole(length=0.3), every=10)
    for _ in range(25):
        poles.observe(Outcome("all", True, 1.0))
        poles.next()
    assert len(poles.plot().axes[0].get_lines()) == 1


class Pole(BaseModel):
    length: float = Field(1.5, ge=0.1, le=2.0)


class Maze(Piece):
    depth: int = Field(2, ge=1, le=9, description="Steps to the goal.")
    width: float | None = Field(None, ge=0.0, le=1.0, description="None: as the others have it.")


class Mazes(BaseModel):
    easy: Maze = Maze()
    middle: Maze = Maze()
    hard: Maze = Maze()
    speed: float = Field(0.5, ge=0.0, le=1.0, description="Of all.")
    name: str = "mazes"


def test_the_picture_has_a_panel_for_every_other_number_that_was_turned(tmp_path):
    pytest.importorskip("matplotlib", reason="needs matplotlib")

    def turn(current):
        asked = says.asked
        hard = current.hard.model_copy(update={"depth": 2 + asked, "width": 0.25 * asked, "share": 0.5})
        easy = current.easy.model_copy(update={"depth": 4})
        return Proposal(config=current.model_copy(update={"hard": hard, "easy": easy, "speed": 0.75, "name": "other"}))

    says = Says(turn)
    curriculum = EngineerCurriculum(says, Mazes(), every=60)
    fed(curriculum, 50)
    assert len(curriculum.plot().axes) == 2  # nothing was turned yet
    fed(curriculum, 100, 50)
    figure = curriculum.plot()
    panels = {axes.get_title(): axes for axes in figure.axes[2:]}
    assert list(panels) == ["depth", "width", "speed"]  # no share, and no text
    lines = {title: {line.get_label(): line for line in axes.get_lines()} for title, axes in panels.items()}
    assert {title: list(found) for title, found in lines.items()} == {
        "depth": ["easy", "hard"],
        "width": ["hard"],
        "speed": ["all"],
    }
    assert lines["depth"]["hard"].get_xdata().tolist() == [0, 60, 60, 120, 120, 150]
    assert lines["depth"]["hard"].get_ydata().tolist() == [2, 2, 3, 3, 4, 4]
    assert lines["depth"]["easy"].get_ydata().tolist() == [2, 2, 4, 4, 4, 4]
    assert np.isnan(lines["width"]["hard"].get_ydata()).tolist() == [True, True, False, False, False, False]
    assert lines["depth"]["easy"].get_linewidth() > lines["depth"]["hard"].get_linewidth()  # seen where they are equal
    above = {line.get_label(): line.get_color() for line in figure.axes[0].get_lines()}
    assert (above["hard"] == lines["depth"]["hard"].get_color()).all()
    curriculum.plot(tmp_path / "picture.svg")
    assert "</svg>" in (tmp_path / "picture.svg").read_text()


def test_wrong_arguments_are_refused_at_once():
    for said, options in (
        ("config is a dict", {"config": {}}),
        ("target is a Piece, and config a Tasks", {"target": Piece()}),
        ("unit='hours': give one of episodes, iterations, steps", {"unit": "hours"}),
        ("every=0: give a whole number, at least 1", {"every": 0}),
        ("every='100': give a whole number", {"every": "100"}),
        ("every=True: give a whole number", {"every": True}),
        ("max_questions='5': give a whole number", {"max_questions": "5"}),
        ("max_questions=2.5: give a whole number", {"max_questions": 2.5}),
        ("max_questions=0: give a whole number, at least 1", {"max_questions": 0}),
        ("timeout='5': give seconds, more than 0, or None", {"timeout": "5"}),
        ("timeout=-1: give seconds, more than 0, or None", {"timeout": -1}),
        (r"guard=None: give engineers.Guard\(feasible, max_drop\), or leave it out", {"guard": None}),
        ("editable=5: give a list of knobs", {"editable": 5}),
        ("blind_scores has 'banana', and the config's slices are easy, hard", {"blind_scores": {"banana": 0.5}}),
        ("blind_scores has 7 for easy: give numbers from 0 to 1", {"blind_scores": {"easy": 7}}),
        (r"editable='easy.share': give a list of knobs, such as \['easy.share'\]", {"editable": "easy.share"}),
        ("learnability can do nothing with this Piece", {"config": Piece()}),
        ("'banana'", {"editable": ["banana"]}),
    ):
        with pytest.raises(SpecError, match=said):
            EngineerCurriculum("learnability", **{"config": Tasks()} | options)
    with pytest.raises(SpecError, match="temperature: options are for an engineer that is given by its name"):
        EngineerCurriculum(Stub(), Tasks(), temperature=1)
    with pytest.raises(SpecError, match=r"transcript='asked.jsonl': .* so give transcript=… to the engineer"):
        EngineerCurriculum(Stub(), Tasks(), transcript="asked.jsonl")
    with pytest.raises(
        SpecError, match=r"'rules' has no option evry; .*\. EngineerCurriculum itself takes target, every, unit"
    ):
        EngineerCurriculum("rules", Tasks(), evry=5)
    with pytest.raises(ValueError, match="engineer 'banana' is unknown"):
        EngineerCurriculum("banana", Tasks())
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=np.int64(10), max_questions=np.int32(2))
    json.dumps(curriculum.state_dict())  # whole numbers of numpy are whole numbers
    with pytest.raises(
        SpecError,
        match="an episode without a slice, and the config has easy, hard, middle: let the last info's `slice`",
    ):
        curriculum.observe(Outcome("all", True, 1.0))
    with pytest.raises(
        SpecError, match=r"'banana', and the config has no slices: a slice is a group with a number `share`"
    ):
        EngineerCurriculum(Stub(), Ship()).observe(Outcome("banana", True, 1.0))
    with pytest.raises(SpecError, match="slice 'banana'"):
        curriculum.observe_many(["easy", "banana"], [True, True])


class Ship(Piece):
    wind: float = Field(0.0, ge=0.0, le=1.0, description="Strength of the wind.")


class Ships(BaseModel):
    ships: dict[str, Ship]


def test_a_target_that_the_engineer_never_reaches_is_said_at_once():
    start = Ships(ships={"light": Ship(), "heavy": Ship()})
    windy = Ships(ships={"light": Ship(wind=0.5), "heavy": Ship(wind=0.5)})
    with pytest.warns(
        UserWarning, match=r"ships.light.wind is 0.0 at first and 0.5 in the target, .*'learnability'.*`rules`"
    ):
        EngineerCurriculum("learnability", start, target=windy)
    with pytest.warns(UserWarning, match=r"ships.light.wind is 0.0 at first .*'rules' cannot turn it"):
        EngineerCurriculum("rules", start, target=windy, editable=["ships.*.share"])
    with pytest.warns(UserWarning, match="the target has the slice 'medium', and the config has heavy, light"):
        EngineerCurriculum("rules", start, target=Ships(ships={"medium": Ship()}))
    shared = Ships(ships={"light": Ship(share=0.5), "heavy": Ship()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EngineerCurriculum("rules", start, target=windy)
        EngineerCurriculum("learnability", start, target=shared)


@pytest.mark.parametrize(
    "name",
    [
        "steady",
        "rising",
        "reader",
        "half-success",
        "progress-share",
        "schedule",
        "ladder",
        "target-only",
        "warm-target",
    ],
)
def test_an_engineer_that_turns_difficulties_only_towards_a_target_says_that_there_is_none(name):
    start = Ships(ships={"light": Ship(), "heavy": Ship()})
    with pytest.warns(
        UserWarning, match=rf"^without a target, {name} turns no difficulty \(ships.\*.wind\): give target="
    ) as told:
        EngineerCurriculum(name, start)
    assert (len(told), told[0].filename) == (1, __file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EngineerCurriculum(name, start, editable=["ships.*.share"])
        EngineerCurriculum(name, start, target=start)
        EngineerCurriculum(name, Tasks())


@pytest.mark.parametrize("name", ["rules", "random", "uniform", "near-uniform", "learnability", "once", "fixed"])
def test_other_engineers_do_without_a_target(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EngineerCurriculum(name, Ships(ships={"light": Ship(), "heavy": Ship()}))


def test_without_a_target_data_is_drawn_evenly_where_nothing_rises():
    curriculum = EngineerCurriculum("rising", Tasks(easy=Piece(share=0.5)), every=300)
    for number in range(300):
        curriculum.observe(Outcome(("easy", "middle", "hard")[number % 3], True, 1.0))
    curriculum.next()
    assert "learnt: success 1.00" in str(curriculum.proposals)
    assert "; nothing rises, so all are drawn evenly" in str(curriculum.proposals)
    harder = EngineerCurriculum("rules", Ships(ships={"light": Ship(), "heavy": Ship()}), every=1)
    harder.observe(Outcome("light", True, 1.0))
    harder.next()
    assert "of the way to the hard end, as there is no target" in str(harder.proposals)


def test_in_print_every_stage_is_a_line():
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=30)
    fed(curriculum, 75)
    head, first, second = str(curriculum).splitlines()
    assert head == "stub: 2 stages, 2 proposals, 0 incidents; 15 of the 30 episodes before the next question are done"
    assert (
        first
        == "stage 0: 30 episodes, success easy 0.9 (score 0.925), hard 0.1 (score 0.325), middle 0.2 (score 0.4); easy.share 1 → 0.5"
    )
    assert second.startswith("stage 1: 30 episodes, success easy 0.9 (score 0.925), ")
    whole = EngineerCurriculum(Stub(), Tasks(), every=1)
    whole.observe(Outcome("easy", True, 1.0))
    whole.next()
    assert str(whole).endswith("stage 0: 1 episodes, success easy 1; easy.share 1 → 0.5")  # its score is the same


def test_in_print_a_stage_without_a_change_says_why():
    """From the engineer's own reasons, which are also there after a kill; a failure points to where it is told."""

    def kept(current):
        reasons = [Change(path=f"{name}.share", reason="all rise") for name in ("easy", "hard")]
        return Proposal(config=current, reasons=[*reasons, Change(path="middle.share", reason="it is flat")])

    curriculum = EngineerCurriculum(Says(kept), Tasks(), every=30)
    fed(curriculum, 30)
    (proposal,) = curriculum.proposals
    assert proposal.reasons == []
    assert proposal.kept == {"easy.share": "all rise", "hard.share": "all rise", "middle.share": "it is flat"}
    line = str(curriculum).splitlines()[1]
    assert line.endswith("; no change (easy.share, hard.share: all rise; middle.share: it is flat)")
    again = EngineerCurriculum(Says(lambda current: 1 / 0), Tasks(), every=30)
    again.load_state_dict(curriculum.state_dict())
    with pytest.warns(UserWarning, match="failed"):
        fed(again, 30)
    assert str(again).splitlines()[1] == line
    assert str(again).endswith("; no change (engineer failed, in `incidents`)")


def test_in_print_stands_when_the_engineer_is_asked_next():
    """Until then ``next`` returns None, without a word."""
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=2_000, max_questions=1)
    fed(curriculum, 1_500)
    assert curriculum.next() is None
    assert (
        str(curriculum)
        == "stub: 0 stages, 0 proposals, 0 incidents; 1,500 of the 2,000 episodes before the next question are done"
    )
    fed(curriculum, 500)
    assert str(curriculum).splitlines()[0].endswith("; all 1 questions are asked")


def test_in_print_many_stages_are_the_first_and_the_last():
    def lines(stages: int) -> list[str]:
        curriculum = EngineerCurriculum(Stub(), Tasks(), every=3)
        fed(curriculum, 3 * stages)
        return [line.partition(":")[0] for line in str(curriculum).splitlines()]

    assert lines(16) == ["stub", *(f"stage {stage}" for stage in range(16))]
    assert lines(40) == [
        "stub", "stage 0", "stage 1", "stage 2", "… 25 stages more, in `history`", *(f"stage {stage}" for stage in range(28, 40)),
    ]  # fmt: skip


def test_the_log_has_success_and_score_by_slice():
    curriculum = EngineerCurriculum(Stub(), Tasks(), every=300)
    fed(curriculum, 30)
    told = curriculum.metrics()
    assert {name: told[name] for name in told if name.startswith("success/")} == {
        "success/easy": 0.9, "success/hard": 0.1, "success/middle": 0.2,
    }  # fmt: skip
    assert told["score/hard"] == pytest.approx(0.325)


def test_the_log_has_the_numbers_that_may_be_turned():
    """Beside shares: not those that are locked, no words, and nothing that has no value."""

    class Sea(BaseModel):
        ships: dict[str, Ship] = {"light": Ship(), "heavy": Ship()}
        wind: float = Field(0.5, ge=0, le=1)
        depth: int | None = Field(None, ge=1, le=9)
        calm: bool = False

    def knobs(curriculum: EngineerCurriculum) -> dict[str, float]:
        return {name: value for name, value in curriculum.metrics().items() if name.startswith("knob/")}

    whole = EngineerCurriculum(Stub(), Sea())
    assert knobs(whole) == {"knob/ships.light.wind": 0.0, "knob/ships.heavy.wind": 0.0, "knob/wind": 0.5}
    assert knobs(EngineerCurriculum(Stub(), Sea(depth=3), editable=["ships.*.share", "depth"])) == {"knob/depth": 3}
    whole.config = Sea(wind=0.75)
    assert knobs(whole)["knob/wind"] == 0.75


def test_shares_of_the_same_ratios_are_no_swap():
    """Episodes that are under way go on counting, and the engineer reads what it has answered."""

    def thirds(current):
        return Proposal(config=Tasks(**{name: Piece(share=1 / 3) for name in Tasks.model_fields}), engineer="says")

    curriculum = EngineerCurriculum(Says(thirds), Tasks(), every=30)
    assert fed(curriculum, 75) == []
    assert (curriculum.version, curriculum.stage) == (0, 2)
    assert [proposal.config.easy.share for proposal in curriculum.proposals] == [1 / 3, 1 / 3]
    assert curriculum.report.config["easy"]["share"] == 1 / 3
    _, *lines = str(curriculum).splitlines()
    assert [line.rpartition("; ")[2] for line in lines] == ["no change", "no change"]


def test_shares_of_the_same_ratios_are_a_swap_where_another_knob_turns():
    def windier(current):
        return Proposal(config=Ships(ships={"light": Ship(share=0.5), "heavy": Ship(share=0.5, wind=0.1)}))

    curriculum = EngineerCurriculum(Says(windier), Ships(ships={"light": Ship(), "heavy": Ship()}), every=1)
    curriculum.observe(Outcome("light", True, 1.0))
    assert curriculum.next() == windier(None).config


def test_a_damaged_state_is_refused_with_its_file(tmp_path):
    curriculum, file = EngineerCurriculum(Stub(), Tasks()), tmp_path / "state.json"
    fed(curriculum, 5)
    curriculum.save(file)
    whole = json.loads(file.read_text())
    for damage in (
        {"halves": [{}]}, {"history": 5}, {"config": {"easy": {"share": 7}}}, {"config": None}, {"open": {"stage": -1}}, {"amount": "x"},
    ):  # fmt: skip
        file.write_text(json.dumps(whole | damage))
        with pytest.raises(RunError, match="is not the state of this curriculum"):
            EngineerCurriculum(Stub(), Tasks()).load(file)
    file.write_text("{")
    with pytest.raises(RunError, match=r"state\.json is damaged \(.*\): restore it from a copy"):
        EngineerCurriculum(Stub(), Tasks()).load(file)


class Keyed(Stub):
    """An engineer of one's own that wants a key, and may get one from the environment."""

    name = "keyed"

    def __init__(self, seed: int = 0, api_key: str | None = None, max_tokens: int = 5) -> None:
        super().__init__()
        seen.append((api_key, max_tokens))


seen: list[tuple[str | None, int]] = []


def test_a_pickle_holds_no_key_and_says_so_before_it_asks():
    curriculum = EngineerCurriculum(f"{__name__}:Keyed", Tasks(), every=30, api_key="planted-5d2a-key", max_tokens=7)
    written = pickle.dumps(curriculum)
    assert b"planted" not in written
    copy = pickle.loads(pickle.dumps(pickle.loads(written)))
    with pytest.warns(
        UserWarning, match=r"EngineerCurriculum has no api_key, .* set curriculum.options\['api_key'\]"
    ) as told:
        fed(copy, 60)
    assert len(told) == 1
    assert seen[-1] == (None, 7)
    with_one = pickle.loads(written)
    with_one.options["api_key"] = "mine"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fed(with_one, 30)
        assert seen[-1] == ("mine", 7)
        fed(curriculum, 30)
    assert seen[-1] == ("planted-5d2a-key", 7)


def test_an_environment_trains_under_an_engineer():
    import gymnasium as gym

    import mapf_frozenlake as mfl

    lakes = mfl.LakeConfig.single(3, 1, hole_ratio=0.0, reward="shaped")
    harder = mfl.LakeConfig.single(3, 1, hole_ratio=0.3, reward="shaped")
    curriculum = EngineerCurriculum("rules", lakes, target=harder, every=20)
    env = CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=lakes), curriculum=curriculum, success_key="valid")
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(4_000):
        *_, terminated, truncated, _ = env.step(rng.integers(0, 4, 1))
        if terminated or truncated:
            env.reset()
    assert curriculum.stage >= 3
    assert {row.name for row in curriculum.history[0].training_results} == {"3"}
    assert curriculum.metrics()["stage"] == curriculum.stage
    with pytest.raises(
        SpecError, match=r"RulesEngineer is an engineer, not a curriculum: give EngineerCurriculum\(engineer, config\)"
    ):
        CurriculumEnv(gym.make("MAPFFrozenLake-v0", config=lakes), curriculum=engineers.make("rules"))


def test_its_timeout_is_also_the_models_own(monkeypatch):
    pytest.importorskip("openai")
    made, make = [], engineers.make
    monkeypatch.setattr(engineers, "make", lambda name, **options: made.append(make(name, **options)) or made[-1])
    EngineerCurriculum("server/http://127.0.0.1:9/v1#m", Tasks(), every=30, timeout=7.0)
    EngineerCurriculum("server/http://127.0.0.1:9/v1#m", Tasks(), every=30, timeout=None)
    EngineerCurriculum("rules", Tasks(), every=30, timeout=7.0)  # takes none, and asks nobody
    assert [engineer.chat.timeout for engineer in made[:2]] == [7.0, 120.0]


def test_a_state_says_which_engineer_wrote_it():
    state = EngineerCurriculum("steady", Tasks(), every=5).state_dict()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EngineerCurriculum("steady", Tasks(), every=5).load_state_dict(state)
    with pytest.warns(
        UserWarning, match="^the engineer 'steady' wrote this state, and half-success continues it$"
    ) as told:
        EngineerCurriculum("half-success", Tasks(), every=5).load_state_dict(state)
    assert told[0].filename == __file__


class Waits(engineers.Engineer):
    """Thinks until it may go on."""

    name = "waits"
    go_on = threading.Event()

    def propose(self, report: Any, current: Any, editable: Sequence[str] | None = None) -> Proposal[Any]:
        self.go_on.wait(30)
        return Proposal(config=current)


def test_a_pickle_leaves_the_live_environments_behind_and_asks_an_open_question_again():
    """A thread thinks about the question of the original; nobody about that of the copy."""
    curriculum = EngineerCurriculum(Waits(), Tasks(), every=5, background=True)
    live = (one for one in ())  # like an environment, it cannot be pickled
    curriculum.attach(lambda config: live)
    fed(curriculum, 5)
    again = pickle.loads(pickle.dumps(curriculum))
    Waits.go_on.set()
    assert again.state_dict() == curriculum.state_dict()
    deadline = time.monotonic() + 30
    while not again.history and time.monotonic() < deadline:
        again.next()
    assert len(again.history) == 1
