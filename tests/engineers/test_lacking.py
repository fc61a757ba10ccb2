"""What is lacking is told by where the failures are; names, letters and one false number move nothing."""

from __future__ import annotations

import random
from typing import Literal

import pytest
from pydantic import Field, create_model

import engineers
from engineers import SliceResult, StageReport
from engineers.plain.lacking import Lack, answer, lacks_of, option_against
from engineers.report import Split


def report(rates, splits=None, kinds=("burnt",), episodes=40):
    rows = []
    for name, rate in rates.items():
        failed = round(episodes * (1 - rate))
        lost = {kind: failed // len(kinds) for kind in kinds} if failed else {}
        rows.append(SliceResult(name=name, episodes=episodes, metrics={"valid_rate": rate}, failures=lost))
    halves = {name: {part: Split(episodes=20, succeeded=won) for part, won in (splits or {}).items()} for name in rates}
    return StageReport(stage=0, objective="valid_rate", config={}, results=rows, splits=halves if splits else {})


EVEN = {"4": 0.5, "5": 0.5}
MEANINGS = {
    "A": "4×4 50%, pepper ratio 0.1; 5×5 50%, pepper ratio 0.1",
    "B": "4×4 100%, pepper ratio 0.4",
    "C": "5×5 100%, pepper ratio 0.1",
    "D": "as it was",
}


@pytest.mark.parametrize(
    ("told", "option"),
    [
        (report(EVEN, {"pepper_is_needed": 1, "no_pepper_is_needed": 19}), "B"),
        (report({"4": 1.0, "5": 0.2}), "C"),
        (report({"4": 0.2, "5": 1.0}), "B"),
        (report(EVEN, kinds=("pepper",)), "B"),
        (report(EVEN, {"pepper_is_needed": 10, "no_pepper_is_needed": 10}, kinds=("burnt", "pepper")), None),
        (report({"4": 1.0, "5": 1.0}), None),
        (report(EVEN, {"thyme_is_needed": 1, "no_thyme_is_needed": 19}, kinds=("thyme",)), None),  # no option speaks of it
    ],
)  # fmt: skip
def test_the_option_that_gives_most_of_what_fails_is_taken(told, option):
    found = answer(told, MEANINGS)
    assert (found and found[0]) == option


def test_one_false_rate_moves_nothing_where_failures_and_parts_say_otherwise():
    true = report({"4": 1.0, "5": 0.0}, None)
    splits = {"4": {"x": Split(episodes=40, succeeded=40)}, "5": {"x": Split(episodes=40, succeeded=0)}}
    lie = true.model_copy(deep=True, update={"splits": splits})
    lie.results[1].metrics["valid_rate"] = 1.0
    assert [*lacks_of(lie)] == [*lacks_of(true.model_copy(update={"splits": splits}))]


def test_failures_of_no_episodes_lack_nothing():
    played_nowhere = SliceResult(name="4", episodes=0, failures={"burnt": 3})
    assert not [*lacks_of(StageReport(stage=0, config={}, results=[played_nowhere]))]


def by_parts(rates, **kinds):
    """Of a slice of 150 episodes, of which 75 succeed; each part has half of them."""
    row = SliceResult(name="4", episodes=150, metrics={"valid_rate": 0.5}, failures=kinds)
    splits = {"4": {part: Split(episodes=75, succeeded=round(75 * rate)) for part, rate in rates.items()}}
    return StageReport(stage=0, config={}, objective="valid_rate", results=[row], splits=splits)


PEPPER = {"pepper_is_needed": 0.36, "no_pepper_is_needed": 0.64}
FARMS = {"farms_are_near": 0.56, "farms_are_far": 0.42}
OF_FARMS = {"A": "pepper ratio 0.4, min distance 1", "B": "pepper ratio 0.1, min distance 3", "C": "as it was"}


@pytest.mark.parametrize(
    ("told", "option"),
    [
        (by_parts(PEPPER | FARMS, burnt=40, farm_missed=35), "A"),  # above chance
        (by_parts(PEPPER | FARMS, farm_missed=75), "B"),  # the kind of failure that stands out mentions farms
        (by_parts({"pepper_is_needed": 0.3, "no_pepper_is_needed": 0.7} | FARMS, farm_missed=75), "A"),  # a clear difference
        (by_parts(PEPPER | FARMS, distance=75), "B"),  # an option mentions this kind
        (by_parts(FARMS, burnt=40, farm_missed=35), None),  # within chance
        (by_parts({"farms_are_near": 0.4, "farms_are_far": 0.4}, farm_missed=75), None),  # no difference
    ],
)  # fmt: skip
def test_weaker_evidence_counts_where_no_stronger_one_has_an_option(told, option):
    found = answer(told, OF_FARMS)
    assert (found and found[0]) == option


def test_numbers_in_a_part_s_name_are_looked_for():
    lack = Lack("3 cooks", 0.0, 1.0, words=frozenset({"cook"}), number=3.0)
    assert option_against(lack, {"A": "num cooks 2; x 50%", "B": "num cooks 3; x 50%", "C": "num cooks 4"}) == "B"


@pytest.mark.parametrize("seed", range(5))
def test_a_menu_is_answered_alike_under_other_letters_and_another_name(seed):
    told = report(EVEN, {"pepper_is_needed": 1, "no_pepper_is_needed": 19})

    def chosen(knob, letters):
        meanings = {letter: MEANINGS[own] for own, letter in letters.items()}
        options = Literal[tuple(sorted(meanings))]
        menu = create_model("Menu", **{knob: (options, Field(description="Which.", json_schema_extra={"meanings": meanings}))})  # fmt: skip
        current = menu(**{knob: letters["D"]})
        asked = told.model_copy(update={"config": current.model_dump()})
        reader = engineers.make("reader")
        reader.check_able(current)
        return {letter: own for own, letter in letters.items()}[getattr(reader.propose(asked, current).config, knob)]

    other = list("ABCD")
    random.Random(seed).shuffle(other)
    assert chosen("choice", dict(zip("ABCD", "ABCD", strict=True))) == "B"
    assert chosen("variant", dict(zip("ABCD", other, strict=True))) == "B"
