"""An instance in words and back, in every style; what is no instance says where and why."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake import LakeError
from mapf_frozenlake.text import STYLES, state_text, turns_prompt
from tests.text.lakes import instances, lake

PAPER = """\
S F s
F H F
g F G

Agent 0 needs to go from (0, 0) to (2, 2).
Agent 1 needs to go from (0, 2) to (2, 0)."""


@given(instances(max_side=9, max_agents=24), st.sampled_from(STYLES))
@settings(max_examples=200)
def test_round_trip(instance, style):
    assert mfl.from_text(mfl.to_text(instance, style)) == instance
    assert mfl.from_text(mfl.plan_prompt(instance, style)) == instance
    assert mfl.from_text(turns_prompt(instance, 10, style)) == instance


@given(instances(max_side=12, max_agents=64, min_side=8))
@settings(max_examples=30)
def test_coordinates_take_any_number_of_agents(instance):
    assert mfl.from_text(mfl.to_text(instance, "coordinates")) == instance
    if instance.num_agents > 24:
        with pytest.raises(LakeError, match="style='coordinates'"):
            mfl.to_text(instance)


def test_paper_style_is_the_public_one():
    instance = lake(["...", ".#.", "..."], [(0, 0), (0, 2)], [(2, 2), (2, 0)])
    assert mfl.to_text(instance) == PAPER


def test_a_row_of_the_public_data_set():
    instance = mfl.from_text({"sample_id": "2ag_3x3_hr0.2_007", "num_agents": 2, "text": PAPER})
    assert instance.sample_id == "2ag_3x3_hr0.2_007"
    assert mfl.to_text(instance) == PAPER


def test_what_stands_around_does_not_matter():
    text = f"You are a planner. Here is the map:\n\n{PAPER}\n\nAnswer with A and B.\n"
    assert mfl.to_text(mfl.from_text(text)) == PAPER


def test_five_agents_have_the_public_letters():
    instance = lake(["....."] * 2, [(0, c) for c in range(5)], [(1, c) for c in range(5)])
    assert mfl.to_text(instance).splitlines()[:2] == ["S s A B C", "G g a b c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no agent is named"),
        (PAPER.replace("F H F", "F H"), "line 2 has 2 cells, but the rows above have 3"),
        (PAPER.replace("S F s", "F F s"), r"cell \(0, 0\) shows 'F', but by the sentences it is 'S'"),
        (PAPER.replace("(2, 0)", "(7, 0)"), r"agent 1's goal \(7, 0\) is off the board"),
        (PAPER.replace("(2, 0)", "(999999, 0)"), "fits on no lake"),
        (PAPER.replace("Agent 1", "Agent 2"), "agents 0, 2 are named but not agent 1"),
        (PAPER + "\nAgent 1 needs to go from (0, 2) to (1, 0).", "where agent 1 needs to go, and they differ"),
        (PAPER + "\n\nS F\nF G\n", "boards begin on lines 1, 8"),
        (PAPER.replace("S F s\nF H F\ng F G", ""), "no board is there"),
        ("The lake has 2 rows and 2 columns.\nAgent 0 needs to go from (0, 0) to (1, 1).", "no line 'Holes:"),
        ("The lake has 2 rows and 99 columns.\nHoles: none\nAgent 0 needs to go from (0, 0) to (1, 1).", "99 columns"),
        (
            "The lake has 2 rows and 2 columns.\nHoles: (5, 1)\nAgent 0 needs to go from (0, 0) to (1, 1).",
            r"hole \(5, 1\)",
        ),
        ("The lake has 2 rows and 2 columns.\nHoles: many\nAgent 0 needs to go from (0, 0) to (1, 1).", "'many'"),
        ("Lake 2 2: S F G; 0 0 1 0", "3 letters for 2 rows of 2 columns"),
        ("Lake 2 2: S F F G; 0 0 1", "3 numbers after the board"),
        ("Lake 2 2: S F F G; 0 0 0 1", r"cell \(0, 1\) shows 'F', but by the sentences it is 'G'"),
        ("Lake 2 2: S F F G; 0 0 9 9", r"goal \(9, 9\) is off the board"),
        ("Lake 99 2: S F F G; 0 0 1 1", "99 rows and 2 columns"),
        ("Lake 2 2: S F F G; 0 0 1 1\n\n" + PAPER, "more than one lake"),
        ("x" * 300_000, "300000 characters"),
        (None, "not a NoneType"),
        ({"text": 3}, "a row needs its board"),
        ({"sample_id": "a", "num_agents": 3, "text": PAPER}, "row 'a': num_agents=3, but the text has 2"),
        ({"sample_id": "a", "num_agents": 2, "text": "?"}, "row 'a': no agent is named"),
    ],
)
def test_what_is_no_instance_says_where_and_why(text, message):
    with pytest.raises(LakeError, match=message):
        mfl.from_text(text)


@given(instances(), st.sampled_from(STYLES), st.data())
@settings(max_examples=200)
def test_broken_texts_are_read_or_refused_in_a_sentence(instance, style, data):
    text = mfl.to_text(instance, style)
    at, to = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
    broken = (
        text[:at] + data.draw(st.sampled_from(["", "H", "(", "Agent 0", "-1", "\n", "٣", text[at:to] * 2])) + text[to:]
    )
    read = read_or_refusal(broken)
    if isinstance(read, LakeError):
        assert 10 < len(str(read)) < 400
        assert "\n" not in str(read)
    else:
        assert mfl.from_text(mfl.to_text(read, style)) == read


def read_or_refusal(text):
    try:
        return mfl.from_text(text)
    except LakeError as refusal:
        return refusal


def test_unknown_style():
    with pytest.raises(LakeError, match="style='haiku': choose one of 'paper', 'coordinates'"):
        mfl.to_text(lake(["..", ".."], [(0, 0)], [(1, 1)]), "haiku")


def test_where_everybody_is():
    instance = lake(["...", ".#.", "..."], [(0, 0), (0, 2)], [(2, 2), (2, 0)])
    assert state_text(instance, np.array([(1, 0), (2, 0)]), 3, 24) == (
        "Step 3 of at most 24 is done.\n\nF F F\nS H F\ns F G\n\n"
        "Agent 0 is at (1, 0); its goal is (2, 2).\nAgent 1 is at (2, 0), on its goal."
    )


def test_a_row_read_from_csv():
    instance = lake(["..", ".."], [(0, 0)], [(1, 1)])
    assert mfl.from_text({"sample_id": "a", "num_agents": "1", "text": mfl.to_text(instance)}) == instance
