"""The messages between client and server: a reply, and the environment's answer."""

from __future__ import annotations

from typing import Any

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class TextAction(Action):
    """What the model wrote."""

    message: str = Field(description="The reply, as the model wrote it.")


class TextObservation(Observation):
    """What the model reads next. ``metadata`` is the environment's ``info``, with ``truncated`` beside it."""

    message: str = Field(description="The task, or what came of the last reply.")


class TextState(State):
    """The running episode, and what makes it again: ``reset(seed=seed, **config)``."""

    seed: int | None = Field(
        None, description="The seed that the episode was begun with; null: it continues a sequence."
    )
    config: dict[str, Any] = Field(default_factory=dict, description="The config that the episode was drawn by.")
