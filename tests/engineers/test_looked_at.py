"""An engineer that divides data gives no slice of the target up for good: it keeps a hundredth of the draws of any two stages."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

import engineers
from engineers.plain.base import LEAST_PART, LEAST_TOGETHER
from engineers.report import SliceResult, Split, StageRecord, StageReport

DIVIDERS = (
    "steady", "rising", "once", "reader", "failure-share", "give-up", "learning-progress", "learnability",
)  # fmt: skip
NO_FLOOR = {"reader", "failure-share", "give-up", "learning-progress", "learnability"}  # their own floor would hide it
ROUNDED = 0.99  # shares are written with four digits
RATES = st.sampled_from([0.0, 0.0, 0.5, 1.0]) | st.floats(0.0, 1.0)


class Piece(BaseModel):
    share: float = Field(1.0, ge=0, le=1, description="Part of the data.")


class Tenths(BaseModel):
    """Its share counts in whole numbers up to ten, so the least is less than one of them."""

    share: int = Field(10, ge=0, le=10, description="Part of the data.")


class Steps(BaseModel):
    """Its share moves in steps that are wider than twice the least."""

    share: float = Field(1.0, ge=0, le=1, multiple_of=0.05, description="Part of the data.")


def config_of(piece: type[BaseModel], count: int) -> BaseModel:
    """Slices without an order."""
    names = [f"task{chr(97 + place // 26)}{chr(97 + place % 26)}" for place in range(count)]
    return create_model("Config", tasks=(dict[str, piece], {name: piece() for name in names}))()  # type: ignore[valid-type]


@st.composite
def stages_of(draw: st.DrawFn, counts: st.SearchStrategy[int]) -> tuple[int, list[list[SliceResult]]]:
    """How many slices, and what training showed of each in three stages to five; a slice may have none in a stage."""
    count = draw(counts)
    names = list(config_of(Piece, count).model_dump()["tasks"])
    return count, [
        [row(draw, name) for name in names if draw(st.integers(0, 9))] for _ in range(draw(st.integers(3, 5)))
    ]


def row(draw: st.DrawFn, name: str) -> SliceResult:
    episodes, success = draw(st.sampled_from([1, 10, 500])), draw(RATES)
    succeeded = round(success * episodes)
    score = max(draw(RATES), succeeded / episodes)
    half = Split(episodes=episodes, succeeded=succeeded, score=score)
    metrics = {"success_rate": succeeded / episodes, "score": score}
    return SliceResult(name=name, episodes=episodes, metrics=metrics, halves=[half, half])


def parts_of(config: BaseModel) -> dict[str, float]:
    shares = {name: piece["share"] for name, piece in config.model_dump()["tasks"].items()}
    return {name: share / sum(shares.values()) for name, share in shares.items()}


def divisions(name: str, config: BaseModel, stages: list[list[SliceResult]], **options: Any) -> list[dict[str, float]]:
    """What the engineer divides after each stage; each stage has the config that it gave after the one before."""
    engineer, target, found = engineers.make(name, **options), config.model_dump(), list[dict[str, float]]()
    history: list[StageRecord] = []
    for stage, rows in enumerate(stages):
        shown, data = [one for one in rows if parts_of(config)[one.name] > 0], config.model_dump()
        report = StageReport(
            stage=stage, objective="success_rate", config=data, target=target, rounds_left=len(stages) - stage,
            training_results=shown, history=history, blind_scores=dict.fromkeys(target["tasks"], 0.1),
        )  # fmt: skip
        history = [*history, StageRecord(stage=stage, config=data, results=[], training_results=shown)]
        config = engineer.propose(report, config).config
        found.append(parts_of(config))
    return found


@pytest.mark.parametrize("piece", [Piece, Tenths, Steps])
@pytest.mark.parametrize("name", DIVIDERS)
@settings(max_examples=12)
@given(told=stages_of(st.integers(2, 25)))
def test_every_slice_has_a_hundredth_of_the_draws_of_any_two_stages(name, piece, told):
    count, stages = told
    given_out = divisions(name, config_of(piece, count), stages, **({"floor": 0.0} if name in NO_FLOOR else {}))
    for one, next_one in pairwise(given_out):
        for slice_name in one:
            assert (one[slice_name] + next_one[slice_name]) / 2 >= LEAST_PART * ROUNDED, slice_name


@pytest.mark.parametrize("name", DIVIDERS)
@settings(max_examples=5)
@given(told=stages_of(st.sampled_from([26, 40, 60])))
def test_of_more_than_25_slices_each_has_a_quarter_of_an_even_share(name, told):
    count, stages = told
    given_out = divisions(name, config_of(Piece, count), stages, **({"floor": 0.0} if name in NO_FLOOR else {}))
    least = LEAST_TOGETHER / count
    assert least == 1 / (4 * count) < LEAST_PART
    for parts in given_out:
        assert min(parts.values()) >= least * 0.97
