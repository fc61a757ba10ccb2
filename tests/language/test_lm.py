"""The trainee ``lm``: it keeps a trainee's promises on text tasks and on lakes, and what it learns it can decode."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from envtuning.errors import SpecError
from envtuning.outcomes import slice_results, total
from envtuning.runs.log import RunLog
from envtuning.runs.spec import SuiteSpec, load_spec
from envtuning.seeds import derive
from envtuning.studies.compare import compare
from envtuning.testing import check_trainee
from envtuning.trainees import TraineeKind, make_trainee
from envtuning.trainees.base import TrainingDiverged
from envtuning.trainees.language.supervised import IGNORED, tokens_of
from envtuning.worlds import make_world
from envtuning.worlds.episodes import rates
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld
from examples.five_tasks import world as five
from mapf_frozenlake import LakeConfig, LakeError
from tests.language.conftest import CONFIG
from tests.lazily import Lazy, needed

needed("torch", "transformers", extra="grpo")
torch = Lazy("torch")

ROOT = Path(__file__).parents[2]
SMALL = {"width": 16, "layers": 1, "heads": 2, "batch": 16}
PLANS = make_world("lakes", style="short")


def made(world=five, exclude=(), seed=0, **options):
    return make_trainee("lm", world=world, capacity={}, exclude=exclude, seed=seed, **(SMALL | options))


def ending(rng, knobs):
    number = str(rng.integers(2_000))
    return number, number[-1]


def easy_world() -> TextWorld:
    return TextWorld("endings", {"ending": Task(TaskKnobs, ending)}, "Say the last digit.")


def test_it_keeps_its_promises_on_text_tasks():
    check_trainee("lm", five, five.config_type(), budget=300, unit="samples", per_slice=2, **SMALL)


def test_it_keeps_its_promises_on_lakes():
    check_trainee("lm", PLANS, CONFIG, budget=300, unit="samples", tokens="words", **SMALL)


def test_what_it_is_taught_it_decodes_on_questions_that_it_never_saw():
    world = easy_world()
    config = world.config_type()
    held_out = world.draw(config, 60, seed=0, purpose="validation", exclude=())
    trainee = made(world, (held_out,), width=64, heads=4, batch=32, learning_rate=5e-3)
    before = rates(world.play(trainee.policy(), held_out, config, seed=0))["success_rate"]
    trainee.train(config, 2_000, seed=0)
    after = rates(world.play(trainee.policy(), held_out, config, seed=0))["success_rate"]
    assert before < 0.3 < 0.9 < after


def test_no_held_out_question_is_taught_or_guessed_at(monkeypatch):
    config = five.config_type()
    held_out = five.draw(config, 20, seed=0, purpose="validation", exclude=())
    trainee, seen = made(exclude=(held_out,)), []
    own = five.lessons
    monkeypatch.setattr(five, "lessons", lambda *given, **named: seen.append(named["exclude"]) or own(*given, **named))
    trainee.train(config, 100, seed=0)
    trainee.blind_scores(config)
    assert seen == [(held_out,)] * 3  # two iterations and the guesses


@pytest.mark.parametrize("budget", [0, 1, 40, 1_700])
def test_a_budget_is_kept(budget):
    told = []
    spent = made().train(five.config_type(), budget, seed=0, on_iteration=told.append)
    assert budget == spent.get("samples", 0) == sum(one["samples"] for one in told)


@pytest.mark.parametrize("budget", [17, 40, 600, 1_700, 4_000])
def test_the_halves_of_a_stage_are_halves_of_its_questions(budget):
    """A stage of 1,700 questions used to have 1,600 of them in its first half, and one of 600 no halves at all."""
    told = []
    made().train(five.config_type(), budget, seed=0, on_iteration=told.append)
    assert all(row.halves for row in slice_results([one["outcomes"] for one in told], "success_rate"))
    sizes, middle = [one["samples"] for one in told], len(told) // 2
    assert abs(sum(sizes[:middle]) - sum(sizes[middle:])) <= SMALL["batch"]


def test_an_outcome_is_what_the_model_answers_before_the_update_on_the_question():
    """The oracle asks the untrained model: its own greedy replies, and its likeliest token after each right beginning."""
    trainee, config, told = made(batch=64), five.config_type(), []
    taught = trainee.world.lessons(config, 64, seed=derive(derive(5, "iteration", 0), "lessons"), exclude=())
    replies = trainee.policy().reply([[{"role": "user", "content": one.question}] for one in taught])
    won, parts = Counter(), Counter()
    for lesson, reply in zip(taught, replies, strict=True):
        won[lesson.slice] += reply.text == lesson.answer and not reply.truncated
        [(ids, labels)] = tokens_of(trainee.tokenizer, [lesson])
        with torch.no_grad():
            likeliest = trainee.model(input_ids=torch.tensor([ids])).logits[0].argmax(-1).tolist()
        places = [at for at, label in enumerate(labels) if label != IGNORED][:-1]  # the last token ends the answer
        parts[lesson.slice] += sum(likeliest[at - 1] == ids[at] for at in places) / len(places)
    trainee.train(config, 64, seed=5, on_iteration=told.append)
    counts = told[0]["outcomes"].first
    assert not told[0]["outcomes"].repeats
    assert {name: one.episodes for name, one in counts.items()} == Counter(one.slice for one in taught)
    assert {name: one.successes for name, one in counts.items()} == won
    assert {name: one.score_sum for name, one in counts.items()} == pytest.approx(dict(parts))


def test_a_model_that_has_learnt_has_outcomes_that_say_so():
    world, told = easy_world(), []
    trainee = made(world, width=64, heads=4, batch=32, learning_rate=5e-3)
    trainee.train(world.config_type(), 6_000, seed=0, on_iteration=told.append)
    first, last = (one["outcomes"].first["ending"] for one in (told[0], told[-1]))
    assert last.successes / last.episodes > 0.9 > first.successes / first.episodes
    again = total(one["outcomes"] for one in told).repeats["ending"]
    assert again.episodes == asked_again(world, (1_504, 1_504, 1_504, 1_488), 32)


def asked_again(world, sizes, batch):
    """The number of these lessons whose question an earlier update was about."""
    met, again = set(), 0
    for number, size in enumerate(sizes):
        seed = derive(derive(0, "iteration", number), "lessons")
        questions = [one.question for one in world.lessons(world.config_type(), size, seed=seed, exclude=())]
        for at in range(0, size, batch):
            again += sum(question in met for question in questions[at : at + batch])
            met.update(questions[at : at + batch])
    return again


def test_questions_that_a_loaded_model_was_trained_on_are_repeats(tmp_path):
    world, told = easy_world(), []
    trainee = made(world)
    trainee.train(world.config_type(), 48, seed=0)
    trainee.save(tmp_path)
    again = made(world)
    again.load(tmp_path)
    again.train(world.config_type(), 48, seed=0, on_iteration=told.append)
    seen = total(one["outcomes"] for one in told)
    assert (seen.first, seen.repeats["ending"].episodes) == ({}, 48)
    trainee.slim(tmp_path)
    assert not (tmp_path / "visited.npy").exists()


def test_a_blind_guess_has_the_score_of_the_best_constant_answer():
    def mostly_seven(rng, knobs):
        return str(rng.integers(10**9)), "".join(rng.choice(["7", "3"], size=4, p=[0.8, 0.2]))

    world = TextWorld("two", {"seven": Task(TaskKnobs, mostly_seven), "ending": Task(TaskKnobs, ending)}, "Guess.")
    config = world.config_type.model_validate({"tasks": {"seven": {"share": 0.01}, "ending": {"share": 0.99}}})
    blind = made(world).blind_scores(config)
    assert blind["seven"] == pytest.approx(0.8, abs=0.06)
    assert blind["ending"] == pytest.approx(0.1, abs=0.06)


def test_its_learning_rate_rises_once_in_a_run(tmp_path):
    rates_of = []
    trainee = made(warmup=8, learning_rate=0.008)

    def train(samples):
        trainee.train(five.config_type(), samples, seed=0)
        rates_of.append(trainee.optimiser.param_groups[0]["lr"])

    train(16 * 2)
    trainee.save(tmp_path)
    train(16 * 20)
    train(16)
    trainee.load(tmp_path)
    train(16)
    assert rates_of == pytest.approx([0.002, 0.008, 0.008, 0.003])


def test_its_first_model_is_of_the_seed():
    one, same, other = made(seed=3), made(seed=3), made(seed=4)
    weights = [torch.cat([each.flatten() for each in trainee.model.parameters()]) for trainee in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_it_goes_on_from_a_folder_and_grpo_from_its_checkpoint(tmp_path):
    from transformers import AutoModelForCausalLM

    trainee = made(width=32, heads=4)
    trainee.train(five.config_type(), 100, seed=0)
    trainee.save(tmp_path)
    further = made(model=str(tmp_path))
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(value, further.model.state_dict()[name]) for name, value in loaded.items())
    assert further.updates == 0
    TraineeKind.named("grpo").check({"model": str(tmp_path)}, five, five.config_type(), "samples")


def test_a_model_that_was_taught_the_held_out_boards_is_refused(tiny):
    boards = PLANS.draw(CONFIG, 20, seed=0, purpose="validation", exclude=())
    with pytest.raises((LakeError, SpecError)):
        made(PLANS, (boards,), model=str(tiny))


def test_its_checkpoints_on_lakes_say_which_boards_it_has_not_seen(tmp_path):
    boards = PLANS.draw(CONFIG, 20, seed=0, purpose="validation", exclude=())
    trainee = made(PLANS, (boards,), tokens="words")
    trainee.save(tmp_path)
    assert len(np.load(tmp_path / "held_out.npy")) == len(boards)
    again = made(PLANS, (boards,), model=str(tmp_path))
    assert again.boards == [boards]


def test_lakes_in_turns_have_no_answers_to_learn_from():
    turns = make_world("lakes", mode="turns", style="short")
    with pytest.raises(SpecError, match="certified answers"):
        made(turns).train(CONFIG, 100, seed=0)


def test_it_stops_when_the_numbers_are_no_longer_finite():
    trainee = made()
    with torch.no_grad():
        next(iter(trainee.model.parameters())).fill_(float("nan"))
    with pytest.raises(TrainingDiverged):
        trainee.train(five.config_type(), 100, seed=0)


@pytest.mark.parametrize(
    "options", [{"width": 10, "heads": 4}, {"model": "nowhere"}, {"batch": 0}, {"depth": 2}, {"tokens": "bytes"}]
)
def test_wrong_options_are_refused_before_a_run(options):
    with pytest.raises(SpecError):
        TraineeKind.named("lm").check(options, five, five.config_type(), "samples")


def test_it_counts_in_samples():
    with pytest.raises(SpecError):
        TraineeKind.named("lm").check({}, five, five.config_type(), "env_steps")


@pytest.mark.parametrize("updates", ["-1", "true", "1.5", '"7"', "null"])
def test_a_checkpoint_with_no_number_of_updates_is_refused(updates, tmp_path):
    trainee = made()
    trainee.save(tmp_path)
    assert json.loads((tmp_path / "updates.json").read_text()) == 0
    (tmp_path / "updates.json").write_text(updates)
    with pytest.raises(ValueError, match="updates"):
        trainee.load(tmp_path)


def test_the_last_checkpoint_alone_keeps_the_optimiser(tmp_path):
    trainee = made()
    trainee.train(five.config_type(), 100, seed=0)
    trainee.save(tmp_path)
    trainee.slim(tmp_path)
    assert not (tmp_path / "optimizer.pt").exists()
    trainee.load(tmp_path)
    assert not trainee.optimiser.state


def test_lake_lessons_are_boards_with_a_plan_that_is_optimal():
    config = LakeConfig.single(3, 2, hole_ratio=0.2)
    held_out = PLANS.draw(config, 10, seed=0, purpose="validation", exclude=())
    lessons = PLANS.lessons(config, 12, seed=3, exclude=(held_out,))
    assert lessons == PLANS.lessons(config, 12, seed=3, exclude=(held_out,))
    boards = PLANS.draw(config, 12, seed=3, purpose="probe", exclude=(held_out,))
    answers = {one.question: one.answer for one in lessons}

    def reply(question: str) -> str:
        return answers[question]

    episodes = PLANS.play(reply, boards, config, seed=0)
    assert all(episode.metrics["optimal_rate"] == 1 for episode in episodes)


@pytest.mark.slow
def test_a_comparison_by_two_processes_has_the_figures_of_one(tmp_path):
    spec = load_spec(ROOT / "examples" / "five_tasks.yaml").with_rounds(2)
    changes = {
        "stages": tuple(stage.model_copy(update={"budget": 150}) for stage in spec.stages),
        "suites": SuiteSpec(validation_per_slice=2, test_per_slice=2, probe_per_slice=1, failure_cases=1),
        "trainee": spec.trainee.model_copy(update={"options": SMALL | {"max_tokens": 8}}),
    }
    arms = ["uniform", "target-only"]
    one, two = (compare(spec.model_copy(update=changes), arms, [0], tmp_path / str(n), jobs=n) for n in (1, 2))
    assert two == one
    losses = [[run.state.stages[1].metrics() for run in map(RunLog.open, runs_of(tmp_path / n, arms))] for n in "12"]
    assert losses[0] == losses[1]
    assert losses[0][0] != losses[0][1]


def runs_of(out: Path, arms: list[str]) -> list[Path]:
    return [out / arm / "seed0" for arm in arms]
