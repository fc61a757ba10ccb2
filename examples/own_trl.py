"""Your own GRPOTrainer on lakes that grow as the model learns: ten lines. ``python examples/own_trl.py MODEL [STEPS]``."""

from __future__ import annotations

import sys
from typing import Any

from trl import GRPOConfig, GRPOTrainer

import mapf_frozenlake as mfl
from envtuning.curriculum.ladder import Ladder
from envtuning.curriculum.trl_callback import TRLCurriculumCallback
from mapf_frozenlake.text.trl import LakePrompts, plan_rewards


def train(model: str, steps: int = 100, **settings: Any) -> tuple[GRPOTrainer, LakePrompts]:
    """A trainer after so many steps, and where its prompts come from."""
    stages = [mfl.LakeConfig.single(size, num_agents=2, reward="progress") for size in (3, 4, 5)]
    lakes = LakePrompts(stages[0], n=100_000, style=settings.pop("style", "paper"))
    curriculum = TRLCurriculumCallback(lakes, Ladder(stages, threshold=0.6, window=300))
    trainer = GRPOTrainer(
        model,
        reward_funcs=curriculum.rewards(plan_rewards),
        args=GRPOConfig(**{"output_dir": "trl", "max_steps": steps, "logging_steps": 1} | settings),
        train_dataset=lakes.dataset,
        callbacks=[curriculum],
    )
    trainer.train()
    return trainer, lakes


if __name__ == "__main__":
    train(sys.argv[1], *map(int, sys.argv[2:]))
