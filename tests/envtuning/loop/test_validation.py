"""The suites are apart, the tables count what happened, and a report holds all that an engineer may be told."""

from __future__ import annotations

from importlib import import_module
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engineers.report import StageReport
from envtuning.loop import run as loop
from envtuning.loop.validation import draw_probe, draw_suites, draw_test, draw_validation, open_suites
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, SuiteSpec, load_spec
from envtuning.runs.transitions import Converged
from envtuning.seeds import derive
from envtuning.trainees.scripted import ScriptedTrainee
from envtuning.worlds.episodes import Episode, pooled, rates, slice_results
from envtuning.worlds.lakes import episodes as lake_episodes
from envtuning.worlds.lakes.episodes import behaviour, how_missed, judged, missed_by_kind, plan_of, success_by_kind
from envtuning.worlds.lakes.world import LakeWorld
from mapf_frozenlake import Instance, InstanceSet, LakeConfig, generate, judge, solve

SUITES = SuiteSpec(
    validation_per_slice=20, test_per_slice=25, probe_per_slice=10, validate="every 2500", failure_cases=6
)


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    scripted = load_spec("scripted").with_rounds(3)
    last = scripted.stages[2].model_copy(update={"advance_when": Converged(window=1, min_gain=0.05)})
    return scripted.model_copy(update={"suites": SUITES, "stages": (*scripted.stages[:2], last)})


@pytest.fixture(scope="module")
def run(spec, tmp_path_factory) -> RunLog:
    return loop.start(spec, tmp_path_factory.mktemp("validation") / "run")


def symmetric_copies(instance: Instance) -> set[bytes]:
    """All boards that a rotation, a reflection or another numbering of the agents makes of this one: from first principles."""
    from itertools import permutations

    found = set()
    for mirrored in (False, True):
        for turns in range(4):
            grid = np.arange(instance.holes.size).reshape(instance.holes.shape)
            moved = np.rot90(grid.T if mirrored else grid, turns)
            where = {int(old): new for new, old in np.ndenumerate(moved)}
            holes = instance.holes.reshape(-1)[moved.reshape(-1)].reshape(moved.shape)
            starts = [where[row * instance.width + col] for row, col in instance.starts.tolist()]
            goals = [where[row * instance.width + col] for row, col in instance.goals.tolist()]
            for order in permutations(range(len(starts))):
                found.add(Instance(holes, [starts[i] for i in order], [goals[i] for i in order]).key())
    return found


def test_training_validation_and_test_share_no_board_up_to_symmetry(run, spec):
    suites = open_suites(run)
    assert suites.test is not None
    validation = {instance.key() for instance in suites.validation}
    test = {instance.key() for instance in suites.test}
    for instance in suites.test:
        assert not symmetric_copies(instance) & validation
    forty = spec.model_copy(update={"suites": spec.suites.model_copy(update={"probe_per_slice": 40})})
    probe = draw_probe(Plan.of(forty), run.plan.target, 0, suites.held_out)
    for instance in probe:
        assert not symmetric_copies(instance) & (validation | test)


def test_the_test_leaves_validations_boards_out_where_few_boards_are_to_be_had(spec):
    """One agent on 3×3 with two holes: two draws share boards by chance, unless one leaves the other's out."""
    target = LakeConfig.single(3, 1, hole_ratio=0.3)
    few = Plan.of(spec.model_copy(update={"target": target.model_dump()}))
    validation = draw_validation(few)
    seen = {instance.key() for instance in validation}
    by_chance = few.world.draw(target, 25, seed=derive(spec.suites.seed_of_test, "test"), purpose="test", exclude=())
    assert any(symmetric_copies(instance) & seen for instance in by_chance)
    for suites_test in (draw_test(few, validation), draw_suites(few).test):
        assert not any(symmetric_copies(instance) & seen for instance in suites_test)


def test_a_run_judges_each_episode_once(spec, tmp_path, monkeypatch):
    """Validations, probes and the test; reports, replays and failure cases go by the verdicts that were kept."""
    judging, played, play = Mock(wraps=lake_episodes.judge_and_play), [], LakeWorld.play
    for place in (lake_episodes, import_module("mapf_frozenlake.judge")):
        monkeypatch.setattr(place, "judge_and_play", judging)

    def playing(*args, **more):
        episodes = play(*args, **more)
        played.extend(episodes)
        return episodes

    monkeypatch.setattr(LakeWorld, "play", playing)
    run = loop.start(spec.with_rounds(1), tmp_path / "run")
    assert run.state.test is not None
    assert run.state.done[-1].report.failure_cases
    sizes = len(run.plan.target.slices)
    assert len(played) >= sizes * (SUITES.validation_per_slice + SUITES.probe_per_slice + SUITES.test_per_slice)
    assert judging.call_count == len(played)


def test_suites_belong_to_the_target_and_not_to_the_runs_seed(spec, run):
    def changed(**changes):
        return Plan.of(spec.model_copy(update=changes))

    assert draw_validation(changed(seed=99)) == InstanceSet.load(run.path / "validation.cases")
    validation = draw_validation(run.plan)
    assert draw_validation(changed(suites=spec.suites.model_copy(update={"seed": 1}))) != validation
    retested = changed(suites=spec.suites.model_copy(update={"test_seed": 1}))
    assert draw_validation(retested) == validation
    assert draw_test(retested, validation) != draw_test(run.plan, validation)


def test_a_preset_is_developed_on_without_its_test():
    """The two ways of docs/runs.md: no test at all, or another one."""
    final = draw_suites(Plan.of(load_spec("engineer")))
    untested = draw_suites(Plan.of(load_spec("engineer", changes={"suites.test_per_slice": 0})))
    assert untested.test is None
    assert untested.validation == final.validation
    another = draw_suites(Plan.of(load_spec("engineer", changes={"suites.test_seed": 1}))).test
    assert len(another) == len(final.test)
    assert len(another.fingerprints() & final.test.fingerprints()) < 0.1 * len(another)


def test_the_table_is_what_a_count_by_hand_gives(run):
    for stage in run.state.done:
        episodes = stage.episodes()
        for row in stage.report.results:
            own = [episode for episode in episodes if episode.slice == row.name]
            assert row.episodes == len(own) == 20
            assert row.metrics["valid_rate"] == pytest.approx(sum(e.succeeded for e in own) / len(own))
            assert row.metrics["optimal_rate"] == pytest.approx(sum(e.metrics["optimal_rate"] for e in own) / len(own))
            assert sum(row.failures.values()) == sum(not e.succeeded for e in own)
        assert stage.done.metrics["valid_rate"] == pytest.approx(pooled(stage.report.results, "valid_rate"))


def test_recorded_moves_judge_to_what_was_recorded(run):
    suite = InstanceSet.load(run.path / "validation.cases")
    for episode in run.state.stages[2].episodes():
        verdict = judge(suite[episode.case], plan_of(episode.trace))
        assert (verdict.valid, verdict.optimal) == (episode.succeeded, bool(episode.metrics["optimal_rate"]))
        assert verdict.failure == episode.failure


def test_a_report_holds_every_section_and_survives_json(run):
    report = run.state.stages[2].report
    assert StageReport.model_validate_json(report.model_dump_json()) == report
    assert [row.name for row in report.results] == ["3", "4", "5"]
    assert {row.name for row in report.own_config_results} <= {"3", "4", "5"}
    assert [record.stage for record in report.history] == [0, 1]
    assert report.history[0].engineer == "default"
    assert report.history[1].engineer == "steady"
    assert report.history[1].config == run.state.stages[1].report.config
    played = {"idle_steps", "episode_length", "collisions", "collisions_avoided"}
    assert played <= set(report.behaviour["4"])
    assert all(name.startswith("goal_missed_") for name in set(report.behaviour["4"]) - played)
    assert {"goals_are_near", "goals_are_far"} <= set(report.splits["4"])
    assert report.trainee
    assert report.aside == ["legal_rate", "makespan_gap", "optimal_rate"]
    assert set(report.environment_stats) == {str(size) for size in LakeConfig(**report.config).slices}
    assert report.training["why_it_ended"] == run.state.stages[2].done.reason
    assert len(report.training["grad_norm_curve"]) == min(20, report.training["iterations"])
    assert report.training["trained_env_steps"] == run.state.stages[2].done.trained["env_steps"]


def test_failure_cases_are_failures_drawn_and_explained_and_take_sizes_by_turns(run):
    report = run.state.stages[0].report
    recorded = {str(episode.case): episode for episode in run.state.stages[0].episodes()}
    assert len(report.failure_cases) == 6
    assert len({case.slice for case in report.failure_cases}) == 3
    for case in report.failure_cases:
        episode = recorded[case.case_id]
        assert (episode.slice, episode.failure) == (case.slice, case.kind)
        assert case.picture.count("\n") >= int(case.slice) - 1
        assert len(case.explanation) > 20


# Two rows of ice; each agent's shortest way runs along row 0, towards the other.
CORRIDOR = Instance(np.zeros((2, 6), bool), starts=[(0, 1), (0, 4)], goals=[(0, 5), (0, 0)])


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        # They meet at columns 2 and 3; agent 1 steps down just when both shortest ways would exchange cells.
        ([[2, 2, 2, 2], [0, 1, 0, 0, 0, 3]], {"idle_steps": 0, "collisions": 0, "collisions_avoided": 1}),
        # They run into each other, twice.
        ([[2, 2, 2], [0, 0, 0]], {"idle_steps": 0, "collisions": 2, "collisions_avoided": 0}),
        # They stand face to face and wait: two agents, two steps. Agent 1's last steps are no waiting, its list is over.
        ([[2, 4, 4, 4], [0, 4, 4]], {"idle_steps": 5, "collisions": 0, "collisions_avoided": 3}),
        # Waiting where the ways do not yet meet avoids nothing.
        ([[4], [4]], {"idle_steps": 2, "collisions": 0, "collisions_avoided": 0}),
    ],
)
def test_a_collision_is_avoided_where_the_shortest_ways_would_have_collided(plan, expected):
    episode = judged(0, CORRIDOR, plan, horizon=100, slippery=False, cost={})
    found = behaviour(CORRIDOR, episode)
    assert found.pop("episode_length") == episode.cost["env_steps"]
    assert found == expected


@pytest.mark.parametrize(
    ("plan", "how"),
    [
        ([[2, 4, 4, 4, 4, 4, 4, 4], [4]], "standing_still"),
        ([[4, 4, 4, 4, 4, 4, 2, 2], [4]], "coming_nearer"),
        ([[2, 0] * 4, [4]], "wandering"),  # to and fro
        ([[2, 2, 1, 3, 1, 3, 1, 3], [4]], "wandering"),
        # Agent 1 goes round agent 0 and stays on its goal; agent 0 has not moved: who has arrived counts for nothing.
        ([[4], [1, 0, 0, 0, 0, 3]], "standing_still"),
        ([[], []], "standing_still"),
    ],
)
def test_a_missed_goal_is_split_by_what_the_missing_did_at_the_end(plan, how):
    episode = judged(0, CORRIDOR, plan, horizon=8, slippery=False, cost={})
    assert episode.failure == "goal_missed"
    assert how_missed(CORRIDOR, episode.playback) == how


def test_missed_goals_are_counted_as_parts_of_all_episodes():
    boards = generate(LakeConfig.single(4, num_agents=1, hole_ratio=0.0, min_distance=2), n=4, seed=0)
    plans = [solve(boards[0]).plan, [[4]], [[4]], [[0] * 20]]
    episodes = [
        judged(case, boards[case], plan, horizon=20, slippery=False, cost={}) for case, plan in enumerate(plans)
    ]
    assert [episode.failure for episode in episodes] == [None, "goal_missed", "goal_missed", "illegal_move"]
    found = LakeWorld().behaviour(boards, episodes)["4"]
    missed = {name: value for name, value in found.items() if name.startswith("goal_missed")}
    assert missed == {
        "goal_missed_standing_still": 0.5, "goal_missed_coming_nearer": 0.0, "goal_missed_wandering": 0.0
    }  # fmt: skip
    assert not missed_by_kind(boards, episodes[:1])


@given(st.lists(st.tuples(st.sampled_from([3, 4, 10]), st.booleans()), min_size=1, max_size=30))
def test_pooling_a_table_is_the_rate_over_all_episodes(drawn):
    episodes = [
        Episode(case, str(size), None if valid else "hole", {"valid_rate": float(valid), "legal_rate": float(valid)})
        for case, (size, valid) in enumerate(drawn)
    ]
    table = slice_results(episodes)
    assert [int(row.name) for row in table] == sorted({size for size, _ in drawn})
    assert pooled(table, "valid_rate") == pytest.approx(sum(valid for _, valid in drawn) / len(drawn))
    assert rates(episodes)["legal_rate"] == rates(episodes)["valid_rate"]


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_a_scripted_trainee_is_what_it_saved(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("trainee")
    config = LakeConfig(num_agents=2, slices={3: {}, 4: {}})
    one = ScriptedTrainee(capacity={"max_size": 4, "max_agents": 2}, seed=seed)
    one.train(config, 1700, seed=seed)
    one.save(folder)
    two = ScriptedTrainee(capacity={"max_size": 4, "max_agents": 2}, seed=seed + 1)
    two.load(folder)
    seen: list[dict] = []
    assert two.train(config, 1700, seed=3, on_iteration=seen.append) == one.train(config, 1700, seed=3)
    assert [entry["env_steps"] for entry in seen] == [500, 500, 500, 200]
    boards = generate(config, 10, seed=seed)
    assert LakeWorld().play(two.policy(), boards, config, seed=0) == LakeWorld().play(
        one.policy(), boards, config, seed=0
    )


def test_a_scripted_trainee_learns_what_is_at_its_frontier_and_nothing_from_the_impossible():
    def skill_after(hole_ratio: float) -> float:
        trainee = ScriptedTrainee(capacity={"max_size": 4, "max_agents": 2})
        trainee.train(LakeConfig.single(4, hole_ratio=hole_ratio), 5000, seed=0)
        return float(trainee.skill[4])

    assert skill_after(0.1) > skill_after(0.5) > skill_after(0.9) > 0


def test_success_is_split_by_what_the_knobs_control():
    suite = generate(LakeConfig.single(5, num_agents=2, hole_ratio=0.2, wait_ratio=0.5), n=20, seed=3)
    episodes = [Episode(case=k, slice="5", failure=None if k % 3 else "hole", metrics={}, cost={}) for k in range(20)]
    found = success_by_kind(suite, episodes)
    for waits, name in ((True, "a_wait_is_needed"), (False, "no_wait_is_needed")):
        kind = [k for k in range(20) if suite[k].needs_wait is waits]
        assert (found[name].succeeded, found[name].episodes) == (sum(bool(k % 3) for k in kind), len(kind))
    far = [sum(abs(a - b).sum() for a, b in zip(one.starts.astype(int), one.goals, strict=True)) for one in suite]
    middle = sorted(far)[9:11]
    nearer = [k for k in range(20) if far[k] < sum(middle) / 2]
    near = found["goals_are_near"]
    assert (near.succeeded, near.episodes) == (sum(bool(k % 3) for k in nearer), len(nearer))
    assert not {"goals_are_near", "goals_are_far"} & set(success_by_kind(suite, episodes[:1]))
