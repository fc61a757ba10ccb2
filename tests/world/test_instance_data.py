"""Instances as data: JSON, DataFrames, what notebooks show, and what the judge says of an optimum it does not know."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import pickle
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake.errors import LakeError

SUITE = mfl.load_suite("quick")


@given(st.integers(0, len(SUITE) - 1))
def test_json_holds_everything_of_an_instance(index: int) -> None:
    instance = SUITE[index]
    again = mfl.Instance.from_json(instance.to_json())
    assert again == instance
    for fact in ("makespan", "needs_wait", "certificate", "sample_id"):
        assert getattr(again, fact) == getattr(instance, fact)


def bare() -> mfl.Instance:
    return mfl.Instance(holes=np.zeros((2, 3), bool), starts=[[0, 0]], goals=[[0, 2]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SFFG", "give an Instance, or what Instance.to_json"),
        ("[]", "must be an object"),
        ("{}", "has no 'board'"),
        ('{"board": ["FF", "FF"], "starts": [[0, 0]], "goals": [[1, 1]], "size": 2}', "unknown field 'size'"),
        ('{"board": ["FF", "FX"], "starts": [[0, 0]], "goals": [[1, 1]]}', r"give rows of F \(ice\) and H \(hole\)"),
        ('{"board": ["FF", "F"], "starts": [[0, 0]], "goals": [[1, 1]]}', "equally long"),
        ('{"board": 3, "starts": [[0, 0]], "goals": [[1, 1]]}', "board=3"),
        ('{"board": ["FF", "FF"], "starts": [[0, 0]], "goals": [[1, 1]], "makespan": -2}', "makespan=-2"),
        ('{"board": ["FF", "FF"], "starts": [[0, 0]], "goals": [[1, 1]], "needs_wait": 1.0}', "needs_wait=1.0"),
        ('{"board": ["FF", "FF"], "starts": [[0, 0]], "goals": [[1, 1]], "certificate": "sure"}', "certificate='sure'"),
        ('{"board": ["FF", "FF"], "starts": [[0, 0]], "goals": [[1, 1]], "sample_id": 3}', "sample_id=3"),
        ('{"board": ["FF", "FF"], "starts": "here", "goals": [[1, 1]]}', "starts"),
        ('{"board": ["FF", "HF"], "starts": [[1, 0]], "goals": [[1, 1]]}', "is a hole"),
    ],
)
def test_other_json_is_one_sentence(text: str, message: str) -> None:
    with pytest.raises(LakeError, match=message):
        mfl.Instance.from_json(text)


@pytest.mark.parametrize(
    ("fact", "message"),
    [
        ({"makespan": -3}, "makespan=-3: give a whole number"),
        ({"makespan": True}, "makespan=True: give a whole number"),
        ({"makespan": 2.0}, r"makespan=2\.0: give a whole number"),
        ({"needs_wait": 1}, "needs_wait=1: give true, false or null"),
        ({"certificate": "sure"}, "certificate='sure': give one of"),
        ({"holes": [[0, 0], [0]]}, "holes=.*: make all rows equally long"),
    ],
)
def test_every_instance_is_checked_not_only_one_from_json(fact, message: str) -> None:
    with pytest.raises(LakeError, match=message):
        dataclasses.replace(bare(), **fact)


def test_facts_may_be_numpys() -> None:
    solved = mfl.solve_batch([bare()])
    instance = dataclasses.replace(bare(), makespan=solved.makespan[0], needs_wait=np.bool_(False))
    assert mfl.Instance.from_json(instance.to_json()).makespan == 2
    assert instance.needs_wait is False


@pytest.mark.parametrize("copy_of", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_is_immutable_too(copy_of) -> None:
    instance = copy_of(SUITE[0])
    assert instance == SUITE[0]
    assert instance.sample_id == SUITE[0].sample_id
    for array in (instance.holes, instance.starts, instance.goals):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["board", "starts", "goals", "makespan"]), inner)
        ),
    )
)
def test_nothing_read_from_outside_crashes(given_value) -> None:
    with contextlib.suppress(LakeError):
        mfl.Instance.from_json(given_value)


def test_a_frame_has_a_row_for_each_and_keeps_the_unknown_unknown() -> None:
    pytest.importorskip("pandas")
    frame = SUITE.to_pandas()
    assert len(frame) == len(SUITE)
    for row, instance in zip(frame.itertuples(), SUITE):
        assert (row.height, row.num_agents, row.holes) == (instance.height, instance.num_agents, instance.holes.sum())
        assert (row.makespan, row.needs_wait, row.sample_id) == (
            instance.makespan,
            instance.needs_wait,
            instance.sample_id,
        )
        assert mfl.Instance.from_json(row.instance) == instance
    assert set(SUITE.labels) <= set(frame.columns)
    unknown = mfl.InstanceSet.from_instances([bare()]).to_pandas()
    assert unknown[["makespan", "needs_wait"]].isna().all(axis=None)


def test_notebooks_show_pictures_and_tables() -> None:
    document = ET.fromstring(SUITE[0]._repr_svg_())
    assert document.tag.endswith("svg")
    shown = SUITE._repr_html_()
    assert shown.count("<svg ") == 8
    assert len(shown) < 500_000
    table = mfl.evaluate(mfl.solve, SUITE[:12], name="<exact>")
    assert len(repr(table)) < 200
    assert "12 instances" in repr(table)
    page = ET.fromstring(f"<div>{table._repr_html_()}</div>")
    assert page.find("p").text.startswith("<exact>: 100.00 % valid")
    assert len(page.findall("table")) == len(table.sections())
    pytest.importorskip("pandas")
    assert table.to_pandas()["valid"].all()


def test_reprs_are_short() -> None:
    assert repr(bare()) == "Instance(2×3, 1 agents, makespan=None, needs_wait=None)"
    assert len(repr(SUITE)) < 120


def test_the_judge_says_how_to_have_an_unknown_optimum_known() -> None:
    plan = [[2, 2]]
    verdict = mfl.judge(bare(), plan)
    assert verdict.valid
    assert verdict.optimal is None
    assert "optima=('makespan',)" in verdict.note
    known = mfl.judge(bare(), plan, optima=("makespan",))
    assert known.optimal is True
    assert known.note is None
    assert mfl.judge(bare(), [[2]]).note is None, "a plan that is not valid is not optimal, whatever the optimum"
