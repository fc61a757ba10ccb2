"""The study of learning by reward: what refill draws, what is counted, how it continues, and its tables from stored tests."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from tests.lazily import needed

needed("torch", extra="exam")
import torch  # noqa: E402

from benchmarks import reward_learner, reward_study  # noqa: E402
from benchmarks._kept import kept_or_made  # noqa: E402
from benchmarks._points import in_points  # noqa: E402
from benchmarks._record import RESULTS  # noqa: E402
from benchmarks.exam_rules import compared  # noqa: E402
from benchmarks.real_skills import CONTROL, MAIN, PRIMARY, task_lines, worst_quarter  # noqa: E402
from benchmarks.reward_learner import CAP, Learner, divergence, loss_of, questions_taken, replies_to  # noqa: E402
from benchmarks.reward_study import (  # noqa: E402
    EVEN,
    EVEN_REFILL,
    HELD,
    RISING,
    YOKED,
    Arm,
    Run,
    by_task,
    figures_of,
    lines,
    needed_for,
    raw,
    reached,
)
from engineers.plain.rising import RisingEngineer  # noqa: E402
from envtuning.exam.bounds import Oracle  # noqa: E402
from envtuning.exam.families import COIN, HOPELESS, LACKING, MASTERED, Family  # noqa: E402
from envtuning.exam.reading import plainly  # noqa: E402
from envtuning.exam.roots import tasks_of  # noqa: E402
from envtuning.exam.session import Start  # noqa: E402
from envtuning.exam.training import made, sampled  # noqa: E402
from envtuning.outcomes import Tally  # noqa: E402
from envtuning.studies.intervals import t_mean  # noqa: E402

SMALL = Family(
    name="small", learning="reward", replies=4, mastered=2, lacking=2, hopeless=1, coins=1, letters=6, lengths=(2,), width=16,
    layers=1, updates=12, batch=4, pretrain=6, warm=2,
)  # fmt: skip
EVENLY = np.ones(SMALL.tasks)


pytestmark = pytest.mark.usefixtures("exam_roots")


def scripted(learner: Learner, monkeypatch) -> None:
    """All replies to a mastered task are right, none to a hopeless one, and every other one to the rest."""
    session = learner.session
    session_tasks, first = session.tasks[0], SMALL.letters + 2

    def replies(policies, questions, luck):
        kind = session_tasks.kind[questions[:, 0].numpy() - first]
        tokens = questions[:, None].repeat(1, luck.shape[1], 1)
        wrong = np.where(kind == MASTERED, 0, np.where(kind == HOPELESS, 1, 2))
        for row, how in zip(tokens, wrong, strict=True):
            if how:
                row[slice(None, None, int(how)), -1] = (row[0, -1] + 1) % SMALL.letters
        return tokens

    monkeypatch.setattr(reward_learner, "replies_to", replies)


@pytest.mark.parametrize("refill", [False, True])
def test_a_reader_is_told_how_many_questions_were_asked(refill):
    shown = Learner(SMALL, Start(0), 2, refill=refill).update(EVENLY)
    questions = (~shown.further).sum()
    assert questions == shown.task.size / SMALL.replies
    tally = Tally()
    tally.observe_many(*plainly("scores", tasks_of(SMALL, 0), np.random.default_rng(0))(shown, 0))
    assert sum(counts.episodes - counts.further for counts in tally.first.values()) == questions


@pytest.mark.parametrize("refill", [False, True])
def test_refill_fills_the_batch_with_groups_that_have_a_signal_and_counts_what_it_draws(refill, monkeypatch):
    learner = Learner(SMALL, Start(0), 2, refill=refill)
    scripted(learner, monkeypatch)
    kind, totals = learner.session.tasks[0].kind, []
    for _ in range(20):
        before = learner.trained
        shown = learner.update(EVENLY)
        asked = shown.task[0][:: SMALL.replies]
        signal = np.isin(kind[asked], (LACKING, COIN))
        totals.append(len(asked))
        assert learner.trained - before == signal.sum() * SMALL.replies
        if not refill:
            assert len(asked) == SMALL.batch
        elif signal.sum() == SMALL.batch:
            assert signal[-1], "not a question more than is needed"
        else:
            assert len(asked) == CAP * SMALL.batch
    assert learner.updates == 20
    assert learner.replies == sum(totals) * SMALL.replies == learner.drawn.sum()
    part = learner.trained / (20 * SMALL.batch * SMALL.replies)
    assert part > 0.95 if refill else 0.35 < part < 0.65  # three of the six tasks have a signal


def test_the_batch_is_drawn_one_by_one():
    signal = np.random.default_rng(0).random((500, 12)) < 0.4
    for row in signal:
        taken = 0
        while taken < 12 and row[:taken].sum() < 4:
            taken += 1
        assert questions_taken(row, 4) == taken


def test_an_update_without_a_signal_leaves_the_policy_as_it_was(monkeypatch):
    learner = Learner(SMALL, Start(0), 2, refill=False)
    scripted(learner, monkeypatch)
    before = [weight.detach().clone() for weight in learner.session.policies.parameters()]
    learner.update(np.isin(learner.session.tasks[0].kind, (MASTERED, HOPELESS)).astype(float))
    assert all(torch.equal(*pair) for pair in zip(before, learner.session.policies.parameters(), strict=True))
    learner.update((learner.session.tasks[0].kind == LACKING).astype(float))
    assert not all(torch.equal(*pair) for pair in zip(before, learner.session.policies.parameters(), strict=True))


def test_rows_that_pass_the_policy_once_change_neither_replies_nor_gradient():
    session = Learner(SMALL, Start(1), 2, refill=False).session
    rng = np.random.default_rng(0)
    batch = made(session.tasks, rng.integers(0, SMALL.tasks, (1, 9)), [rng], "training")
    luck = torch.from_numpy(rng.random((9, 4, 2))).float()
    replies = replies_to(session.policies, batch.tokens[0], luck)
    assert (replies == sampled(session.policies, batch.tokens, luck[None])[0]).float().mean() > 0.98
    paid = (torch.rand(9, 4, generator=torch.Generator().manual_seed(0)) < 0.5).float()
    loss_of(session.policies, replies, paid).backward()
    found = [weight.grad.clone() for weight in session.policies.parameters()]
    session.policies.zero_grad()
    said = session.policies(replies.flatten(0, 1)[None])[0].log_softmax(-1)
    chance = said.gather(-1, replies.flatten(0, 1)[:, -2:, None]).sum((1, 2)).view(9, 4)
    plain = -sum((paid[q] - paid[q].mean()) @ chance[q] for q in range(9)) / 36
    plain.backward()
    for one, weight in zip(found, session.policies.parameters(), strict=True):
        assert torch.allclose(one, weight.grad, atol=1e-5)


def test_the_kl_term_is_the_divergence_from_the_policy_at_the_start():
    now, begun_with = (Learner(SMALL, Start(root), 2, refill=False).session.policies for root in (1, 2))
    replies = torch.from_numpy(np.random.default_rng(0).integers(0, SMALL.letters, (5, 4, 6)))
    said, was = (
        torch.distributions.Categorical(logits=one(replies.flatten(0, 1)[None])[0]) for one in (now, begun_with)
    )
    plain = torch.distributions.kl_divergence(said, was).sum(-1).mean()
    assert divergence(now, begun_with, replies).item() == pytest.approx(plain.item(), rel=1e-4)
    assert divergence(now, now, replies).item() == pytest.approx(0, abs=1e-6)


def test_the_kl_term_keeps_a_policy_near_the_one_at_the_start():
    """Held firmly, it learns from the same replies at first, and goes less far."""
    moved = []
    for weight in (0.0, 5.0):
        learner = Learner(SMALL, Start(0), 2, refill=False, kl=weight)
        for _ in range(12):
            learner.update(np.ones(SMALL.tasks))
        asked = torch.from_numpy(np.random.default_rng(1).integers(0, SMALL.letters, (40, 1, 6)))
        far = divergence(learner.session.policies, learner.begun_with, asked)
        moved.append(far.item())
    assert 0 < moved[1] < 0.7 * moved[0]


@pytest.mark.parametrize(
    "arm",
    [
        Arm("even", refill=True),
        Arm("p(1-p)", rate=3),
        Arm("rising", yoked=True),
        Arm("oracle"),
        Arm("even", kl=0.02),
        Arm("rising", often=2),
    ],
    ids=str,
)
def test_a_run_is_tested_wherever_a_table_reads_it(arm, monkeypatch):
    for name, value in (("FAMILY", SMALL), ("STAGES", 3), ("STAGE", 64), ("EACH", 48), ("LAST", 192), ("TESTED", (2, 4))):  # fmt: skip
        monkeypatch.setattr(reward_study, name, value)
    points = reward_study.played((arm, Start(0)))
    assert points == reward_study.played((arm, Start(0)))
    assert (points[0]["updates"], points[0]["replies"]) == (0, 0)
    assert {2, 4} <= {one["updates"] for one in points}
    for due in range(48, 193, 48):
        assert any(due <= one["replies"] < due + CAP * 16 for one in points)
    for one in points:
        assert one["trained"] <= one["replies"] == sum(one["drawn"])
        assert len(one["success"]) == SMALL.tasks


@pytest.mark.parametrize(("often", "asked"), [(1, 3), (2, 6)])
def test_an_arm_that_is_asked_more_often_has_shorter_stages(often, asked, monkeypatch):
    for name, value in (("FAMILY", SMALL), ("STAGES", 3), ("STAGE", 64), ("LAST", 192), ("TESTED", (2, 4))):
        monkeypatch.setattr(reward_study, name, value)
    arm, start = Arm("rising", often=often), Start(0)
    learner = Learner(arm.family, start, arm.decisions, refill=False)
    shown = reward_study.run(arm, learner, reward_study.reading(arm, start), lambda: None)
    assert len(shown) == 2 * asked  # the halves of each stage


def test_what_a_kill_cut_off_is_made_again_and_nothing_else(tmp_path):
    path, calls = tmp_path / "runs.jsonl", [str(number) for number in range(4)]
    whole = kept_or_made(path, {key: key * 2 for key in calls}, str.upper, 1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:7])
    marked = kept_or_made(path, dict.fromkeys(calls, "again"), str.upper, 1)
    assert [marked[key] == "AGAIN" for key in calls] == [False, False, True, True]
    assert [marked[key] for key in calls[:2]] == [whole[key] for key in calls[:2]]
    assert kept_or_made(path, dict.fromkeys(calls, "never"), str.upper, 1) == marked


def test_a_run_is_made_again_if_the_settings_of_its_arm_were_tuned(monkeypatch):
    arms = {name: reward_study.ARMS[name] for name in (EVEN, RISING, "oracle")}
    before = {name: reward_study.key_of(arm, Start(0)) for name, arm in arms.items()}
    assert len(set(before.values())) == 3
    monkeypatch.setattr(reward_study.engineers, "make", lambda name: RisingEngineer(learnt=0.5))
    monkeypatch.setattr(reward_study, "arm_of", lambda paper: Oracle(0.5, 0.5))
    after = {name: reward_study.key_of(arm, Start(0)) for name, arm in arms.items()}
    assert [name for name in arms if before[name] != after[name]] == [RISING, "oracle"]


KIND = np.array([MASTERED] * 8 + [LACKING] * 6 + [HOPELESS] * 5 + [COIN] * 5)


def stored(slope: float, per_update: int) -> Run:
    """A run whose lacking tasks learn ``slope`` in each ``EACH`` replies."""
    points = []
    for replies in range(0, max(reward_study.LAST, 360 * per_update) + 1, per_update):
        updates = replies // per_update
        if updates in (0, *reward_study.TESTED) or replies // reward_study.EACH > (replies - per_update) // reward_study.EACH:  # fmt: skip
            learnt = min(1.0, slope * replies / reward_study.EACH)
            success = np.select([KIND == MASTERED, KIND == LACKING, KIND == COIN], [1.0, learnt, 0.5], 0.0)
            points.append({"updates": updates, "replies": replies, "trained": replies // 2, "drawn": [replies // 24] * 24, "success": success.tolist()})  # fmt: skip
    return Run(points, KIND)


def test_tables_come_from_stored_tests():
    slopes = {EVEN: (0.05, 256), EVEN_REFILL: (0.04, 640), RISING: (0.08, 256)}
    runs = {arm: [[stored(slopes.get(arm, (0.03, 256))[0], slopes.get(arm, (0.03, 256))[1]) for _ in range(2)] for _ in range(4)] for arm in reward_study.ARMS}  # fmt: skip
    figures = figures_of(runs)
    at_replies, at_updates = figures["tables"]["92160 replies"], figures["tables"]["360 updates"]
    assert at_replies[EVEN]["lacking"] == pytest.approx(0.2)
    assert at_replies[EVEN_REFILL]["lacking"] == pytest.approx(0.16)
    assert at_updates[EVEN_REFILL]["lacking"] == pytest.approx(0.4)  # 2.5 times the replies of even draws
    assert at_updates[EVEN_REFILL]["replies"] == 360 * 640
    assert at_replies[EVEN]["worst"] == pytest.approx(0.2)  # four of the six lacking tasks
    assert at_replies[EVEN]["trained"] == pytest.approx(0.5)
    over = at_replies[RISING][f"minus {EVEN_REFILL}"]
    assert over["lacking"]["mean"] == pytest.approx(0.16)
    assert over["all"]["mean"] == pytest.approx(0.16 * 6 / 24)
    reached = figures["reached"]
    assert reached[EVEN]["replies"]["mean"] == pytest.approx(reward_study.BUDGET)
    assert reached[RISING]["replies"]["mean"] == pytest.approx(reward_study.BUDGET * 5 / 8, rel=0.02)
    assert reached["pools"]["never"] == 0
    rows = lines(at_replies, reached)
    assert len(rows) == len(reward_study.ARMS)
    assert rows[0].startswith("| even draws | 360 | 50 |")


def test_a_task_s_success_stands_by_its_kind_and_its_start():
    def root(starts: list[float], ends: list[float]) -> list[Run]:
        points = [
            {"updates": 0, "replies": 0, "success": starts},
            {"updates": 720, "replies": 184_320, "success": ends},
        ]
        return [Run(points, np.array([LACKING, MASTERED, LACKING, COIN]))]

    found = by_task([root([0.3, 1.0, 0.1, 0.5], [0.7, 0.9, 0.5, 0.4]), root([0.2, 1.0, 0.4, 0.5], [0.6, 1.0, 1.0, 0.6]), root([0.6, 1.0, 0.3, 0.5], [1.0, 1.0, 0.4, 0.5])], "replies", 100)  # fmt: skip
    assert set(found) == {"mastered 1", "lacking 1", "lacking 2", "coin 1"}
    assert found["lacking 1"]["before"] == pytest.approx(0.2)  # .1, .2 and .3
    assert found["lacking 1"]["after"]["mean"] == pytest.approx(0.5)  # .5, .6 and .4
    assert found["lacking 2"]["after"]["mean"] == pytest.approx(0.9)  # .7, 1 and 1
    assert found["lacking 2"]["after"]["low"] < 0.7 < 1.0 < found["lacking 2"]["after"]["high"]


def test_the_end_s_level_is_harder_to_reach_than_that_of_half_the_replies():
    runs = {arm: [[stored(slope, 256)] for _ in range(3)] for arm, slope in ((EVEN, 0.05), (RISING, 0.08), ("pools", 0.03))}  # fmt: skip
    half, end = (reached(runs, amount) for amount in (reward_study.BUDGET, reward_study.LAST))
    assert end[EVEN]["replies"]["mean"] == pytest.approx(reward_study.LAST)
    assert end[RISING]["replies"]["mean"] == pytest.approx(2 * half[RISING]["replies"]["mean"], rel=0.02)
    assert (half["pools"]["never"], end["pools"]["never"]) == (0, 3)


def test_each_run_is_stored_by_task():
    told = raw({EVEN: [[stored(0.05, 256), stored(0.1, 256)]]})
    assert [(one["arm"], one["root"], one["seed"]) for one in told] == [(EVEN, 0, 0), (EVEN, 0, 1)]
    counts = [int(count) for count in told[1]["184320 replies"].split()]
    assert counts == [64] * 8 + [round(64 * 0.8)] * 6 + [0] * 5 + [32] * 5


def test_replies_to_a_level_are_read_between_two_tests():
    assert needed_for(0.2, [0.3, 0.1]) == 0
    assert needed_for(0.25, [0.1, 0.2, 0.3]) == pytest.approx(1.5 * reward_study.EACH)
    assert needed_for(0.9, [0.1, 0.2, 0.3]) == reward_study.LAST


STORED = json.loads((RESULTS / "reward_study.json").read_text(encoding="utf-8"))["figures"]
PAGE = " ".join((RESULTS.parents[1] / "docs" / "reward.md").read_text(encoding="utf-8").split())


def test_the_page_has_the_stored_tables():
    for place in ("184320 replies", "92160 replies"):
        assert " ".join(lines(STORED["tables"][place], STORED["reached"])) in PAGE
    updates, half = STORED["tables"]["360 updates"], STORED["tables"]["92160 replies"]
    shown = {
        arm: row for arm, row in updates.items() if "refill" in arm or arm in (EVEN, "learnability", RISING, "oracle")
    }
    assert " ".join(lines(shown, STORED["reached"])) in PAGE
    for arm in updates.keys() - shown.keys():  # "they are those of the table above"
        assert [updates[arm][name] for name in reward_study.MEASURES] == [
            half[arm][name] for name in reward_study.MEASURES
        ]


def less(gain: dict[str, float]) -> dict[str, float]:
    """The same difference the other way round."""
    return {"mean": -gain["mean"], "low": -gain["high"], "high": -gain["low"]}


def test_the_page_claims_what_is_stored():
    end, half = STORED["tables"]["184320 replies"], STORED["tables"]["92160 replies"]
    refilled, faster = f"minus {EVEN_REFILL}", ", higher rate"
    assert f"`rising` ends {in_points(STORED['primary'])} points above even draws with refill" in PAGE
    assert f"plain even draws end {in_points(end[EVEN][refilled]['all'])} points above them" in PAGE
    for rate, kind in (("", "the family's rate"), (faster, "three times the rate")):
        over = f"{RISING}{rate} minus it"
        for measure, what in (("all", "all tasks"), ("lacking", "the lacking ones"), ("worst", "the worst four")):
            told = [in_points(at[EVEN + rate][over][measure]) for at in (half, end)]
            assert f"| {what}, {kind} | {' | '.join(told)} |" in PAGE
    readme = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert (
        "{} points above uniform draws half-way, and {} at the end".format(
            *(in_points(at[EVEN][f"{RISING} minus it"]["all"]) for at in (half, end))
        )
        in readme
    )
    held = [
        in_points(compared(*(np.array(at[arm + HELD]["per_root"]) for arm in (RISING, EVEN)))) for at in (half, end)
    ]
    assert (
        "`rising` ends {} points above even draws with the same term half-way, and {} at the end".format(*held) in PAGE
    )
    assert f"With a KL term, {held[1]} are left" in readme
    assert end["learnability" + HELD]["all"] >= end[RISING + HELD]["all"] - 0.001  # "does as well"
    assert (
        f"Told another run's rates, `rising` ends {in_points(less(end['rising, yoked'][f'{RISING} minus it']['all']))}"
        in PAGE
    )
    assert end[EVEN + faster]["all"] <= end[EVEN]["all"]
    made = [round(end[arm]["updates"]) for arm in (EVEN_REFILL, EVEN)]
    assert "refill makes {} updates where even draws make {}".format(*made) in PAGE
    assert {EVEN, "learnability"} <= set(STORED["simple rules that do as well"])
    curricula = ("learnability", "thompson", "pools", RISING, "learnability, refill")
    assert half[EVEN + ", higher rate"]["all"] > max(half[arm]["all"] for arm in curricula)  # of rules
    model = json.loads((RESULTS / "reward_model.json").read_text(encoding="utf-8"))["figures"]["tables"]
    assert model["92160 replies"][EVEN + ", higher rate"]["model_minus"]["low"] > 0  # a model's is ahead of it
    needed = {arm: found["replies"]["mean"] for arm, found in STORED["reached"].items()}
    fewer = {arm: round(100 * (1 - needed[arm] / needed[EVEN])) for arm in needed}
    assert f"`rising` needs {fewer[RISING]} % fewer replies than even draws" in PAGE
    assert f"`learnability` {fewer['learnability']} % fewer" in PAGE
    assert f"higher rate need {fewer[EVEN + ', higher rate']} % fewer" in PAGE
    assert f"it needs {fewer['oracle']} % fewer replies" in PAGE


def test_the_page_has_the_second_contrast_and_what_never_gets_there():
    end = STORED["tables"]["184320 replies"]
    plain = end[EVEN + ", higher rate"][f"minus {EVEN_REFILL}, higher rate"]["all"]
    told = f"`rising` ends {in_points(STORED['at the higher rate'])} points above refill, and plain even draws {in_points(plain)}."
    assert told in PAGE
    assert STORED["at the higher rate"]["low"] < 0 > plain["low"]  # "ends where even draws end"
    never = {arm: found["never"] for arm, found in STORED["reached"].items() if found["never"]}
    assert never == {"thompson": 14, EVEN_REFILL: 3, EVEN_REFILL + HELD: 1}
    assert "On 14 of 16 roots it never has" in PAGE
    assert "Even draws with refill do not on three, and with a KL term on one." in PAGE


def test_the_page_has_each_task_and_the_replies_to_even_draws_end():
    found = json.loads((RESULTS / "reward_tasks.json").read_text(encoding="utf-8"))["figures"]
    half, reach = found["by task"]["92160 replies"], found["reached at the end"]
    assert " ".join(reward_study.task_lines(half, reach)) in PAGE
    for key, told in (("primary", "The primary difference is {} there"), ("at the higher rate", "and the second {}.")):
        assert told.format(in_points(found[key])) in PAGE
    assert found["primary"]["low"] > 0 > found["at the higher rate"]["low"]  # "both are found again"
    lacking = [f"lacking {place}" for place in range(1, 7)]
    level = {arm: np.array([tasks[name]["after"]["mean"] for name in lacking]) for arm, tasks in half.items()}
    faster, taught = (100 * (level[arm] - level[EVEN]) for arm in (EVEN + ", higher rate", RISING))
    assert f"{faster[0]:.0f} points to the first, {faster[-1]:.0f} to the sixth" in PAGE
    assert f"`rising` gives {taught.min():.0f} to {taught.max():.0f} points to each" in PAGE
    for arm in (
        "even draws, refill",
        "learnability, refill",
        "even draws, refill, higher rate",
        "even draws, refill, KL",
    ):
        assert (level[arm] < level[arm.replace(", refill", "")]).all()
    needed = {arm: row["replies"]["mean"] for arm, row in reach.items()}
    assert f"the oracle needs {100 * (1 - needed['oracle'] / needed[EVEN]):.0f} % fewer replies" in PAGE
    with_kl = (f"{needed[arm + HELD] / 1000:.0f}" for arm in ("learnability", RISING, EVEN))
    assert "`learnability` and `rising` need {} and {} thousand, and even draws with it {}".format(*with_kl) in PAGE
    assert f"never gets there on {reach[EVEN + ', higher rate']['never']} of 16 roots" in PAGE


def test_the_page_has_what_reading_is_worth_to_every_reader():
    found = json.loads((RESULTS / "reward_tasks.json").read_text(encoding="utf-8"))["figures"]
    told = reward_study.control_lines(found["tables"])
    assert len(told) == 4
    assert " ".join(told) in PAGE

    def gain(arm: str, other: str, replies: int) -> dict[str, float]:
        rows = found["tables"][f"{replies} replies"]
        return compared(*(np.array(rows[name]["per_root"]) for name in (arm, other)))

    for reader in (RISING, "learnability", "pools"):
        for replies in (reward_study.BUDGET, reward_study.LAST):
            assert gain(reader, reader + YOKED, replies)["low"] > 0  # "use what they read"
        assert gain(reader + YOKED, EVEN, reward_study.LAST)["high"] < 0  # "end below even draws"
    assert gain("thompson", "thompson" + YOKED, reward_study.LAST)["high"] < 0
    lifted = ("learnability", RISING)
    assert all(gain(arm + HELD, arm, reward_study.LAST)["low"] > 0 for arm in lifted)
    for arm in ("pools", "thompson", "learnability, refill"):
        for replies in (reward_study.BUDGET, reward_study.LAST):
            held = gain(arm + HELD, arm, replies)
            assert held["low"] < 0 < held["high"]
            assert abs(held["mean"]) < 0.01


def test_the_page_has_what_asking_more_often_gains():
    first, again = (
        json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]["differences"]
        for name in ("reward_often", "reward_often_again")
    )
    half, end = f"{reward_study.BUDGET} replies", f"{reward_study.LAST} replies"
    often, seldom = f"{RISING}, every 5 updates - {RISING}", f"{RISING}, every 20 updates - {RISING}"
    from_even = f"{RISING}, every 5 updates - {EVEN}"

    def told(figures: dict[str, Any], place: str, pair: str) -> str:
        return in_points(figures[place][pair]["all"])

    assert f"it ends {told(first, half, often)} points above `rising` asked after every 60" in PAGE
    assert (
        f"gains nothing ({told(first, half, seldom)}), we trained these two and even draws once more: {told(again, half, often)}."
        in PAGE
    )
    assert f"the difference is {told(first, end, often)} and {told(again, end, often)}." in PAGE
    halves, ends = ([told(one, place, from_even) for one in (first, again)] for place in (half, end))
    assert f"after every 5 ends {' and '.join(halves)} points half-way, and {' and '.join(ends)} at the end" in PAGE
    assert (
        f"deciding after every 5: {told(first, half, 'learnability, every 5 updates - learnability')} half-way" in PAGE
    )
    yoked = json.loads((RESULTS / "reward_often_yoked.json").read_text(encoding="utf-8"))["figures"]["differences"]
    control = f"{RISING}{YOKED}, every 5 updates"
    worth, left = (
        [told(yoked, place, pair) for place in (half, end)]
        for pair in (f"{RISING}, every 5 updates - {control}", f"{control} - {EVEN}")
    )
    assert f"Its own rates are worth {worth[0]} points to `rising` asked so often, and {worth[1]} at the end" in PAGE
    assert f"told another run's, it ends {' and '.join(left)} from even draws" in PAGE
    means = json.loads((RESULTS / "reward_often.json").read_text(encoding="utf-8"))["figures"]["means"]
    tasks = json.loads((RESULTS / "reward_tasks.json").read_text(encoding="utf-8"))["figures"]["tables"]

    def beyond(place: str, arm: str) -> str:
        """What asking often gains over a simple arm of the study's, on the same roots and trainings."""
        ours, its = means[place][f"{RISING}, every 5 updates"], tasks[place][arm]
        found = compared(*(np.array(row["per_root"]) for row in (ours, its)))
        assert found["low"] < 0 < found["high"]  # "do as well"
        return in_points(found)

    assert means[half][RISING]["per_root"] == tasks[half][RISING]["per_root"]  # the same runs
    faster, held = beyond(half, EVEN + ", higher rate"), beyond(half, "learnability" + HELD)
    assert f"from which it ends {faster}, and `learnability` with a KL term, {held};" in PAGE
    ends = " and ".join(beyond(end, arm + HELD) for arm in ("learnability", RISING))
    assert f"`learnability` and `rising` with a KL term and 60 updates, {ends}." in PAGE
    assert min(one[half][often]["all"]["low"] for one in (first, again)) > 0
    assert min(one[end][from_even]["all"]["low"] for one in (first, again)) > 0  # "keeps a point or two at the end"


def test_the_page_has_each_task_of_the_real_model():
    rows = json.loads((RESULTS / "real_skills.json").read_text(encoding="utf-8"))["figures"]["rows"]
    assert " ".join(task_lines(rows)) in PAGE
    worst = [100 * np.mean([worst_quarter(row) for row in rows if row["arm"] == arm]) for arm in MAIN]
    assert "The worst five tasks have {:.1f}, {:.1f}, {:.1f}, {:.1f} and {:.1f} % at the end".format(*worst) in PAGE
    norms = [norm for row in rows for norm in row["signs of collapse"]["grad_norm"]]
    assert f"their means are {min(norms):.0f} to {max(norms):.0f}." in PAGE


def gain_of(row: dict[str, Any], leave_out: str | None = None) -> float:
    return np.mean([row["end"][task] - row["before"][task] for task in row["end"] if task != leave_out])


def test_what_the_page_says_of_a_real_model_is_stored():
    figures = json.loads((RESULTS / "real_skills.json").read_text(encoding="utf-8"))["figures"]
    more = json.loads((RESULTS / "real_skills_more.json").read_text(encoding="utf-8"))["figures"]
    primary, over_all = more["contrasts beside it"][:2]
    assert (primary["arms"], primary["tasks"], over_all["tasks"]) == ("rising - even with refill", "between", "all")
    assert primary["by seed"][:3] == figures["contrasts"][0]["by seed"]
    *most, last = (f"{100 * seed:+.1f}" for seed in primary["by seed"])
    told = f"ends {', '.join(most)} and {last} points from even draws with refill: {in_points(primary['over seeds'])}"
    assert told in PAGE
    assert f"Over all tasks it is {in_points(over_all['over seeds'])}." in PAGE
    assert max(primary["half of the interval over questions, by seed"]) == pytest.approx(0.10, abs=0.001)
    refilled, ours = (one["over seeds"] for one in more["gains beside it"][:2])
    assert f"even draws with refill gain {in_points(refilled)} points and `rising` {in_points(ours)}" in PAGE
    assert min(refilled["low"], ours["low"]) > 0  # "does learn by reward"
    both = [one for one in [*figures["rows"], *more["rows"]] if one["arm"] in PRIMARY]
    without = [
        t_mean([gain_of(row, leave_out="next") for row in both if row["arm"] == arm]) for arm in reversed(PRIMARY)
    ]
    refilled, ours = map(asdict, without)
    assert f"Without `next`, the two arms gain {in_points(refilled)} and {in_points(ours)}." in PAGE
    assert min(refilled["low"], ours["low"]) > 0
    shuffled = [gain_of(row) for row in more["rows"] if row["arm"] == CONTROL]
    assert [row["seed"] for row in more["rows"] if row["arm"] == CONTROL] == [5, 6]
    assert "On seeds 5 and 6 it gains {:+.1f} and {:+.1f} points.".format(*(100 * gain for gain in shuffled)) in PAGE
    of_six = next(row for row in more["rows"] if (row["arm"], row["seed"]) == (CONTROL, 6))
    rises = "from {:.0f} to {:.0f} %".format(*(100 * of_six[when]["next"] for when in ("before", "end")))
    assert f"`next` rises on seed 6 even there, {rises}." in PAGE
    gained = [100 * gain_of(row) for arm in reversed(PRIMARY) for row in both if row["arm"] == arm and row["seed"] > 4]
    assert (
        "There, even draws with refill gain {:+.1f} and {:+.1f}, and `rising` {:+.1f} and {:+.1f}".format(*gained)
        in PAGE
    )
    means = {
        arm: [np.mean([100 * row["all"][when] for row in figures["means"] if row["arm"] == arm]) for when in ("before", "end")]
        for arm in ("even with refill", "even", "rising", "learnability", "hindsight")
    }  # fmt: skip
    gains = {found["arm"]: found for found in figures["gains"]}
    named = {"even draws with refill": "even with refill", "`rising`": "rising", "even draws": "even"}
    for name, arm in (named | {"`learnability`": "learnability", "in hindsight": "hindsight"}).items():
        by_seed = ", ".join(f"{round(100 * gain, 1) + 0:+.1f}" for gain in gains[arm]["by seed"])
        before, end = means[arm]
        assert f"| {name} | {before:.1f} | {end:.1f} | {in_points(gains[arm]['over seeds'])} | {by_seed} |" in PAGE
        assert gains[arm]["over seeds"]["low"] < 0  # "do not show that an arm learns"
    of = {arm: [row for row in figures["rows"] if row["arm"] == arm] for arm in means}
    made = {arm: sorted(row["updates"] for row in rows) for arm, rows in of.items()}
    of_more = [row for row in more["rows"] if row["arm"] == "even with refill"]
    refills = [*made["even with refill"], *(row["updates"] for row in of_more)]
    assert f"refill makes {min(refills)} to {max(refills)} updates, and the others 40" in PAGE
    assert made["even"] == made["rising"] == made["learnability"] == made["hindsight"] == [40] * 3
    replies = {arm: sorted(row["replies"] for row in rows) for arm, rows in of.items()}
    refills = [*replies["even with refill"], *(row["replies"] for row in of_more)]
    least, most = min(refills), max(refills)
    assert f"refill has {least:,} to {most:,} replies, and the others have {replies['even'][0]:,}" in PAGE
    assert {count for arm in made if arm != "even with refill" for count in replies[arm]} == {2578}
    assert {row["seed"]: row["before"]["parity"] for row in figures["rows"] + more["rows"]} == dict.fromkeys(
        range(5), 0.5
    ) | {5: 0, 6: 0}
    of_pair = {(one["arms"], one["tasks"]): one for one in figures["contrasts"]}
    plain = of_pair["rising - even", "between"]
    rule = of_pair["learnability - even", "between"]
    assert f"`learnability` ends {in_points(rule['over seeds'])} points from even draws" in PAGE
    halves = rule["half of the interval over questions, by seed"]
    assert f"the questions alone give ±{100 * np.sqrt(np.sum(np.square(halves))) / len(halves):.1f}" in PAGE
    assert f"ends only {in_points(of_pair['hindsight - even', 'all']['over seeds'])} points" in PAGE
    assert len(of_pair) == 2 + 8  # the one asked for, and "eight exploratory differences"
    on_all = of_pair["rising - even", "all"]["over seeds"]
    assert f"it ends {in_points(plain['over seeds'])} points, and over all tasks {in_points(on_all)}" in PAGE
    assert all(end > before for before, end in means.values()), "the model learns in every arm"
    papers = (RESULTS.parents[1] / "docs" / "papers.md").read_text(encoding="utf-8")
    assert f"`rising` ends {in_points(primary['over seeds'])} points from even draws with refill" in papers
