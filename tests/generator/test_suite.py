"""The shipped suites: their shape, their labels, what they are made from, and that no board comes twice."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import LakeError, validation_suite
from mapf_frozenlake.suite import SUITES, load, make
from mapf_frozenlake.suite.__main__ import main

NAMES = list(SUITES)
PER_GROUP = {"mapf-frozenlake-3150": 50, "quick": 2}


def canonical(instance):
    """Least of the 8 pictures of a board, agents in order of their cells: exact, and no hash."""
    pictures = []
    for turns, flip in itertools.product(range(4), (False, True)):

        def seen(cell, n=instance.height, turns=turns, flip=flip):
            row, col = cell
            for _ in range(turns):
                row, col = col, n - 1 - row
            return (col, row) if flip else (row, col)

        holes = sorted(seen(map(int, cell)) for cell in np.argwhere(instance.holes))
        agents = sorted((seen(s), seen(g)) for s, g in zip(instance.starts.tolist(), instance.goals.tolist()))
        pictures.append((instance.height, holes, agents))
    return str(min(pictures))


@pytest.mark.parametrize("name", NAMES)
def test_shape(name):
    suite, per_group = mfl.load_suite(name), PER_GROUP[name]
    assert len(suite) == 21 * 3 * per_group
    cells = Counter(
        zip(suite.labels["agents"].tolist(), suite.labels["size"].tolist(), suite.labels["wait_subset"].tolist())
    )
    wanted = [(a, s, w) for a in (3, 4, 5) for s in range(a, 11) for w in (0.25, 0.5, 0.75)]
    assert cells == dict.fromkeys(wanted, per_group)
    assert len(set(suite.sample_ids)) == len(suite)
    for instance, ratio in zip(suite, suite.labels["hole_ratio"].tolist()):
        match = re.fullmatch(r"(\d)ag_(\d+)x\2_hr(0\.\d)_\d{3}", instance.sample_id)
        assert (int(match[1]), int(match[2]), float(match[3])) == (instance.num_agents, instance.height, ratio)
        ice_or_hole = instance.height**2 - 2 * instance.num_agents
        assert instance.holes.sum() == int(ratio * ice_or_hole + 0.5 + 1e-9)
        assert instance.certificate == "exact"
    assert (suite.labels["agents"] == suite.num_agents).all()
    assert (suite.labels["size"] == suite.heights).all()


def test_the_large_suite_spreads_ratios_and_labels():
    suite = mfl.load_suite("mapf-frozenlake-3150")
    agents, sizes, subsets, ratios = (suite.labels[name] for name in ("agents", "size", "wait_subset", "hole_ratio"))
    for subset in (0.25, 0.5, 0.75):
        of_subset = subsets == subset
        assert abs(suite.needs_wait[of_subset].sum() - subset * 1050) <= 0.5
        for a, s in set(zip(agents.tolist(), sizes.tolist())):
            group = of_subset & (agents == a) & (sizes == s)
            assert Counter(ratios[group].tolist()) == dict.fromkeys((0.1, 0.2, 0.3, 0.4, 0.5), 10)
            assert abs(suite.needs_wait[group].sum() - subset * 50) <= 0.5


def test_no_two_boards_are_alike():
    seen = Counter(canonical(one) for name in NAMES for one in mfl.load_suite(name))
    assert seen.most_common(1)[0][1] == 1


@pytest.mark.parametrize("name", NAMES)
def test_made_anew_from_the_seed_it_is_the_same(name):
    assert make.make_suite(name) == mfl.load_suite(name)


def test_the_command_checks(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["suite", "--check"])
    monkeypatch.setattr("mapf_frozenlake.suite.__main__.make_suite", mfl.load_suite)  # the test above draws anew
    assert main() == 0
    assert capsys.readouterr().out.count("as published") == 2
    monkeypatch.setitem(SUITES, "quick", "0" * 64)
    assert main() == 1


def test_a_file_that_is_not_the_published_one_is_refused(tmp_path, monkeypatch):
    mfl.load_suite("quick")[:5].save(tmp_path / "quick.lakes")
    monkeypatch.setattr(load, "suite_path", lambda name: tmp_path / f"{name}.lakes")
    load.load_suite.cache_clear()
    with pytest.raises(LakeError, match="the published suite is"):
        mfl.load_suite("quick")
    load.load_suite.cache_clear()


def test_unknown_names_list_the_known_ones():
    with pytest.raises(LakeError, match=r"the suites are mapf-frozenlake-3150, quick"):
        mfl.load_suite("3150")


def test_three_sets_share_no_board():
    target = mfl.LakeConfig(slices={3: {}, 4: {"hole_ratio": 0.1}}, num_agents=3)
    test = mfl.load_suite("mapf-frozenlake-3150")
    validation = validation_suite(target, 200, seed=0, exclude=test)
    training = mfl.generate(target, 400, seed=0, exclude=[test, validation])
    sets = [{canonical(one) for one in each} for each in (test, validation, training)]
    for one, other in itertools.combinations(sets, 2):
        assert not one & other
    assert sets[1] & {canonical(one) for one in mfl.generate(target, 4000, seed=0)}  # small lakes would repeat


def test_validation_labels():
    target = mfl.LakeConfig(slices={3: {"hole_ratio": 0.4}, 5: {}}, num_agents={2: 1, 3: 1})
    suite = validation_suite(target, 20)
    assert suite.labels["size"].tolist() == suite.heights.tolist()
    assert set(zip(suite.labels["size"].tolist(), suite.labels["hole_ratio"].tolist())) == {(3, 0.4), (5, 0.2)}
    assert len(set(suite.sample_ids)) == 20
    assert list(validation_suite(target, 20)) == list(suite)
    assert list(mfl.generate(target, 20)) != list(suite)


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint64])
def test_a_validation_suite_takes_a_seed_of_numpys(tmp_path, kind):
    config = mfl.LakeConfig.single(4, 2)
    drawn = validation_suite(config, 3, kind(3))
    drawn.save(tmp_path / "boards.lakes")
    assert drawn == validation_suite(config, 3, 3)


def test_an_oblong_suite_is_named_by_both_sides():
    suite = validation_suite(mfl.LakeConfig.single((3, 6), 2), 2)
    assert [name.split("_hr")[0] for name in suite.sample_ids] == ["2ag_3x6", "2ag_3x6"]
