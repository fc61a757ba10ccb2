"""The settings for Qwen3-4B, run with a tiny model in its place: every key is one that TRL, peft and the loop accept."""

from __future__ import annotations

from pathlib import Path

import pytest

from envtuning.loop import run as loop
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec
from envtuning.trainees.language.evaluate import evaluate_model
from envtuning.trainees.language.options import PAPERS, LanguageOptions
from mapf_frozenlake.suite import load_suite
from tests.lazily import needed

needed("trl", "peft", "llguidance", extra="grpo")

SETTINGS = Path(__file__).parents[2] / "examples" / "qwen3-4b.yaml"
# What a CPU and a tiny model need otherwise; every other key stays as it is in the file.
CPU = {
    "trainee.options.dtype": "float32",
    "trainee.options.torch_threads": 1,
    "trainee.options.grpo.bf16": False,
    "trainee.options.grpo.max_completion_length": 8,
    "world.options.style": "short",
}


def cpu_spec(model: Path, **changes):
    small = {
        "trainee.options.model": str(model),
        "stages.0.budget": 1,
        "suites.validation_per_slice": 1,
        "suites.test_per_slice": 0,
        "suites.probe_per_slice": 0,
    }
    return load_spec(SETTINGS, changes=CPU | small | changes).with_rounds(1)


@pytest.mark.parametrize(
    ("grpo", "said"),
    [
        ({}, r"skip_equal_groups\b.*grpo\.beta=0\.1"),
        (
            {"beta": 0.0, "loss_type": "bnpo"},
            r"skip_equal_groups\b.*loss_type='bnpo'.*\bgrpo, dr_grpo, dapo\b",
        ),
        ({"beta": 0.0, "entropy_coef": 0.01}, r"grpo\.entropy_coef reads every reply"),
    ],
)
def test_equal_groups_are_skipped_only_where_they_teach_nothing(grpo, said):
    with pytest.raises(ValueError, match=said):
        LanguageOptions(model="m", grpo=grpo, skip_equal_groups=True)
    assert not LanguageOptions(model="m", grpo=grpo).skip_equal_groups


def test_two_steps_of_the_settings(foreign, tmp_path):
    spec = cpu_spec(foreign)
    run = loop.start(spec, tmp_path / "run")
    iterations = [line for line in run.state.stages[0].metrics() if line["kind"] == "iteration"]
    assert len(iterations) == 2  # optimiser steps of one batch of 128 replies
    assert run.state.stages[0].done.trained["samples"] == 128
    checkpoint = run.state.stages[0].checkpoint
    assert (checkpoint / "adapter_model.safetensors").exists()
    boards = load_suite("quick")[:2]  # the paper's test has other boards than its training: more agents
    table, _ = evaluate_model(f"local/{checkpoint}", boards, style="short", max_tokens=8)
    assert table.overall.n == 2


def test_the_settings_train_on_two_agents_and_leave_the_test_to_the_suite():
    spec = load_spec(SETTINGS)
    assert {config.num_agents for config in Plan.of(spec).written} == {2}
    assert spec.suites.test_per_slice == 0
    assert set(load_suite("mapf-frozenlake-3150").labels["agents"]) == {3, 4, 5}


def test_what_a_gpu_is_measured_by_runs_on_a_cpu(monkeypatch, capsys):
    from benchmarks import qwen3_4b

    monkeypatch.setattr("sys.argv", ["qwen3_4b", "--tiny"])
    qwen3_4b.main()
    said = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert (said["optimiser_steps"], said["replies"], said["longest_reply"]) == ("2", "128", "8")
    assert float(said["tokens"]) > 128 * 8
    assert float(said["peak_memory_gb"]) > 0


def test_without_a_gpu_nothing_is_measured(monkeypatch):
    from benchmarks import qwen3_4b

    monkeypatch.setattr("sys.argv", ["qwen3_4b"])
    monkeypatch.setattr(qwen3_4b.torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit, match="there is no GPU here"):
        qwen3_4b.main()


@pytest.mark.parametrize(("processes", "whole"), [(1, False), (2, True)])
def test_a_batch_is_counted_over_all_processes(foreign, processes, whole):
    grpo = {"per_device_train_batch_size": 1, "steps_per_generation": 4, "gradient_accumulation_steps": 1}
    given = {"model": str(foreign), "processes": processes, "grpo": grpo | {"num_generations": 8}}
    if whole:
        assert LanguageOptions(**given).processes == 2
    else:
        with pytest.raises(ValueError, match="a batch of 4 replies"):
            LanguageOptions(**given)


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_two_steps_in_two_processes_and_the_checkpoint_answers_from_there(foreign, tmp_path):
    spec = cpu_spec(
        foreign,
        **{
            "trainee.options.processes": 2,
            "trainee.options.grpo.per_device_train_batch_size": 4,  # half of the batch in each
            "engineer.options.max_tokens": 2_500,
            "suites.validation_per_slice": 1,
        },
    ).with_rounds(2)
    run = loop.start(spec, tmp_path / "run")
    iterations = [line for line in run.state.stages[0].metrics() if line["kind"] == "iteration"]
    assert len(iterations) == 2
    assert run.state.stages[0].done.trained["samples"] == 128
    answer = run.state.stages[1].chosen
    assert answer.proposal.engineer == "checkpoint"
    assert answer.proposal.usage.attempts == 1
    assert run.state.stages[1].done is not None


def test_an_entropy_bonus_that_a_checkpoint_would_forget_is_refused(foreign):
    with pytest.raises(ValueError, match=r"grpo\.use_adaptive_entropy=True\b.*\bentropy_coef\b"):
        LanguageOptions(model=str(foreign), grpo={"use_adaptive_entropy": True})
    LanguageOptions(model=str(foreign), grpo={"use_adaptive_entropy": False, "entropy_coef": 0.01})


# Every argument of GRPOConfig's own: those that decide the loss, and those that do not.
DECIDES = {
    "beta", "delta", "entropy_coef", "epsilon", "epsilon_high", "importance_sampling_level", "loss_type",
    "mask_truncated_completions", "multi_objective_aggregation", "num_generations", "num_iterations",
    "off_policy_mask_threshold", "reward_weights", "router_aux_loss_coef", "scale_rewards", "steps_per_generation",
    "temperature", "top_entropy_quantile", "use_bias_correction_kl", "max_completion_length",
}  # fmt: skip
ONLY_WITH = {
    "sapo_": "another loss_type", "vespo_": "another loss_type", "entropy_coef_": "use_adaptive_entropy, which is refused",
    "entropy_target": "the same", "use_adaptive_entropy": "refused", "vllm_": "use_vllm", "sync_ref_model": "the loop's own",
    "ref_model_": "sync_ref_model",
}  # fmt: skip
DECIDES_NOT = {
    "cache_implementation", "cast_lm_head_to_fp32", "chat_template_kwargs", "disable_dropout", "ds3_gather_for_generation",
    "generation_batch_size", "generation_kwargs", "log_completions", "log_completions_hub_repo", "log_multimodal",
    "log_unique_prompts", "max_tool_calling_iterations", "min_p", "model_init_kwargs", "num_completions_to_print",
    "num_generations_eval", "pad_to_multiple_of", "repetition_penalty", "shuffle_dataset", "top_k", "top_p",
    "transformers_continuous_batching_config", "trust_remote_code", "use_transformers_continuous_batching",
    "use_transformers_paged", "use_vllm",
}  # fmt: skip


def test_every_argument_that_decides_the_loss_is_written_down_and_a_new_one_of_trls_is_noticed():
    from dataclasses import fields

    from transformers import TrainingArguments
    from trl import GRPOConfig

    own = {field.name for field in fields(GRPOConfig)} - {field.name for field in fields(TrainingArguments)}
    conditional = {name for name in own if name.startswith(tuple(ONLY_WITH)) and name not in DECIDES}
    assert own - conditional - DECIDES_NOT == DECIDES, "say of an argument that is new whether it decides the loss"
    assert PAPERS.keys() >= DECIDES


def test_the_kl_term_is_the_plain_estimate_and_a_file_may_ask_for_trls():
    assert LanguageOptions(model="m").settings()["use_bias_correction_kl"] is False
    asked = LanguageOptions(model="m", grpo={"use_bias_correction_kl": True})
    assert asked.settings()["use_bias_correction_kl"] is True
