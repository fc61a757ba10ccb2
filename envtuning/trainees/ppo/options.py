"""The options of the PPO trainee."""

from __future__ import annotations

from pydantic import Field

from envtuning.trainees.lakes.levels import LevelOptions
from envtuning.trainees.lakes.options import LakeOptions


class PPOOptions(LakeOptions):
    """All of ``LakeOptions``, and which boards are played."""

    levels: LevelOptions | None = Field(
        None, description="How boards are replayed by their scores; null: every episode gets a new board."
    )
