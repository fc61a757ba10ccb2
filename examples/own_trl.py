"""Your own GRPOTrainer on lakes that an engineer makes larger as the model learns. ``python examples/own_trl.py MODEL [STEPS]``."""

import sys
from typing import Any

from trl import GRPOConfig, GRPOTrainer

import mapf_frozenlake as mfl
from envtuning import EngineerCurriculum
from envtuning.curriculum.trl_callback import TRLCurriculumCallback
from mapf_frozenlake.text.trl import LakePrompts, plan_rewards


def train(model: str, steps: int = 100, **settings: Any) -> tuple[GRPOTrainer, LakePrompts]:
    """A trainer after so many steps, and where its prompts come from."""
    start = mfl.LakeConfig(slices={3: {}, 5: {"share": 0}}, num_agents=2, reward="progress")
    target = mfl.LakeConfig(slices={3: {"share": 0}, 5: {}}, num_agents=2, reward="progress")
    lakes = LakePrompts(start, n=100_000, style=settings.pop("style", "paper"))
    curriculum = TRLCurriculumCallback(lakes, EngineerCurriculum("rules", start, target=target, every=300))
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
