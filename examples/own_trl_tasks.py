"""Your own GRPOTrainer on five tasks of reasoning-gym, whose shares change as it runs. ``python examples/own_trl_tasks.py MODEL [STEPS]``."""

from __future__ import annotations

import sys
from typing import Any

from trl import GRPOConfig, GRPOTrainer

from envtuning.curriculum.ladder import Ladder
from envtuning.curriculum.trl_callback import TRLCurriculumCallback
from envtuning.worlds import make_world
from envtuning.worlds.text_prompts import TextPrompts

EASY = {"spell_backward": {}, "letter_counting": {}, "count_bits": {}, "gcd": {}, "basic_arithmetic": {}}
HARD = EASY | {
    "spell_backward": {"word_len": 2},
    "basic_arithmetic": {"num_terms": 2, "num_digits": 1},
}


def train(model: str, steps: int = 100, **settings: Any) -> tuple[GRPOTrainer, TextPrompts]:
    """A trainer after so many steps, and where its prompts come from."""
    world = make_world("reasoning-gym")
    stages = [world.config_type.model_validate({"tasks": tasks}) for tasks in (EASY, HARD)]
    prompts = TextPrompts(world, stages[0])
    trainer = GRPOTrainer(
        model,
        reward_funcs=prompts.rewards,
        args=GRPOConfig(**{"output_dir": "trl", "max_steps": steps, "logging_steps": 1} | settings),
        train_dataset=prompts.dataset,
        callbacks=[TRLCurriculumCallback(prompts, Ladder(stages, threshold=0.6, window=10), metric="success_rate")],
    )
    trainer.train()
    return trainer, prompts


if __name__ == "__main__":
    train(sys.argv[1], *map(int, sys.argv[2:]))
