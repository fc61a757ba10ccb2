"""A world with a scripted reward: half of the questions pay no reply at all, the others pay replies of an odd length.

Where the environment variable ``PLAYED`` names a file, each played question is appended to it with its reply, in order.
"""

from __future__ import annotations

import json
import os
from typing import Any

from envtuning.worlds.text_scores import Asked
from envtuning.worlds.text_world import QuestionEnv, Task, TaskKnobs, TextWorld


def by_length(answer: str, asked: Asked) -> float:
    return float(asked.answer == "some" and len(answer) % 2)


class Played(QuestionEnv):
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if (log := os.environ.get("PLAYED")) is not None:
            with open(log, "a", encoding="utf-8") as file:
                file.write(json.dumps([self.asked.question, action]) + "\n")
        return super().step(action)


class HalfDull(TextWorld):
    def make(self, config: Any, slice: str) -> Played:
        return Played(self.tasks[slice], config.tasks[slice])


WORLD = HalfDull(
    "half-dull",
    {
        "dull": Task(TaskKnobs, lambda rng, _: (f"dull {rng.integers(1000)}", "none"), by_length),
        "some": Task(TaskKnobs, lambda rng, _: (f"some {rng.integers(1000)}", "some"), by_length),
    },
    "Half of the questions never pay.",
)
CONFIG = WORLD.config_type.model_validate({"tasks": {"dull": {}, "some": {}}})
