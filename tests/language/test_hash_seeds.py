"""GRPO ends the same in every process, whatever Python's hashes of texts are there."""

from __future__ import annotations

import pytest

from tests.envtuning.hash_seeded import assert_the_same, world


@pytest.mark.slow
def test_grpo_ends_the_same_under_another_hash_seed(options, foreign):
    config = {"num_agents": 2, "reward": "shaped", "slices": {3: {"hole_ratio": 0.2}}}
    assert_the_same(("grpo", world("lakes", mode="plan", style="short"), config, 16, options | {"model": str(foreign)}))
