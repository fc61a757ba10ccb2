"""The parts of a step, each by its own table: rates, paces, shares, how far a dial turns, and what a guard leaves of it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
from pydantic import BaseModel, Field, model_validator

import engineers
from engineers import Guard, SliceResult, StageReport
from engineers.knobs import Knob, dump, find_knobs
from engineers.plain.base import Design, PlainEngineer, _some_way
from engineers.plain.rules import RulesEngineer, Thresholds, even_pace
from engineers.plain.shares import mixed_with_uniform
from engineers.plain.signals import Rates, Signals, rates
from engineers.plain.way import Way, _step, shares_ahead, transported
from engineers.roles import WHOLE, find_slices


def result(name, episodes, **metrics):
    return SliceResult(name=name, episodes=episodes, metrics=metrics)


def test_rates_are_drawn_to_a_half_and_to_each_other_by_as_many_episodes_as_said():
    """Three of 8 and 6 of 10, pooled as 10 of 20; each slice as if 10 more had gone like all."""
    found = rates([result("a", 8, valid_rate=0.375), result("b", 10, success_rate=0.6)], "valid_rate")
    assert (found.pooled, found.episodes) == (0.5, 18)
    assert found.per_slice == {"a": pytest.approx(8 / 18), "b": pytest.approx(11 / 20)}
    assert (found["b"], found["never measured"]) == (pytest.approx(0.55), 0.5)
    assert found.nothing == 1 / 20


def test_rates_leave_out_what_was_not_played_and_keep_within_0_and_1():
    none = [result("a", 0, valid_rate=1.0), result("b", 9, other=1.0)]
    assert rates(none, "valid_rate") is None
    found = rates([*none, result("c", 8, valid_rate=1.5), result("d", 8, valid_rate=-0.5)], "valid_rate")
    assert (found.pooled, found.episodes, list(found.per_slice)) == (0.5, 16, ["c", "d"])
    flat = rates([result("up", 8, valid_rate=0.5), result("down", 8, valid_rate=0.5)], "valid_rate", flat=True)
    assert flat.per_slice == {WHOLE: 0.5}


def test_success_on_the_target_is_unknown_where_training_was_not_measured_by_itself():
    here, there = Rates(0.8, 100, {"a": 0.9}), Rates(0.3, 100, {"a": 0.4})
    assert (Signals(here, there).here, Signals(None, there).here, Signals(None, None).here) == (here, there, None)
    both = Signals(here, there)
    assert (both.there(), both.there("a"), both.there("b")) == (0.3, 0.4, 0.3)
    assert Signals(None, there).there() == Signals(here, None).there("a") == 0.0


@pytest.mark.parametrize(
    ("scores", "shares"),
    [
        ({}, {}),
        ({"a": 0.0}, {"a": 1.0}),
        ({"a": 0.0, "b": 0.0}, {"a": 0.5, "b": 0.5}),
        ({"a": 0.3, "b": 0.1}, {"a": 0.1 + 0.8 * 0.75, "b": 0.1 + 0.8 * 0.25}),
        ({"a": 2.0}, {"a": 1.0}),
    ],
)
def test_shares_follow_scores_beside_a_part_that_all_get(scores, shares):
    assert mixed_with_uniform(scores, 0.2) == {name: pytest.approx(share) for name, share in shares.items()}


class Part(BaseModel):
    share: float = Field(0.5, ge=0, le=1, description="Weight in the data.", json_schema_extra={"role": "share"})
    wind: float = Field(0.0, ge=0, le=1, description="Strength of the wind.", json_schema_extra={"role": "difficulty"})


class Parts(BaseModel):
    parts: dict[str, Part] = Field({"a": Part(), "b": Part()}, description="The slices.")


HERE = [result("a", 100, valid_rate=0.9), result("b", 100, valid_rate=0.8)]
THERE = [result("a", 100, valid_rate=0.6), result("b", 100, valid_rate=0.1)]
TARGET = Parts(parts={"a": Part(wind=1.0), "b": Part(wind=1.0)}).model_dump()


@pytest.mark.parametrize(
    ("target", "trained", "validated", "share", "winds", "why"),
    [
        # by success on the target, .577 and .123 after shrinkage, where it is known and was measured
        (TARGET, HERE, THERE, 0.655, (1.0, 0.446), "estimated success 0.85 in training, 0.35 on the target: 70% of the way to it"),
        (TARGET, HERE, [], 0.345, (0.441, 0.378), "estimated success 0.85 in training, target not tested: 41% of the way to it"),
        (TARGET, [], THERE, 0.1, (0.134, 0.0), "estimated success 0.58 in tests, training not counted: 13% of the way to it"),
        # by success in training where nobody names the target
        ({}, HERE, THERE, 0.399, (0.0, 0.0), "in proportion to p(1 − p)"),
        ({}, [], THERE, 0.655, (0.0, 0.0), "in proportion to p(1 − p)"),
    ],
)  # fmt: skip
def test_half_success_weighs_the_targets_slices_by_success_on_it_and_goes_to_where_half_succeed(
    target, trained, validated, share, winds, why
):
    parts = Parts(parts={"a": Part(share=0.1), "b": Part(share=0.9)})
    report = StageReport(
        objective="valid_rate",
        stage=1,
        config=parts.model_dump(),
        target=target,
        training_results=trained,
        results=validated,
    )
    proposal = engineers.make("half-success").propose(report, parts)
    a, b = proposal.config.parts["a"], proposal.config.parts["b"]
    assert (a.share, b.share) == (pytest.approx(share, abs=1e-3), pytest.approx(1 - share, abs=1e-3))
    assert (a.wind, b.wind) == pytest.approx(winds, abs=1e-3)
    assert proposal.reasons[0].reason == why


def test_half_success_where_nothing_succeeds_takes_a_quarter_back_of_data_and_difficulties_alike():
    dead = [result(name, 100, valid_rate=0.0) for name in "ab"]
    parts = Parts(parts={"a": Part(share=0.1, wind=0.4), "b": Part(share=0.9, wind=0.8)})
    report = StageReport(
        objective="valid_rate", stage=1, config=parts.model_dump(), target=TARGET, training_results=dead, results=dead
    )
    a, b = engineers.make("half-success").propose(report, parts).config.parts.values()
    assert (a.share, b.share) == (pytest.approx(0.1 + 0.9 / 4), pytest.approx(0.9 - 0.9 / 4))
    assert (a.wind, b.wind) == (pytest.approx(0.3), pytest.approx(0.6))


@pytest.mark.parametrize(
    ("stage", "left", "fraction"),
    [
        (0, None, 0.0),
        (0, 7, 1 / 4),
        (3, 4, 1.0),
        (2, 5, 1 / 2),
        (7, 0, 1.0),
        (0, 3, 1 / 2),
        (1, 2, 1.0),
        (0, 9, 1 / 5),
        (0, 8, 1 / 5),
    ],
)
def test_an_even_pace_reaches_the_target_with_half_of_all_rounds_to_come(stage, left, fraction):
    """Of 8 rounds 4 are for the target: with 7 left, the fourth step is the first of them; of 9 rounds 4 as well (half, rounded to even)."""
    assert even_pace(SimpleNamespace(stage=stage, rounds_left=left), 0.5) == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("fraction", "there", "ahead"),
    [(0.0, 0.0, 0.0), (0.1, 0.0, 0.2), (0.1, 0.19, 0.2), (0.1, 0.2, 1.0), (0.0, 0.2, 0.0), (0.7, 0.0, 1.0)],
)
def test_data_goes_twice_as_far_as_difficulties_and_all_the_way_once_the_target_is_alive(fraction, there, ahead):
    assert shares_ahead(fraction, there) == pytest.approx(ahead)


@pytest.mark.parametrize(
    ("start", "end", "fraction", "whole", "reached"),
    [
        (2.0, 4.0, 0.25, False, 2.5),
        (2, 4, 0.25, True, 3),  # at least 1
        (4, 2, 0.25, True, 3),
        (2, 12, 0.25, True, 4.5),
        (2, 2, 0.25, True, 2),
        (2, 4, 0.0, True, 2),
        (2, 4, 0.5, True, 3),
    ],
)
def test_a_whole_number_moves_by_one_at_least_where_it_is_to_move(start, end, fraction, whole, reached):
    assert _step(start, end, fraction, whole) == reached


def test_a_grain_between_two_slices_is_split_between_them():
    assert transported([1.0, 0.0, 0.0], [0.0, 0.0, 1.0], 0.25) == [0.5, 0.5, 0.0]
    assert transported([1.0], [1.0], 0.5) == [1.0]
    assert transported([0.5, 0.5], [0.5, 0.5], 0.3) == [0.5, 0.5]


class Hill(BaseModel):
    slope: float = Field(0.4, ge=0, le=0.8)
    depth: int | None = Field(None, ge=1, le=9)


def way_of(config, target):
    slices = find_slices(find_knobs(config))
    return Way(slices, dump(config), target, lambda knob: knob.bounds), slices


def test_without_a_target_the_way_leads_to_the_far_end_and_the_slices_are_those_that_are_named():
    way, (piece,) = way_of(Hill(), {})
    assert (way.wanted, way.is_known, way.aims) == (None, False, [WHOLE])
    assert [way.aim_of(piece, knob, knob.bounds) for knob in piece.difficulties] == [0.8, 9.0]
    design = Design()
    way.turn_dials(design, piece, 0.5, "on")
    assert design.values == {("slope",): 0.6}  # what has no value has no place from which to go
    assert design.reasons == {("slope",): "on"}


def test_a_target_beyond_the_bounds_is_aimed_at_but_not_left_for_and_what_it_leaves_open_is_eased_towards_the_small_end():
    way, (piece,) = way_of(Hill(depth=5), {"slope": 7})
    assert (way.wanted, way.is_known, way.aims) == ({WHOLE: 1.0}, True, [WHOLE])
    assert [way.aim_of(piece, knob, knob.bounds) for knob in piece.difficulties] == [7.0, None]
    eased, ahead = Design(), Design()
    way.turn_dials(eased, piece, -0.5, "too hard")
    assert eased.values == {("slope",): 0.2, ("depth",): 3}
    way.turn_dials(ahead, piece, 0.5, "on")
    assert ahead.values == {("slope",): 0.8}


class Piece(BaseModel):
    share: float = Field(1.0, ge=0, le=1)
    level: float = Field(0.0, ge=0, le=1)


class Row(BaseModel):
    parts: dict[str, Piece]


def test_a_slice_that_the_target_lacks_goes_where_the_nearest_one_is_that_it_has():
    row = Row(parts={name: Piece() for name in "12345"})
    target = {
        "parts": {"1": {"share": 1, "level": 0.1}, "4": {"share": 3, "level": 0.4}, "5": {"share": 0, "level": 1}}
    }
    way, slices = way_of(row, target)
    assert way.wanted == {"1": 0.25, "2": 0.0, "3": 0.0, "4": 0.75, "5": 0.0}
    assert way.aims == ["1", "4"]
    assert [way.aim_of(piece, piece.difficulties[0], (0, 1)) for piece in slices] == [0.1, 0.1, 0.4, 0.4, 0.4]


def test_shares_that_are_all_nothing_begin_at_the_goal_and_no_goal_turns_nothing():
    way, _ = way_of(Row(parts={name: Piece(share=0) for name in "12"}), {})
    design = Design()
    way.turn_shares(design, {"1": 1.0, "2": 3.0}, 0.0, "why")
    assert design.values == {("parts", "1", "share"): 0.25, ("parts", "2", "share"): 0.75}
    nothing = Design()
    way.turn_shares(nothing, {"1": 0.0, "9": 1.0}, 0.5, "why")
    assert nothing.values == {}


@pytest.mark.parametrize(
    ("p", "v", "left", "fraction", "why"),
    [
        (0.8, 0.0, None, 0.375, "estimated success 0.80 in training, 0.00 on the target: 38% of the way to it"),
        (
            0.8,
            0.0,
            0,
            0.75,
            "estimated success 0.80 in training, 0.00 on the target, 0 rounds left: 75% of the way to it",
        ),
        (0.08, 0.08, None, -0.25, "estimated success 0.08: too hard to learn from, eased"),  # dead up to the bound
        (0.081, 0.0, None, 0.0, "estimated success 0.08 in training, 0.00 on the target: 0% of the way to it"),
        (0.0, 0.6, None, 1.0, "estimated success 0.00 in training, 0.60 on the target: 100% of the way to it"),
    ],
)
def test_a_step_and_its_reason(p, v, left, fraction, why):
    way, _ = way_of(Hill(), {"slope": 0.8})
    seen = Signals(Rates(p, 10_000, {}), Rates(v, 10_000, {}))
    report = SimpleNamespace(stage=7, rounds_left=left)
    assert RulesEngineer().step(report, seen, way) == (pytest.approx(fraction), why)
    assert RulesEngineer().step(report, seen, way, WHOLE)[0] == pytest.approx(fraction)


def test_the_reason_of_a_step_says_what_nobody_measured():
    """An untested target counts as 0, and is not told as a measured 0."""
    way, _ = way_of(Hill(), {"slope": 0.8})
    report, rates = SimpleNamespace(stage=7, rounds_left=2), Rates(0.8, 10_000, {})
    measured, why = RulesEngineer().step(report, Signals(rates, Rates(0.0, 10_000, {})), way)
    assert "0.00 on the target" in why
    untested, why = RulesEngineer().step(report, Signals(rates, None), way)
    assert (untested, why) == (
        measured,
        "estimated success 0.80 in training, target not tested, 2 rounds left: 75% of the way to it",
    )
    report.rounds_left = 1
    _, why = RulesEngineer().step(report, Signals(None, rates), way)
    assert why.startswith("estimated success 0.80 in tests, training not counted, 1 round left: ")


def test_without_a_target_a_step_is_half_of_what_training_does_better():
    way, _ = way_of(Hill(), {})
    for p, v, fraction in ((0.9, 0.7, 0.1), (0.5, 0.1, 0.0), (0.6, 0.6, 0.0), (0.9, 0.0, 4 / 9 / 2)):
        seen = Signals(Rates(p, 100, {}), Rates(v, 100, {}))
        assert RulesEngineer().step(SimpleNamespace(stage=0, rounds_left=None), seen, way)[0] == pytest.approx(fraction)


def test_thresholds_may_be_those_that_differ():
    defaults = {
        "frontier": 0.5,
        "alive": 0.2,
        "dead": 0.08,
        "settled": 0.5,
        "easing": 0.25,
        "floor": 0.25,
        "begun": 0.1,
    }
    assert engineers.make("rules").thresholds.model_dump() == defaults
    assert engineers.make("rules", thresholds={"alive": 0.3}).thresholds == Thresholds(alive=0.3)
    assert engineers.make("rules", thresholds=Thresholds(dead=0.1)).thresholds.dead == 0.1
    assert Thresholds().dead_below(Rates(0.0, 8, {})) == 0.1  # no success at all in eight episodes
    assert Thresholds().dead_below(Rates(0.0, 98, {})) == 0.08


@pytest.mark.parametrize("name", ["rules", "reader"])
@pytest.mark.parametrize(
    "wrong", [{"alive": 1.2}, {"alive": -0.1}, {"alive": math.nan}, {"alive": "low"}, {"alife": 0.2}]
)
def test_thresholds_are_known_parts_of_one(name, wrong):
    with pytest.raises(ValueError, match=rf"thresholds\.{next(iter(wrong))}"):
        engineers.make(name, thresholds=wrong)


@pytest.mark.parametrize("name", ["random", "uniform", "rules", "half-success", "progress-share", "schedule"])
def test_space_guard_and_seed_reach_who_takes_them(name):
    guard = Guard(max_drop=0.25)
    made = engineers.make(name, space={"menu.*.heat": (50, 60)}, guard=guard, seed=7)
    assert made.space == {"menu.*.heat": (50.0, 60.0)}
    assert made.guard is guard
    assert made.seed == 7
    assert (engineers.make(name).seed, engineers.make(name).space) == (0, {})


class Wishes(PlainEngineer):
    """Turns what it is told to, whatever is editable."""

    name = "wishes"

    def __init__(self, wishes, **options):
        super().__init__(**options)
        self.wishes = wishes

    def design(self, report, current, knobs):
        design = Design()
        for knob in find_knobs(current, ("*",)):
            if knob.name in self.wishes:
                design.turn(knob, self.wishes[knob.name], f"wants {knob.name}")
        return design


def heats(config):
    return [dish.heat for dish in config.menu.values()]


@pytest.mark.parametrize(("most", "heat", "asked"), [(110, 110, 6), (109, 100, 6), (140, 140, 4), (300, 260, 1)])
def test_a_step_that_is_refused_is_halved_four_times_and_then_not_taken(report, kitchen, most, heat, asked):
    seen = []

    def feasible(config):
        seen.append(config.menu["soup"].heat)
        return None if config.menu["soup"].heat <= most else "too hot"

    proposal = Wishes({"menu.soup.heat": 260.0}, guard=Guard(feasible)).propose(report, kitchen)
    assert seen == [260, 260, 180, 140, 120, 110][:asked]
    assert proposal.config.menu["soup"].heat == heat
    assert proposal.fallback is (heat == 100)
    assert proposal.refusals == (["the config cannot be drawn: too hot"] if heat < 260 else [])
    expected = [("menu.soup.heat", 100.0, heat, "wants menu.soup.heat")] if heat != 100 else []
    assert [(one.path, one.old, one.new, one.reason) for one in proposal.reasons] == expected


def test_shares_are_tried_first_and_each_slice_by_itself_so_that_one_refused_does_not_cost_the_others(report, kitchen):
    seen = []

    def feasible(config):
        seen.append((config.menu["soup"].share, *heats(config), config.menu["soup"].steps))
        return None if config.menu["soup"].heat == 100 else "no hotter soup"

    wishes = {"menu.soup.heat": 260.0, "menu.soup.steps": 11, "menu.soup.share": 0.25, "menu.stew.heat": 200.0}
    config = Wishes(wishes, guard=Guard(feasible)).propose(report, kitchen).config
    assert (config.menu["soup"].share, heats(config), config.menu["soup"].steps) == (0.25, [100, 200], 3)
    soups = [(260, 11), (180, 7), (140, 5), (120, 4), (110, 4)]
    assert seen == [
        (0.25, 260, 200, 11),
        (0.25, 100, 150, 3),
        *((0.25, heat, 150, steps) for heat, steps in soups),
        (0.25, 100, 200, 3),
    ]


def test_a_value_that_the_config_does_not_take_is_a_refusal_too(report, kitchen):
    proposal = Wishes({"menu.soup.heat": 900.0}).propose(report, kitchen)
    assert proposal.config.menu["soup"].heat == 300  # half of the way, as far as the bound
    assert proposal.refusals == ["menu.soup.heat=900.0: Input should be less than or equal to 300"]


def test_what_is_locked_is_refused_also_to_ones_own_engineer_and_the_limit_goes_by_the_reports_objective(
    report, kitchen
):
    proposal = Wishes({"menu.soup.heat": 120.0}).propose(report, kitchen, ["menu.*.share"])
    assert proposal.fallback
    assert "but only menu.*.share may be" in proposal.refusals[0]
    tasty = [result("soup", 100, taste=0.9), result("stew", 100, taste=0.1)]
    told = report.model_copy(update={"objective": "taste", "results": tasty})
    drop = Wishes({"menu.soup.share": 0.0}, guard=Guard(max_drop=0.0)).propose(told, kitchen)
    assert drop.fallback
    assert "slice soup works (taste 0.90)" in drop.refusals[0]


def test_only_numbers_go_half_ways(kitchen):
    soup = {knob.field: knob for knob in find_knobs(kitchen, ["menu.soup", "style"])}
    assert _some_way(soup["heat"], 200.0, 0.25) == 125.0
    assert _some_way(soup["heat"], 200.00004, 1) == 200.00004  # the whole way is what was designed
    assert _some_way(soup["style"], "fancy", 0.25) == "fancy"
    assert _some_way(soup["salt"], 0.5, 0.25) == 0.5
    assert _some_way(soup["heat"], None, 0.25) is None


def test_chance_is_of_the_engineer_its_seed_and_the_stage():
    def drawn(name, seed, stage):
        return (
            engineers.make(name, seed=seed).random(StageReport(objective="valid_rate", stage=stage, config={})).random()
        )

    assert drawn("random", 0, 0) == drawn("random", 0, 0)
    assert len({drawn("random", 0, 0), drawn("uniform", 0, 0), drawn("random", 1, 0), drawn("random", 0, 1)}) == 4


class Percent(BaseModel):
    share: int = Field(50, ge=0, le=100, description="Percent of the data.")
    wind: float = Field(0.5, gt=0, lt=1, description="Strength of the wind.")
    depth: int = Field(5, gt=0, lt=9, description="How deep.")


class Hundred(BaseModel):
    parts: dict[str, Percent] = Field({name: Percent(share=25) for name in "abcd"}, description="The slices.")

    @model_validator(mode="after")
    def _is_whole(self) -> Hundred:
        if sum(part.share for part in self.parts.values()) != 100:
            raise ValueError("shares: they sum to 100")
        return self


@pytest.mark.parametrize("name", ["rules", "half-success", "uniform", "random", "schedule"])
def test_shares_in_percent_and_bounds_that_no_value_may_have(name):
    """Their ends would be refused, and a share of a quarter would be none at all."""
    engineer, current, moved = engineers.make(name, seed=1), Hundred(), 0
    target = Hundred(parts={part: Percent(share=25, wind=0.99999, depth=8) for part in "abcd"})
    for stage in range(4):
        report = StageReport(objective="valid_rate", stage=stage, config=dump(current), target=dump(target))
        report.results += [result(part, 100, valid_rate=0.9) for part in "abcd"]
        proposal = engineer.propose(report, current)
        assert not proposal.refusals
        moved += proposal.config != current
        current = proposal.config
        assert sum(part.share > 0 for part in current.parts.values()) > 1
    assert moved


@pytest.mark.parametrize("whole", [False, True], ids=["float", "int"])
@pytest.mark.parametrize("bounds", [{"gt": 0}, {"gt": 0, "le": 1}, {"ge": 0, "lt": 1}, {"lt": 1}, {"gt": 0, "lt": 1}])
@pytest.mark.parametrize("name", ["rules", "schedule"])
def test_a_share_with_excluded_bounds_follows_the_target_from_stage_to_stage(name, bounds, whole):
    """Also where a bound has none opposite: the step off it goes to the side where values are allowed."""
    kind, all_of_it = (int, 100) if whole else (float, 1.0)
    scaled = {end: kind(bound * all_of_it) for end, bound in bounds.items()}

    class Weighted(BaseModel):
        share: kind = Field(all_of_it / 2, json_schema_extra={"role": "share"}, **scaled)

    class Mixed(BaseModel):
        parts: dict[str, Weighted]

    few, most = kind(all_of_it / 100), kind(all_of_it * 99 / 100)
    current = Mixed(parts={"a": {"share": most}, "b": {"share": few}})
    target = dump(Mixed(parts={"b": {"share": most}}))  # all of its data is in one slice
    engineer, shares = engineers.make(name), []
    for stage in range(3):
        alive = [result(part, 100, valid_rate=0.9) for part in "ab"]
        report = StageReport(
            objective="valid_rate",
            stage=stage,
            config=dump(current),
            target=target,
            results=alive,
            training_results=alive,
        )
        proposal = engineer.propose(report, current)
        assert (proposal.refusals, proposal.fallback) == ([], False)
        current = proposal.config
        shares.append(current.parts["b"].share)
    assert shares[-1] >= most


@pytest.mark.parametrize(
    ("kind", "value", "fitted"),
    [("number", 0.0, 0.0001), ("number", 1.0, 0.9999), ("number", 1e-6, 0.0001), ("integer", 0, 1), ("integer", 2, 1)],
)
def test_a_bound_that_is_outside_is_not_reached(kind, value, fitted):
    top = 1 if kind == "number" else 2
    schema = {"type": kind, "minimum": 0, "maximum": top}
    found = Knob(("heat",), "heat", schema, 0.5, {}, None, above=0, below=top)
    assert found.fit(value) == fitted
    assert found.fit(1e-6, exact=1e-6) == (1e-6 if kind == "number" else found.fit(0))


@pytest.mark.parametrize(
    ("schema", "ends", "value", "fitted"),
    [
        ({"type": "number", "minimum": 0}, {"above": 0}, 0, 0.0001),
        ({"type": "number", "minimum": 0}, {"above": 0}, -3, 0.0001),
        ({"type": "integer", "minimum": 0}, {"above": 0}, 0, 1),
        ({"type": "integer", "minimum": 0}, {"above": 0, "multiple_of": 4}, -3, 4),
        ({"type": "number", "maximum": 1}, {"below": 1}, 1, 0.9999),
        ({"type": "integer", "maximum": 9}, {"below": 9}, 12, 8),
        ({"type": "number", "minimum": 0.05}, {}, 0, 0.05),
        ({"type": "number", "maximum": 0.05}, {}, 1, 0.05),
    ],
)
def test_a_bound_without_one_opposite_holds_too(schema, ends, value, fitted):
    assert Knob(("heat",), "heat", schema, 0.5, {}, **ends).fit(value) == fitted
