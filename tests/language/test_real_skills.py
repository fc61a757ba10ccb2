"""The benchmarks of a real model on the small skills, with a tiny one: what they store, and what they compare."""

from __future__ import annotations

import json

import pytest

from benchmarks import checkpoint_engineer, real_skills, small_skills
from engineers.model.transcript import read_transcript
from engineers.report import SliceResult, StageReport
from envtuning import loop
from envtuning.runs.log import RunLog
from tests.lazily import needed

needed("torch", "trl", extra="grpo")


def test_the_run_is_stored_with_its_weights_tests_tokens_and_minutes(model, tmp_path):
    spec = small_skills.spec_of(str(model), seed=3)
    suites = spec.suites.model_copy(update={"validation_per_slice": 1, "test_per_slice": 2})
    spec = spec.model_copy(update={"suites": suites, "stages": spec.stages[:2]})
    clock = small_skills.Clock(tmp_path / "cpu.jsonl")
    figures = small_skills.figures_of(loop.start(spec, tmp_path / "run", clock))
    assert [one["questions"] for one in figures["test"].values()] == [36] * 3
    assert (figures["engineer"], figures["learning rate"]) == ("steady", 1e-4)
    assert figures["updates"] == 10
    assert figures["samples"] >= 640
    assert 0 < figures["tokens"]["generated_tokens"] < figures["tokens"]["tokens"]
    assert len(figures["shares"]) == 2
    assert set(clock.minutes()) == {"loading", "stage 0", "stage 1", "test"}
    assert "all" in small_skills.table(figures)
    (digest,) = small_skills.weights_of(model).values()
    assert len(digest) == 64
    with pytest.raises(SystemExit, match="no safetensors"):
        small_skills.weights_of(tmp_path)


def test_arms_share_their_first_updates_and_unfinished_ones_are_in_no_table(model, tmp_path, monkeypatch):
    for name, value in {"SHARED": 1, "STAGES": 1, "UPDATES": 2}.items():
        monkeypatch.setattr(real_skills, name, value)
    monkeypatch.setattr(real_skills, "LEAST", real_skills.LEAST | {"suites.test_per_slice": 1})
    real_skills.play("rising", 0, model, tmp_path)
    real_skills.play("even with refill", 0, model, tmp_path)
    begun = real_skills.create(
        real_skills.folder_of(tmp_path, "even", 0), real_skills.spec_of(real_skills.ARMS["even"], 0, model)
    )
    assert not begun.state.done
    rows = [real_skills.row_of(*one) for one in real_skills.finished(tmp_path, range(2))]
    assert [row["arm"] for row in rows] == ["even with refill", "rising"]
    first, second = (real_skills.folder_of(tmp_path, row["arm"], 0) / "stages" / "00" / "metrics.jsonl" for row in rows)
    assert first.read_bytes() == second.read_bytes()
    assert rows[1]["updates"] == 3
    assert all(first > 0 and last > 0 for row in rows for first, last in row["signs of collapse"].values())
    assert all(row["replies"] >= 3 * real_skills.REPLIES for row in rows)
    refilled = [stage["add"] for stage in rows[0]["shares"]]
    assert refilled == [1.0, 1.0]  # even shares stay

    real_skills.play("even", 0, model, tmp_path)
    real_skills.play("hindsight", 0, model, tmp_path)
    even, hindsight = (
        real_skills.row_of(*one) for one in real_skills.finished(tmp_path, [0]) if one[0] in ("even", "hindsight")
    )
    rose = {task for task in even["end"] if even["end"][task] - even["before"][task] >= real_skills.ROSE}
    assert {task for task, share in hindsight["shares"][1].items() if share == 1.0} == rose
    assert hindsight["shares"][0]["add"] == 1.0  # the shared updates are even

    run = RunLog.open(real_skills.folder_of(tmp_path, "rising", 0))
    answer = checkpoint_engineer.asked(run.state.done[-1].checkpoint, run, 0, 1, tmp_path / "asked.jsonl")
    assert 0 <= answer["before"] <= 1
    assert not answer["changes"] if answer["refused"] else answer["changes"] >= 0
    assert answer["after"] == answer["before"] or answer["changes"]
    assert len(read_transcript(tmp_path / "asked.jsonl")) >= 1


def test_the_control_deals_each_question_s_rewards_among_its_replies():
    rewards = [1.0, 0.0, 0.25, 0.0, 1.0, 1.0, 0.0, 0.5]
    about = {
        "metadata": [{"slice": "add", "case": case} for case in "aaaabbbb"],
        "completion_ids": [[number, 2] for number in range(8)],
        "paid": rewards,
    }
    dealt = real_skills.shuffled(completions=[], **about)
    assert (sorted(dealt[:4]), sorted(dealt[4:])) == (sorted(rewards[:4]), sorted(rewards[4:]))
    assert dealt == real_skills.shuffled(completions=[], **about)
    often = [
        real_skills.shuffled(**about | {"completion_ids": [[number, seed] for number in range(8)]})
        for seed in range(400)
    ]
    assert [sum(some[at] for some in often) / 400 for at in (0, 1)] == [pytest.approx(1.25 / 4, abs=0.06)] * 2


def test_the_control_trains_on_shuffled_rewards_and_counts_what_is_right(model, tmp_path, monkeypatch):
    for name, value in {"SHARED": 1, "STAGES": 1, "UPDATES": 2}.items():
        monkeypatch.setattr(real_skills, name, value)
    monkeypatch.setattr(real_skills, "LEAST", real_skills.LEAST | {"suites.test_per_slice": 1})
    dealt = []

    def watched(**about):
        dealt.append((about["paid"], paid := shuffled(**about)))
        return paid

    shuffled = real_skills.shuffled
    monkeypatch.setattr(real_skills, "shuffled", watched)
    real_skills.play(real_skills.CONTROL, 0, model, tmp_path)
    ((name, _, run),) = real_skills.finished(tmp_path, [0])
    assert name == real_skills.CONTROL
    assert len(dealt) == 2  # the shared update is paid by the world
    lines = [line for line in run.state.done[-1].metrics() if line["kind"] == "iteration"]
    assert [line["reward"] for line in lines] == [pytest.approx(sum(paid) / len(paid)) for paid, _ in dealt]


def test_an_arm_that_there_is_not_is_refused_before_anything_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # where its runs would be
    words = ["--model", ".", "--no-record", "--arms", "rising, even for ever"]
    monkeypatch.setattr("sys.argv", ["real_skills", *words])
    with pytest.raises(SystemExit):
        real_skills.main()
    assert "--arms has 'even for ever': give some of even with refill, rising, " in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_part_that_teaches_is_that_of_tasks_which_neither_fail_nor_succeed_always():
    rows = [
        SliceResult(name=name, episodes=10, metrics={"success_rate": rate})
        for name, rate in {"known": 1.0, "middle": 0.5, "hopeless": 0.0}.items()
    ]
    report = StageReport(stage=0, config={}, objective="success_rate", training_results=rows)
    shares = {"known": 0.25, "middle": 0.5, "hopeless": 0.15, "unseen": 0.1}
    assert checkpoint_engineer.part_that_teaches(shares, report) == pytest.approx(0.5)


def row(arm: str, seed: int, **end: float) -> dict[str, object]:
    return {
        "arm": arm,
        "seed": seed,
        "questions": real_skills.QUESTIONS,
        "before": {"known": 0.9, "middle": 0.3, "other": 0.5, "hopeless": 0.0},
        "end": end,
    }


def test_the_primary_contrast_is_over_the_tasks_between_and_by_seed():
    refill = {"known": 0.9, "middle": 0.4, "other": 0.5, "hopeless": 0.0}
    rising = {"known": 0.5, "middle": 0.8, "other": 0.6, "hopeless": 0.0}
    rows = [row("even with refill", 0, **refill), row("rising", 0, **rising), row("rising", 1, **rising)]
    found = real_skills.figures_of(rows)
    primary, over_all = found["contrasts"]
    assert (primary["arms"], primary["tasks"]) == ("rising - even with refill", "between")
    assert primary["by seed"] == [pytest.approx(0.25)]  # seed 1 lacks the other arm
    assert primary["over seeds"]["low"] is None  # one seed has no interval over seeds
    assert over_all["by seed"] == [pytest.approx((-0.4 + 0.4 + 0.1) / 4)]
    half = 1.96 * ((0.4 * 0.6 + 0.5 * 0.5 + 0.8 * 0.2 + 0.6 * 0.4) / real_skills.QUESTIONS) ** 0.5 / 2
    assert primary["half of the interval over questions, by seed"] == [pytest.approx(half)]
    assert found["means"][0]["above"] == {"before": 0.9, "end": 0.9}
    of_refill, of_rising = found["gains"]
    assert of_refill["by seed"] == [pytest.approx(0.1 / 4)]
    assert of_rising["by seed"] == [pytest.approx((-0.4 + 0.5 + 0.1) / 4)] * 2


def test_stored_seeds_join_in_the_contrasts_and_none_counts_twice(tmp_path, monkeypatch):
    refill = {"known": 0.9, "middle": 0.4, "other": 0.5, "hopeless": 0.0}
    rising = refill | {"middle": 0.8}
    pairs = [(row("even with refill", seed, **refill), row("rising", seed, **rising)) for seed in range(4)]
    stored, new = [one for pair in pairs[:3] for one in pair], [*pairs[3]]
    (tmp_path / "earlier.json").write_text(json.dumps({"figures": {"rows": stored}}), encoding="utf-8")
    monkeypatch.setattr(real_skills, "RESULTS", tmp_path)
    (primary, _) = real_skills.contrasts_of(real_skills.rows_beside("earlier", new))
    assert primary["by seed"] == [pytest.approx(0.2)] * 4
    with pytest.raises(SystemExit, match="it has seed 2 of 'even with refill', too: give other seeds"):
        real_skills.rows_beside("earlier", [*pairs[2]])


@pytest.mark.parametrize(
    ("beside", "said"), [("none", "there is no none.json"), ("earlier", "it has seed 0 of 'rising', too")]
)
def test_stored_seeds_that_cannot_join_are_refused_before_anything_is_trained(tmp_path, monkeypatch, beside, said):
    monkeypatch.chdir(tmp_path)  # where its runs would be
    rows = [{"arm": "rising", "seed": 0}]
    (tmp_path / "earlier.json").write_text(json.dumps({"figures": {"rows": rows}}), encoding="utf-8")
    monkeypatch.setattr(real_skills, "RESULTS", tmp_path)
    words = ["--model", ".", "--no-record", "--seeds", "1", "--arms", "rising", "--beside", beside]
    monkeypatch.setattr("sys.argv", ["real_skills", *words])
    with pytest.raises(SystemExit, match=said):
        real_skills.main()
    assert not (tmp_path / "runs").exists()


def test_a_metric_is_read_at_both_ends_of_a_run():
    lines = [{"entropy": float(at)} for at in range(12)]
    assert real_skills.first_and_last(lines, "entropy") == (2.0, 9.0)
