"""The preset small-skills under your own GRPOTrainer: the same tasks, and the same engineer. ``python examples/own_trl_skills.py MODEL [STEPS]``."""

from __future__ import annotations

import sys
from typing import Any

import torch
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer

from envtuning import EngineerCurriculum
from envtuning.curriculum.trl_callback import TRLCurriculumCallback
from envtuning.worlds import make_world
from envtuning.worlds.text_prompts import TextPrompts

GRPO = {
    "beta": 0.0,
    "learning_rate": 1e-4,
    "num_generations": 8,
    "per_device_train_batch_size": 64,
    "max_completion_length": 8,
}


def train(model: str, steps: int = 20, every: int = 320, **settings: Any) -> tuple[GRPOTrainer, EngineerCurriculum]:
    """A trainer after so many steps, and the curriculum, whose engineer was asked after ``every`` so many replies."""
    world = make_world("small-skills")
    config = world.config_type()  # every task, with equal shares
    prompts = TextPrompts(world, config)
    curriculum = EngineerCurriculum("steady", config, target=config, every=every, editable=["tasks.*.share"])
    callback = TRLCurriculumCallback(prompts, curriculum)
    machine = {} if torch.cuda.is_available() else {"use_cpu": True, "bf16": False}  # TRL expects a GPU
    trainer = GRPOTrainer(
        model,
        reward_funcs=callback.rewards(prompts.rewards),
        args=GRPOConfig(
            **{"output_dir": "trl", "max_steps": steps, "logging_steps": 1, "model_init_kwargs": {"dtype": "auto"}}
            | machine
            | GRPO
            | settings
        ),
        train_dataset=prompts.dataset,
        peft_config=LoraConfig(task_type="CAUSAL_LM", r=16, lora_alpha=32, target_modules="all-linear"),
        callbacks=[callback],
    )
    trainer.train()
    return trainer, curriculum


if __name__ == "__main__":
    train(sys.argv[1], *map(int, sys.argv[2:]))
