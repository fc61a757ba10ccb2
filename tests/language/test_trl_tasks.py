"""A user's own GRPOTrainer on the questions of a ``TextWorld``: what its rows are, what is paid, and five tasks of reasoning-gym."""

from __future__ import annotations

import json

import pytest

from envtuning.worlds.text_prompts import TextPrompts
from envtuning.worlds.text_world import ask
from envtuning.worlds.world import InfeasibleConfig
from examples.five_tasks import world
from tests.lazily import needed

needed("torch", "trl", extra="grpo")

CONFIG = world.config_type.model_validate({"tasks": {"copy": {"share": 0.75}, "double": {"share": 0.25}}})


def test_a_row_is_a_function_of_config_seed_and_number():
    prompts, same, other = TextPrompts(world, CONFIG), TextPrompts(world, CONFIG), TextPrompts(world, CONFIG, seed=1)
    assert prompts.dataset[70] == same.dataset[70] != other.dataset[70]
    rows = [prompts.dataset[number] for number in range(64)]
    assert sum(row["metadata"]["slice"] == "copy" for row in rows) == 48
    for row in rows:
        case = row["metadata"]
        asked = ask(world.tasks[case["slice"]], CONFIG.tasks[case["slice"]], case["number"])
        assert row["prompt"] == [{"role": "user", "content": asked.question}]
        assert json.loads(case["knobs"])["share"] in (0.75, 0.25)


def test_a_right_answer_is_paid_in_either_of_the_trainer_s_forms_even_after_a_swap():
    prompts, logged = TextPrompts(world, CONFIG), {}
    rows = [prompts.dataset[number] for number in range(3)]
    answers = [row["prompt"][0]["content"].split() for row in rows]
    answers = [word if kind == "copy" else None for kind, word, *_ in answers]
    assert "copy" in {row["metadata"]["slice"] for row in rows}
    prompts.set_config(world.config_type.model_validate({"tasks": {"copy": {"length": 8}}}))
    spoken = [[{"role": "assistant", "content": f"<answer>{answer}</answer>"}] for answer in answers]
    metadata = [row["metadata"] for row in rows]
    paid = prompts.rewards(spoken, metadata, log_metric=logged.__setitem__, completion_ids=[])
    assert paid == [float(answer is not None) for answer in answers]
    assert logged == {"success_rate": pytest.approx(sum(paid) / 3)}
    assert prompts.rewards([str(answer) for answer in answers], metadata) == paid
    assert prompts.rewards(["\x00" * 10, [], ""], metadata) == [0.0] * 3


def test_a_swap_changes_the_rows_that_come_and_is_refused_where_nothing_can_be_drawn():
    prompts = TextPrompts(world, CONFIG)
    assert len(prompts.dataset[0]["prompt"][0]["content"]) < 20
    longer = world.config_type.model_validate({"tasks": {"copy": {"length": 8}}})
    prompts.set_config(longer)
    assert prompts.get_config() == longer
    assert len(prompts.dataset[0]["prompt"][0]["content"]) == len("copy ") + 8
    with pytest.raises(InfeasibleConfig):
        prompts.set_config(world.config_type.model_validate({"tasks": {"copy": {"share": 0}}}))


def test_no_row_is_a_held_out_case():
    held_out = world.draw(CONFIG, 40, seed=0, purpose="validation", exclude=())
    kept = {ask(world.tasks[case.slice], CONFIG.tasks[case.slice], case.seed).question for case in held_out}
    prompts = TextPrompts(world, CONFIG, n=2_000, exclude=(held_out,))
    assert not kept & {row["prompt"][0]["content"] for row in prompts.dataset}


@pytest.mark.slow
def test_five_reasoning_gym_tasks_under_a_user_s_own_trainer(tmp_path):
    pytest.importorskip("reasoning_gym", reason="needs reasoning-gym: pip install 'mapf-frozenlake[reasoning-gym]'")
    from envtuning.trainees.language.small import small_model
    from envtuning.trainees.language.tokenizer import sign_tokenizer
    from examples.own_trl_tasks import TASKS, train

    tokenizer = sign_tokenizer()
    small_model(tokenizer, width=16, layers=1, heads=2).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    settings = {"per_device_train_batch_size": 10, "num_generations": 2, "max_completion_length": 4}
    machine = {"use_cpu": True, "bf16": False, "report_to": "none", "output_dir": str(tmp_path / "out")}
    trainer, curriculum = train(str(tmp_path / "model"), 3, every=20, **settings, **machine)
    logged = [row for row in trainer.state.log_history if "success_rate" in row]
    assert len(logged) == 3
    assert all(0 <= row["success_rate"] <= row["reward"] <= 1 for row in logged)
    assert set(curriculum.config.tasks) == set(TASKS)
    assert curriculum.stage == 1
    assert {row.name for row in curriculum.history[0].training_results} <= set(TASKS)


def test_a_config_that_is_changed_in_place_counts_from_when_it_is_set():
    config = world.config_type.model_validate({"tasks": {"copy": {}, "sort": {}}})
    prompts = TextPrompts(world, config)
    prompts.get_config().tasks.pop("copy")
    del config.tasks["copy"]
    assert set(prompts.get_config().tasks) == {"copy", "sort"}
    assert {row["slice"] for row in prompts.dataset[:64]["metadata"]} == {"copy", "sort"}
    prompts.set_config(config)
    assert {(row["slice"], row["version"]) for row in prompts.dataset[:64]["metadata"]} == {("sort", 2)}
