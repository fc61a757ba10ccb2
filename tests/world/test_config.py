"""``LakeConfig``: equal configs have equal digests, a horizon is written once, and a slice may be switched off."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from mapf_frozenlake import LakeConfig, generate


def test_equal_configs_have_equal_digests_in_whatever_order_they_were_written():
    one = LakeConfig(slices={3: {"share": 0.5}, 4: {"share": 0.25, "hole_ratio": 0.1}}, num_agents={1: 0.5, 2: 0.5})
    other = LakeConfig.model_validate(
        {
            "num_agents": {2: 0.5, 1: 0.5},
            "slices": {4: {"hole_ratio": 0.1, "share": 0.25}, 3: {"share": 0.5}},
        }
    )
    assert list(one.slices) != list(other.slices)
    assert one == other
    assert one.digest == other.digest
    assert hash(one) == hash(other)
    assert one.canonical_json() == other.canonical_json()
    assert " " not in one.canonical_json()
    assert one.digest != one.model_copy(update={"horizon": 7}).digest


def test_a_horizon_is_four_times_the_sides_unless_it_is_given():
    assert LakeConfig.single((3, 5)).horizon_for(3, 5) == 32
    assert LakeConfig.single(4, horizon=9).horizon_for(64, 64) == 9


def test_a_slice_of_share_0_is_switched_off_whatever_else_it_says():
    """It is asked for nothing: neither room for the agents nor a distance that its boards do not have."""
    config = LakeConfig(num_agents=5, slices={2: {"share": 0.0, "min_distance": 9}, 6: {}})
    assert {instance.height for instance in generate(config, 5, seed=0)} == {6}
    for wrong in ({"share": 0.1}, {"share": 0.1, "min_distance": 9}):
        with pytest.raises(ValidationError, match="num_agents=5 on a 2×2 lake needs 10 cells, there are 4"):
            LakeConfig(num_agents=5, slices={2: wrong, 6: {}})
    with pytest.raises(ValidationError, match="every slice has share 0"):
        LakeConfig(slices={3: {"share": 0.0}})
    assert (
        LakeConfig(num_agents={1: 1.0, 60: 0.0}, slices={2: {}}).max_agents == 60
    )  # a count of weight 0 needs no room


@pytest.mark.parametrize(("agents", "distance"), [(2, 2), (2, 1), (1, 2)])
def test_the_smallest_lake_holds_exactly_what_fits(agents, distance):
    LakeConfig.single(2, agents, min_distance=distance)
    with pytest.raises(ValidationError, match="at most 2 agents, or size ≥ 3"):
        LakeConfig.single(2, 3, min_distance=distance)
    with pytest.raises(ValidationError, match="cells are at most 2 apart"):
        LakeConfig.single(2, agents, min_distance=3)
