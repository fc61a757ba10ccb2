"""The settings of the paper's own run, for Qwen2.5-7B: they say what the paper says, and a tiny model can be trained by them."""

from __future__ import annotations

from pathlib import Path

from envtuning.loop.run import continue_run, create
from envtuning.runs.plan import Plan
from envtuning.runs.spec import load_spec
from envtuning.trainees.language.options import LanguageOptions
from envtuning.worlds.bfcl.package import SPLITS
from tests.lazily import needed

needed("trl", "peft", extra="grpo")

SETTINGS = Path(__file__).parents[2] / "examples" / "qwen2.5-7b-tools.yaml"
# What a CPU and a tiny model need otherwise; every other key stays as it is in the file.
CPU = {
    "world.options.version": "v4",  # one version a process
    "trainee.options.dtype": "float32",
    "trainee.options.torch_threads": 1,
    "trainee.options.grpo.bf16": False,
    "trainee.options.grpo.max_completion_length": 4,
    "trainee.options.grpo.gradient_accumulation_steps": 16,
    "trainee.options.grpo.steps_per_generation": 16,
    "suites.validation_per_slice": 1,
    "suites.test_per_slice": 0,
    # Random words end a turn where any reply is readable, and the documents are thousands of tokens.
    **{
        f"{config}.{key}": value
        for config in ("target", "stages.0.config")
        for key, value in {"reply_format": "readable", "tool_style": "none", "max_turns": 3}.items()
    },
    "stages.0.budget": 1,
}


def test_the_settings_are_the_papers(v4):
    plan = Plan.of(load_spec(SETTINGS, changes={"world.options.version": "v4"}))
    asked = [(config.reward, config.feedback, tuple(config.slices)) for config in plan.configs]
    assert asked == [
        ("syntax", "standard", ("base",)),
        ("progress", "replaced", ("base",)),
        ("progress", "replaced", SPLITS),
        ("progress", "standard", SPLITS),
    ]
    assert {config.reply_format for config in (*plan.configs, plan.target)} == {"xml"}
    assert plan.spec.suites.test_per_slice * len(plan.target.slices) == 400
    options = LanguageOptions(**plan.spec.trainee.options)
    assert (options.group, options.batch, options.steps_per_batch) == (16, 32 * 16, 1)
    grpo = options.settings()
    assert (grpo["learning_rate"], grpo["beta"], grpo["epsilon"], grpo["epsilon_high"]) == (1e-6, 0.1, 0.2, 0.28)


def test_a_step_by_the_settings(v4, tmp_path):
    from benchmarks.qwen3_4b import TINY, random_model

    model = tmp_path / "model"
    random_model(model, TINY, "float32")
    spec = load_spec(SETTINGS, changes=CPU | {"trainee.options.model": str(model)})
    run = create(tmp_path / "run", spec)
    continue_run(run, stages=1)
    assert run.state.stages[0].done.trained["samples"] == 16
    assert (run.state.stages[0].checkpoint / "adapter_model.safetensors").exists()
