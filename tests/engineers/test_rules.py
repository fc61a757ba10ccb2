"""The rule-based engineer: how far it goes, when it goes back, what it does untold, and that it helps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

import engineers
from engineers import SliceResult, StageRecord, StageReport
from engineers.report import Split
from mapf_frozenlake import LakeConfig


def lake(**slices):
    """lake(s3=(share, hole ratio), …)"""
    parts = {int(size[1:]): {"share": share, "hole_ratio": holes} for size, (share, holes) in slices.items()}
    return LakeConfig(slices=parts)


def report_of(config, rates, trained=None, history=(), stage=1, target=None, rounds_left=None):
    return StageReport(
        objective="valid_rate",
        stage=stage,
        config=config.model_dump(mode="json"),
        target=target.model_dump(mode="json") if target is not None else {},
        rounds_left=rounds_left,
        results=_results(rates),
        training_results=_results(trained or {}),
        history=list(history),
    )


def _results(rates, episodes=10_000):
    """So many episodes that no rate is shrunken to speak of."""
    return [SliceResult(name=str(k), episodes=episodes, metrics={"valid_rate": v}) for k, v in rates.items()]


EDITABLE = ("slices.*.share", "slices.*.hole_ratio")


def propose(report, config):
    return engineers.make("rules").propose(report, config, EDITABLE).config.slices


def shares(slices):
    total = sum(piece.share for piece in slices.values())
    return {size: round(piece.share / total, 3) for size, piece in slices.items()}


EASY = lake(s4=(1.0, 0.1), s5=(0.0, 0.1), s6=(0.0, 0.1))
TARGET = lake(s6=(1.0, 0.5))


# Told the target


def test_a_step_goes_to_where_half_should_succeed():
    """.8 here and 0 there: half succeed after 3/8 of the way; the data goes twice as far."""
    after = propose(report_of(EASY, {6: 0.0}, {4: 0.8}, target=TARGET), EASY)
    assert after[6].hole_ratio == pytest.approx(0.1 + 0.375 * 0.4, abs=1e-3)
    assert shares(after) == {4: 0.0, 5: 0.5, 6: 0.5}


@pytest.mark.parametrize(("rounds_left", "fraction"), [(7, 1 / 4), (6, 1 / 3), (5, 1 / 2), (4, 0.6), (1, 0.6)])
def test_it_goes_further_when_the_rounds_run_short_but_never_to_where_a_fifth_would_not_succeed(rounds_left, fraction):
    """Success .5 here and 0 there. Of eight rounds half are for the target; but for now the way ends after 3/5."""
    report = report_of(EASY, {6: 0.0}, {4: 0.5}, stage=7 - rounds_left, target=TARGET, rounds_left=rounds_left)
    after = engineers.make("rules").propose(report, EASY, EDITABLE).config.slices
    assert (after[6].hole_ratio - 0.1) / 0.4 == pytest.approx(fraction, abs=2e-3)


def test_all_the_data_is_the_target_s_once_it_is_alive():
    after = propose(report_of(EASY, {6: 0.25}, {4: 0.7}, target=TARGET), EASY)
    assert shares(after) == {4: 0.0, 5: 0.0, 6: 1.0}
    assert 0.1 < after[6].hole_ratio < 0.5


def test_a_handful_of_first_visits_is_read_with_the_repeats():
    """Where a pool of boards is almost exhausted: three boards fail that nobody has seen, and of all others four in five succeed."""
    report = report_of(EASY, {6: 0.0}, {4: 0.8}, target=TARGET)
    usual = propose(report, EASY)
    report.training_results = [
        SliceResult(
            name="4", episodes=3, metrics={"valid_rate": 0.0}, repeats=Split(episodes=9_997, succeeded=8_000, score=0.8)
        )
    ]
    assert propose(report, EASY)[6].hole_ratio == pytest.approx(usual[6].hole_ratio, abs=1e-3)
    report.training_results[0].episodes = 30
    assert propose(report, EASY)[6].hole_ratio < usual[6].hole_ratio - 0.05


def test_a_target_that_is_no_harder_than_training_is_trained_on():
    after = propose(report_of(EASY, {6: 0.6}, {4: 0.9}, target=TARGET), EASY)
    assert (after[6].share, after[6].hole_ratio) == (1.0, 0.5)


def test_a_slice_that_nobody_needs_gets_nothing():
    config = lake(s4=(1.0, 0.1), s6=(0.0, 0.1), s8=(0.0, 0.1), s10=(0.0, 0.1))
    after = propose(report_of(config, {6: 0.1}, {4: 0.9}, target=TARGET), config)
    assert after[8].share == after[10].share == 0.0


def test_slices_of_the_target_weigh_by_what_is_to_be_learnt():
    target = lake(s4=(1.0, 0.1), s5=(1.0, 0.1), s6=(1.0, 0.1))
    after = propose(report_of(target, {4: 1.0, 5: 0.5, 6: 0.0}, {4: 1.0, 5: 0.5, 6: 0.0}, target=target), target)
    assert shares(after) == {
        4: pytest.approx(1 / 7, abs=2e-3),
        5: pytest.approx(5 / 7, abs=2e-3),
        6: pytest.approx(1 / 7, abs=2e-3),
    }


def test_a_jump_after_which_nothing_succeeds_is_taken_back_by_half():
    hard = lake(s4=(0.0, 0.1), s5=(0.0, 0.1), s6=(1.0, 0.5))
    earlier = StageRecord(
        stage=0, config=EASY.model_dump(mode="json"), results=_results({6: 0.0}), training_results=_results({4: 0.7})
    )
    report = report_of(hard, {6: 0.0}, {6: 0.01}, history=[earlier], target=TARGET, rounds_left=2)
    proposal = engineers.make("rules").propose(report, hard, EDITABLE)
    assert shares(proposal.config.slices) == {4: 0.0, 5: 1.0, 6: 0.0}
    assert proposal.config.slices[6].hole_ratio == pytest.approx(0.3)
    assert {change.reason for change in proposal.reasons} == {
        "estimated success fell from 0.70 at stage 0 to 0.01: half taken back"
    }


def test_ten_episodes_that_all_fail_are_enough_to_take_a_jump_back():
    hard = lake(s4=(0.0, 0.1), s5=(0.0, 0.1), s6=(1.0, 0.5))
    earlier = StageRecord(
        stage=0, config=EASY.model_dump(mode="json"), results=[], training_results=_results({4: 0.7}, episodes=10)
    )
    report = report_of(hard, {}, {}, history=[earlier], target=TARGET, rounds_left=2)
    report = report.model_copy(update={"training_results": _results({6: 0.0}, episodes=10)})
    assert propose(report, hard)[6].hole_ratio == pytest.approx(0.3)


def test_a_target_that_fell_is_gone_back_for_and_one_within_the_noise_is_not():
    easy, hard = lake(s6=(1.0, 0.2)), lake(s6=(1.0, 0.4))
    earlier = StageRecord(stage=0, config=easy.model_dump(mode="json"), results=_results({6: 0.45}, episodes=200))
    for rate, holes in ((0.2, 0.3), (0.4, 0.4)):
        report = report_of(hard, {}, {}, history=[earlier]).model_copy(
            update={"results": _results({6: rate}, episodes=200)}
        )
        assert propose(report, hard)[6].hole_ratio == pytest.approx(holes)


def test_a_knob_that_config_and_target_leave_open_is_not_eased():
    config = LakeConfig(slices={4: {"share": 1.0, "hole_ratio": 0.3, "wait_ratio": None}})
    report = report_of(config, {4: 0.0}, {4: 0.0}, target=config, rounds_left=3)
    after = engineers.make("rules").propose(report, config).config.slices
    assert after[4].wait_ratio is None
    assert after[4].hole_ratio < 0.3


# Told none


def test_untold_it_opens_every_knob_while_training_does_better_than_the_target():
    config = LakeConfig(slices={4: {"hole_ratio": 0.3, "wait_ratio": 0.3}, 6: {"hole_ratio": 0.3, "wait_ratio": None}})
    after = engineers.make("rules").propose(report_of(config, {4: 0.3}, {4: 0.9}), config).config.slices
    fraction = (0.9 - 0.3) / 2  # half of what it does better; half the way to where half succeed is further
    assert after[4].hole_ratio == pytest.approx(0.3 + fraction * 0.2, abs=1e-3)
    assert after[4].wait_ratio == pytest.approx(0.3 + fraction * 0.45, abs=1e-3)
    assert after[6].wait_ratio is None


@pytest.mark.parametrize("rate", [0.4, 0.9])
def test_untold_a_target_that_does_as_well_as_training_leaves_difficulties_alone(rate):
    config = lake(s4=(1.0, 0.1))
    assert propose(report_of(config, {4: rate}, {4: rate}), config)[4].hole_ratio == 0.1


def test_dead_is_made_easier_down_to_the_bound():
    config = lake(s4=(1.0, 0.4))
    assert propose(report_of(config, {4: 0.0}, {4: 0.0}), config)[4].hole_ratio == pytest.approx(0.3)
    config = lake(s4=(1.0, 0.0))
    assert propose(report_of(config, {4: 0.0}, {4: 0.0}), config)[4].hole_ratio == 0.0


def test_untold_share_moves_to_the_frontier():
    config = lake(s3=(0.5, 0.1), s6=(0.3, 0.1), s10=(0.2, 0.1))
    after = propose(report_of(config, {3: 0.99, 6: 0.5, 10: 0.0}), config)
    total = sum(part.share for part in after.values())
    assert after[6].share / total > 0.45
    assert 0 < after[3].share / total < 0.4


class Hill(BaseModel):
    """A config without slices."""

    slope: float = Field(0.1, ge=0, le=0.9)


def test_a_config_without_slices_is_stepped_as_one():
    report = StageReport(
        objective="valid_rate",
        stage=0,
        config=Hill().model_dump(),
        target={"slope": 0.5},
        results=_results({"up": 0.1, "down": 0.3}),
        training_results=_results({"hill": 0.8}),
    )
    assert engineers.make("rules").propose(report, Hill()).config.slope == pytest.approx(0.1 + 0.5 * 0.4, abs=1e-3)


PLACE = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.0003, 0.5, 0.9997, 1.0]))


def walked(start, target, low, width, step, successes, stages):
    """The values of a knob that the engineer turns, stage after stage; the target is never tested."""
    rule = {"multiple_of": step} if step else {}
    climb = create_model("Climb", slope=(float, Field(ge=low, le=low + width, **rule)))
    config, aim, found = climb(slope=start), climb(slope=target), []
    for stage in range(stages):
        trained = [SliceResult(name="all", episodes=200, metrics={"valid_rate": successes / 200})]
        report = StageReport(
            objective="valid_rate",
            stage=stage,
            config=config.model_dump(),
            target=aim.model_dump(),
            training_results=trained,
        )
        config = engineers.make("rules").propose(report, config).config
        found.append(config.slope)
    return found


@given(PLACE, PLACE, st.sampled_from([0.0, 5.0, -0.2]), st.sampled_from([0.001, 0.2, 1.0, 10.0, 1e6]))
def test_an_untested_target_is_reached_exactly_and_never_passed(start, target, low, width):
    """By halves alone it would be approached for ever."""
    start, target = low + start * width, low + target * width
    values = walked(start, target, low, width, None, successes=200, stages=9)
    assert values[-1] == target
    assert all(min(start, target) <= value <= max(start, target) for value in values)


@given(st.integers(0, 20), st.integers(0, 20))
def test_a_knob_that_takes_steps_reaches_an_untested_target_too(start, target):
    values = walked(start * 0.25, target * 0.25, 0.0, 5.0, 0.25, successes=200, stages=9)
    assert values[-1] == target * 0.25


@pytest.mark.parametrize(
    ("start", "successes", "reached"),
    [
        (0.25, 150, 0.2666),  # a third of the way
        (0.294, 200, 0.297),  # what is left is just as much as a hundredth of the way from 0
        (0.295, 200, 0.3),  # less
        (0.2999, 110, 0.3),  # a small step, too
        (0.2999, 40, 0.2999),  # but no step is none
        (0.299, 0, 0.2243),  # and easing goes its quarter
    ],
)
def test_a_hundredth_of_the_way_is_no_stage_of_its_own(start, successes, reached):
    assert walked(start, 0.3, 0.0, 0.5, None, successes, stages=1) == [reached]


def test_a_short_way_in_a_wide_range_has_its_stages():
    assert walked(0.0, 0.1, 0.0, 10.0, None, successes=200, stages=3) == pytest.approx([0.05, 0.075, 0.0875], abs=1e-3)


def test_a_reason_says_that_the_little_that_was_left_is_gone_too():
    config = Hill(slope=0.499)
    report = report_of(config, {}, {"hill": 0.9}, target=Hill(slope=0.5))
    (change,) = engineers.make("rules").propose(report, config).reasons
    assert (change.new, change.reason) == (
        0.5,
        "estimated success 0.90 in training, target not tested: 44% of the way to it, rounded up to all of it",
    )


@pytest.mark.parametrize(
    ("slope", "success", "target", "why"),
    [
        (0.5, 0.9, Hill(slope=0.5), "as in the target already"),
        (0.5, 0.3, Hill(slope=0.5), "as in the target already"),  # a step of no length says so, too
        (0.9, 0.9, None, "at the hard end already"),
        (0.0, 0.0, Hill(slope=0.5), "as easy as it can be already"),
    ],
)
def test_a_knob_that_is_where_its_way_ends_is_told_as_no_part_of_a_way(slope, success, target, why):
    config = Hill(slope=slope)
    report = report_of(config, {}, {"hill": success}, target=target)
    assert engineers.make("rules").propose(report, config).kept == {"slope": why}


def test_what_an_earlier_stage_had_alike_is_not_told_as_taken_back():
    config, earlier = lake(s4=(1.0, 0.1), s6=(0.0, 0.5)), lake(s4=(1.0, 0.1), s6=(0.0, 0.4))
    history = [record(0, earlier, {}, {4: 0.7})]
    report = report_of(config, {}, {4: 0.0}, history=history, target=TARGET)
    assert engineers.make("rules").propose(report, config, EDITABLE).kept == {
        "slices.4.share": "all of the data is in 4 already",
        "slices.6.share": "all of the data is in 4 already",
        "slices.4.hole_ratio": "as in stage 0 already",
    }


def test_nothing_measured_nothing_turned():
    report = StageReport(objective="valid_rate", stage=0, config=Hill().model_dump(), target={"slope": 0.5})
    proposal = engineers.make("rules").propose(report, Hill())
    assert proposal.config == Hill()
    assert not proposal.fallback


def learner(skill, difficulty):
    """Success of a learner with this skill on a task of this difficulty."""
    return 1 / (1 + math.exp(-8 * (skill - difficulty)))


def simulated_run(name, seed, stages=8):
    """Mean target rate of a learner that learns where it sometimes succeeds; harder sizes build on easier ones.

    Not the lake: a stand-in with one skill per size, which grows with share × p(1−p) and leaks to the next size.
    """
    sizes = (3, 5, 7, 9)
    base = {3: 0.0, 5: 0.3, 7: 0.6, 9: 0.9}
    target = {size: base[size] + 0.4 for size in sizes}
    config = LakeConfig(slices={size: {"share": 0.25, "hole_ratio": 0.45} for size in sizes})
    config = (
        engineers.make("random", seed=seed, space={"slices.*.hole_ratio": (0.2, 0.6)})
        .propose(report_of(config, {}, stage=0), config, EDITABLE)
        .config
    )
    skill, history = dict.fromkeys(sizes, -0.1), []
    for stage in range(stages):
        weights = {size: config.slices[size].share for size in sizes}
        trained = {}
        for size in sizes:
            difficulty = base[size] + config.slices[size].hole_ratio
            for _ in range(20):
                p = learner(skill[size], difficulty)
                gain = 0.12 * weights[size] / sum(weights.values()) * 4 * p * (1 - p)
                for other in sizes:
                    skill[other] += gain * 0.6 ** (abs(other - size) / 2)
            trained[size] = learner(skill[size], difficulty)
        rates = {size: learner(skill[size], target[size]) for size in sizes}
        report = report_of(config, rates, trained, history, stage)
        history.append(report.records()[-1])
        config = engineers.make(name, seed=seed).propose(report, config, EDITABLE).config
    return sum(rates.values()) / len(rates)


def test_rules_beat_a_fixed_config_on_a_simulated_learner():
    """Paired over seeds of the first config. A sanity check of the rules' direction, no claim about lakes."""
    gains = [simulated_run("rules", seed) - simulated_run("fixed", seed) for seed in range(10)]
    assert sum(gain > 0 for gain in gains) >= 9
    assert sum(gains) / len(gains) > 0.05


def record(stage, config, validated, trained):
    return StageRecord(
        stage=stage,
        config=config.model_dump(mode="json"),
        results=_results(validated),
        training_results=_results(trained),
    )


def taken_back(report, config):
    """The reasons of a step back; empty where none was taken."""
    proposal = engineers.make("rules").propose(report, config, EDITABLE)
    return {change.reason for change in proposal.reasons if "taken back" in change.reason}


HARD = lake(s4=(0.0, 0.1), s5=(0.0, 0.1), s6=(1.0, 0.5))


def test_a_step_back_goes_past_stages_of_the_same_config_and_of_nothing_measured():
    """The latest stage that did better counts: one with this very config leads nowhere, one without results says nothing."""
    history = [
        record(0, EASY, {6: 0.0}, {4: 0.7}),
        record(1, lake(s4=(1.0, 0.2), s5=(0.0, 0.1), s6=(0.0, 0.1)), {}, {}),
        record(2, HARD, {6: 0.0}, {6: 0.9}),
    ]
    report = report_of(HARD, {6: 0.0}, {6: 0.01}, history=history, target=TARGET)
    assert taken_back(report, HARD) == {"estimated success fell from 0.70 at stage 0 to 0.01: half taken back"}
    later = [*history, record(3, lake(s4=(1.0, 0.3), s5=(0.0, 0.1), s6=(0.0, 0.1)), {6: 0.0}, {4: 0.6})]
    report = report_of(HARD, {6: 0.0}, {6: 0.01}, history=later, target=TARGET)
    assert taken_back(report, HARD) == {"estimated success fell from 0.60 at stage 3 to 0.01: half taken back"}


@pytest.mark.parametrize(("before", "now", "back"), [(0.21, 0.07, True), (0.19, 0.07, False), (0.9, 0.09, False)])
def test_only_the_dead_go_back_and_only_to_where_training_was_alive(before, now, back):
    history = [record(0, EASY, {6: 0.0}, {4: before})]
    assert bool(taken_back(report_of(HARD, {6: 0.0}, {6: now}, history=history, target=TARGET), HARD)) == back


def test_the_dead_who_remember_no_better_stage_are_eased_and_not_walked_on():
    config = lake(s4=(0.5, 0.1), s6=(0.5, 0.4))
    report = report_of(config, {4: 0.0, 6: 0.0}, {4: 0.0, 6: 0.0}, target=TARGET)
    proposal = engineers.make("rules").propose(report, config, EDITABLE)
    after = proposal.config.slices
    assert after[6].hole_ratio == pytest.approx(
        0.4 - 0.25 * 0.4
    )  # a quarter of the way to the bound, not to the target
    assert after[4].share > 0.5 * (after[4].share + after[6].share)  # and data goes to the first slice
    assert all("eased" in change.reason for change in proposal.reasons)
