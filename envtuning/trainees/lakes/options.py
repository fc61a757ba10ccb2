"""The options of PPO on lakes, in one process and on RLlib."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class LakeOptions(BaseModel):
    """How the trainee sees, samples and learns.

    The defaults were measured on boards of 4–9 a side with 2–4 agents, ``collisions="end"``, 100k–400k env steps:

    - For the stages' reward "shaped" learns fastest under ``collisions="end"``; "progress" alone stays near 10 % valid on 7×7
      with 3 agents, where "shaped" reaches 75 %.
    - A window of 5 learns as well as 7 and 9, and faster; "conv" reaches a little more after long training, at twice the
      CPU time.
    - A temperature of 0.5 solves more boards than the likeliest action (0), most of all early in training.
    - For a demonstration of five minutes on two cores: the defaults, and 60,000–100,000 env steps a stage on boards of up to
      6×6 (8 to 12 seconds of CPU each).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: int | None = Field(
        5, description="Side of the window around an agent, odd; null: large enough for the largest board."
    )
    hints: bool = Field(
        False, description="Whether the observation has hint channels (LakeConfig.hint_strength scales them)."
    )
    encoder: Literal["conv", "mlp"] = Field("mlp", description="Network that reads the window.")
    channels: tuple[int, ...] = Field((16, 32), description="Channels of the 3×3 convolutions.")
    hidden: tuple[int, ...] = Field((256, 128), min_length=1, description="Widths of the dense layers.")
    separate_value: bool = Field(False, description="Whether the value function has its own dense layers.")

    num_envs: int = Field(128, ge=1, description="Number of lakes stepped together; with EnvRunners, in each of them.")
    rollout: int = Field(32, ge=1, description="Steps in each lake per iteration.")
    pool_size: int | None = Field(
        None, ge=1, description="Number of instances that a stage's episodes are drawn from; null: the world's default."
    )

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

    @property
    def network(self) -> dict[str, Any]:
        """The arguments of ``AgentNetwork``."""
        return self.model_dump(include={"encoder", "channels", "hidden", "separate_value"})
