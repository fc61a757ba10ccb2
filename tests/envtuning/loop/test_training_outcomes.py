"""Outcomes that a trainee gives: they are read, stored by iteration, reported, and they replace the probe."""

from __future__ import annotations

import pytest

from envtuning import loop
from envtuning.loop.contract import TraineeFailed, read_outcomes
from envtuning.loop.observer import Observer, Progress
from envtuning.outcomes import Counts, Outcome, Tally
from tests.envtuning.counting_runs import PROBED, VALIDATED, spec_of
from tests.envtuning.counting_world import ITERATION, STEPS

SLICES = ["all"]


def suites(**changes):
    return {"validation_per_slice": VALIDATED} | changes


@pytest.fixture
def telling():
    return {"kind": "tests.envtuning.counting_world:Telling"}


def test_training_is_reported_by_slice_and_by_halves_and_no_probe_is_charged(telling, tmp_path):
    stage = loop.start(spec_of({"budget": 400}, trainee=telling, suites=suites()), tmp_path / "run").state.done[0]
    (row,) = stage.report.training_results
    assert (row.name, row.episodes, row.metrics) == ("all", 40, {"success_rate": 10 / 40, "score": 25 / 40})
    assert [(half.episodes, half.succeeded, half.score) for half in row.halves] == [
        (20, 3, 11.5 / 20),
        (20, 7, 13.5 / 20),
    ]
    assert stage.report.own_config_results == []
    assert stage.report.environment_stats["all"].items() >= {"share": 1.0, "episodes": 40.0}.items()
    assert stage.done.validated["env_steps"] == VALIDATED * STEPS
    lines = [line for line in stage.metrics() if line["kind"] == "iteration"]
    assert [line["outcomes"]["first"]["all"]["successes"] for line in lines] == [1, 2, 3, 4]


def test_an_observer_hears_the_outcomes_of_each_iteration(telling, tmp_path):
    heard: list[Progress] = []

    class Listens(Observer):
        def progressed(self, progress: Progress) -> None:
            heard.append(progress)

    loop.start(spec_of({"budget": 400}, trainee=telling, suites=suites(validate="last")), tmp_path / "run", Listens())
    assert [one.spent for one in heard] == [ITERATION, 2 * ITERATION, 3 * ITERATION, 4 * ITERATION]
    assert [one.outcomes for one in heard] == [
        Tally(first={"all": Counts(episodes=10, successes=won, score_sum=(10 + won) / 2)}) for won in (1, 2, 3, 4)
    ]


def test_an_observer_of_a_trainee_without_outcomes_hears_an_empty_tally(tmp_path):
    heard: list[Tally] = []

    class Listens(Observer):
        def progressed(self, progress: Progress) -> None:
            heard.append(progress.outcomes)

    loop.start(spec_of({"budget": 400}, suites=suites()), tmp_path / "run", Listens())
    assert heard
    assert all(one == Tally() for one in heard)


def test_a_probe_that_the_file_asks_for_is_played_beside_outcomes(telling, tmp_path):
    spec = spec_of({"budget": 400}, trainee=telling, suites=suites(probe_per_slice=PROBED))
    stage = loop.start(spec, tmp_path / "run").state.done[0]
    assert [row.episodes for row in stage.report.training_results] == [40]
    assert [row.episodes for row in stage.report.own_config_results] == [PROBED]


def test_without_outcomes_a_probe_of_twenty_is_played(tmp_path):
    stage = loop.start(spec_of({"budget": 400}, suites=suites()), tmp_path / "run").state.done[0]
    assert stage.report.training_results == []
    assert [row.episodes for row in stage.report.own_config_results] == [20]


def test_a_run_read_from_its_folder_has_the_same_outcomes(telling, tmp_path):
    run = loop.start(spec_of({}, {}, trainee=telling, suites=suites()), tmp_path / "run")
    again = loop.resume(tmp_path / "run")
    assert [stage.report for stage in again.state.done] == [stage.report for stage in run.state.done]
    (earlier,) = again.state.done[1].report.history
    assert earlier.training_results == run.state.done[0].report.training_results


def test_a_tally_is_taken_as_it_is_and_no_entry_is_an_empty_tally():
    tally = Tally()
    tally.observe(Outcome("all", True, 1.0))
    assert read_outcomes({"outcomes": tally}, "train", SLICES) is tally
    assert read_outcomes({"loss": 1.0}, "train", SLICES) == Tally()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"b": {"episodes": 1}}, "on_iteration gave outcomes of slice 'b', and the stage's config has all: name"),
        ({"all": {"episodes": 1, "successes": 2}}, "2 successes of 1 episodes: give at most one an episode"),
        ({"all": {"episodes": -1}}, "greater than or equal to 0"),
        ({"all": {"episodes": 1, "won": 1}}, "won"),
        (3, "outcomes"),
    ],
)
def test_wrong_outcomes_are_refused_with_a_sentence(given, said):
    with pytest.raises(TraineeFailed) as refused:
        read_outcomes({"outcomes": given}, "on_iteration", SLICES)
    assert said in str(refused.value)
