"""The options of every trainee of lakes that learns by PPO."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class LakeOptions(BaseModel):
    """How the trainee sees, samples and learns; the defaults were measured (see ``RLlibOptions``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int | None = Field(
        5, description="Side of the window around an agent, odd; null: large enough for the largest board."
    )
    hints: bool = Field(
        False, description="Whether the observation has hint channels (LakeConfig.hint_strength scales them)."
    )
    hidden: tuple[int, ...] = Field((256, 128), min_length=1, description="Widths of the dense layers.")

    num_envs: int = Field(128, ge=1, description="Number of lakes stepped together; with EnvRunners, in each of them.")
    rollout: int = Field(32, ge=1, description="Steps in each lake per iteration.")

    lr: float = Field(1e-3, gt=0, description="Adam's learning rate.")
    minibatch: int = Field(1024, ge=1, description="Agent steps per gradient step; with Learners, on each of them.")
    epochs: int = Field(4, ge=1, description="Passes over each iteration's experience.")
    gamma: float = Field(0.99, ge=0, le=1, description="Discount factor.")
    gae_lambda: float = Field(0.95, ge=0, le=1, description="λ of the generalised advantage.")
    clip: float = Field(0.2, gt=0, description="PPO's clip of the probability ratio.")
    entropy: float = Field(0.01, ge=0, description="Weight of the entropy bonus.")
    value_weight: float = Field(0.5, ge=0, description="Weight of the value loss.")
    grad_clip: float = Field(0.5, gt=0, description="Largest global norm of a gradient.")

    temperature: float = Field(
        0.5,
        ge=0,
        description="Temperature at which policy() samples its actions; 0: the likeliest action, 1: as in training.",
    )
    torch_threads: int = Field(
        1, ge=1, description="CPU threads of PyTorch in this process; one is best for networks this small."
    )
