"""Settings that a run's file leaves out are the ones that its figures were measured with; numbers beyond their bounds are refused."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from envtuning.trainees.lakes.options import LakeOptions
from envtuning.trainees.language.options import OWNED, LanguageOptions

MEASURED = {
    "window": 5, "hints": False, "encoder": "mlp", "channels": (16, 32), "hidden": (256, 128), "separate_value": False,
    "num_envs": 128, "rollout": 32, "pool_size": None, "lr": 1e-3, "minibatch": 1024,
    "epochs": 4, "gamma": 0.99, "gae_lambda": 0.95, "clip": 0.2, "entropy": 0.01, "value_weight": 0.5, "grad_clip": 0.5,
    "temperature": 0.5, "torch_threads": 1,
}  # fmt: skip
# The least that each may be, and whether that itself is allowed; gamma and λ are at most 1.
LEAST = {
    "num_envs": (1, True), "rollout": (1, True), "pool_size": (1, True), "lr": (0, False), "minibatch": (1, True), "epochs": (1, True),
    "gamma": (0, True), "gae_lambda": (0, True), "clip": (0, False), "entropy": (0, True), "value_weight": (0, True),
    "grad_clip": (0, False), "temperature": (0, True), "torch_threads": (1, True),
}  # fmt: skip


def allows(options, name, value, **given):
    try:
        return getattr(options(**given, **{name: value}), name) == value
    except ValidationError:
        return False


def respects(options, name, least, allowed, **given):
    """Below its bound a number is refused; at it as the table says; above it is taken."""
    assert allows(options, name, least, **given) is allowed, name
    below = least - 1 if least else -math.ulp(0.0)
    assert not allows(options, name, below, **given), name
    assert allows(options, name, least + 1, **given), name
    if not least and not allowed:
        assert allows(options, name, 1e-9, **given), name


def test_a_trainee_of_lakes_has_the_measured_defaults_and_bounds():
    assert LakeOptions().model_dump() == MEASURED
    for name, (least, allowed) in LEAST.items():
        respects(LakeOptions, name, least, allowed)
    for name in ("gamma", "gae_lambda"):
        assert not allows(LakeOptions, name, 1.0001)
    assert not allows(LakeOptions, "hidden", ())
    assert allows(LakeOptions, "hidden", (7,))
    assert not allows(LakeOptions, "windw", 5)
    with pytest.raises(ValidationError, match="frozen"):
        LakeOptions().window = 7


def language(**given):
    return LanguageOptions(model="tiny", **given)


def test_a_language_model_has_the_papers_settings_and_what_the_loop_relies_on():
    assert language().settings() == {
        "learning_rate": 1e-6, "num_generations": 16, "epsilon": 0.2, "epsilon_high": 0.28, "beta": 0.1,
        "scale_rewards": "group", "max_grad_norm": 1.0, "loss_type": "grpo", "temperature": 1.0,
        "per_device_train_batch_size": 32, "gradient_accumulation_steps": 2, "steps_per_generation": 4,
        "max_completion_length": 512, "gradient_checkpointing": False,
        "lr_scheduler_type": "constant", "warmup_steps": 0, "shuffle_dataset": False, "logging_steps": 1,
        "logging_nan_inf_filter": False, "save_strategy": "no", "report_to": "none", "disable_tqdm": True,
        "remove_unused_columns": False, "dataloader_num_workers": 0,
        "use_bias_correction_kl": False, "num_iterations": 1, "importance_sampling_level": "token", "delta": None, "entropy_coef": 0.0, "top_entropy_quantile": 1.0, "mask_truncated_completions": False, "off_policy_mask_threshold": None, "multi_objective_aggregation": "sum_then_normalize", "reward_weights": None, "router_aux_loss_coef": None,
    }  # fmt: skip
    assert language(grpo={"beta": 0.0, "vllm_mode": "server"}).settings()["beta"] == 0.0
    assert language().model_dump() == {
        "model": "tiny", "grpo": {}, "lora": "auto", "dtype": "auto", "refill": 0, "reply_temperature": 0.0, "reply_batch": 256,
        "skip_equal_groups": False, "reward": None, "processes": 1, "launch": (), "torch_threads": None,
    }  # fmt: skip
    for name, least in (("reply_temperature", 0), ("reply_batch", 1), ("processes", 1), ("torch_threads", 1)):
        respects(language, name, least, True)
    assert not allows(language, "bta", 1)
    with pytest.raises(ValidationError, match="frozen"):
        language().model = "other"


@pytest.mark.parametrize("name", OWNED)
def test_what_the_loop_sets_itself_is_refused(name):
    with pytest.raises(ValidationError, match=rf"grpo\.{name}\b"):
        language(grpo={name: 1})


def test_a_model_at_home_is_named_by_its_whole_path(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert LanguageOptions(model="~/models/tiny").model == "/home/somebody/models/tiny"
    assert LanguageOptions(model="./tiny").model == "./tiny"


def test_batches_groups_and_steps_fit_into_each_other():
    assert (language().group, language().batch, language().steps_per_batch) == (16, 128, 2)
    assert language(processes=3).batch == 384
    sizes = {"per_device_train_batch_size": 3, "steps_per_generation": 4, "gradient_accumulation_steps": 2}
    fitting = language(grpo=sizes | {"num_generations": 6, "num_iterations": 3})
    assert (fitting.group, fitting.batch, fitting.steps_per_batch) == (6, 12, 6)
    with pytest.raises(
        ValidationError, match=r"a batch of 12 replies .* whole groups of num_generations=5: make it a multi"
    ):
        language(grpo=sizes | {"num_generations": 5})
    with pytest.raises(
        ValidationError, match="steps_per_generation=4 is not a multiple of gradient_accumulation_steps=3"
    ):
        language(grpo=sizes | {"num_generations": 6, "gradient_accumulation_steps": 3})
