"""Numbers and objects that no lake can hold are refused in a sentence, before any memory is asked for."""

from __future__ import annotations

from collections.abc import Callable

import gymnasium as gym
import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import LakeBatch, LakeConfig, LakeError

CONFIG = LakeConfig()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: mfl.generate(CONFIG, 10**12), r"^first=0, n=1000000000000: only the first 1,000,000,000 instances"),
        (lambda: mfl.generate(CONFIG, 1, first=2**63), r"^first=9223372036854775808, n=1: only the first"),
        (lambda: mfl.generate(CONFIG, 1, first=np.int64(2**62)), r"^first=4611686018427387904, n=1: only the first"),
        (lambda: LakeBatch(CONFIG, 10**10), r"^num_envs=10000000000: give at most 10,000,000$"),
        (lambda: gym.make_vec("MAPFFrozenLake-v0", num_envs=10**9), r"^num_envs=1000000000: give at most 10,000,000$"),
        (lambda: mfl.solve(None), r"^an instance is of type NoneType: give an Instance"),
        (lambda: mfl.solve_batch([1]), r"^an instance is of type int: give instances of Instance$"),
    ],
)
def test_what_no_lake_can_hold_is_refused_in_a_sentence(ask: Callable[[], object], said: str) -> None:
    with pytest.raises(LakeError, match=said):
        ask()
