"""A misspelt knob in a run's file is told, whatever the world's own models do with keys that they do not know."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from envtuning.runs.unknown_fields import unknown_fields


class Wind(BaseModel):
    speed: float = 0.0


class Config(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    winds: dict[int, Wind] = Field(default_factory=dict)
    gusts: list[Wind] = Field(default_factory=list)
    length: float = Field(1.0, alias="len")


class Shorthand(BaseModel):
    wind: Wind = Wind()

    @model_validator(mode="before")
    @classmethod
    def _from_speed(cls, given: Any) -> Any:
        return {"wind": given} if "speed" in given else given


def faults(model, given):
    said = unknown_fields(given, model.model_validate(given), "target")
    return [sentence.partition(": ")[0].removeprefix("target.") for sentence in said]


@pytest.mark.parametrize(
    ("given", "unknown"),
    [
        ({}, []),
        ({"winds": {"3": {"speed": 2.0}}, "gusts": [{}], "len": 2.0}, []),
        ({"length": 2.0}, []),
        ({"wnds": {}}, ["wnds"]),
        ({"winds": {3: {"sped": 2.0}, 4: {"speed": 1.0}}}, ["winds.3.sped"]),
        ({"gusts": [{"speed": 1.0}, {"strength": 1.0}], "lenght": 1}, ["gusts.1.strength", "lenght"]),
    ],
)
def test_each_key_that_became_nothing_is_named(given, unknown):
    assert faults(Config, given) == unknown


def test_a_model_that_reads_raw_data_itself_is_believed():
    assert faults(Shorthand, {"speed": 3.0}) == []


def test_the_fault_says_what_there_is():
    assert list(unknown_fields({"sped": 1.0}, Wind(), "target")) == [
        "target.sped: Wind has no such field: it has speed"
    ]


class OtherNames(BaseModel):
    speed: float = Field(0.0, validation_alias=AliasChoices("wind", "v"))


def test_other_names_for_validation_are_believed():
    assert faults(OtherNames, {"v": 3.0}) == []
