"""An engineer that can do nothing with a config says so before anything is trained."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

import engineers
from engineers import SliceResult, StageReport
from engineers.knobs import KnobError, dump, find_knobs
from engineers.roles import find_slices, shares_of

WALKERS = ("rules", "half-success", "progress-share", "reader", "rising", "steady", "schedule")
ALL = ("fixed", "random", "uniform", "failure-share", "give-up", "learning-progress", "learnability", *WALKERS)


class Text(BaseModel):
    prompt: str = Field("Be brief.", description="What the agent is told.")


class Choice(BaseModel):
    style: Literal["plain", "fancy"] = Field("plain", description="How plates are laid.")


class Switch(BaseModel):
    gate: bool = Field(True, description="Whether the gate is open.")


class Only(BaseModel):
    style: Literal["plain"] | None = Field("plain", description="How plates are laid: there is one way, or none.")


class Number(BaseModel):
    wind: float = Field(0.2, ge=0, le=1, description="Strength of the wind.")


class Plain(BaseModel):
    wind: float = Field(0.2, ge=0, le=1, description="Strength of the wind.", json_schema_extra={"role": "none"})


class Open(BaseModel):
    wind: float = Field(0.2, ge=0, description="Strength of the wind, without an upper bound.")


class Part(BaseModel):
    share: float = Field(0.5, ge=0, le=1, description="Weight in the data.")


class Alone(BaseModel):
    parts: dict[str, Part] = Field({"a": Part()}, description="The one slice.")


class Pair(BaseModel):
    parts: dict[str, Part] = Field({"a": Part(), "b": Part(share=0.1)}, description="The slices.")


class Nothing(BaseModel):
    pass


NUMBERS, SHARES = (
    {"random", "uniform", *WALKERS},
    {"random", "uniform", *WALKERS, "failure-share", "give-up", "learning-progress", "learnability"},
)
ABLE = {  # whom a config has something for; fixed is asked for nothing
    Text: set(),
    Choice: {"random"},
    Switch: {"random"},
    Only: set(),
    Number: NUMBERS,
    Plain: {"random", "uniform"},
    Open: set(),
    Alone: set(),
    Pair: SHARES,
}


@pytest.mark.parametrize("config", ABLE, ids=lambda config: config.__name__)
@pytest.mark.parametrize("name", ALL)
def test_who_can_do_nothing_with_a_config_says_so(name, config):
    if name == "fixed" or name in ABLE[config]:
        engineers.make(name).check_able(config())
        return
    there = find_knobs(config())[0].pattern.replace(".", r"\.").replace("*", r"\*")
    with pytest.raises(
        KnobError,
        match=rf"^{name} can do nothing with this {config.__name__}: it turns the shares of two slices or more.*, and "
        rf"editable is {there}; make other knobs editable, or name an engineer that can turn these",
    ):
        engineers.make(name).check_able(config())


@pytest.mark.parametrize("config", ABLE, ids=lambda config: config.__name__)
@pytest.mark.parametrize("name", ALL)
def test_who_says_so_really_does_nothing_and_who_does_not_does_something(name, config):
    """On reports that give everyone a reason to move: fair success in training, little on the target."""
    current, far = config(), {"wind": 0.9, "parts": {"a": {"share": 0.0}, "b": {"share": 1.0}}}
    target = {key: far.get(key, value) for key, value in current.model_dump(mode="json").items()}
    seen = {"training_results": results(a=0.9, b=0.8), "results": results(a=0.6, b=0.1)}
    reports = [
        StageReport(
            objective="valid_rate",
            stage=n,
            config=current.model_dump(mode="json"),
            target=target,
            rounds_left=2,
            **seen,
        )
        for n in range(8)
    ]
    turned = any(
        drawn_from(engineers.make(name).propose(report, current).config) != drawn_from(current) for report in reports
    )
    assert turned is (name in ABLE[config])


def drawn_from(config):
    """The config with shares as parts of the data: a share without another means nothing."""
    data = dump(config)
    return data | {"parts": shares_of(data, find_slices(find_knobs(config)))} if "parts" in data else data


def results(**rates):
    return [
        SliceResult(name=name, episodes=100, metrics={"valid_rate": rate}, failures={}) for name, rate in rates.items()
    ]


def test_what_is_not_editable_is_nothing_to_turn():
    pair = Pair()
    with pytest.raises(KnobError, match=r"editable is parts\.\*\.share; make other knobs editable"):
        engineers.make("rules").check_able(pair, ["parts.a.share"])
    engineers.make("rules").check_able(pair, ["parts.a.share", "parts.b.share"])
    with pytest.raises(KnobError, match="editable is nothing; make other knobs editable"):
        engineers.make("rules").check_able(Nothing())


def test_a_space_makes_a_number_one_that_can_be_turned_and_is_checked():
    engineers.make("uniform", space={"wind": (0, 3)}).check_able(Open())
    for name in ("uniform", "server/http://localhost:1/v1#m", "human"):
        with pytest.raises(KnobError, match="space winds is not a knob of Open"):
            engineers.make(name, space={"winds": (0, 3)}).check_able(Open())


@pytest.mark.parametrize("name", ["server/http://localhost:1/v1#m", "human"])
def test_who_reads_can_write_any_knob_but_needs_one(name, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    for config in ABLE:
        engineers.make(name).check_able(config())
    with pytest.raises(KnobError, match="no"):
        engineers.make(name).check_able(Nothing())


def test_a_number_without_two_bounds_is_told_what_it_lacks():
    class Reach(BaseModel):
        distance: float = Field(1.0, gt=0)

    with pytest.raises(KnobError, match=r"\. distance would be turned with two bounds: Field\(…, ge=…, le=…\)$"):
        engineers.make("rules").check_able(Reach())
