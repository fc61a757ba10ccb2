"""The PettingZoo module of this environment: ``env`` (AEC), ``parallel_env``, ``raw_env``."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import wrappers
from pettingzoo.utils.conversions import parallel_to_aec

from mapf_frozenlake.envs.parallel_env import MAPFFrozenLakeParallelEnv

__all__ = ["env", "parallel_env", "raw_env"]


parallel_env = MAPFFrozenLakeParallelEnv  # all agents move at once: the lake's native interface


def raw_env(**kwargs: Any) -> Any:
    """One agent after the other, by PettingZoo's conversion, without checks; takes the arguments of ``parallel_env``."""
    return parallel_to_aec(parallel_env(**kwargs))


def env(**kwargs: Any) -> Any:
    """``raw_env`` that checks the order of calls."""
    return wrappers.OrderEnforcingWrapper(raw_env(**kwargs))
