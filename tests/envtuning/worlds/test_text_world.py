"""``TextWorld``: tasks of one's own keep what the loop counts on, and no reply of a model hangs, raises or is paid for its form."""

from __future__ import annotations

import re
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from engineers import make
from engineers.knobs import find_knobs
from engineers.report import StageReport
from engineers.roles import find_slices
from envtuning.outcomes import Outcome
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SpecError, parse_spec
from envtuning.testing import check_world
from envtuning.worlds.text_scores import nearness, same, signs_right, words_right
from envtuning.worlds.text_world import Asked, Task, TaskKnobs, TextWorld, answer_in
from envtuning.worlds.world import InfeasibleConfig, TooFewCases
from examples.five_tasks import world

ROOT = Path(__file__).parents[3]
CONFIG = world.config_type()
HOSTILE = {
    "long": "7" * 100_000,
    "much around an answer": "7" * 100_000 + "<answer>{}</answer>" + "7" * 100_000,
    "control characters": "\x00\x1b[2J{}\x07",
    "hidden characters": "{}\u202e\u200b",
    "lone surrogates": "{}\ud800",
    "nested brackets": "[" * 50_000 + "{}" + "]" * 50_000,
    "nested tags": "<answer>" * 20_000 + "{}",
    "nested thoughts": "<think>" * 20_000 + "{}",
    "a thought that never ends": "<think>{}",
    "a power tower": "9**9**9**9",
    "a huge number": "1e999999999",
    "code": "__import__('os').abort()",
    "format codes": "%s%s%n {{0}}",
    "nothing": "",
}
PAID = {"nested tags", "much around an answer"}  # what is between the last tags is the right answer


class Once(TaskKnobs):
    most: int = Field(3, ge=1, le=1_000_000, description="The greatest number.")


def number(rng: np.random.Generator, knobs: Once) -> tuple[str, str]:
    found = str(rng.integers(knobs.most))
    return found, found


def one_task(score=None, make=number) -> TextWorld:
    task = Task(Once, make) if score is None else Task(Once, make, score)
    return TextWorld("numbers", {"say": task}, "Say the number.")


def test_the_world_keeps_its_promises():
    check_world(world, CONFIG)


def test_the_page_s_python_runs_and_its_run_is_the_example():
    page = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1), {"__name__": "page"})
    shown = yaml.safe_load(re.search(r"```yaml\n(.*?)```", page, re.DOTALL).group(1))
    assert shown.items() <= yaml.safe_load((ROOT / "examples" / "five_tasks.yaml").read_text()).items()


def test_each_task_is_a_slice_with_a_share_and_knobs_of_its_own():
    config = world.config_type.model_validate(
        {"tasks": {"copy": {"share": 0.75}, "double": {"share": 0.25, "digits": 3}}}
    )
    assert world.slices(config) == {"copy": 0.75, "double": 0.25}
    found = {piece.name: [knob.field for knob in piece.difficulties] for piece in find_slices(find_knobs(config))}
    assert found == {"copy": ["length"], "double": ["digits"]}


@pytest.mark.parametrize(
    "tasks", [{"fly": {}}, {"copy": {"digits": 3}}, {"double": {"digits": 9}}, {"double": {"share": 2}}]
)
def test_a_config_with_what_no_task_has_is_refused(tasks):
    with pytest.raises(ValidationError):
        world.config_type.model_validate({"tasks": tasks})


def test_a_world_without_a_task_is_refused():
    with pytest.raises(ValueError, match="no task"):
        TextWorld("empty", {}, "Nothing.")


def test_a_run_s_file_names_tasks_with_shares_and_knobs():
    text = "world: examples.five_tasks:world\ntarget: {tasks: {double: {digits: 3}}}\nstages: [{config: {tasks: {double: {digits: %s}}}, budget: 10}]"
    plan = Plan.of(parse_spec(text % 4, "here"))
    assert plan.target.tasks["double"].digits == 3
    assert plan.unit == "samples"
    assert RunSpec.model_validate_json(plan.spec.model_dump_json()) == plan.spec
    with pytest.raises(SpecError):
        Plan.of(parse_spec(text % 9, "here"))


@pytest.mark.parametrize("engineer", ["uniform", "rules", "half-success", "progress-share", "random"])
def test_an_engineer_s_config_is_one_of_the_world_s(engineer):
    report = StageReport(stage=0, config=CONFIG.model_dump(mode="json"))
    proposed = make(engineer).propose(report, current=CONFIG).config
    world.check(proposed)
    assert set(proposed.tasks) == set(CONFIG.tasks)


def test_a_right_reply_succeeds_and_a_wrong_one_says_what_was_right():
    cases = world.draw(CONFIG, 5, seed=3, purpose="validation", exclude=())
    answers = {case: asked_of(case).answer for case in cases}
    right = iter(answers.values())
    episodes = world.play(lambda question: f"<think>hm</think> <answer>{next(right)}</answer>.", cases, CONFIG, seed=0)
    assert all(episode.succeeded for episode in episodes)
    [wrong, *_] = world.play(lambda question: "no", cases, CONFIG, seed=0)
    assert wrong.failure == "wrong"
    assert f"right: {answers[cases[0]]}" in world.explain(cases, wrong).picture


def asked_of(case, config=CONFIG) -> Asked:
    with closing(world.make(config, case.slice)) as env:
        env.reset(seed=case.seed)
        return env.asked


def paid(tasks: TextWorld, reply: str) -> tuple[float, str | None]:
    config = tasks.config_type()
    env = tasks.make(config, next(iter(config.tasks)))
    env.reset(seed=5)
    _, reward, terminated, _, info = env.step(reply.replace("{}", env.asked.answer))
    assert terminated
    assert info["success"] is (info["failure"] is None) is (reward == 1.0)
    return reward, info["failure"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_hostile_reply_hangs_or_is_paid(kind):
    begin = time.process_time()
    reward, failure = paid(world, HOSTILE[kind])
    assert time.process_time() - begin < 1.0
    assert (reward, failure is None) == ((1.0, True) if kind in PAID else (0.0, False))


def test_no_scorer_sees_a_hostile_reply():
    seen: list[str] = []
    tasks = one_task(lambda answer, asked: seen.append(answer) or 0.0)
    for reply in HOSTILE.values():
        paid(tasks, reply)
    assert max(map(len, seen)) < 1_100
    assert all(sign.isprintable() or sign in "\n\r\t" for answer in seen for sign in answer)


@given(st.text(st.characters(), max_size=60))
def test_any_reply_is_read(reply):
    reward, failure = paid(one_task(), reply)
    assert reward in (0.0, 1.0)
    assert failure in (None, "wrong", "unreadable")


def test_kinds_of_failure_that_are_given_join_those_that_a_text_world_has():
    tasks = TextWorld(
        "numbers", {"number": Task(Once, number)}, "Say the number.", failures={"wrong": "another number"}
    )
    assert tasks.about.failures == dict(one_task().about.failures) | {"wrong": "another number"}


def test_a_long_whole_number_is_right_only_if_every_digit_is():
    right = Asked("?", "121932631112635269")
    assert nearness("121932631112635269.0", right) == nearness("121_932_631_112_635_269", right) == 1.0
    assert 0.999 < nearness("121932631112635268", right) < 1.0


def test_closing_brackets_before_do_not_make_room_for_nested_ones():
    nested = "[" * 30 + "]" * 30
    assert paid(one_task(), nested)[1] == paid(one_task(), "]" * 30 + nested)[1] == "unreadable"


def confused(answer: str, asked: Asked) -> float:
    raise RecursionError


@pytest.mark.parametrize(
    ("score", "reward"),
    [(confused, 0.0), (lambda *_: float("nan"), 0.0), (lambda *_: 7, 1.0), (lambda *_: -1, 0.0), (lambda *_: 0.5, 0.5)],
)
def test_a_score_is_from_0_to_1_whatever_a_scorer_does(score, reward):
    assert paid(one_task(score), "2") == (reward, None if reward == 1 else "wrong")


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (" 7 \n", "7"),
        ("<think>8</think>7", "7"),
        ("8</think>7", "7"),
        ("<think>7", ""),
        ("<answer>8</answer> or <answer>7</answer>!", "7"),
        ("so <answer>7", "7"),
    ],
)
def test_what_of_a_reply_is_its_answer(reply, answer):
    assert answer_in(reply) == answer


def test_lessons_are_training_cases_with_right_answers_by_the_shares():
    config = world.config_type.model_validate(
        {"tasks": {"copy": {"share": 0.75}, "double": {"share": 0.25, "digits": 3}}}
    )
    held_out = world.draw(config, 30, seed=0, purpose="validation", exclude=())
    lessons = world.lessons(config, 400, seed=1, exclude=(held_out,))
    assert lessons == world.lessons(config, 400, seed=1, exclude=(held_out,))
    assert lessons != world.lessons(config, 400, seed=2, exclude=(held_out,))
    assert sum(one.question.startswith("copy") for one in lessons) == 300
    kept = {asked_of(case, config).question for case in held_out}
    assert not kept & {one.question for one in lessons}
    for question, answer, _ in lessons:
        said = question.split()
        assert answer == (said[1] if said[0] == "copy" else str(2 * int(said[1])))


def test_a_task_with_too_few_questions_is_refused_with_the_reason():
    small = one_task()
    with pytest.raises(TooFewCases):
        small.draw(small.config_type(), 3, seed=0, purpose="validation", exclude=())


def test_what_is_asked_in_one_task_is_held_out_of_the_other():
    twins = TextWorld("twins", {"one": Task(Once, number), "two": Task(Once, number)}, "Say the number.")
    config = twins.config_type.model_validate({"tasks": {"one": {"most": 60}, "two": {"most": 60}}})
    held_out = twins.draw(config, 10, seed=0, purpose="validation", exclude=())
    lessons = twins.lessons(config, 300, seed=0, exclude=(held_out,))
    assert len(held_out.fingerprints()) == 20
    assert len({one.question for one in lessons}) == 40


def test_a_task_that_cannot_be_drawn_is_an_infeasible_config():
    def never(rng, knobs):
        raise KeyError("no such number")

    broken = one_task(make=never)
    with pytest.raises(InfeasibleConfig, match=r"no question .*no such number' \(test_text_world\.py, line \d+\)"):
        broken.check(broken.config_type())


def test_a_scorer_that_fails_on_the_right_answer_is_told_and_not_taken_for_wrong_replies():
    def score(answer, asked):
        return float(answer == asked.data["answer"])

    broken = one_task(score=score)
    with pytest.raises(
        InfeasibleConfig, match=r"slice say: the right answer cannot be scored \(TypeError.*_world\.py, line"
    ):
        broken.check(broken.config_type())


def test_only_a_check_draws_a_question_that_nobody_asks_for():
    drawn: list[int] = []
    counted = one_task(make=lambda rng, knobs: drawn.append(1) or number(rng, knobs))
    config = counted.config_type()
    counted.make(config, "say")
    assert not drawn
    counted.check(config)
    assert len(drawn) == 1


def test_questions_and_answers_that_no_file_can_hold_are_mended():
    tasks = one_task(make=lambda rng, knobs: (f"\ud800{rng.integers(99)}", "\udfff"))
    cases = tasks.draw(tasks.config_type(), 3, seed=0, purpose="validation", exclude=())
    [first, *_] = tasks.play(lambda question: "?", cases, tasks.config_type(), seed=0)
    assert first.succeeded


@pytest.mark.parametrize(
    ("scorer", "right", "scores"),
    [
        (same, "ab", {"ab": 1, " ab\n": 1, "abc": 0, "": 0}),
        (signs_right, "abcd", {"abcd": 1, "abxx": 0.5, "ab": 0.5, "abcdabcd": 0.5, "xabc": 0, "": 0}),
        (words_right, "to be or not", {"to be or not": 1, "to  be": 0.5, "be to or not": 0.5, "tobeornot": 0}),
        (nearness, "10", {"10": 1, "10.0": 1, "20": 0.5, "0": 0.5, "-10": 1 / 3, "ten": 0, "inf": 0, "nan": 0}),
        (nearness, "0", {"0": 1, "1": 0.5, "-1": 0.5}),
        (nearness, "n/a", {"n/a": 1, "1": 0}),
        (nearness, "0.30000000000000004", {"0.3": 1}),
    ],
)
def test_a_ready_made_score_is_1_for_the_right_answer_and_a_part_for_a_part(scorer, right, scores):
    for answer, score in scores.items():
        assert scorer(answer, Asked("?", right)) == pytest.approx(score)


def test_a_world_says_what_its_scores_are():
    parts = TextWorld("a", {"x": Task(Once, number, signs_right), "y": Task(Once, number, signs_right)}, "Say it.")
    assert parts.about.score_in_words == "the part of the answer's signs that stand in their places"
    mixed = TextWorld("b", {"x": Task(Once, number), "y": Task(Once, number, lambda answer, asked: 0.5)}, "Say it.")
    assert mixed.about.score_in_words == "x: 1 for a right answer, else 0; y: the task's own score of the answer"
    assert one_task().about.score_in_words == ""
    own = TextWorld("c", {"x": Task(Once, number)}, "Say it.", score_in_words="luck")
    assert own.about.score_in_words == "luck"


def test_the_blind_score_is_that_of_the_best_constant_answer():
    def letters(rng, knobs):
        return str(rng.integers(10**9)), "".join(rng.choice(["a", "b"], size=5, p=[0.7, 0.3]))

    parts = TextWorld("p", {"letters": Task(Once, letters, signs_right), "say": Task(Once, number)}, "Say it.")
    blind = parts.blind_scores(parts.config_type())
    assert blind["letters"] == pytest.approx(0.7, abs=0.05)  # aaaaa
    assert blind["say"] == pytest.approx(1 / 3, abs=0.1)  # three numbers


def test_a_training_episode_has_its_score_its_failure_and_its_case():
    parts = TextWorld(
        "p", {"say": Task(Once, lambda rng, knobs: (str(rng.integers(10**6)), "abcd"), signs_right)}, "Say it."
    )
    with closing(parts.make_env(parts.config_type(), exclude=(), capacity={}, seed=0)) as env:
        cases = set()
        for answer, score, failure in (("abcd", 1.0, ""), ("abxx", 0.5, "wrong")):
            env.reset()
            *_, info = env.step(answer)
            assert parts.outcome(info, repeat=True) == Outcome("say", score == 1.0, score, failure, repeat=True)
            cases.add(info["case"])
        assert len(cases) == 2
