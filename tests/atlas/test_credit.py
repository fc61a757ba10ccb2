"""Credit is what taking a change back loses: against training by hand, and for changes whose worth is known."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from benchmarks import credit as benchmark
from envtuning.cli import app
from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.loop.validation import draw_suites
from envtuning.runs.spec import StageSpec, load_spec
from envtuning.seeds import derive
from envtuning.studies.credit import MOST_GROUPS, both, changed_stages, credit, groups_of
from envtuning.trainees import make_trainee
from mapf_frozenlake import LakeConfig
from tests.atlas.conftest import SMALL
from tests.envtuning.counting_runs import spec_of
from tests.envtuning.counting_world import CountConfig

KEPT = {3: {"share": 1.0, "hole_ratio": 0.1, "wait_ratio": 0.0}, 4: {"share": 0.0}, 5: {"share": 0.0}}
GOOD = {3: {"share": 0.2, "hole_ratio": 0.1}, 4: {"share": 1.0}, 5: {"share": 1.0}}  # data for the target's other sizes
BAD = {3: {"hole_ratio": 0.9}, 4: {"hole_ratio": 0.9}, 5: {"hole_ratio": 0.9}}  # and boards that teach nothing


def config(*layers):
    slices = {size: {"hole_ratio": 0.1, "wait_ratio": 0.0} for size in (3, 4, 5)}
    for layer in (KEPT, *layers):
        for size, said in layer.items():
            slices[size] = slices[size] | said
    return LakeConfig(num_agents=1, collisions="end", slices=slices)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    spec = load_spec("scripted", changes={"target.num_agents": 1, "suites.test_per_slice": 0})
    stages = (
        StageSpec(name="kept", config=config(), budget=3000),
        StageSpec(name="written", config=config(GOOD, BAD), budget=4000),
    )
    return loop.start(spec.model_copy(update={"stages": stages, "seed": 4}), tmp_path_factory.mktemp("credit") / "run")


@pytest.fixture(scope="module")
def found(run):
    return credit(run, 1, per_slice=40)


def test_the_good_change_has_credit_and_the_bad_one_owes(found):
    shares = {group.name: group for group in found.groups}
    assert set(shares) == {"slices.*.share", "slices.*.hole_ratio"}
    assert shares["slices.*.hole_ratio"].credit.mean < 0
    assert found.cases == 120
    assert "slices.4.share: 0 → 1" in shares["slices.*.share"].changed


def test_every_figure_is_that_of_training_by_hand(run, found, tmp_path):
    spec, world = run.plan.spec, run.plan.world
    held_out = draw_suites(run.plan).held_out
    cases = world.draw(
        run.plan.target, 40, seed=derive(spec.suites.seed, "credit"), purpose="validation", exclude=held_out
    )

    def by_hand(trained_on, seed):
        trainee = make_trainee("scripted", capacity={"max_size": 5, "max_agents": 1})
        trainee.load(run.state.stages[0].checkpoint)
        trainee.train(trained_on, run.state.stages[1].done.trained["env_steps"], seed=derive(4, "credit", 1, seed))
        played = world.play(trainee.policy(), cases, run.plan.target, seed=0)
        return sum(episode.succeeded for episode in played) / len(played)

    shares = {group.name: group for group in found.groups}
    assert found.keep.mean == pytest.approx(by_hand(config(), 0))
    assert found.proposal.mean == pytest.approx(by_hand(config(GOOD, BAD), 0))
    assert found.gain.mean == pytest.approx(found.proposal.mean - found.keep.mean)
    assert shares["slices.*.hole_ratio"].success.mean == pytest.approx(by_hand(config(GOOD), 0))
    assert shares["slices.*.share"].credit.mean == pytest.approx(found.proposal.mean - by_hand(config(BAD), 0))


def test_what_was_trained_is_not_trained_again(run, found):
    said = []

    def note(line, pace):
        said.append(f"{line} ({pace})")

    assert credit(run, 1, per_slice=40, ended=note) == found
    assert said == []
    assert credit(run, 1, seeds=6, per_slice=40, ended=note).seeds == list(range(6))
    assert [line.rpartition("(")[2].split(",")[0].rstrip(")") for line in said] == [
        f"{n} of 4" for n in (1, 2, 3, 4)
    ]  # one more seed of four arms


def test_the_command_writes_the_table_beside_the_run(run, found):
    told = CliRunner().invoke(app, ["credit", str(run.path), "--stage", "1", "--cases", "40"])
    assert told.exit_code == 0, told.output
    stored = json.loads((run.path / "credit" / "stage01.json").read_text())
    assert stored["gain"]["mean"] == pytest.approx(found.gain.mean)
    assert {group["name"] for group in stored["groups"]} == {"slices.*.share", "slices.*.hole_ratio"}


def test_a_stage_without_a_proposal_is_told(run):
    with pytest.raises(RunError, match="1 to 1"):
        credit(run, 2)
    with pytest.raises(RunError, match="at least 5"):
        credit(run, 1, seeds=2)


def test_a_stage_that_trained_nothing_is_told(tmp_path):
    run = loop.start(spec_of({}, {"budget": 1, "config": CountConfig(level=0.25)}), tmp_path / "run")
    assert not run.state.stages[1].done.trained.get("env_steps")
    with pytest.raises(RunError, match=r"stage 1 of .* trained nothing: there is no gain to give credit for"):
        credit(run, 1)


def test_there_are_at_most_eight_groups_and_they_hold_every_change():
    from tests.atlas.many_knobs import MANY, Many

    groups = groups_of(Many(), MANY)
    assert len(groups) == MOST_GROUPS
    assert {path for group in groups for path in group.turned} == {(name,) for name in Many.model_fields}


@pytest.mark.parametrize(
    ("proposed", "trained", "changed"),
    [
        ((1, 5, 1), (1, 1, 1), [1]),
        ((1, 5, 5), (1, 1, 5), [1, 2]),
        ((1, 1, 1), (1, 1, 1), []),
        ((1, 2, 3), (1, 2, 3), [1, 2]),
    ],
)
def test_a_change_is_from_what_was_trained_on_last_also_where_a_proposal_could_not_be_drawn(proposed, trained, changed):
    configs = [CountConfig(level=level / 10) for level in proposed]
    stages = [
        SimpleNamespace(chosen=SimpleNamespace(config=config), report=SimpleNamespace(config={"level": level / 10}))
        for config, level in zip(configs, trained, strict=True)
    ]
    plan = SimpleNamespace(world=SimpleNamespace(config_type=CountConfig))
    run = SimpleNamespace(path="runs/mine", plan=plan, state=SimpleNamespace(done=stages, stages=stages))
    assert changed_stages(run) == changed
    for number in {1, 2} - set(changed):
        with pytest.raises(RunError, match="kept the config"):
            both(run, number)


def test_the_benchmark_refuses_too_few_seeds_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.setattr(benchmark, "raise_unless_committed", lambda: None)
    monkeypatch.setattr(sys, "argv", ["credit", "--seeds", "4", "--out", str(tmp_path / "runs")])
    with pytest.raises(SystemExit, match="at least 5"):
        benchmark.main()
    assert not (tmp_path / "runs").exists()


def test_the_benchmark_takes_every_stage_of_a_run_apart(tmp_path, monkeypatch):
    (tmp_path / "small.yaml").write_text(yaml.safe_dump(SMALL))
    stored = {}
    monkeypatch.setattr(benchmark, "raise_unless_committed", lambda: None)
    monkeypatch.setattr(benchmark, "record", lambda name, figures: stored.update({name: figures}))
    given = [
        "--atlas",
        tmp_path / "small.yaml",
        "--engineer",
        "ladder",
        "--run-seed",
        3,
        "--seeds",
        5,
        "--out",
        tmp_path,
    ]
    monkeypatch.setattr(sys, "argv", ["credit", *map(str, given)])
    benchmark.main()
    figures = stored["credit_small"]
    numbers = [stage["stage"] for stage in figures["stages"]]
    assert sorted(numbers + figures["kept_as_it_was"]) == [1, 2]
    assert numbers
    for stage in figures["stages"]:
        earned = [group["credit"]["mean"] for group in stage["groups"] if group["credit"]]
        assert earned == sorted(earned, reverse=True)
        assert stage["seeds"] == [0, 1, 2, 3, 4]
