"""``SharedPolicy``: the trained network alone, in the form that ``mapf_frozenlake.evaluate`` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from envtuning.trainees.lakes.network import AgentNetwork
from envtuning.trainees.lakes.rollout import draw_actions
from mapf_frozenlake.types import Action


class SharedPolicy:
    """Acts for every agent of every lake by one network, at a temperature: 0 takes the likeliest action, 1 samples as in training.

    The same sequence of observations after construction gives the same actions.
    """

    def __init__(
        self, network: AgentNetwork, env_kwargs: dict[str, Any], *, temperature: float = 0.0, seed: int = 0
    ) -> None:
        self.network = network.eval()
        self.env_kwargs = env_kwargs  # for environments with the observations that it needs
        self.temperature = temperature
        self._random = np.random.default_rng(seed)

    def act(self, observation: NDArray[np.float32]) -> NDArray[np.int64]:
        """float32[N, A, EgoLayout.size] → int64[N, A]; empty slots wait."""
        actions = np.full(observation.shape[:2], int(Action.WAIT), np.int64)
        agents = observation.any(axis=2)  # the observation of an empty slot is zero
        with torch.inference_mode():
            logits = self.network.policy_and_value(torch.from_numpy(observation[agents]))[0].numpy()
        actions[agents] = self._draw(logits) if self.temperature > 0 else logits.argmax(axis=1)
        return actions

    def _draw(self, logits: NDArray[np.float32]) -> NDArray[np.int64]:
        draws = self._random.random(len(logits), dtype=np.float32)
        return draw_actions(logits / np.float32(self.temperature), draws)[0]
