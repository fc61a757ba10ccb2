"""A config in a few words, and a world's own words: what tables and prompts show."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import BaseModel, Field

from envtuning.worlds import make_world
from envtuning.worlds.episodes import Episode
from envtuning.worlds.lakes.world import even_shares
from envtuning.worlds.world import About, InfeasibleConfig, World, summary_of
from mapf_frozenlake import LakeConfig

LAKES = make_world("lakes")


class Piece(BaseModel):
    share: float = Field(1.0, ge=0, le=1)
    wind_speed: float = Field(0.25, ge=0, le=1)
    gusts: int = Field(3, ge=0, le=9)
    note: str = "calm"


class Sliced(BaseModel):
    slices: dict[str, Piece] = Field(
        default_factory=lambda: {"sea": Piece(), "lake": Piece(share=0.25), "pond": Piece(share=0)}
    )


class Whole(BaseModel):
    wind_speed: float = Field(0.12345, ge=0, le=1)
    free: float = 3.0
    depth: int = Field(7, ge=1, le=9)


class TwoMaps(BaseModel):
    calm: dict[int, Piece] = {1: Piece(), 2: Piece(share=0)}
    windy: dict[int, Piece] = {1: Piece(share=0), 2: Piece()}


ABOUT = About(name="seas", environment="Water.", slice_label="the {0}", objective="b", rates={"a": "A", "b": "B"})


def test_a_config_is_told_by_its_slices_in_use_or_by_its_numbers():
    assert summary_of(Sliced(), ABOUT) == [
        "the lake 20%, wind speed 0.25, gusts 3",
        "the sea 80%, wind speed 0.25, gusts 3",
    ]
    assert summary_of(Whole(), ABOUT) == ["wind_speed 0.123", "depth 7"]


def test_the_objective_is_the_first_heading():
    assert list(ABOUT.headings.items()) == [("b", "B"), ("a", "A")]
    assert ABOUT.label("sea") == "the sea"
    assert (ABOUT.case, ABOUT.unit) == ("case", "env_steps")


def test_slices_are_those_in_use_with_their_part_and_a_config_without_is_one():
    class Seas(World):
        about, config_type = ABOUT, Sliced

        def draw(self, *_, **__): ...

        def load(self, path): ...

        def play(self, *_, **__): ...

    world = Seas()
    assert world.slices(Sliced()) == pytest.approx({"lake": 0.2, "sea": 0.8})
    assert world.slices(Whole()) == {"all": 1.0}
    with pytest.raises(InfeasibleConfig, match=r"calm\.1 and windy\.1 are slices with the same name, '1'"):
        world.slices(TwoMaps())
    assert world.summary(Sliced()) == summary_of(Sliced(), ABOUT)
    assert world.validated_as("target", "config") == "target"
    assert (world.capacity([]), world.behaviour([], []), world.drawn(Sliced(), [])) == ({}, {}, {})
    assert world.film([], None) is None
    with pytest.raises(NotImplementedError, match=r"'seas'.*\bmake_env\b"):
        world.make_env(None, exclude=(), capacity={}, seed=0)


def test_a_failure_is_explained_by_its_note_or_by_what_its_kind_means():
    class Seas(World):
        about, config_type = replace(ABOUT, failures={"sunk": "it went down"}), Sliced
        draw = load = play = None

    for kind, note, said in (
        ("sunk", "a leak", "a leak"),
        ("sunk", None, "it went down"),
        ("ran_aground", None, "ran aground"),
    ):
        case = Seas().explain([], Episode(7, "sea", kind, {}, note=note))
        assert case.model_dump(exclude_unset=True) == {
            "slice": "sea", "kind": kind, "picture": "", "explanation": said, "case_id": "7"
        }  # fmt: skip


def test_lakes_are_told_by_size_in_order_with_holes_and_waits():
    slices = {
        "10": {"share": 0.25, "hole_ratio": 0.25, "wait_ratio": 0.5},
        "9": {"share": 0.75, "hole_ratio": 0.9, "wait_ratio": None},
        "4": {"share": 0.0, "hole_ratio": 0.1, "wait_ratio": None},
    }
    assert LAKES.summary(LakeConfig(slices=slices)) == ["9×9 75%, holes .90", "10×10 25%, holes .25, waits .50"]


def test_a_held_out_set_has_as_much_of_each_size_in_use():
    config = LakeConfig.model_validate({"slices": {3: {"share": 0.9}, 4: {"share": 0.1}, 5: {"share": 0.0}}})
    assert {size: piece.share for size, piece in even_shares(config).slices.items()} == {3: 1.0, 4: 1.0, 5: 0.0}
