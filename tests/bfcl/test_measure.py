"""The measure itself: what playing a plan with a fault comes to, what is summed up, and where the right act is to ask."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from benchmarks.bfcl import measure
from benchmarks.bfcl.abstention import Gap, abstention, gaps
from benchmarks.bfcl.actionability import masked
from benchmarks.bfcl.measure import Condition, Fault, Outcome, Sample, as_they_are, draw_samples, play_plan
from benchmarks.bfcl.readers import Repair, told_everything
from benchmarks.bfcl.statistics import macro_interval, scenario_interval, summary
from envtuning.worlds.bfcl.calls import Call
from envtuning.worlds.bfcl.documents import required
from envtuning.worlds.bfcl.scripted import named_plan
from envtuning.worlds.bfcl.splits import by_scenario
from envtuning.worlds.bfcl.tasks import find_task, load_tasks


@pytest.fixture(scope="module")
def task(v4):
    """Its first turn: into a folder, make another, move a file there."""
    found = find_task(v4, "multi_turn_base_0")
    assert [call.name for call in named_plan(v4, found)[0]] == ["cd", "mkdir", "mv"]
    return found


def played(package, task, index, wrong, reader=None, messages=as_they_are):
    fault = Fault("v/v", "t", 0, index, wrong)
    return play_plan(package, task, fault, Condition("row", reader, None, messages), random.Random(0))


def test_a_plan_is_played_call_by_call_and_its_complaints_are_counted_by_turn(v4, task):
    none = (0,) * (task.turns - 1)
    meant = named_plan(v4, task)[0][2]
    lacking = Call("mv", (), {"source": meant.named["source"]})
    asked = []

    def again_wrong(message, desk, generator):
        asked.append((message, desk))
        return Repair((), lacking)

    assert play_plan(v4, task, None, Condition("row", None), random.Random(0)) == Outcome(True, (0, *none), 0, False)
    assert played(v4, task, 2, lacking).solved is False
    assert played(v4, task, 2, lacking).complaints[0] == 1
    assert played(v4, task, 2, lacking, told_everything) == Outcome(True, (1, *none), 1, False)
    stubborn = played(v4, task, 2, lacking, again_wrong)
    assert stubborn.retries == 3 * sum(stubborn.complaints) > 0  # three for each call that complains
    assert played(v4, task, 2, lacking, lambda *_: None).retries == 0
    assert played(v4, task, 2, lacking, lambda *_: Repair(asks=True)) == Outcome(False, (1,), 0, True)
    message, desk = asked[0]
    assert "missing 1 required positional argument" in message
    assert (desk.written, desk.meant, desk.left_out) == (lacking, meant, ())
    assert {"mv", "cd", "pwd", "ls"} <= desk.offered
    assert {"pwd", "ls"} <= set(desk.read_only)
    assert not {"mv", "cd", "mkdir"} & set(desk.read_only)
    played(v4, task, 2, lacking, again_wrong, masked)
    assert asked[-1][0] == "Error."


def test_a_step_that_was_left_out_can_be_made_once(v4, task):
    desks = []

    def first_cd(message, desk, generator):
        desks.append(desk)
        return Repair(desk.left_out, desk.written)

    found = played(v4, task, 0, None, first_cd)
    assert [call.name for call in desks[0].left_out] == ["cd"]
    assert all(not desk.left_out for desk in desks[1:])
    assert found.complaints[0] >= 1


def test_a_long_turn_is_carried_out_in_one_reply_without_faults(v4, task, monkeypatch):
    assert measure.LONG_TURN == 12
    lacking = Call("mv", (), {"source": "x"})
    monkeypatch.setattr(measure, "LONG_TURN", 3)
    assert not played(v4, task, 2, lacking).solved
    monkeypatch.setattr(measure, "LONG_TURN", 2)
    assert played(v4, task, 2, lacking).solved
    assert all(len(s.task.plan[s.fault.turn]) <= 2 for s in draw_samples(v4, [task], per_task=8, seed=0))


def test_messages_are_masked_to_whether_they_complain():
    assert masked('{"error": "no such file"}') == "Error."
    assert masked('{"result": 5}') == "Done."


def test_the_sample_is_the_one_that_the_stored_figures_were_measured_on(v4):
    drawn = draw_samples(v4, by_scenario().tasks(v4, "validation")[::4], per_task=2, seed=0)
    told = [f"{s.task.id} {s.fault.variant} {s.fault.turn} {s.fault.index} {s.fault.wrong} {s.visible}" for s in drawn]
    assert len({s.task.id for s in drawn}) > 10
    assert max(told.count(one) for one in told) == 1
    assert hashlib.sha256("\n".join(told).encode()).hexdigest()[:16] == "dedfa90c2777c49c"


def test_a_summary_is_over_all_samples_and_over_the_means_of_the_variants():
    scenarios, variants, solved = (
        [1, 2, 3, 3, 4, 5, 6],
        ["b/y", "a/x", "a/x", "b/y", "b/y", "a/x", "b/y"],
        [1, 0, 1, 1, 0, 0, 1],
    )
    samples = [
        Sample(SimpleNamespace(scenario=scenario), Fault(variant, "t", 0, 0, None), True)
        for scenario, variant in zip(scenarios, variants, strict=True)
    ]
    found = summary(samples, [bool(one) for one in solved])
    low, high = scenario_interval(solved, scenarios)
    assert found == {
        "n": 7,
        "micro": 0.5714,
        "interval": [round(low, 4), round(high, 4)],
        "macro": 0.5417,
        "macro_interval": [round(bound, 4) for bound in macro_interval(solved, variants, scenarios)],
        "variants": {"a/x": 0.333, "b/y": 0.75},
    }
    assert summary([], []) == {"n": 0}


def test_at_the_limit_of_steps_nothing_more_is_said(v4, task):
    """Four replies: cd, mkdir, the faulty mv and one retry; the next retry is the fifth and ends the episode."""
    lacking = Call("mv", (), {"source": "final_report.pdf"})
    asked = []

    def stubborn(message, desk, generator):
        asked.append(message)
        return Repair((), lacking)

    found = played(replace(v4, step_limit=4), task, 2, lacking, stubborn)
    assert found == Outcome(False, (), 2, False)
    assert len(asked) == 2
    assert played(replace(v4, step_limit=1), task, 2, lacking, stubborn) == Outcome(False, (), 0, False)


def test_looking_around_is_by_tools_that_need_nothing_and_are_named_for_reading():
    tools = [
        {"name": name, "parameters": {"required": needed} if needed is not None else {}}
        for name, needed in [
            ("ls", []), ("pwd", None), ("get_stock", ["symbol"]), ("get_watchlist", []), ("logout", []),
            ("ticket_get_login_status", []), ("forget_all", []),
        ]
    ]  # fmt: skip
    found = measure.read_only(SimpleNamespace(tools=tools))
    assert found == ("ls", "pwd", "get_watchlist", "ticket_get_login_status")


@pytest.mark.parametrize("split", ["miss_func", "miss_param"])
def test_a_gap_is_a_turn_without_ground_truth_and_a_guess_at_the_next_one_s_call(v4, split):
    found = gaps(v4, load_tasks(v4, split))
    assert len({gap.task.id for gap in found}) == len(found) > 150
    for gap in found[::5]:
        plan = named_plan(v4, gap.task)
        assert not plan[gap.turn]
        later = plan[gap.turn + 1]
        if split == "miss_func":
            assert gap.attempt == next(call for call in later if call.name in gap.task.hidden(gap.turn))
            continue
        tools = {tool["name"]: tool for tool in gap.task.tools(v4, gap.turn)}
        guesses = []
        for call in later:
            needed = [name for name in required(tools[call.name]) if name in call.named]
            if needed:
                guesses.append({name: value for name, value in call.named.items() if name != needed[-1]})
        assert gap.attempt.named == guesses[0]
        assert not gap.attempt.positional


def test_who_is_not_stopped_goes_through_and_who_does_not_ask_guesses(v4, task):
    gap = gaps(v4, load_tasks(v4, "miss_func")[:20])[0]
    for reader, what in [
        (None, "guesses"),
        (lambda *_: None, "guesses"),
        (lambda message, desk, _: Repair((), desk.meant), "guesses"),
        (lambda *_: Repair(asks=True), "asks"),
        (lambda message, desk, _: Repair(asks="not defined" in message and desk.written == gap.attempt), "asks"),
    ]:
        assert abstention(v4, gap, Condition("row", reader)) == what
    harmless = Gap(gap.task, gap.turn, Call("pwd") if "GorillaFileSystem" in gap.task.classes else gap.attempt)
    assert abstention(v4, harmless, Condition("row", None)) == "went through"
