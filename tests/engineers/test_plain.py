"""Engineers without a model: pure, generic, inside the bounds, and never further than the guard lets them."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, model_validator

import engineers
from engineers import SliceResult, StageRecord, StageReport, check
from engineers.knobs import KnobError, dump, find_knobs
from engineers.plain.base import Design, PlainEngineer
from engineers.plain.open_loop import OPEN_LOOP
from engineers.plain.random_search import RandomEngineer
from engineers.roles import find_slices, shares_of
from mapf_frozenlake import LakeConfig

PLAIN = [
    name for name in engineers.registry.PLAIN_ENGINEERS if name not in ("schedule", "ladder", *OPEN_LOOP)
]  # which do little without a target


@pytest.fixture(params=["kitchen", "lake"])
def case(request, report, results, kitchen, example_report):
    """(report, config): the kitchen's and the lake's. At a success of .8, ``steady`` would leave the kitchen as it is."""
    if request.param == "kitchen":
        return report.model_copy(update={"results": results(soup=0.85, stew=0.1)}), kitchen
    return example_report, LakeConfig.model_validate(example_report.config)


@pytest.mark.parametrize("name", PLAIN)
def test_a_proposal_is_a_function_of_its_arguments(name, case):
    """Equal for a second engineer that was made elsewhere and has another past: so a run resumes."""
    report, config = case
    first = engineers.make(name, seed=3)
    once = first.propose(report, config)
    first.propose(report.model_copy(update={"stage": 9}), config)
    assert first.propose(report, config) == once == engineers.make(name, seed=3).propose(report, config)
    assert once.engineer == name
    assert not once.fallback


@pytest.mark.parametrize("name", PLAIN)
def test_an_engineer_without_a_model_uses_nothing(name, case):
    usage = engineers.make(name).propose(*case).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.cost) == (0, 0, 0.0)


@pytest.mark.parametrize("name", PLAIN)
def test_a_proposal_passes_the_guard_and_says_why(name, case):
    report, config = case
    proposal = engineers.make(name, seed=1).propose(report, config)
    assert check(proposal, config, report.records()) == []
    assert all(change.reason and change.old != change.new for change in proposal.reasons)
    assert bool(proposal.reasons) is (proposal.config != config)
    assert (name == "fixed") is (proposal.config == config)


def test_what_stays_as_it_is_has_its_reasons_apart(case):
    report, config = case
    made = engineers.make("uniform")
    even = made.propose(report, config)
    assert not {change.path for change in even.reasons} & even.kept.keys()
    again = made.propose(report.model_copy(update={"config": dump(even.config)}), even.config)
    assert again.reasons == []
    assert again.kept.keys() >= {piece.share.name for piece in find_slices(find_knobs(config))}
    assert all(again.kept.values())
    assert again.with_changes(even.config) == again


@pytest.mark.parametrize("name", PLAIN)
def test_only_editable_knobs_are_turned(name, case):
    report, config = case
    editable = [find_slices(find_knobs(config))[0].share.name]
    proposal = engineers.make(name, seed=1).propose(report, config, editable)
    assert {change.path for change in proposal.reasons} <= set(editable)


@pytest.mark.parametrize("name", PLAIN)
def test_what_cannot_be_drawn_is_not_proposed(name, case):
    """The generator takes no config whose first slice differs from the current one's; the rest may change."""
    report, config = case
    first = find_slices(find_knobs(config))[0].share.group

    def feasible(other):
        before, after = dump(config), dump(other)
        for key in first:
            before, after = before[key], after[key]
        harder = {k: v for k, v in after.items() if k != "share"} != {k: v for k, v in before.items() if k != "share"}
        return "the first slice cannot be drawn like that" if harder else None

    proposal = engineers.make(name, seed=1, feasible=feasible).propose(report, config)
    assert feasible(proposal.config) is None
    assert (proposal.config == config) is (name == "fixed")


@pytest.mark.parametrize("name", PLAIN)
def test_if_nothing_can_be_drawn_the_current_config_goes_on(name, case):
    report, config = case
    proposal = engineers.make(name, feasible=lambda other: other == config).propose(report, config)
    assert proposal.config == config
    assert proposal.fallback is bool(proposal.refusals) is (name != "fixed")


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("max_drop", [0.0, 0.3])
def test_a_working_slice_keeps_what_the_limit_says(name, report, kitchen, max_drop):
    """Soup works (0.8) and has half of the data."""
    for seed in range(10):
        config = engineers.make(name, seed=seed, max_drop=max_drop).propose(report, kitchen).config
        share = shares_of(dump(config), find_slices(find_knobs(kitchen)))["soup"]
        assert share >= 0.5 * (1 - max_drop) - 1e-3


def test_random_draws_the_whole_range_anew_each_stage(report, kitchen):
    engineer = engineers.make("random", seed=0)
    configs = [engineer.propose(report.model_copy(update={"stage": stage}), kitchen).config for stage in range(300)]
    heats = [config.menu["soup"].heat for config in configs]
    assert len(set(heats)) > 290
    assert min(heats) < 10
    assert max(heats) > 290
    assert {config.style for config in configs} == {"plain", "fancy"}
    assert {config.menu["stew"].steps for config in configs} == set(range(1, 21))
    assert engineers.make("random", seed=1).propose(report, kitchen).config != engineer.propose(report, kitchen).config


class Panel(BaseModel):
    """One knob of each kind that can be drawn, and two that cannot."""

    gate: bool = Field(True, description="Whether it is open.")
    colour: Literal["red", "green"] | None = Field("red", description="The colour of the lamp; null for none.")
    count: int = Field(2, ge=1, le=3, description="Lamps.")
    level: float = Field(0.5, ge=0.25, le=0.75, description="How bright.")
    free: float = Field(0.5, ge=0, description="Without an upper bound.")
    words: str = Field("hello", description="A free text.")


def test_every_value_that_random_draws_is_as_likely_as_any_other():
    engineer, rng, panel = RandomEngineer(), random.Random(0), Panel()
    drawn = {knob.name: [engineer._draw(knob, rng) for _ in range(900)] for knob in find_knobs(panel)}
    for name, values in (("gate", (True, False)), ("colour", ("red", "green")), ("count", (1, 2, 3))):
        counts = Counter(drawn[name])
        assert counts.keys() == set(values)
        assert all(abs(count - 900 / len(values)) < 60 for count in counts.values())
    assert 0.25 <= min(drawn["level"]) < 0.26
    assert 0.74 < max(drawn["level"]) <= 0.75
    assert {type(level) for level in drawn["level"]} == {float}
    assert set(drawn["free"]) == set(drawn["words"]) == {None}  # left alone


def test_random_tries_a_slice_twenty_times_and_then_leaves_it_alone(report, kitchen):
    """Stew can never be drawn with other knobs; soup, the style and the ovens can at the third try."""
    asked = []

    def feasible(config):
        asked.append(config)
        return "no such stew" if config.menu["stew"] != kitchen.menu["stew"] else len(asked) >= 3 or "not yet"

    drawn = RandomEngineer(guard=engineers.Guard(feasible)).propose(report, kitchen)
    assert drawn.config.menu["stew"] == kitchen.menu["stew"]
    assert drawn.config.menu["soup"] != kitchen.menu["soup"]
    assert Counter(config.menu["stew"] == kitchen.menu["stew"] for config in asked)[False] == 20
    said = [f"the config cannot be drawn: {why}" for why in ("not yet", "no such stew")]
    assert drawn.refusals == said
    assert {change.reason for change in drawn.reasons} == {"drawn at random"}


def test_random_stays_in_the_space_it_is_given(report, kitchen):
    for seed in range(50):
        engineer = engineers.make("random", seed=seed, space={"menu.*.heat": (50, 60)})
        assert all(50 <= dish.heat <= 60 for dish in engineer.propose(report, kitchen).config.menu.values())


def test_random_draws_slices_whose_names_have_dots(kitchen):
    dotted = kitchen.model_copy(update={"menu": {f"{name}.v1": dish for name, dish in kitchen.menu.items()}})
    drawn = engineers.make("random").propose(StageReport(stage=0, config=dump(dotted)), dotted)
    assert all(drawn.config.menu[name] != dish for name, dish in dotted.menu.items())


@pytest.mark.parametrize("name", ["random", "uniform"])
def test_a_whole_number_does_not_leave_a_space_that_ends_between_two(name, report, kitchen):
    for seed in range(20):
        engineer = engineers.make(name, seed=seed, space={"menu.*.steps": (3.5, 6.5)})
        assert all(4 <= dish.steps <= 6 for dish in engineer.propose(report, kitchen).config.menu.values())
    engineer = engineers.make(name, space={"menu.*.steps": (3.2, 3.8)})
    with pytest.raises(KnobError, match=r"menu\.soup\.steps holds no whole number"):
        engineer.check_able(kitchen)


@pytest.mark.parametrize("name", ["random", "uniform", "rules", "server/http://localhost:1/v1#m", "human"])
def test_a_space_of_no_knob_or_upside_down_is_an_error(name, report, kitchen):
    engineer = engineers.make(name, space={"menu.*.heats": (50, 60)})
    with pytest.raises(
        ValueError, match=r"space menu.\*.heats is not a knob of Kitchen: use menu.\*.share, menu.\*.heat,"
    ):
        engineer.propose(report, kitchen)
    with pytest.raises(ValueError, match=r"space 'menu.\*.heat' is \(60, 50\): give \(low, high\)"):
        engineers.make(name, space={"menu.*.heat": (60, 50)})
    with pytest.raises(ValueError, match=r"space 'menu.\*.heat' is \(0, inf\): give two finite numbers"):
        engineers.make(name, space={"menu.*.heat": (0, float("inf"))})


@pytest.mark.parametrize("name", ["uniform", "human"])
@pytest.mark.parametrize("outside", [(31, 40), (-5, 0)])
def test_a_space_outside_of_a_knobs_bounds_is_an_error(name, outside, kitchen):
    with pytest.raises(
        KnobError, match=r"of menu\.soup\.steps is outside of its bounds, 1 to 20: give a range inside$"
    ):
        engineers.make(name, space={"menu.*.steps": outside}).check_able(kitchen)


def test_uniform_covers_the_space_evenly(example_report):
    """Equal shares; in each stage the eight sizes stand in the middles of eight equal parts of the range."""
    config = LakeConfig.model_validate(example_report.config)
    seen = {size: set() for size in config.slices}
    for stage in range(200):
        report = example_report.model_copy(update={"stage": stage})
        slices = engineers.make("uniform", seed=0).propose(report, config).config.slices
        assert {part.share for part in slices.values()} == {0.125}
        middles = sorted(part.hole_ratio for part in slices.values())
        assert middles == pytest.approx([0.5 * (part + 0.5) / 8 for part in range(8)], abs=1e-4)
        for size, part in slices.items():
            seen[size].add(part.hole_ratio)
    assert all(len(values) == 8 for values in seen.values()), "over the stages every size gets every part"


def test_uniform_covers_a_range_that_only_one_slice_has():
    config = LakeConfig.single(5, 2)
    report = StageReport(stage=0, config=config.model_dump(mode="json"))
    ratios = [
        engineers.make("uniform", seed=0)
        .propose(report.model_copy(update={"stage": stage}), config, editable=["slices.*.hole_ratio"])
        .config.slices[5]
        .hole_ratio
        for stage in range(40)
    ]
    assert len(set(ratios)) > 30
    assert min(ratios) < 0.05
    assert max(ratios) > 0.45


def test_few_episodes_are_not_believed(results, report, kitchen):
    """A slice that failed 3 times of 3 is hardly known; one that failed 300 times of 300 is."""
    shares = []
    for episodes in (3, 300):
        told = report.model_copy(
            update={"results": [*results(episodes=episodes, soup=0.0), *results(episodes=300, stew=0.5)]}
        )
        shares.append(engineers.make("half-success").propose(told, kitchen).config.menu["soup"].share)
    assert shares[0] > 0.4
    assert shares[1] < 0.2


def test_failure_share_gives_data_by_how_often_a_slice_fails_and_a_floor_to_all(results, report, kitchen):
    """Soup fails always, stew half of the time: what a floor of .3 leaves is shared 2 to 1. Heat and salt stay."""
    told = report.model_copy(update={"results": results(soup=0.0, stew=0.5, episodes=10_000)})
    proposal = engineers.make("failure-share", floor=0.3).propose(told, kitchen)
    assert proposal.config.menu["soup"].share == pytest.approx(0.15 + 0.7 * 2 / 3, abs=1e-3)
    assert proposal.config.menu["stew"].share == pytest.approx(0.15 + 0.7 * 1 / 3, abs=1e-3)
    assert {change.path for change in proposal.reasons} == {"menu.soup.share", "menu.stew.share"}


def test_failure_share_gives_nothing_to_what_the_target_lacks(results, report, kitchen):
    target = dump(kitchen) | {"menu": {"soup": dump(kitchen.menu["soup"])}}
    told = report.model_copy(update={"results": results(soup=0.9, stew=0.0), "target": target})
    menu = engineers.make("failure-share").propose(told, kitchen).config.menu
    assert (menu["soup"].share, menu["stew"].share) == (1.0, 0.0)


def test_a_floor_is_a_part():
    with pytest.raises(ValueError, match="floor"):
        engineers.make("failure-share", floor=1.2)


@pytest.mark.parametrize("name", ["rules", "half-success"])
@pytest.mark.parametrize("played", [(60, 60), (60, 20), (20, 60)])
def test_where_nothing_succeeds_the_next_stage_is_easier_however_many_episodes_say_so(
    name, played, results, report, kitchen
):
    target = {"menu": {"stew": {"share": 1.0, "heat": 250.0}}}
    trained, validated = (results(episodes=episodes, soup=0.0, stew=0.0) for episodes in played)
    told = report.model_copy(
        update={"target": target, "results": validated, "training_results": trained, "history": []}
    )
    menu = engineers.make(name).propose(told, kitchen).config.menu
    assert menu["stew"].heat < kitchen.menu["stew"].heat
    assert menu["stew"].share < kitchen.menu["stew"].share


def test_a_schedule_is_counted_from_the_first_stage_and_ends_on_the_target(results, report, kitchen):
    """Stew had heat 150 in the first stage; wherever it is now does not matter."""
    target = {"menu": {"stew": {"share": 1.0, "heat": 250.0}}}
    now = kitchen.model_copy(
        update={"menu": kitchen.menu | {"stew": kitchen.menu["stew"].model_copy(update={"heat": 7.0})}}
    )
    engineer = engineers.make("schedule", parts=[0.1, 0.4])
    for stage, heat, share in ((1, 190.0, 0.9), (2, 250.0, 1.0), (9, 250.0, 1.0)):
        menu = engineer.propose(report.model_copy(update={"target": target, "stage": stage}), now).config.menu
        assert (menu["stew"].heat, menu["stew"].share) == (pytest.approx(heat), pytest.approx(share))
    assert engineer.propose(report, kitchen).config == kitchen, "told no target"
    with pytest.raises(ValueError, match=r"parts=\[2\]: give fractions of the way, each from 0 to 1"):
        engineers.make("schedule", parts=[2])


def test_progress_share_goes_to_the_target_evenly_with_the_rounds(results, report, kitchen):
    """Seven rounds of nine are left after the second, four of them to be spent on the target: a quarter of the way."""
    target = {"menu": {"stew": {"share": 1.0, "heat": 250.0}}}
    told = report.model_copy(update={"target": target, "rounds_left": 7, "results": results(stew=0.1)})
    menu = engineers.make("progress-share").propose(told, kitchen).config.menu
    assert menu["stew"].heat == pytest.approx(150 + 100 / 4, abs=1e-3)
    assert menu["stew"].share == pytest.approx(0.5 + 0.5 * 2 / 4, abs=1e-3)


def test_progress_share_follows_progress_up_or_down(results, report, kitchen):
    """Stew went from 0 to .1 on 100 episodes, soup from .5 to .8; less their standard errors with one more of each."""
    soup = 0.3 - (51 * 51 / 102**2 / 100 + 81 * 21 / 102**2 / 100) ** 0.5
    stew = 0.1 - (1 * 101 / 102**2 / 100 + 11 * 91 / 102**2 / 100) ** 0.5
    config = engineers.make("progress-share").propose(report, kitchen).config
    assert config.menu["soup"].share == pytest.approx(0.15 + 0.7 * soup / (soup + stew), abs=1e-3)
    forgot = report.model_copy(update={"results": results(soup=0.2, stew=0.0)})
    assert engineers.make("progress-share").propose(forgot, kitchen).config.menu["soup"].share > 0.8


def test_progress_share_takes_noise_for_no_progress(results, report, kitchen):
    report = report.model_copy(update={"results": results(soup=0.52, stew=0.01)})
    assert engineers.make("progress-share").propose(report, kitchen).config == kitchen


rates = st.one_of(st.none(), st.floats(0, 1))


@st.composite
def situations(draw):
    """A lake config and a report on it, however unlikely: rates missing, a history of other sizes."""
    sizes = draw(st.lists(st.integers(2, 12), min_size=1, max_size=4, unique=True))
    ratio, share = st.floats(0, 0.9), st.floats(0, 1)
    slices = {
        n: {"share": draw(share), "hole_ratio": draw(ratio), "wait_ratio": draw(st.none() | st.floats(0, 1))}
        for n in sizes
    }
    slices[sizes[0]]["share"] = 1.0
    config = LakeConfig(slices=slices)

    def results(*others):
        measured = {str(name): draw(rates) for name in [*sizes, *others]}
        return [
            SliceResult(name=name, episodes=draw(st.integers(0, 99)), metrics={} if p is None else {"valid_rate": p})
            for name, p in measured.items()
        ]

    history = [
        StageRecord(
            stage=stage, config=draw(st.sampled_from([{}, config.model_dump(mode="json")])), results=results(99)
        )
        for stage in range(draw(st.integers(0, 3)))
    ]
    report = StageReport(
        objective="valid_rate",
        stage=len(history),
        config=config.model_dump(mode="json"),
        results=results(),
        training_results=draw(st.sampled_from([[], results()])),
        history=history,
    )
    return report, config


@settings(max_examples=60)
@given(situations(), st.sampled_from(PLAIN), st.integers(0, 5))
def test_no_report_leads_out_of_bounds(situation, name, seed):
    report, config = situation
    proposal = engineers.make(name, seed=seed, max_drop=0.5).propose(report, config)
    assert check(proposal, config, report.records(), max_drop=0.5, objective=report.objective) == []
    assert proposal == engineers.make(name, seed=seed, max_drop=0.5).propose(report, config)


def test_progress_share_weighs_new_progress_as_much_as_all_that_was_before(results):
    """Changes of .4, then .2, then 0 between stages of so many episodes that no error is taken off to speak of."""
    from engineers.plain.progress_share import learning_progress

    rates = (0.1, 0.5, 0.7, 0.7)
    records = [
        StageRecord(stage=stage, config={}, results=results(episodes=10**9, soup=rate))
        for stage, rate in enumerate(rates)
    ]
    seen = [learning_progress(records[: count + 1], "soup", "valid_rate") for count in range(4)]
    assert seen == pytest.approx([0.0, 0.2, 0.2, 0.1], abs=1e-3)
    few = [StageRecord(stage=0, config={}, results=results(episodes=50, soup=rate)) for rate in (0.3, 0.6)]
    smoothed = [(0.3 * 50 + 1) / 52, (0.6 * 50 + 1) / 52]
    error = sum(rate * (1 - rate) / 50 for rate in smoothed) ** 0.5
    assert learning_progress(few, "soup", "valid_rate") == pytest.approx((0.3 - error) / 2)


class Recipe(BaseModel):
    share: float = Field(1.0, ge=0, le=1)
    rate: float = Field(1e-5, ge=1e-5, le=1e-4)
    step: float = Field(0.00025, ge=0, le=0.01, multiple_of=0.00025)
    batch: int = Field(16, ge=0, le=256, multiple_of=16)


class Recipes(BaseModel):
    menu: dict[str, Recipe]


@pytest.mark.parametrize("name", ["rules", "half-success", "progress-share", "schedule"])
def test_a_number_of_a_narrow_range_reaches_the_target(name, results):
    near = Recipes(menu={"soup": Recipe()})
    far = Recipes(menu={"soup": Recipe(rate=4.00003e-5, step=0.00475, batch=208)})
    seen = {"results": results(soup=0.9), "training_results": results(soup=1.0), "rounds_left": 1}
    report = StageReport(objective="valid_rate", stage=0, config=near.model_dump(), target=far.model_dump(), **seen)
    assert engineers.make(name).propose(report, near).config == far


@pytest.mark.parametrize("name", ["uniform", "random"])
def test_a_drawn_number_keeps_its_digits_and_its_multiples(name):
    near = Recipes(menu={"soup": Recipe(), "stew": Recipe()})
    for stage in range(3):
        proposal = engineers.make(name).propose(
            StageReport(objective="valid_rate", stage=stage, config=near.model_dump()), near
        )
        assert not proposal.refusals
        assert all(1e-5 < recipe.rate < 1e-4 for recipe in proposal.config.menu.values())
        assert {change.path.split(".")[-1] for change in proposal.reasons} == {"share", "rate", "step", "batch"}


class Part(BaseModel):
    share: float = Field(ge=0, le=100)
    heat: float = Field(0.1, ge=0, le=1)


class Parts(BaseModel):
    """Shares that must sum to what ``whole`` says."""

    whole: float
    menu: dict[str, Part]

    @model_validator(mode="after")
    def _sum_up(self):
        if abs(sum(dish.share for dish in self.menu.values()) - self.whole) > 1e-9:
            raise ValueError("shares must sum to the whole")
        return self


def parts_of(whole, *shares, heat):
    return Parts(whole=whole, menu={name: Part(share=whole * share, heat=heat) for name, share in zip("abc", shares)})


@pytest.mark.parametrize("whole", [1, 100])
@pytest.mark.parametrize("name", [*PLAIN, "schedule"])
def test_where_shares_must_have_a_sum_they_keep_it(name, whole, results):
    config, target = parts_of(whole, 0.5, 0.3, 0.2, heat=0.1), parts_of(whole, 0.1, 0.1, 0.8, heat=0.9)
    seen = {"results": results(a=0.9, b=0.5, c=0.1), "training_results": results(a=1.0, b=0.7), "rounds_left": 3}
    report = StageReport(
        objective="valid_rate", stage=1, config=config.model_dump(), target=target.model_dump(), **seen
    )
    proposal = engineers.make(name).propose(report, config, ["menu"])
    assert not proposal.refusals
    shares = {name: dish.share for name, dish in proposal.config.menu.items()}
    assert (shares == {name: dish.share for name, dish in config.menu.items()}) is (name == "fixed")
    if name == "uniform":
        assert sorted(shares.values()) == pytest.approx([whole / 3] * 3, rel=1e-3)


class Burner(BaseModel):
    flame: float = Field(0.1, ge=0, le=1)


class Pot(BaseModel):
    share: float = Field(0.5, ge=0, le=1)
    burner: Burner = Burner()


class Stoves(BaseModel):
    draught: float = Field(0.0, ge=0, le=1)
    pots: dict[str, Pot] = {"a": Pot(), "b": Pot()}


@pytest.mark.parametrize("name", ["rules", "half-success", "progress-share", "schedule"])
def test_numbers_below_and_beside_slices_go_to_the_target_too(name, results):
    """Pot b is where the target has its nearest one."""
    near = Stoves()
    far = Stoves(draught=0.8, pots={"a": Pot(share=1, burner=Burner(flame=0.9)), "b": Pot(share=0)})
    seen = {"results": results(a=0.9), "training_results": results(a=1.0), "rounds_left": 1}
    report = StageReport(objective="valid_rate", stage=0, config=near.model_dump(), target=far.model_dump(), **seen)
    reached = engineers.make(name).propose(report, near).config
    assert (reached.draught, [pot.burner.flame for pot in reached.pots.values()]) == (0.8, [0.9, 0.9])


def test_numbers_below_and_beside_slices_are_taken_back_too(results):
    before, now = Stoves(), Stoves(draught=0.8, pots={"a": Pot(burner=Burner(flame=0.9)), "b": Pot()})
    alive = StageRecord(stage=0, config=before.model_dump(), results=[], training_results=results(a=0.9, b=0.9))
    dead = {"training_results": results(a=0.0, b=0.0), "history": [alive]}
    report = StageReport(objective="valid_rate", stage=1, config=now.model_dump(), target=now.model_dump(), **dead)
    config = engineers.make("rules").propose(report, now).config
    assert (config.draught, config.pots["a"].burner.flame) == (0.4, 0.5)


@pytest.mark.parametrize("name", ["rules", "half-success", "progress-share", "schedule"])
def test_a_number_beside_slices_is_something_to_turn(name):
    engineers.make(name).check_able(Stoves(), ["pots.a.share", "draught"])
    with pytest.raises(KnobError):
        engineers.make(name).check_able(Stoves(), ["pots.a.share"])


class Grill(BaseModel):
    """Takes whole numbers as keys and a tuple, which JSON has not, and nothing that merely looks like them."""

    model_config = ConfigDict(strict=True)
    span: tuple[int, int] = (1, 2)
    rows: dict[int, Part] = {1: Part(share=1.0)}


@pytest.mark.parametrize("name", [*PLAIN, "schedule"])
def test_a_strict_config_is_read_from_its_report(name, results):
    near, far = Grill(), Grill(rows={1: Part(share=1.0, heat=0.9)})
    seen = {"results": results(**{"1": 0.9}), "training_results": results(**{"1": 1.0}), "rounds_left": 1}
    report = StageReport(objective="valid_rate", stage=0, config=dump(near), target=dump(far), **seen)
    proposal = engineers.make(name).propose(report, near)
    assert not proposal.refusals
    assert isinstance(proposal.config, Grill)
    if name in ("rules", "half-success", "progress-share", "schedule"):
        assert proposal.config == far


class Beyond(PlainEngineer):
    """Turns the first knobs of a field to these values."""

    name = "beyond"

    def __init__(self, field: str, *values: float) -> None:
        super().__init__()
        self.field, self.values = field, values

    def design(self, report, current, knobs):
        design = Design()
        for knob, value in zip([knob for knob in knobs if knob.field == self.field], self.values, strict=False):
            design.turn(knob, value, "beyond its bounds")
        return design


@pytest.mark.parametrize(("returned", "told"), [(None, "None"), ({}, "a dict")])
def test_a_design_that_is_not_returned_is_told_as_such(example_report, returned, told):
    class Forgets(Beyond):
        def design(self, report, current, knobs):
            return returned

    with pytest.raises(
        TypeError, match=f"^design returned {told}: return the Design with the values that you turned, or"
    ):
        Forgets("share").propose(example_report, LakeConfig.model_validate(example_report.config))


def test_a_value_out_of_bounds_is_scaled_or_ends_at_its_bound(example_report):
    config = LakeConfig.model_validate(example_report.config)
    first, second = config.slices[3].share, config.slices[4].share
    scaled = Beyond("share", 7.5, 2.5).propose(example_report, config)
    assert not scaled.fallback
    assert [scaled.config.slices[size].share for size in (3, 4)] == pytest.approx(
        [0.75 * (first + second), 0.25 * (first + second)]
    )
    at_its_bound = Beyond("hole_ratio", 7.5).propose(example_report, config)
    assert at_its_bound.config.slices[3].hole_ratio == 0.9
    assert not at_its_bound.fallback
    assert "less than or equal to 0.9" in at_its_bound.refusals[0]
    for field in ("share", "hole_ratio"):
        refused = Beyond(field, math.nan).propose(example_report, config)
        assert refused.fallback
        assert refused.config == config


@pytest.mark.parametrize("name", ["rules", "half-success", "reader", "rising", "steady"])
def test_a_rate_that_is_shrunken_is_told_as_an_estimate(name, report, kitchen):
    """Two of two dishes that succeed are no success of 1 to the rule, but a reader's own log says 1."""
    few = [SliceResult(name=dish, episodes=2, metrics={"valid_rate": 1.0}) for dish in ("soup", "stew")]
    hotter = {dish: {"share": 0.5, "heat": 250.0} for dish in ("soup", "stew")}
    told = report.model_copy(update={"training_results": few, "results": few, "target": {"menu": hotter}})
    proposal = engineers.make(name).propose(told, kitchen)
    reasons = [one.reason for one in proposal.reasons] + [*proposal.kept.values()]
    rates = [rate for reason in reasons for rate in re.findall(r"(\w* ?success) 0\.\d", reason)]
    assert set(rates) == {"estimated success"}
