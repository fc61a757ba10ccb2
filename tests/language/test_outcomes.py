"""What training saw: replies are counted by slice and by how they failed, and paid as they were judged."""

import numpy as np
import pytest

import mapf_frozenlake as mfl
from envtuning.trainees.language.outcomes import Outcomes, named
from mapf_frozenlake.types import FailureKind
from tests.lazily import needed

needed("trl", extra="grpo")

END = 7


@pytest.fixture
def outcomes():
    return Outcomes(frozenset({END}))


def test_a_failed_reply_that_was_cut_failed_for_that():
    assert named(None, True) is None
    assert named(FailureKind.HOLE, False) == "hole"
    assert named(FailureKind.PARSE_ERROR, True) == "truncated"


def played(outcomes, *episodes):
    """Count replies given as (slice, question, failure, score)."""
    rows = [{"slice": name, "case": question} for name, question, _, _ in episodes]
    failures, scores = [one[2] for one in episodes], [one[3] for one in episodes]
    outcomes.observe(rows, failures, scores, [[END]] * len(rows))


def test_replies_are_counted_by_slice_with_their_scores_and_failures_and_later_ones_to_a_question_are_repeats(outcomes):
    played(
        outcomes, ("4", "a", None, 1.0), ("4", "a", "hole", 0.5), ("3", "b", None, 1.0), ("3", "b", "truncated", 0.25)
    )
    played(outcomes, ("4", "a", "hole", 0.5), ("4", "c", "parse_error", 0.0))
    assert outcomes.metrics() == {"success_rate": 2 / 6, "parse_error_rate": 1 / 6, "truncated_rate": 1 / 6}
    assert outcomes.tally.dump() == {
        "first": {
            "3": {"episodes": 2, "successes": 1, "score_sum": 1.25, "failures": {"truncated": 1}, "further": 1},
            "4": {
                "episodes": 3,
                "successes": 1,
                "score_sum": 1.5,
                "failures": {"hole": 1, "parse_error": 1},
                "further": 1,
            },
        },
        "repeats": {"4": {"episodes": 1, "score_sum": 0.5, "failures": {"hole": 1}}},
    }


def test_played_conversations_are_paid_as_their_environment_judged_them(outcomes):
    rows = [{"slice": 3, "case": "a"}, {"slice": 4, "case": "b"}]
    told = {"paid": [0.5, 1.0], "failure": ["hole", None], "score": [0.5, 1.0]}
    assert outcomes(["a", "b"], rows, [[1], []], **told) == [0.5, 1.0]
    assert outcomes(["a", "b"], rows, [[1], []], **told | {"paid": [0.25, 0.0]}) == [0.25, 0.0]
    assert outcomes.tally.episodes == 0  # they were counted when they were played
    outcomes.observe(rows * 2, ["hole", None] * 2, [0.5, 1.0] * 2, [[1], []] * 2)
    assert outcomes.tally.first["3"].failures == {"hole": 2}
    taken = outcomes.take()
    assert (taken.tally.episodes, taken.tokens["generated"], taken.eos) == (4, 2, {END})
    assert (outcomes.tally.episodes, outcomes.metrics()) == (0, {})


def test_replies_in_words_are_judged_and_those_without_their_end_were_cut(outcomes):
    from envtuning.trainees.language.tasks import LakePlans

    [row] = LakePlans("paper", ()).rows(mfl.LakeConfig.single(3, 1, hole_ratio=0.0, reward="sparse"), 1, 0)
    replies = [[{"role": "assistant", "content": "what?"}]] * 3
    paid = outcomes(replies, [row["metadata"]] * 3, [[1, END], [END, 1], []])
    assert len(paid) == 3
    assert len(set(np.round(paid, 6))) == 1
    assert outcomes.metrics() == {"success_rate": 0.0, "parse_error_rate": 1 / 3, "truncated_rate": 2 / 3}
    assert outcomes.tokens == {"generated": 4}
    for half in ({"paid": [9.0] * 3}, {"failure": [None] * 3}, {"score": [1.0] * 3}):  # only all together are a verdict
        assert outcomes(replies, [row["metadata"]] * 3, [[END]] * 3, **half) == paid
    for columns in (([[END]] * 2, 3), ([[END]] * 3, 2)):
        with pytest.raises(ValueError, match="shorter"):
            outcomes(replies, [row["metadata"]] * columns[1], columns[0])


def test_a_reply_cut_in_a_thought_that_the_prompt_began_is_no_answer():
    from envtuning.trainees.language.tasks import LakePlans

    [row] = LakePlans("paper", ()).rows(mfl.LakeConfig.single(3, 1, hole_ratio=0.0, reward="sparse"), 1, 0)
    plan = mfl.format_plan(mfl.solve(mfl.from_text(row["metadata"]["text"])).plan)
    cut, whole = f"Let me try {plan}\nNow I check", f"Let me see.</think>\n{plan}"
    told = [row["metadata"]], [[1]]
    assert [Outcomes(frozenset({END}))([reply], *told) for reply in (cut, whole)] == [[1.0], [1.0]]
    begun = Outcomes(frozenset({END}), begun="<think>\n")
    assert [begun([reply], *told) for reply in (cut, whole)] == [[0.0], [1.0]]
    assert begun.metrics()["truncated_rate"] == 0.5


def test_another_function_pays_what_it_will():
    asked = {}

    def pays(*, completions, metadata, completion_ids, **columns):
        asked.update(columns, completions=completions, ids=completion_ids)
        return [5.0]

    outcomes = Outcomes(frozenset({END}), pays)
    assert outcomes(
        ["a"], [{"slice": 3, "case": "a"}], [[END]], paid=[0.0], failure=["hole"], score=[0.0], extra=1
    ) == [5.0]
    assert asked == {"extra": 1, "completions": ["a"], "ids": [[END]], "paid": [0.0]}  # what the config would have paid
    assert outcomes.take().pays is pays


def test_the_counts_and_questions_of_all_processes_are_added_up(outcomes, monkeypatch):
    import accelerate.utils

    other = Outcomes(frozenset({END}))
    played(outcomes, ("3", "a", None, 1.0))
    played(other, ("3", "b", "hole", 0.5), ("4", "c", None, 1.0), ("4", "c", "hole", 0.0))
    theirs = (other.tally, other.tokens, other.visited.take())
    monkeypatch.setattr(accelerate.utils, "gather_object", lambda mine: [*mine, theirs])
    whole = outcomes.of_all_processes()
    assert whole.tokens == {"generated": 4}
    assert whole.tally.dump() == {
        "first": {
            "3": {"episodes": 2, "successes": 1, "score_sum": 1.5, "failures": {"hole": 1}},
            "4": {"episodes": 2, "successes": 1, "score_sum": 1.0, "failures": {"hole": 1}, "further": 1},
        }
    }
    assert outcomes.tally.episodes == 1
    outcomes.take()
    played(outcomes, ("4", "c", None, 1.0), ("4", "d", None, 1.0))  # another process was trained on c
    assert (outcomes.tally.first["4"].episodes, outcomes.tally.repeats["4"].episodes) == (1, 1)
