"""``sb3_policy``: a model of Stable-Baselines3 or sb3-contrib as a policy that ``evaluate`` takes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mapf_frozenlake.envs.one_lake import env_kwargs_of
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.types import Action
from mapf_frozenlake.world.layout import EgoLayout


def sb3_policy(model: Any, envs: Any = None, *, deterministic: bool = True) -> SB3Policy:
    """A policy for ``evaluate`` that acts as ``model.predict`` does, for all agents of a board at once or, where the model was
    trained ``per_agent``, for each by itself.

    ``envs`` are its training envs in SB3, by default the model's own. They define its observations, and normalise them if
    they are a ``VecNormalize``. A model that takes ``action_masks`` gets the masks of its observations.
    """
    return SB3Policy(model, envs, deterministic)


class SB3Policy:
    """A neural policy: the result of ``sb3_policy``."""

    def __init__(self, model: Any, envs: Any, deterministic: bool) -> None:
        envs = envs if envs is not None else model.get_env()
        if envs is None:
            raise LakeError("the model has no envs: pass those that it was trained in, sb3_policy(model, envs)")
        if hasattr(model.policy, "lstm_actor"):
            raise LakeError(
                "sb3_policy does not keep the state of a recurrent model: write a policy with act and env_kwargs"
            )
        batch = envs.get_attr("batch")[0]
        self.env_kwargs = env_kwargs_of(batch)
        self.model, self.deterministic, self.name = model, deterministic, type(model).__name__
        self._layout: EgoLayout = batch.layout
        self._normalised = getattr(envs, "normalize_obs", None)
        self._masked = "action_masks" in inspect.signature(model.predict).parameters
        if self._masked and batch.observation_name != "ego":
            raise LakeError(
                f"the model takes action masks, but observation={batch.observation_name!r} has none: train it on 'ego'"
            )

    def act(self, observation: NDArray) -> NDArray[np.int64]:
        """[boards, agents, …] -> int64[boards, agents]."""
        masks = {"action_masks": self._masks(observation)} if self._masked else {}
        seen = observation.reshape(-1, *self.model.observation_space.shape)
        if self._normalised is not None:
            seen = self._normalised(seen)
        actions, _ = self.model.predict(seen, deterministic=self.deterministic, **masks)
        return np.asarray(actions).reshape(observation.shape[:2])

    def _masks(self, observation: NDArray) -> NDArray[np.bool_]:
        """The same masks as ``action_masks()`` of the envs: an empty slot sees only zeros, and may only WAIT."""
        masks = self._layout.action_mask(observation) != 0
        masks[..., Action.WAIT] = True
        return masks
