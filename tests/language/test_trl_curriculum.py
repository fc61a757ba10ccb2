"""A user's own ``GRPOTrainer`` under an engineer: exact counts, swaps, checkpoints, evaluations, several processes."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import Field

from engineers import Engineer, Proposal
from envtuning import EngineerCurriculum
from envtuning.curriculum.dataset_prompts import Part, Parts
from envtuning.errors import RunError, SpecError
from envtuning.worlds.text_prompts import TextPrompts
from envtuning.worlds.text_world import Task, TaskKnobs, TextWorld
from tests.lazily import Lazy, needed

needed("torch", "trl", extra="grpo")
trl, transformers, callbacks = (Lazy(name) for name in ("trl", "transformers", "envtuning.curriculum.trl_callback"))


def short(answer, asked):
    """Pays by the reply's length, so that a model of random weights is paid differently."""
    return 1.0 if len(answer) % 2 == int(asked.answer) else 0.5


WORLD = TextWorld(
    "two",
    {
        name: Task(TaskKnobs, lambda rng, _, name=name, right=right: (f"{name} {rng.integers(100)}", right), short)
        for name, right in (("odd", "1"), ("even", "0"))
    },
    "Two tasks.",
)
CONFIG = WORLD.config_type.model_validate({"tasks": {"odd": {}, "even": {}}})
SETTINGS: dict[str, Any] = {
    "per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 4, "logging_steps": 1, "max_steps": 6,
    "save_steps": 3, "use_cpu": True, "bf16": False, "report_to": "none", "disable_tqdm": True, "seed": 1,
}  # fmt: skip


class Shifts(Engineer):
    """Another share in every stage; keeps the reports."""

    name = "shifts"

    def __init__(self) -> None:
        self.read: list[Any] = []

    def propose(self, report, current, editable=None):
        self.read.append(report)
        config = type(current).model_validate({"tasks": {"odd": {"share": 1 / (2 + report.stage)}, "even": {}}})
        return Proposal(config=config, engineer=self.name)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import sign_tokenizer

    folder, tokenizer = tmp_path_factory.mktemp("model"), sign_tokenizer()
    small_model(tokenizer, width=16, layers=1, heads=2).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


class Trained:
    """A trainer that was made with a curriculum, and every reply that its reward function paid: (version, slice, reward)."""

    def __init__(self, model: str, out: Any, engineer: Any = None, every: int = 16, **settings: Any) -> None:
        self.engineer = Shifts() if engineer is None else engineer
        self.prompts = TextPrompts(WORLD, CONFIG)
        self.curriculum = EngineerCurriculum(
            self.engineer, CONFIG, target=CONFIG, every=every, editable=["tasks.*.share"]
        )
        self.callback = callbacks.TRLCurriculumCallback(self.prompts, self.curriculum)
        self.paid: list[tuple[int, str, float]] = []

        def rewards(completions, metadata, **columns):
            paid = self.prompts.rewards(completions, metadata)
            for reward, row in zip(paid, metadata, strict=True):
                late = row["version"] < self.prompts.version
                self.paid.append((0 if late else row["version"], row["slice"], reward))
            return paid

        self.trainer = trl.GRPOTrainer(
            model,
            reward_funcs=self.callback.rewards(rewards),
            args=trl.GRPOConfig(output_dir=str(out), **SETTINGS | settings),
            train_dataset=self.prompts.dataset,
            eval_dataset=self.prompts.dataset if "eval_steps" in settings else None,
            callbacks=[self.callback],
        )


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory):
    """Six steps, with checkpoints after the third and the sixth."""
    one = Trained(model, tmp_path_factory.mktemp("out"))
    one.trainer.train()
    return one


def test_the_engineer_reads_exactly_what_was_paid_for_prompts_of_the_config_in_force(whole):
    assert len(whole.paid) == 48
    assert any(version == 0 for version, *_ in whole.paid)  # fetched before a swap
    first = whole.engineer.read[0]
    counted: Counter[str] = Counter(name for version, name, _ in whole.paid if version == 1)
    assert {row.name: row.episodes for row in first.training_results} == counted
    for row in first.training_results:
        assert row.questions == row.episodes / SETTINGS["num_generations"]
        paid = [reward for version, name, reward in whole.paid if version == 1 and name == row.name]
        assert row.metrics["success_rate"] == pytest.approx(sum(reward == 1 for reward in paid) / len(paid))
        assert row.metrics["score"] == pytest.approx(sum(paid) / len(paid))
    for stage, report in enumerate(whole.engineer.read):
        told = sum(row.episodes for row in report.training_results)
        assert told == sum(version == stage + 1 for version, *_ in whole.paid)
    assert whole.prompts.get_config() == whole.curriculum.config != CONFIG
    logged = [entry for entry in whole.trainer.state.log_history if "success/odd" in entry or "success/even" in entry]
    assert len(logged) == 6
    stages = [entry["stage"] for entry in logged]
    assert stages == sorted(stages)
    assert stages[-1] > 0
    assert all(entry["share/odd"] + entry["share/even"] == pytest.approx(1) for entry in logged)


def test_each_log_has_the_scores_and_the_shares_that_its_replies_were_drawn_by(whole):
    size = SETTINGS["per_device_train_batch_size"]
    logged = [entry for entry in whole.trainer.state.log_history if "stage" in entry]
    assert len({entry["stage"] for entry in logged}) > 1
    for step, entry in enumerate(logged):
        replies = whole.paid[size * step : size * (step + 1)]
        for name in ("odd", "even"):
            paid = [reward for _, slice_, reward in replies if slice_ == name]
            assert not paid or entry[f"score/{name}"] == pytest.approx(sum(paid) / len(paid))
        on_time = {version for version, *_ in replies} - {0}
        assert on_time <= {entry["stage"] + 1}
        if entry["stage"] == 0:
            assert entry["share/odd"] == 0.5
        else:
            share = 1 / (1 + entry["stage"])
            assert entry["share/odd"] == pytest.approx(share / (1 + share), abs=1e-3)
    late = [
        step
        for step in range(1, len(logged))
        if {version for version, *_ in whole.paid[size * step : size * (step + 1)]} == {0}
    ]
    assert late
    assert all(logged[step]["stage"] == logged[step - 1]["stage"] for step in late)


def test_a_log_has_the_numbers_that_may_be_turned():
    class Longer(TaskKnobs):
        length: int = Field(3, ge=1, le=9, description="Signs.")

    task = Task(Longer, lambda rng, knobs: ("which", "1"), short)
    world, logged = TextWorld("one", {"odd": task}, "One task."), {}
    config = world.config_type.model_validate({"tasks": {"odd": {}}})
    curriculum = EngineerCurriculum("fixed", config)
    prompts = TextPrompts(world, config)
    counted = callbacks.TRLCurriculumCallback(prompts, curriculum).rewards(lambda replies, **_: [1.0] * len(replies))
    counted(["1"], metadata=[{"slice": "odd", "version": prompts.version}], log_metric=logged.__setitem__)
    assert logged == {
        "success/odd": 1.0,
        "score/odd": 1.0,
        "stage": 0.0,
        "share/odd": 1.0,
        "knob/tasks.odd.length": 3.0,
    }


def test_an_engineer_of_the_package_makes_three_configs(model, tmp_path):
    one = Trained(model, tmp_path, engineer="learnability", every=24, max_steps=40, save_strategy="no")
    one.trainer.train()
    assert len({proposal.config.model_dump_json() for proposal in one.curriculum.proposals}) >= 3
    assert one.curriculum.incidents == []


def test_training_from_a_checkpoint_goes_on_with_the_curriculum(whole, model, tmp_path):
    checkpoint = f"{whole.trainer.args.output_dir}/checkpoint-3"
    saved = json.loads(Path(checkpoint, "trainer_state.json").read_text())
    state = saved["stateful_callbacks"]["TRLCurriculumCallback"]["attributes"]["curriculum"]
    one, begun = Trained(model, tmp_path), []
    took = one.callback.on_step_end
    one.callback.on_step_end = lambda *given, **more: begun.append(one.curriculum.state_dict()) or took(*given, **more)
    one.trainer.train(resume_from_checkpoint=checkpoint)
    assert begun[0] == state
    assert one.curriculum.stage > state["stage"]
    seen = sum(row.episodes for record in one.curriculum.history for row in record.training_results)
    seen += sum(row.episodes for row in one.curriculum.report.training_results)
    before = sum(counts["episodes"] for half in state["halves"] for counts in half.get("first", {}).values())
    before += sum(row["episodes"] for record in state["history"] for row in record["training_results"])
    assert seen - before == sum(version > 0 for version, *_ in one.paid)  # no outcome counts twice


def test_a_checkpoint_without_a_state_is_refused(model, tmp_path):
    one = Trained(model, tmp_path)
    one.trainer.remove_callback(one.callback)
    one.trainer.train()
    other = Trained(model, tmp_path / "other")
    with pytest.raises(RunError, match="the checkpoint of step 3 has no state of a curriculum"):
        other.trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))


def test_a_trainer_that_would_make_the_callback_anew_is_refused(model, tmp_path):
    with pytest.raises(SpecError, match=r"restore_callback_states_from_checkpoint=True .*: leave it out"):
        Trained(model, tmp_path, restore_callback_states_from_checkpoint=True)


def test_replies_of_an_evaluation_do_not_count(model, tmp_path):
    one = Trained(
        model, tmp_path, every=10_000, max_steps=2, eval_strategy="steps", eval_steps=1, save_strategy="no",
        per_device_eval_batch_size=8,
    )  # fmt: skip
    one.trainer.eval_dataset = one.trainer.eval_dataset.select(range(8))
    one.trainer.train()
    assert len(one.paid) > 16
    assert sum(row.episodes for row in one.curriculum.report.training_results) == 16


def test_a_trainer_without_the_wrapped_rewards_is_refused(model, tmp_path):
    prompts = TextPrompts(WORLD, CONFIG)
    callback = callbacks.TRLCurriculumCallback(prompts, EngineerCurriculum("rules", CONFIG, target=CONFIG))
    trainer = trl.GRPOTrainer(
        model, reward_funcs=prompts.rewards, args=trl.GRPOConfig(output_dir=str(tmp_path), **SETTINGS),
        train_dataset=prompts.dataset, callbacks=[callback],
    )  # fmt: skip
    with pytest.raises(SpecError, match=r"give the trainer reward_funcs=callback.rewards\(function\)"):
        trainer.train()

    async def slow(completions, **columns):
        return [0.0]

    with pytest.raises(SpecError, match="an asynchronous reward function"):
        callback.rewards(slow)


def test_a_trainer_that_pays_without_the_callback_is_refused_at_its_second_step(model, tmp_path):
    prompts = TextPrompts(WORLD, CONFIG)
    callback = callbacks.TRLCurriculumCallback(prompts, EngineerCurriculum("rules", CONFIG, target=CONFIG))
    trainer = trl.GRPOTrainer(
        model, reward_funcs=callback.rewards(prompts.rewards), args=trl.GRPOConfig(output_dir=str(tmp_path), **SETTINGS),
        train_dataset=prompts.dataset,
    )  # fmt: skip
    with pytest.raises(
        SpecError, match=r"^the curriculum is never asked: give the trainer callbacks=\[callback\], too$"
    ):
        trainer.train()
    assert trainer.state.global_step == 1


def test_a_callback_may_be_added_after_an_evaluation():
    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
    counted = callback.rewards(lambda **columns: [1.0])
    state = SimpleNamespace(global_step=0, is_world_process_zero=True)
    counted(completions=[""], slice=["odd"], trainer_state=state)
    callback.on_prediction_step(None, None, None)
    callback.on_train_begin(SimpleNamespace(), state, None)
    state.global_step = 1
    assert counted(completions=[""], slice=["odd"], trainer_state=state) == [1.0]


def test_rows_that_are_not_those_of_the_prompts_are_doubted_once():
    def training(prompts, **columns):
        callback = callbacks.TRLCurriculumCallback(prompts, EngineerCurriculum(Shifts(), CONFIG, every=100))
        callback.rewards(lambda **columns: [1.0])(completions=[""])  # of an evaluation, whose rows may be fixed
        callback.on_prediction_step(None, None, None)
        for _ in range(3):
            stepped(callback, [1.0, 0.5], ["odd", "even"], **columns)

    with pytest.warns(UserWarning, match="no row") as told:
        training(TextPrompts(WORLD, CONFIG))
    [one] = told
    assert str(one.message) == (
        "no row of the trainer's says a version, as those of the prompts do, so no change of the config reaches it: give the trainer "
        "train_dataset=prompts.dataset"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training(TextPrompts(WORLD, CONFIG), config_version=[1, 1])
        training(Config())


def test_rows_that_stay_those_of_the_first_config_are_doubted_once():
    def training(steps, follows):
        prompts = TextPrompts(WORLD, CONFIG)
        callback = callbacks.TRLCurriculumCallback(prompts, EngineerCurriculum(Shifts(), CONFIG, every=4))
        for _ in range(steps):
            version = prompts.version if follows else 1
            stepped(callback, [1.0, 0.5], ["odd", "even"], config_version=[version, version])

    with pytest.warns(UserWarning, match="no reply of the last 20 steps counts, as all rows are of an earlier") as told:
        training(60, follows=False)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training(20, follows=False)
        training(60, follows=True)


class Config:
    """Prompts of a user's own, which say no version."""

    def __init__(self):
        self.configs = []

    def set_config(self, config):
        self.configs.append(config)


def stepped(callback, paid, slices, main=True, **columns):
    callback.rewards(lambda **columns: paid)(completions=[""] * len(paid), slice=slices, **columns)
    callback.on_step_end(None, SimpleNamespace(is_world_process_zero=main), None)


def test_rows_of_a_users_own_have_a_column_slice_and_the_batch_after_a_swap_is_left_out():
    prompts, engineer = Config(), Shifts()
    curriculum = EngineerCurriculum(engineer, CONFIG, every=4)
    callback = callbacks.TRLCurriculumCallback(prompts, curriculum, success=lambda reward: reward > 0)
    stepped(callback, [0.5, 0.0, None, 7.0, -1.0], ["odd", "odd", "odd", "even", "even"])
    assert len(prompts.configs) == 1
    first = {row.name: row for row in engineer.read[0].training_results}
    assert (first["odd"].episodes, first["odd"].metrics) == (2, {"success_rate": 0.5, "score": 0.25})
    assert (first["even"].episodes, first["even"].metrics) == (2, {"success_rate": 0.5, "score": 0.5})
    stepped(callback, [1.0] * 4, ["odd"] * 4)  # fetched before the swap
    assert curriculum.report.training_results == []
    stepped(callback, [1.0] * 4, ["odd"] * 4)
    assert len(prompts.configs) == 2


def test_a_missing_column_slice_is_told_in_the_words_of_this_door():
    for slices, found in ((None, "without a slice"), ([0, 1], "of the slice '0'")):
        callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
        with pytest.raises(SpecError, match=f"{found}, .* even, odd: give the dataset a column `slice`"):
            stepped(callback, [1.0, 0.0], slices)


def test_the_rows_of_an_evaluation_need_no_slice_of_the_config():
    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
    callback.rewards(lambda **columns: [1.0, 0.0])(completions=["", ""], slice=["held out"] * 2)
    callback.on_prediction_step(None, None, None)
    stepped(callback, [1.0], ["odd"])
    assert [row.name for row in callback.curriculum.report.training_results] == ["odd"]


def test_a_dataset_in_place_of_the_prompts_is_refused_at_once():
    import datasets

    rows = datasets.Dataset.from_dict({"prompt": ["a"], "slice": ["odd"]})
    with pytest.raises(SpecError, match=r"prompts is a Dataset: give DatasetPrompts\(dataset\)"):
        callbacks.TRLCurriculumCallback(rows, EngineerCurriculum(Shifts(), CONFIG))


def test_steps_are_not_counted_here():
    curriculum = EngineerCurriculum(Shifts(), CONFIG, unit="steps")
    with pytest.raises(SpecError, match="give unit='episodes' or 'iterations'"):
        callbacks.TRLCurriculumCallback(Config(), curriculum)


def test_an_object_that_pays_later_is_refused():
    class Slow:
        async def __call__(self, completions, **columns):
            return [0.0]

    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
    with pytest.raises(SpecError, match="an asynchronous reward function"):
        callback.rewards(Slow())


def test_a_reply_that_two_wrapped_functions_judge_is_warned_of_once():
    def training(*paid):
        callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG, every=100))
        wrapped = [callback.rewards(lambda one=one, **columns: one) for one in paid]
        for _ in range(2):
            for counted in wrapped:
                counted(completions=["", ""], slice=["odd", "even"])
            callback.on_step_end(None, SimpleNamespace(is_world_process_zero=True), None)

    with pytest.warns(UserWarning, match="two reward functions are wrapped, so each reply counts twice: give") as told:
        training([1.0, 0.0], [None, 1.0])
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training([1.0, None], [None, 1.0])  # each judges its own slice


def test_a_function_that_is_wrapped_again_for_a_new_trainer_counts_each_reply_once(recwarn):
    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG, every=100))
    for _ in range(2):
        stepped(callback, [1.0], ["odd"])
    assert not recwarn.list


@pytest.mark.parametrize("given", [[len], "len", None])
def test_what_is_no_function_is_refused_at_once(given):
    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
    with pytest.raises(SpecError, match=f"rewards has a {type(given).__name__}: give one function"):
        callback.rewards(given)


@pytest.mark.parametrize(
    ("paid", "found"), [(None, "None"), ([1.0], "1 value"), ([0.0] * 4, "4 values"), (1.0, "a float")]
)
def test_a_reward_function_that_does_not_pay_each_reply_is_told_by_its_name(paid, found):
    def right(completions, **columns):
        return paid

    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
    with pytest.raises(SpecError, match=f"your reward function right returned {found} for 3 replies: let it"):
        callback.rewards(right)(completions=[""] * 3, slice=["odd"] * 3)


@pytest.mark.parametrize("unjudged", [None, math.nan])
def test_the_end_of_training_says_that_no_reply_was_judged(unjudged):
    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG))
    stepped(callback, [unjudged, unjudged], ["odd", "even"])
    assert callback.curriculum.report.training_results == []
    with pytest.warns(UserWarning, match="your reward function judged no reply") as told:
        callback.on_train_end(None, SimpleNamespace(is_world_process_zero=True), None)
    assert len(told) == 1


def test_rewards_that_never_reach_1_are_doubted_once():
    def training(paid, **options):
        callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG, every=4), **options)
        for _ in range(6):
            stepped(callback, paid, ["odd", "even"])
        callback.on_train_end(None, SimpleNamespace(is_world_process_zero=True), None)

    with pytest.warns(UserWarning, match="no reward has reached 1") as told:
        training([0.9, 0.5])
    [one] = told
    assert str(one.message) == (
        "no reward has reached 1 so far (the best is 0.9), so no reply was a success: give TRLCurriculumCallback(…, success=lambda "
        "reward: …)"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        training([1.0, 0.5])
        training([0.0, 0.0])
        training([0.9, 0.5], success=lambda reward: reward > 0.8)


def test_a_success_before_a_checkpoint_is_remembered_after_it():
    def callback():
        return callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG, every=4))

    first, again, main = callback(), callback(), SimpleNamespace(is_world_process_zero=True)
    for _ in range(4):
        stepped(first, [1.0, 0.5], ["odd", "even"])
    saved = json.loads(json.dumps({"TRLCurriculumCallback": first.state()}))
    again.rewards(lambda **columns: [])
    again.on_train_begin(SimpleNamespace(), SimpleNamespace(global_step=4, stateful_callbacks=saved), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            stepped(again, [0.9, 0.5], ["odd", "even"])
        again.on_train_end(None, main, None)


def test_slices_that_have_other_names_now_are_mapped_when_training_continues():
    def curriculum(*names):
        return EngineerCurriculum("uniform", Parts(slices={name: Part() for name in names}), every=100)

    before = curriculum("odd", "equal")
    before.observe_many(["odd", "equal", "equal"], [True, True, False])
    callback = callbacks.TRLCurriculumCallback(Config(), curriculum("odd", "even"), renamed={"equal": "even"})
    callback.rewards(lambda **columns: [])
    saved = {"TRLCurriculumCallback": {"attributes": {"curriculum": before.state_dict()}}}
    callback.on_train_begin(SimpleNamespace(), SimpleNamespace(global_step=3, stateful_callbacks=saved), None)
    found = callback.curriculum.report.training_results
    assert {row.name: row.episodes for row in found} == {"odd": 1, "even": 2}


def test_the_end_of_training_says_that_the_engineer_was_never_asked():
    callback = callbacks.TRLCurriculumCallback(Config(), EngineerCurriculum(Shifts(), CONFIG, every=100))
    stepped(callback, [1.0] * 6, ["odd"] * 6)
    callback.on_train_end(None, SimpleNamespace(is_world_process_zero=False), None)
    with pytest.warns(UserWarning, match="training ended after 6 of 100 episodes"):
        callback.on_train_end(None, SimpleNamespace(is_world_process_zero=True), None)


def test_replies_of_a_step_to_one_prompt_are_answers_to_one_question():
    curriculum = EngineerCurriculum(Shifts(), CONFIG, every=100)
    callback = callbacks.TRLCurriculumCallback(Config(), curriculum)
    asked = [[{"role": "user", "content": name}] for name in "aaabbc"]
    stepped(callback, [1.0] * 6, ["odd"] * 6, prompts=asked)
    stepped(callback, [1.0] * 2, ["odd", "even"], prompts=["a", "c"])
    odd, even = sorted(curriculum.report.training_results, key=lambda row: -row.episodes)
    assert (odd.episodes, odd.questions) == (7, 4)  # "a" was asked twice, and each time counts
    assert (even.episodes, even.questions) == (1, None)


def test_of_several_processes_the_main_one_decides_on_the_replies_of_all(monkeypatch):
    import accelerate
    import accelerate.utils

    prompts, engineer = [Config(), Config()], Shifts()
    both = [callbacks.TRLCurriculumCallback(one, EngineerCurriculum(engineer, CONFIG, every=4)) for one in prompts]
    monkeypatch.setattr(accelerate, "PartialState", lambda: SimpleNamespace(num_processes=2))
    theirs, told = [], []
    monkeypatch.setattr(accelerate.utils, "gather_object", lambda mine: [*mine, *theirs])
    monkeypatch.setattr(accelerate.utils, "broadcast_object_list", lambda found: told.append(list(found)))
    both[1].rewards(lambda **columns: [1.0, 0.0])(completions=["", ""], slice=["odd", "even"])
    theirs += both[1]._paid  # without prompts, whose replies count alone
    stepped(both[0], [1.0, 0.0], ["odd", "odd"])
    assert {row.name: row.episodes for row in engineer.read[0].training_results} == {"odd": 3, "even": 1}
    [[config]] = told
    monkeypatch.setattr(accelerate.utils, "broadcast_object_list", lambda found: found.__setitem__(0, config))
    both[1].on_step_end(None, SimpleNamespace(is_world_process_zero=False), None)
    assert prompts[0].configs == prompts[1].configs == [config]
    assert len(engineer.read) == 1
