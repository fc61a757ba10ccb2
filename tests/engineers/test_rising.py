"""``rising``, ``steady`` and ``once`` on results that are written down here."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field

import engineers
from engineers.plain.base import LEAST_PART
from engineers.proposal import Proposal
from engineers.report import SliceResult, Split, StageRecord, StageReport
from tests.lazily import needed

needed("gymnasium", extra="loop")
from envtuning.worlds.text_world import Task, TaskKnobs, config_of  # noqa: E402

NAMES = ("known", "coming", "stuck", "unseen", "half")
CONFIG = config_of({name: Task(TaskKnobs, lambda rng, knobs: ("", "")) for name in NAMES})()
DUMPED = CONFIG.model_dump(mode="json")


def row(name: str, success: float, score: float, episodes: int = 40) -> SliceResult:
    half = Split(episodes=episodes // 2, succeeded=round(success * episodes / 2), score=score)
    return SliceResult(
        name=name, episodes=episodes, metrics={"success_rate": success, "score": score}, halves=[half, half]
    )


def report(*stages: dict[str, tuple[float, float]], blind: float = 0.08) -> StageReport:
    rows = [[row(name, *told) for name, told in stage.items()] for stage in stages]
    history = [
        StageRecord(stage=place, config=DUMPED, results=[], training_results=told)
        for place, told in enumerate(rows[:-1])
    ]
    return StageReport(
        stage=len(stages) - 1, objective="success_rate", config=DUMPED, training_results=rows[-1], history=history,
        blind_scores=dict.fromkeys(NAMES, blind),
    )  # fmt: skip


def shares(engineer: str, told: StageReport, **options) -> dict[str, float]:
    proposed = engineers.make(engineer, **options).propose(told, CONFIG)
    found = {name: knobs["share"] for name, knobs in proposed.config.model_dump()["tasks"].items()}
    total = sum(found.values())
    return {name: share / total for name, share in found.items()}


FIRST = {"known": (1.0, 1.0), "coming": (0.0, 0.1), "stuck": (0.0, 0.09), "half": (0.0, 0.1)}
SECOND = {"known": (0.95, 0.99), "coming": (0.1, 0.4), "stuck": (0.0, 0.08), "half": (0.0, 0.5)}
LATER = {"known": (0.95, 0.99), "coming": (0.4, 0.7), "stuck": (0.0, 0.09), "half": (0.0, 0.52)}


def test_it_rehearses_what_is_learnt_and_trains_the_rest_at_first():
    found = shares("rising", report(FIRST), keep=0.2)
    assert found["known"] == pytest.approx(0.2)
    assert [found[name] for name in ("coming", "stuck", "unseen", "half")] == pytest.approx([0.2] * 4)


def test_rehearsal_grows_to_its_part_in_the_last_stage():
    told = report(FIRST)
    first, last = (told.model_copy(update={"stage": stage, "rounds_left": 5 - stage}) for stage in (0, 4))
    assert shares("rising", first, keep=0.3)["known"] == pytest.approx(0.1)
    assert shares("rising", last, keep=0.3)["known"] == pytest.approx(0.3)


def test_then_it_trains_what_rises():
    found = shares("rising", report(FIRST, SECOND), keep=0.2, flat=0.2)
    rising = 0.8 / 3.2
    assert found == pytest.approx(
        {"known": 0.2, "coming": rising, "half": rising, "unseen": rising, "stuck": 0.2 * rising}, abs=1e-3
    )


def test_few_episodes_must_score_more_to_count_as_rising():
    def with_episodes(count: int) -> StageReport:
        told = report(FIRST, FIRST | {"coming": (0.0, 0.12)})
        told.training_results = [row(one.name, 0.0, one.score or 0.0, count) for one in told.training_results]
        return told

    many, few = (shares("rising", with_episodes(count)) for count in (400, 10))
    assert many["coming"] > 10 * many["stuck"]
    assert few["coming"] == few["stuck"]


@pytest.mark.parametrize(("score", "kind"), [(0.245, "rising"), (0.235, "flat")])
def test_a_slice_rises_from_one_standard_error_above_a_blind_guess(score, kind):
    """Of 100 guesses with a chance of .2 each, the standard error is .04."""
    told = report(FIRST, FIRST, blind=0.2)
    told.training_results = [row(name, 0.0, score if name == "half" else 0.9, 100) for name in NAMES]
    reasons = {one.path: one.reason for one in engineers.make("rising").propose(told, CONFIG).reasons}
    assert reasons["tasks.half.share"].startswith(kind)


@pytest.mark.parametrize("later", [(0.0, 0.52), (0.5, 0.52)])
def test_a_score_that_has_stopped_below_what_is_learnt_is_flat(later):
    """Whether half of every answer is right, or half of the answers by chance."""
    still = LATER | {"half": later}
    found = shares("rising", report(FIRST, SECOND, still, still), keep=0.2, flat=0.1)
    assert found["half"] == found["stuck"] == pytest.approx(0.1 * found["unseen"], rel=0.01)
    assert found["unseen"] > 0.3


def test_what_was_learnt_and_is_being_forgotten_is_trained():
    forgotten = LATER | {"known": (0.4, 0.7)}
    found = shares("rising", report(FIRST, SECOND, forgotten, forgotten))
    assert found["known"] == found["unseen"]


def test_nothing_is_given_up_for_good():
    found = shares("rising", report(FIRST, SECOND, LATER), flat=0.0)
    assert found["stuck"] >= LEAST_PART * 0.99


def test_all_learnt_or_all_flat_get_even_data():
    assert set(shares("rising", report(dict.fromkeys(NAMES, (1.0, 1.0)))).values()) == {0.2}
    nothing = dict.fromkeys(NAMES, (0.0, 0.08))
    assert set(shares("rising", report(nothing, nothing, nothing)).values()) == {0.2}


def test_where_nothing_rises_a_hopeless_slice_gets_no_more_than_an_even_share():
    seen = dict.fromkeys(NAMES, (0.95, 0.99)) | {"stuck": (0.0, 0.08)}
    assert set(shares("rising", report(seen, seen, seen)).values()) == {0.2}


@pytest.mark.parametrize("engineer", ["rising", "once"])
def test_even_shares_are_written_as_parts_of_the_data_too(engineer):
    """A reader of the config would take a share of 1 for all of the data."""
    learnt = dict.fromkeys(NAMES, (1.0, 1.0))
    proposed = engineers.make(engineer).propose(report(learnt), CONFIG)
    assert [knobs["share"] for knobs in proposed.config.model_dump()["tasks"].values()] == [0.2] * 5


def test_once_reads_the_first_stage_and_no_other():
    later = dict.fromkeys(NAMES, (0.0, 0.0))
    first = shares("once", report(FIRST), keep=0.2, part=0.5)
    assert first == pytest.approx(shares("once", report(FIRST, later, later), keep=0.2, part=0.5))
    assert first["known"] == pytest.approx(0.2, abs=0.01)
    assert first["coming"] == first["half"] > 0.3  # the first half of the others, by name
    assert first["stuck"] == first["unseen"] < 0.02


def test_steady_takes_half_of_the_data_for_each_stage_without_a_sign():
    """Until a slice has next to nothing; what rises again has all of it at once."""
    told = [report(FIRST, *[SECOND] * count) for count in range(1, 7)]
    parts = []
    for one in told:
        found = shares("steady", one, keep=0.2, flat=0.05)
        parts.append(found["stuck"] / found["unseen"])
    assert parts == pytest.approx([1 / 2, 1 / 4, 1 / 8, 1 / 16, 0.05, 0.05], rel=0.02)
    again = shares("steady", report(FIRST, SECOND, SECOND, SECOND | {"stuck": (0.0, 0.5)}))
    assert again["stuck"] == again["unseen"]


@pytest.mark.parametrize(("score", "part"), [(0.5, 1.0), (0.6, 0.5)])
def test_steady_takes_nothing_before_a_slice_has_closed_half_of_what_it_lacked(score, part):
    """At a blind guess of 0.08, a half is closed with 0.54. Two stages of chance before that look like learning."""
    seen = {"coming": (0.0, score), "stuck": (0.0, 0.08), "half": (0.0, 0.1)}
    found = shares("steady", report(seen, seen))
    assert found["stuck"] == pytest.approx(part * found["coming"], rel=0.02)
    assert shares("rising", report(seen, seen))["stuck"] < 0.1 * found["coming"]


@pytest.mark.parametrize("engineer", ["rising", "steady"])
def test_the_first_stage_of_a_slice_is_the_first_with_data_of_it(engineer):
    """`stuck` had none before: it cannot be called flat yet."""
    before = {name: told for name, told in SECOND.items() if name != "stuck"}
    found = shares(engineer, report(before, before, SECOND))
    assert found["stuck"] == found["unseen"]


def test_a_stage_without_data_of_a_slice_does_not_halve_it():
    without = {name: told for name, told in SECOND.items() if name != "stuck"}
    once, still = (shares("steady", report(FIRST, SECOND, *later)) for later in ([], [without, without]))
    assert once["stuck"] / once["unseen"] == pytest.approx(still["stuck"] / still["unseen"]) == pytest.approx(0.5)


def test_the_only_decision_rehearses_as_the_last():
    told = report(FIRST).model_copy(update={"rounds_left": 1})
    assert shares("rising", told)["known"] == pytest.approx(0.3)


def test_steady_keeps_what_a_flat_slice_can_lose():
    """As much of a rising slice's data as it succeeds."""
    still = SECOND | {"half": (0.4, 0.5)}
    found = shares("steady", report(FIRST, *[still] * 6))
    assert found["half"] == pytest.approx(0.4 * found["unseen"], rel=0.02)
    assert found["stuck"] < 0.1 * found["unseen"]


@pytest.mark.parametrize(("success", "part"), [(0.8, 1.0), (0.85, 0.75), (0.95, 0.25)])
def test_steady_gives_what_is_learnt_the_less_the_more_it_succeeds(success, part):
    """A rising slice's data where success has just reached ``learnt``."""
    found = shares("steady", report(FIRST, SECOND | {"known": (success, 1.0)}), keep=0.01)
    assert found["known"] == pytest.approx(part * found["coming"], rel=0.02)


def test_what_succeeds_always_is_only_rehearsed():
    told = report(FIRST, SECOND | {"known": (1.0, 1.0)})
    assert shares("steady", told)["known"] == pytest.approx(shares("rising", told)["known"]) == pytest.approx(0.3)
    assert shares("steady", told, learnt=1.0)["known"] == pytest.approx(0.3)


@pytest.mark.parametrize("engineer", ["rising", "steady", "once"])
def test_a_handful_of_first_visits_is_read_with_the_repeats(engineer):
    """Three first visits fail where a thousand repeats succeed: the slice has few questions, and they are learnt."""
    told = report(FIRST)
    known = next(one for one in told.training_results if one.name == "known")
    known.episodes, known.metrics, known.halves = 3, {"success_rate": 0.0, "score": 0.0}, []
    known.repeats = Split(episodes=997, succeeded=990, score=0.99)
    found = shares(engineer, told)
    assert found["known"] == pytest.approx(shares(engineer, report(FIRST))["known"], rel=0.1)
    known.episodes = 30
    assert shares(engineer, told)["known"] != pytest.approx(found["known"], rel=0.1)
    known.halves = [Split(episodes=29, succeeded=0, score=0.0), Split(episodes=1, succeeded=0, score=0.0)]
    known.repeats = Split(episodes=2_970, succeeded=2_960, score=0.99)  # almost all questions came in the first half
    assert shares(engineer, told)["known"] == pytest.approx(found["known"], rel=0.1)


def test_without_scores_success_is_read():
    told = report(FIRST, SECOND | {"coming": (0.4, 0.4), "half": (0.05, 0.5)})
    for one in (*told.training_results, *told.history[0].training_results):
        one.metrics.pop("score")
        one.halves = []
    found = shares("rising", told, keep=0.2, flat=0.2)
    assert found["coming"] > 4 * found["half"]  # .05 is no more than a blind guess


def test_what_never_had_any_credit_cannot_be_told_from_what_has_not_begun():
    bare = {name: (success, success) for name, (success, _) in SECOND.items()}
    found = shares("rising", report(*[bare] * 5, blind=0.0), keep=0.2)
    assert found["stuck"] == found["unseen"] > found["known"] * 0.99


class Long(TaskKnobs):
    length: int = Field(3, ge=1, le=9, description="Letters.")


class Words(BaseModel):
    """Two tasks, and a number beside them that makes both harder."""

    noise: float = Field(0.0, ge=0.0, le=1.0, description="Part of the letters that are replaced.")
    tasks: dict[str, Long] = {name: Long() for name in ("easy", "other")}


def words(noise: float = 0.0, **lengths: int) -> Words:
    return Words(noise=noise, tasks={name: Long(length=length) for name, length in lengths.items()})


def asked_of_words(
    target: Words, *stages: tuple[Words, dict[str, SliceResult]], engineer: str = "rising"
) -> Proposal[Words]:
    """What the engineer answers after these stages, of each of which a config and training's results are given."""
    records = [
        StageRecord(stage=place, config=config.model_dump(), results=[], training_results=list(rows.values()))
        for place, (config, rows) in enumerate(stages)
    ]
    told = StageReport(
        stage=len(stages) - 1, objective="success_rate", config=records[-1].config, rounds_left=3,
        training_results=records[-1].training_results, history=records[:-1], target=target.model_dump(),
    )  # fmt: skip
    return engineers.make(engineer).propose(told, stages[-1][0])


def rows_of(episodes: int = 40, **told: tuple[float, float]) -> dict[str, SliceResult]:
    return {name: row(name, *shown, episodes=episodes) for name, shown in told.items()}


@pytest.mark.parametrize("harder", [words(easy=7, other=7), words(noise=0.5, easy=3, other=3)])
def test_a_slice_is_learnt_if_it_is_as_hard_as_the_target(harder):
    """In its own knobs, and in those beside the slices."""
    start, seen = words(easy=3, other=3), rows_of(easy=(1.0, 1.0), other=(0.0, 0.1))
    as_hard = asked_of_words(start, (start, seen)).config
    too_easy = asked_of_words(harder, (start, seen)).config
    assert as_hard.tasks["easy"].share < 0.2
    assert too_easy.tasks["easy"].share == too_easy.tasks["other"].share
    assert (too_easy.tasks["easy"].length, too_easy.noise) > (3, 0.0)  # it moves towards the target as `rules` does


def test_a_single_slice_moves_as_with_rules():
    alone, target = words(easy=3), words(easy=9)
    stages = [(alone, rows_of(easy=(0.9, 0.95)))]
    ours, theirs = (asked_of_words(target, *stages, engineer=name) for name in ("rising", "rules"))
    assert ours.reasons == theirs.reasons != []


def test_a_slice_that_became_harder_is_not_flat_because_it_scores_less():
    target = words(easy=9, other=9)
    stages = [
        (words(easy=length, other=9), rows_of(easy=(success, success + 0.2), other=(0.0, 0.3)))
        for length, success in ((3, 0.6), (4, 0.5), (5, 0.4))
    ]
    assert asked_of_words(target, *stages).config.tasks["easy"].share > 0.9
    still = [(words(easy=5, other=9), rows) for _, rows in stages]
    assert asked_of_words(target, *still).config.tasks["easy"].share == 0.5


def test_a_slice_without_success_is_made_no_harder_because_another_succeeds():
    start, target = words(easy=3, other=3), words(easy=9, other=9)
    seen = rows_of(episodes=400, easy=(1.0, 1.0)) | rows_of(episodes=4, other=(0.0, 0.02))
    tasks = asked_of_words(target, *[(start, seen)] * 3).config.tasks
    assert tasks["easy"].length > 3
    assert tasks["other"].length == 3


def test_its_reasons_say_what_was_seen():
    start = words(easy=3, other=3)
    seen = rows_of(easy=(0.9, 0.95), other=(0.0, 0.02))
    proposed = asked_of_words(start, *[(start, seen)] * 3)
    one, other = (change for change in proposed.reasons if change.path.endswith("share"))
    drawn = "nothing rises, so all are drawn as in the target"
    assert one.reason == f"learnt: success 0.90 in the last half, score 0.95 in 40 episodes; {drawn}"
    assert other.reason == f"flat: success 0.00 in the last half, score 0.02 in 40 episodes; {drawn}"
    for rows in seen.values():
        rows.halves = []
    seen["easy"].repeats = Split(episodes=60, succeeded=60, score=1.0)
    whole, _ = (change for change in asked_of_words(start, *[(start, seen)] * 3).reasons if "share" in change.path)
    assert whole.reason == f"learnt: success 0.90, score 0.95 in 40 first visits; {drawn}"


@pytest.mark.parametrize("name", ["rising", "steady"])
def test_a_slice_without_credit_is_not_told_as_rising(name):
    """It may still begin, and has as much data as one that rises: its score is 0, a blind guess's, or has not been seen."""
    seen = {"known": (1.0, 1.0), "coming": (0.0, 0.4), "stuck": (0.0, 0.0), "half": (0.0, 0.08)}
    first = engineers.make(name).propose(report(seen), CONFIG)
    later = engineers.make(name).propose(report(seen, seen), CONFIG)
    for proposed in (first, later):
        told = {one.path.split(".")[1]: one.reason for one in proposed.reasons}
        assert told["coming"] == "rising: success 0.00 in the last half, score 0.40 in 40 episodes"
        assert told["stuck"] == (
            "may still begin, so it counts as rising: success 0.00 in the last half, score 0.00 in 40 episodes"
        )
        assert told["unseen"] == "may still begin, so it counts as rising: no data in this stage"
    half = {one.path: one.reason for one in first.reasons}["tasks.half.share"]
    assert half.startswith("may still begin, so it counts as rising: success 0.00")


def test_the_target_says_how_slices_of_one_kind_are_drawn():
    target = {
        "tasks": {name: {"share": 4.0 if name == "coming" else 1.0} for name in ("known", "coming", "stuck", "half")}
    }
    found = shares("rising", report(FIRST, SECOND).model_copy(update={"target": target}), keep=0.2)
    assert found["coming"] == pytest.approx(4 * found["half"], rel=0.01)
    assert found["unseen"] == 0  # the target lacks it


@pytest.mark.parametrize("name", ["rising", "steady", "once"])
def test_an_option_outside_of_its_range_is_refused(name: str) -> None:
    parts = ("learnt", "keep", "part") if name == "once" else ("learnt", "keep", "gap", "flat")
    for option in parts:
        for edge in (0.0, 1.0):
            engineers.make(name, **{option: edge})
        for wrong in (-0.01, 1.5, float("nan")):
            with pytest.raises(ValueError, match=f"^{option}={wrong}: give a number from 0 to 1$"):
                engineers.make(name, **{option: wrong})


@pytest.mark.parametrize("name", ["rising", "steady"])
def test_a_number_of_standard_errors_is_not_below_0_and_finite(name: str) -> None:
    engineers.make(name, sure=0.0)
    engineers.make(name, sure=3.0)
    for wrong in (-0.5, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"^sure={wrong}: give a number of standard errors, 0 or more$"):
            engineers.make(name, sure=wrong)
