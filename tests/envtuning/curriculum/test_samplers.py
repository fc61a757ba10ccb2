"""Samplers: their shares by hand, their states, and a state whose slices have changed."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import BaseModel, Field, create_model

import mapf_frozenlake as mfl
from engineers import Engineer, Proposal
from envtuning import EngineerCurriculum, Learnability, Pools, Thompson
from envtuning.curriculum.ladder import Ladder
from envtuning.errors import RunError, SpecError

NAMES = ("dead", "half", "known")
RATES = {"dead": 0.0, "half": 0.5, "known": 0.9}


class Piece(BaseModel):
    share: float = Field(1.0, ge=0.0, le=1.0)


def tasks(*names: str) -> BaseModel:
    return create_model("Tasks", **{name: (Piece, Piece()) for name in names})()  # type: ignore[call-overload]


def shares(config) -> dict[str, float]:
    return {name: getattr(config, name).share for name in type(config).model_fields}


def fed(curriculum, rounds: int = 1, rates=RATES):
    """Ten episodes of each slice a round, with exact rates."""
    found = []
    for _ in range(rounds):
        names = [name for name in rates for _ in range(10)]
        curriculum.observe_many(names, [turn < 10 * rates[name] for name in rates for turn in range(10)])
        found.append(curriculum.next())
    return found


def test_learnability_is_p_times_1_minus_p_above_the_floor():
    [config] = fed(Learnability(tasks(*NAMES), every=30, floor=0.2))
    weights = np.array([0, 0.25, 0.09])
    expected = 0.2 / 3 + 0.8 * weights / weights.sum()
    assert list(shares(config).values()) == pytest.approx(expected, abs=1e-4)


def test_of_groups_it_is_the_chance_that_one_has_a_signal():
    [config] = fed(Learnability(tasks(*NAMES), every=30, floor=0.0, group=8))
    weights = np.array([0, 1 - 2 * 0.5**8, 1 - 0.9**8 - 0.1**8])
    assert list(shares(config).values()) == pytest.approx(weights / weights.sum(), abs=1e-4)


def test_pools_give_hard_and_easy_slices_a_fifth():
    [config] = fed(Pools(tasks("hard", "normal", "upper", "easy"), every=40), rates={"hard": 0.2, "normal": 0.3, "upper": 0.7, "easy": 0.8})  # fmt: skip
    assert list(shares(config).values()) == pytest.approx(np.array([0.2, 1, 1, 0.2]) / 2.4, abs=1e-4)


def test_thompson_looks_where_learnability_may_be_and_forgets():
    [config] = fed(Thompson(tasks(*NAMES), every=30, floor=0.0, draws=4_000))
    found = shares(config)
    assert found["half"] > 0.9
    assert found["dead"] < 0.02
    sure = Thompson(tasks(*NAMES), every=30, floor=0.0, draws=4_000)
    assert shares(fed(sure, 5)[-1] or sure.config)["half"] > found["half"]
    forgetful = Thompson(tasks(*NAMES), every=30, floor=0.0, draws=4_000, decay=0.0)
    later = fed(forgetful, 2, RATES | {"dead": 0.5})[-1] or forgetful.config
    assert shares(later)["dead"] > 0.3


@pytest.mark.parametrize("kind", [Learnability, Pools])
def test_even_shares_after_even_shares_are_no_swap(kind):
    sampler = kind(tasks("one", "two", "three"), every=30)
    assert fed(sampler, rates={"one": 0.5, "two": 0.5, "three": 0.5}) == [None]
    assert (sampler.version, sampler.stage) == (0, 1)
    assert fed(sampler, rates={"one": 0.5, "two": 0.5, "three": 0.9}) != [None]


def test_a_slice_without_episodes_keeps_its_rate():
    sampler = Learnability(tasks(*NAMES), every=10, floor=0.0)
    fed(sampler)
    fed(sampler, rates={"known": 0.5})
    assert shares(sampler.config) == {"dead": 0.0, "half": 0.5, "known": 0.5}


@pytest.mark.parametrize("kind", [Learnability, Thompson, Pools])
def test_a_state_goes_on_and_lakes_are_sampled_too(kind, tmp_path):
    config = mfl.LakeConfig(slices={3: {}, 4: {}, 5: {}}, num_agents=2)
    whole, part = kind(config, every=30), kind(config, every=30)
    rng = np.random.default_rng(0)
    episodes = [(str(rng.choice([3, 4, 5])), bool(rng.random() < 0.4)) for _ in range(400)]
    after = None
    for number, (name, won) in enumerate(episodes):
        whole.observe_many([name], [won])
        (after or part).observe_many([name], [won])
        whole.next(), (after or part).next()
        if number == 170:
            part.save(tmp_path / "state.json")
            after = kind(config, every=30)
            after.load(tmp_path / "state.json")
    assert after is not None
    assert after.state_dict() == whole.state_dict()
    assert whole.version >= 3
    assert sum(part for name, part in whole.metrics().items() if name.startswith("share/")) == pytest.approx(1)


def test_metrics_are_named_as_those_of_an_engineer():
    sampler, engineer = Pools(tasks("half", "known")), EngineerCurriculum("uniform", tasks("half", "known"))
    for one in (sampler, engineer):
        one.observe_many(["half", "half", "known"], [True, False, True], [1.0, 0.5, 1.0])
    assert sampler.metrics() == {name: value for name, value in engineer.metrics().items() if name != "stage"}
    assert sampler.metrics()["success/half"] == 0.5


class Stub(Engineer):
    name = "stub"

    def propose(self, report, current, editable=None):
        best = report.training_results[0].name
        piece = Piece(share=getattr(current, best).share / 2)
        return Proposal(config=current.model_copy(update={best: piece}))


@pytest.mark.parametrize("made", [lambda config: Thompson(config, every=30), lambda config: EngineerCurriculum(Stub(), config, every=40)])  # fmt: skip
def test_of_slices_that_changed_new_ones_begin_old_ones_are_dropped_and_names_can_be_mapped(made, tmp_path):
    before = made(tasks(*NAMES))
    fed(before, 3)
    before.save(tmp_path / "state.json")
    after = made(tasks("half", "familiar", "new"))
    with pytest.warns(UserWarning, match="the saved state's slices 'dead' are not in the config: dropped"):
        after.load(tmp_path / "state.json", renamed={"known": "familiar"})
    then = shares(before.config)
    assert shares(after.config) == {"half": then["half"], "familiar": then["known"], "new": 1.0}
    state = after.state_dict()
    assert set(state["slices"]) == {"half", "familiar", "new"}
    assert "dead" not in str({name: state[name] for name in state if name != "proposals"})
    fed(after, 3, {"half": 0.5, "familiar": 0.9, "new": 0.1})
    assert after.version > before.version


def test_in_print_stands_when_new_shares_are_due():
    sampler = Pools(tasks("half", "known"), every=30)
    sampler.observe_many(["half"] * 9, [True] * 9)
    assert sampler.next() is None
    assert str(sampler) == "Pools: 0 stages, now half 0.5, known 0.5; 9 of 30 episodes to new shares"


def test_wrong_arguments_are_told():
    for made, said in (
        (lambda: Pools(tasks("one")), "Pools turns the shares of slices, and the config has one"),
        (lambda: Pools({}), "config is a dict"),
        (lambda: Pools(tasks(*NAMES), every=0), "every=0"),
        (lambda: Learnability(tasks(*NAMES), group=1), "group=1"),
        (lambda: Thompson(tasks(*NAMES), draws=0), "draws=0, decay=0.5"),
        (lambda: Learnability(tasks(*NAMES), floor=2.0), "floor=2.0"),
        (
            lambda: Pools(tasks(*NAMES)).observe_many(["banana"], [True]),
            "'banana', and the config has dead, half, known",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            made()


def test_a_saved_slice_is_mapped_onto_a_slice_of_the_config_that_no_other_one_has():
    state = Pools(tasks(*NAMES)).state_dict()
    for names, renamed, said in (
        (
            ("half", "known"),
            {"dead": "half"},
            "slices dead and half would both be 'half': give each a slice of its own",
        ),
        (
            NAMES,
            {"dead": "banana"},
            "maps 'dead' onto 'banana', and the config has dead, half, known: give one of these",
        ),
    ):
        with pytest.raises(SpecError, match=said):
            Pools(tasks(*names)).load_state_dict(state, renamed=renamed)
    swapped = Pools(tasks(*NAMES))
    swapped.load_state_dict(state, renamed={"dead": "half", "half": "dead"})
    assert swapped.version == 0


def test_onto_a_config_without_slices_nothing_is_mapped():
    class Whole(BaseModel):
        holes: float = Field(0.5, ge=0.0, le=1.0)

    before = EngineerCurriculum(Stub(), Whole())
    with pytest.raises(SpecError, match="the config has no slices: leave `renamed` out"):
        EngineerCurriculum(Stub(), Whole()).load_state_dict(before.state_dict(), renamed={"a": "all"})


@pytest.mark.parametrize("renamed", [{4: 5}, {"4": "5"}])
def test_the_slices_of_lakes_may_be_mapped_by_numbers(renamed):
    def lakes(*sizes: int):
        return mfl.LakeConfig(slices={size: {"share": size / 10} for size in sizes}, num_agents=2)

    before, after = EngineerCurriculum(Stub(), lakes(3, 4)), EngineerCurriculum(Stub(), lakes(3, 5))
    before.observe_many(["3", "4", "4"], [True, True, False])
    after.load_state_dict(before.state_dict(), renamed=renamed)
    assert {row.name: row.episodes for row in after.report.training_results} == {"3": 1, "5": 2}
    assert after.config.slices[5].share == 0.4


def test_the_next_question_waits_for_the_episodes_of_the_slices_that_are_left():
    class Whole(BaseModel):
        holes: float = Field(0.5, ge=0.0, le=1.0)

    for before, names, left in ((tasks("one", "two"), ["one"] * 3 + ["two"] * 7, 7), (Whole(), ["all"] * 10, 0)):
        saved, after = (EngineerCurriculum(Stub(), config, every=30) for config in (before, tasks("two", "three")))
        saved.observe_many(names, [True] * 10)
        with pytest.warns(UserWarning, match="are not in the config: dropped"):
            after.load_state_dict(saved.state_dict())
        assert after.report.cost == {"episodes": left}


def test_a_knob_beside_the_slices_stays_as_it_was_saved():
    class Tasks(BaseModel):
        old: Piece = Piece()
        noise: float = Field(0.1, ge=0.0, le=1.0)

    class More(Tasks):
        new: Piece = Piece()

    class Config(BaseModel):
        tasks: Tasks = Tasks()

    class Wider(BaseModel):
        tasks: More = More()

    before = EngineerCurriculum(Stub(), Config(tasks=Tasks(noise=0.9)))
    after = EngineerCurriculum(Stub(), Wider())
    after.load_state_dict(before.state_dict())
    assert after.config.tasks.noise == 0.9


def test_renaming_what_is_not_there_is_refused(tmp_path):
    sampler = Pools(tasks(*NAMES))
    sampler.save(tmp_path / "state.json")
    with pytest.raises(SpecError, match="renamed has 'banana', and the saved slices are dead, half, known"):
        Pools(tasks(*NAMES)).load(tmp_path / "state.json", renamed={"banana": "half"})
    with pytest.raises(RunError, match="is the state of a Pools"):
        Thompson(tasks(*NAMES)).load(tmp_path / "state.json")
    ladder = Ladder([1, 2])
    ladder.save(tmp_path / "ladder.json")
    with pytest.raises(SpecError, match="a Ladder keeps nothing by slice"):
        Ladder([1, 2]).load(tmp_path / "ladder.json", renamed={"a": "b"})
