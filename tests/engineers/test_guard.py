"""What a proposal must pass: each refusal is one sentence with value, bound and remedy."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict, Field

import engineers
from engineers import Proposal

check = partial(engineers.check, objective="valid_rate")  # what the report of the kitchen is about


def with_menu(kitchen, **dishes):
    """The kitchen with other knobs: with_menu(kitchen, soup={"share": 0.1})."""
    menu = {name: dish.model_copy(update=dishes.get(name, {})) for name, dish in kitchen.menu.items()}
    return kitchen.model_copy(update={"menu": menu})


def test_the_current_config_passes(kitchen, report):
    assert check(kitchen, kitchen, report.records(), max_drop=0.0) == []
    assert check(Proposal(config=kitchen), kitchen) == []


def test_a_config_built_past_its_validators_is_refused(kitchen):
    (said,) = check(with_menu(kitchen, soup={"share": 3.0}), kitchen)
    assert "menu.soup.share=3.0" in said
    assert "less than or equal to 1" in said


def test_a_name_that_model_copy_took_without_a_look_is_refused(kitchen):
    (said,) = check(kitchen.model_copy(update={"stile": "fancy"}), kitchen)
    assert (
        said
        == "the config has no field 'stile', and model_copy does not check names: give one of menu, style, ovens, owner"
    )
    (said,) = check(with_menu(kitchen, soup={"heta": 90.0}), kitchen)
    assert said.startswith(
        "menu.soup has no field 'heta', and model_copy does not check names: give one of share, heat,"
    )


def test_a_number_of_numpys_is_refused_by_its_field(kitchen):
    said = check(with_menu(kitchen, soup={"heat": np.float32(90.0), "steps": np.int64(3)}), kitchen)
    assert said == [
        "menu.soup.heat is of type float32, which cannot be written as JSON: give a plain float; "
        "menu.soup.steps is of type int64, which cannot be written as JSON: give a plain int"
    ]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    wind: float = Field(0.1, ge=0.0, le=1.0, description="Strength of the wind.")
    inner: Open | None = None

    @cached_property
    def gust(self) -> float:
        return 2 * self.wind


def test_a_config_may_have_names_that_its_class_allows():
    current = Open(inner=Open(note="here"), sand=0.1)
    changed = current.model_copy(update={"wind": 0.3, "sand": 0.1})
    assert changed.gust == 0.6
    assert check(changed, current, editable=["wind"]) == []


def test_another_class_is_refused(kitchen):
    (said,) = check(kitchen.menu["soup"], kitchen)
    assert said == "the config is a Dish, it must be a Kitchen"


def test_a_dict_is_refused_by_its_name(kitchen):
    (said,) = check(Proposal(config=kitchen.model_dump()), kitchen)
    assert said == "the config is a dict, it must be a Kitchen: give Kitchen.model_validate(…)"


def test_a_refusal_comes_without_a_warning_of_pydantics(recwarn):
    class Pot(BaseModel):
        litres: int = Field(3, ge=1, le=9)

    (said,) = check(Pot().model_copy(update={"litres": 3.7}), Pot())
    assert "litres=3.7" in said
    assert not recwarn.list


def test_a_locked_knob_is_refused(kitchen):
    (said,) = check(kitchen.model_copy(update={"owner": "me"}), kitchen)
    assert "owner was changed from 'nobody' to 'me'" in said
    (said,) = check(with_menu(kitchen, soup={"heat": 90.0}), kitchen, editable=["menu.*.share"])
    assert "menu.soup.heat" in said
    assert "only menu.*.share may be" in said


class Part(BaseModel):
    share: float = Field(1.0, ge=0.0, le=1.0, description="Weight of this part.")
    wind: float = Field(0.1, ge=0.0, le=1.0, description="Strength of the wind.")


class Parts(BaseModel):
    parts: dict[str, Part] = Field(default_factory=dict, description="What is trained on.")


def parts(**shares: float) -> Parts:
    return Parts(parts={name: Part(share=share) for name, share in shares.items()})


NEW = "slice 'c' is new: an engineer adds no slice (the config has a, b)"


@pytest.mark.parametrize(
    ("proposed", "said"),
    [
        (parts(a=1, b=1, c=1), NEW),
        (parts(a=1), "slice 'b' is gone: keep it, and give it a share of 0"),
        (parts(), "slices 'a', 'b' are gone: keep them"),
    ],
)
@pytest.mark.parametrize("editable", [None, ["parts.*.share"]])
def test_a_slice_that_is_new_or_gone_is_refused_in_a_sentence(proposed, said, editable):
    assert check(proposed, parts(a=1, b=1), editable=editable) == [said]


def test_a_slice_with_another_name_is_new_and_the_old_one_is_gone():
    said = check(parts(a=1, c=1), parts(a=1, b=1))
    assert said == [NEW, "slice 'b' is gone: keep it, and give it a share of 0"]


def test_what_is_new_beside_the_slices_is_refused_as_a_locked_knob(kitchen):
    ovens = kitchen.model_copy(update={"ovens": [1, 2, 3]})
    assert check(ovens, kitchen) == []
    assert "ovens was changed" in check(ovens, kitchen, editable=["menu"])[0]


def test_shares_that_are_all_0_are_refused_unless_they_were_before():
    said = "all shares are 0, so nothing would be drawn: give at least one slice a share above 0"
    assert check(parts(a=0, b=0), parts(a=1, b=0)) == [said]
    assert check(parts(a=0, b=0), parts(a=0, b=0)) == []
    assert check(parts(a=0, b=0.5), parts(a=1, b=0)) == []
    assert check(Part(share=0, wind=0.1), Part()) == []  # a config that is one slice has no shares


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("no pot is that big", "the config cannot be drawn: no pot is that big"),
        (False, "the config cannot be drawn"),
        (ValueError("no gas"), "the config cannot be drawn: no gas"),
    ],
)
def test_what_the_generator_cannot_draw_is_refused(kitchen, answer, said):
    def feasible(config):
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert check(kitchen, kitchen, feasible=feasible) == [said]


@pytest.mark.parametrize("answer", [None, True])
def test_what_the_generator_can_draw_passes(kitchen, answer):
    assert check(kitchen, kitchen, feasible=lambda config: answer) == []


@pytest.mark.parametrize(("share", "refused"), [(0.5, False), (0.2, False), (0.15, True), (0.0, True)])
def test_a_working_slice_may_lose_only_so_much_at_once(kitchen, report, share, refused):
    """Soup works at 0.8 with half of the data; with share s it has s/(s + .5); half of a half is s = 1/6."""
    said = check(with_menu(kitchen, soup={"share": share}), kitchen, report.records(), max_drop=0.5)
    assert bool(said) is refused
    if refused:
        assert "slice soup works (valid_rate 0.80)" in said[0]
        assert "keep at least 25.0%" in said[0]


def test_the_limit_is_off_by_default(kitchen, report):
    assert check(with_menu(kitchen, soup={"share": 0.0}), kitchen, report.records()) == []


@pytest.mark.parametrize("max_drop", [-0.1, 1.5, 50, float("nan")])
def test_a_limit_that_is_no_part_is_an_error(kitchen, max_drop):
    with pytest.raises(ValueError, match=r"max_drop=.*: give a fraction from 0 to 1"):
        check(kitchen, kitchen, max_drop=max_drop)


def test_a_drop_is_said_with_what_works_from_where_to_where_and_what_would_pass(kitchen, report):
    said = check(with_menu(kitchen, soup={"share": 0.15}), kitchen, report.records(), max_drop=0.5)
    assert said == [
        "slice soup works (valid_rate 0.80) and would fall from 50.0% to 23.1% of the data: "
        "keep at least 25.0% in one step"
    ]
    exactly = with_menu(kitchen, soup={"share": 0.25})  # a third of the data
    assert check(exactly, kitchen, report.records(), max_drop=1 / 3) == []
    assert check(exactly, kitchen, report.records(), max_drop=0.33) != []


@pytest.mark.parametrize(("rate", "episodes", "refused"), [(0.5, 100, True), (0.49, 100, False), (0.9, 0, False)])
def test_a_slice_works_from_half_on_by_the_last_stage_and_by_episodes_that_were_played(
    kitchen, report, results, rate, episodes, refused
):
    last = report.model_copy(update={"results": results(episodes=episodes, soup=rate)})
    assert bool(check(with_menu(kitchen, soup={"share": 0.0}), kitchen, last.records(), max_drop=0.1)) is refused
    other = with_menu(kitchen, soup={"share": 0.0})
    assert check(other, kitchen, last.records(), max_drop=0.1, objective="taste") == []
    assert check(other, kitchen, [], max_drop=0.1) == []


def test_the_whole_share_may_go_where_the_limit_is_all_of_it(kitchen, report):
    assert check(with_menu(kitchen, soup={"share": 0.0}), kitchen, report.records(), max_drop=1.0) == []


def test_the_generator_is_asked_only_about_what_passes_the_rest(kitchen, report):
    asked = []
    for config in (kitchen.model_copy(update={"owner": "me"}), kitchen):
        check(config, kitchen, report.records(), feasible=asked.append)
    assert asked == [kitchen]


def test_a_slice_that_was_not_measured_does_not_count_as_working(kitchen, report, results):
    unmeasured = report.model_copy(update={"results": results(stew=0.9)})
    assert check(with_menu(kitchen, soup={"share": 0.0}), kitchen, unmeasured.records(), max_drop=0.1) == []
