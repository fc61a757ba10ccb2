"""InstanceSet: padding, indexing, the rules of Instance checked for all rows at once."""

import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import Instance, InstanceSet, LakeError


def small(sample_id=None, **facts):
    return Instance(holes=[[0, 0, 0], [0, 1, 0]], starts=[[0, 0]], goals=[[1, 2]], sample_id=sample_id, **facts)


def large():
    holes = np.zeros((4, 3), bool)
    holes[3, 0] = True
    return Instance(
        holes=holes, starts=[[0, 0], [1, 0]], goals=[[3, 2], [2, 0]], makespan=5, needs_wait=True, certificate="exact"
    )


def test_an_instance_comes_back_as_it_went_in():
    given = [small(sample_id="one", makespan=3, needs_wait=False, certificate="exact"), large()]
    packed = InstanceSet.from_instances(given)
    assert list(packed) == given
    for there, here in zip(packed, given):
        facts = ("makespan", "needs_wait", "certificate", "sample_id")
        assert [getattr(there, fact) for fact in facts] == [getattr(here, fact) for fact in facts]
        assert there.holes.shape == here.holes.shape


def test_padding_is_holes_and_minus_one():
    packed = InstanceSet.from_instances([small(), large()])
    assert packed.holes.shape == (2, 4, 3)
    assert packed.holes[0, 2:].all()
    assert (packed.starts[0, 1] == -1).all()
    assert (packed.goals[0, 1] == -1).all()


def test_slices_keep_ids_labels_and_config():
    config = mfl.LakeConfig.single(size=3, num_agents=2)
    drawn = mfl.generate(config, 12, seed=4, certify="reachable")
    labelled = InstanceSet(
        **{name: getattr(drawn, name) for name in mfl.instance_set.ARRAYS},
        sample_ids=tuple(map(str, range(12))),
        labels={"number": np.arange(12)},
        config=config,
    )
    part = labelled[np.array([7, 2])]
    assert part.sample_ids == ("7", "2")
    assert part.labels["number"].tolist() == [7, 2]
    assert part.config == config
    assert part[0] == drawn[7]
    assert labelled[-1] == drawn[11]
    assert labelled[drawn.heights > 5].holes.shape == (0, 3, 3)


def test_concatenate_pads_to_the_largest():
    both = InstanceSet.concatenate([InstanceSet.from_instances([small("a")]), InstanceSet.from_instances([large()])])
    assert list(both) == [small(), large()]
    assert both.sample_ids == ("a", "")


def test_index_out_of_range():
    with pytest.raises(IndexError, match="instance 2 of 2"):
        InstanceSet.from_instances([small(), large()])[2]


BREAKS = {
    "cells outside its board": lambda arrays: arrays["holes"].__setitem__((0, 3, 0), False),
    "heights must be": lambda arrays: arrays["heights"].__setitem__(0, 5),
    "widths must be": lambda arrays: arrays["widths"].__setitem__(0, 1),
    "num_agents must be": lambda arrays: arrays["num_agents"].__setitem__(0, 3),
    "needs_wait must be": lambda arrays: arrays["needs_wait"].__setitem__(0, 2),
    "makespan must be": lambda arrays: arrays["makespan"].__setitem__(0, -2),
    "certificates has": lambda arrays: arrays["certificates"].__setitem__(0, 4),
    "empty agent slots": lambda arrays: arrays["goals"].__setitem__((0, 1), 0),
    "off the board": lambda arrays: arrays["starts"].__setitem__((0, 0), (2, 0)),
    "is a hole": lambda arrays: arrays["goals"].__setitem__((0, 0), (1, 1)),
    "used by two": lambda arrays: arrays["goals"].__setitem__((0, 0), (0, 0)),
}


@pytest.mark.parametrize("why", BREAKS)
def test_each_rule_is_checked_and_the_row_named(why):
    packed = InstanceSet.from_instances([small(), large()])
    arrays = {name: getattr(packed, name).copy() for name in mfl.instance_set.ARRAYS}
    InstanceSet(**arrays)
    BREAKS[why](arrays)
    with pytest.raises(LakeError, match=f"instance 0 of 2: .*{why}"):
        InstanceSet(**arrays)


def test_wrong_shapes_and_types_are_named():
    packed = InstanceSet.from_instances([small(), large()])
    arrays = {name: getattr(packed, name) for name in mfl.instance_set.ARRAYS}
    with pytest.raises(LakeError, match="goals is int16"):
        InstanceSet(**arrays | {"goals": arrays["goals"][:1]})
    with pytest.raises(LakeError, match="makespan is int64"):
        InstanceSet(**arrays | {"makespan": arrays["makespan"].astype(np.int64)})
    with pytest.raises(LakeError, match="label 'x'"):
        InstanceSet(**arrays, labels={"x": np.array(["a", "b"])})
    with pytest.raises(LakeError, match="1 sample_ids for 2"):
        InstanceSet(**arrays, sample_ids=("a",))
    with pytest.raises(LakeError, match="cannot pad 4×3"):
        packed.padded(3, 3, 2)
    with pytest.raises(LakeError, match="0 instances"):
        InstanceSet.from_instances([])
