"""Your own GRPOTrainer on five tasks of reasoning-gym, whose shares change as it runs. ``python examples/own_trl_tasks.py MODEL [STEPS]``."""

from __future__ import annotations

import sys
from typing import Any

from trl import GRPOConfig, GRPOTrainer

from envtuning import EngineerCurriculum
from envtuning.curriculum.trl_callback import TRLCurriculumCallback
from envtuning.worlds import make_world
from envtuning.worlds.text_prompts import TextPrompts

TASKS = ("spell_backward", "letter_counting", "count_bits", "gcd", "basic_arithmetic")


def train(model: str, steps: int = 100, every: int = 500, **settings: Any) -> tuple[GRPOTrainer, EngineerCurriculum]:
    """A trainer after so many steps, and the curriculum, whose engineer was asked after ``every`` so many replies."""
    world = make_world("reasoning-gym")
    config = world.config_type.model_validate({"tasks": {name: {} for name in TASKS}})
    prompts = TextPrompts(world, config)
    curriculum = EngineerCurriculum("learnability", config, target=config, every=every, editable=["tasks.*.share"])
    callback = TRLCurriculumCallback(prompts, curriculum)
    trainer = GRPOTrainer(
        model,
        reward_funcs=callback.rewards(prompts.rewards),
        args=GRPOConfig(**{"output_dir": "trl", "max_steps": steps, "logging_steps": 1} | settings),
        train_dataset=prompts.dataset,
        callbacks=[callback],
    )
    trainer.train()
    return trainer, curriculum


if __name__ == "__main__":
    train(sys.argv[1], *map(int, sys.argv[2:]))
