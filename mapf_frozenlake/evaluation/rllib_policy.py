"""``rllib_policy``: an Algorithm of RLlib as a policy that ``evaluate`` takes."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.envs.registration import ENV_ID
from mapf_frozenlake.errors import LakeError

NOT_OF_OBSERVATIONS = ("action_mask", "fixed_roster", "flat", "num_envs")  # of an env_config
PPOS = "default_policy"  # the name of an Algorithm's only policy


def rllib_policy(algorithm: Any, policy_id: str = PPOS, *, deterministic: bool = True) -> RLlibPolicy:
    """A policy for ``evaluate`` that acts as the Algorithm's RLModule does in inference, for all agents of a board at once or, where
    it was trained as a multi-agent environment, for each by itself.

    ``policy_id`` names one of several policies. Connectors of your own are not applied.
    """
    return RLlibPolicy(algorithm, policy_id, deterministic)


class RLlibPolicy:
    """A neural policy: the result of ``rllib_policy``."""

    def __init__(self, algorithm: Any, policy_id: str, deterministic: bool) -> None:
        module = algorithm.get_module(policy_id)
        if module is None:
            raise LakeError(
                f"the Algorithm has no policy {policy_id!r}: name one, as in rllib_policy(algorithm, 'shared')"
            )
        if module.is_stateful():
            raise LakeError(
                "rllib_policy does not keep the state of a recurrent module: write a policy with act and env_kwargs"
            )
        self.module, self.deterministic, self.name = module, deterministic, type(algorithm).__name__
        settings = {
            name: value for name, value in algorithm.config.env_config.items() if name not in NOT_OF_OBSERVATIONS
        }
        env: Any = gym.make(ENV_ID, **settings).unwrapped
        self.env_kwargs: dict[str, Any] = env.env_kwargs
        env.close()

    def act(self, observation: NDArray) -> NDArray[np.int64]:
        """[boards, agents, …] -> int64[boards, agents]."""
        import torch

        space = self.module.observation_space
        seen = torch.as_tensor(observation.reshape(-1, *space.shape).astype(space.dtype))
        with torch.no_grad():
            told = self.module.forward_inference({"obs": seen})
        actions = told.get("actions")
        if actions is None:
            drawn = self.module.get_inference_action_dist_cls().from_logits(told["action_dist_inputs"])
            actions = (drawn.to_deterministic() if self.deterministic else drawn).sample()
        return np.asarray(actions, np.int64).reshape(observation.shape[:2])
