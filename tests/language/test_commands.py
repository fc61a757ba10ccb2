"""What ``envtuning pretrain`` hands on: how much is shown, what is held out, what is refused; nothing is taught here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mapf_frozenlake as mfl
from envtuning.cli import pretraining as commands
from envtuning.cli.pretraining import pretrain_for, validated
from envtuning.runs.plan import Plan
from envtuning.runs.spec import SpecError, load_spec
from envtuning.seeds import derive
from envtuning.trainees.language.pretrain import Pretraining
from tests.lazily import needed

needed("yaml", extra="grpo")


@pytest.fixture
def lakes():
    return load_spec("paper-in-miniature")


@pytest.fixture
def taught(monkeypatch):
    """What ``pretrain`` is given; it tells one moment of its progress."""
    given = []

    def pretrain(out, target, keys, options, progress):
        given.append((out, target, keys, options))
        progress(32, 0.5)
        return out

    monkeypatch.setattr(commands, "pretrain", pretrain)
    monkeypatch.setattr(commands, "held_out_keys", lambda specs: [spec.name for spec in specs])
    return given


def test_lakes_are_taught_on_the_target_in_the_runs_style_without_what_is_held_out(lakes, taught, tmp_path):
    told = []
    out = tmp_path / "model"
    assert pretrain_for(lakes, out) == out
    also = lakes.model_copy(update={"name": "another"})
    pretrain_for(lakes, out, also=[also], samples=128, seed=3, progress=lambda *moment: told.append(moment))
    style, target = lakes.world.options["style"], Plan.of(lakes).target
    assert taught == [
        (out, target, [lakes.name], Pretraining(samples=48_000, seed=0, style=style)),
        (out, target, [lakes.name, "another"], Pretraining(samples=128, seed=3, style=style)),
    ]
    assert told == [(32, 128, 0.5)]
    paper = lakes.model_copy(update={"world": lakes.world.model_copy(update={"options": {}})})
    pretrain_for(paper, out)
    assert taught[-1][3].style == "paper"


def test_a_run_in_turns_gets_no_model_that_writes_whole_plans(lakes, taught, tmp_path):
    options = lakes.world.options | {"mode": "turns"}
    turns = lakes.model_copy(update={"world": lakes.world.model_copy(update={"options": options})})
    with pytest.raises(SpecError, match=rf"^{turns.name}\b.*mode: turns"):
        pretrain_for(turns, tmp_path / "model")
    assert taught == []


def test_what_cannot_be_taught_is_refused_before_anything_is_drawn(lakes, taught, tmp_path):
    def in_world(name):
        return lakes.model_copy(update={"world": SimpleNamespace(name=name, options={})})

    with pytest.raises(SpecError, match="exists already: choose another folder"):
        pretrain_for(lakes, tmp_path)
    out = tmp_path / "model"
    with pytest.raises(SpecError, match=f"^{lakes.name}\\b.*'tools'.*{lakes.name}.*'lakes'"):
        pretrain_for(lakes, out, also=[in_world("tools")])
    with pytest.raises(SpecError, match=f"^{lakes.name}\\b.*'words'"):
        pretrain_for(in_world("words"), out)
    assert not taught

    def failing(*_):
        raise mfl.LakeError("no such board")

    commands.held_out_keys = failing  # undone by the fixture's monkeypatch
    with pytest.raises(SpecError, match="no such board"):
        pretrain_for(lakes, out)


@pytest.mark.parametrize(("samples", "passes"), [(None, 25), (1, 1), (6, 2), (7, 3), (300, 100)])
def test_tools_are_taught_in_whole_passes_over_their_tasks(samples, passes, monkeypatch, tmp_path):
    from envtuning.trainees.language import tool_lessons as lessons
    from envtuning.worlds.bfcl import pool
    from envtuning.worlds.bfcl.config import BFCLConfig
    from envtuning.worlds.bfcl.world import BFCLWorld

    class Stored(BFCLWorld):
        package, cut = "package", "cut"

    made = Stored.__new__(Stored)
    target, given, told = BFCLConfig(), [], []
    first, second = BFCLConfig(), BFCLConfig()
    pools = {id(first): ["1", "2"], id(second): ["2", "3"]}
    monkeypatch.setattr(
        pool, "fitting", lambda package, cut, part, config: [SimpleNamespace(id=name) for name in pools[id(config)]]
    )

    def teach(out, package, tasks, *, progress, **named):
        given.append((out, package, [task.id for task in tasks], named))
        progress(1, 0.5)
        return out

    monkeypatch.setattr(lessons, "teach", teach)
    plan = SimpleNamespace(world=made, target=target, written=[first, second])
    monkeypatch.setattr(commands, "Plan", SimpleNamespace(of=lambda spec: plan))
    spec = SimpleNamespace(name="a run", world=SimpleNamespace(name="tools"))
    assert pretrain_for(spec, tmp_path / "model", samples=samples, seed=4, progress=lambda *now: told.append(now))
    named = {"tool_style": target.tool_style, "reply_format": target.reply_format, "passes": passes, "seed": 4}
    assert given == [(tmp_path / "model", "package", ["1", "2", "3"], named)]
    assert told == [(3, 3 * passes, 0.5)]


def test_a_model_is_validated_as_the_run_would_and_its_trainee_is_closed(monkeypatch):
    from envtuning.worlds.episodes import Episode

    done = []
    episodes = [Episode(case, "3", None, {"rate": rate}) for case, rate in enumerate((1.0, 0.0, 0.5))]

    def play(policy, cases, target, *, seed=None):
        done.append((policy, cases, target, seed))
        return episodes

    def make_trainee(**given):
        done.append(given)
        return SimpleNamespace(policy=lambda: "its policy", close=lambda: done.append("closed"))

    world = SimpleNamespace(play=play, about=SimpleNamespace(objective="rate"))
    plan = SimpleNamespace(world=world, target="target", make_trainee=make_trainee)
    monkeypatch.setattr(commands, "Plan", SimpleNamespace(of=lambda spec: plan))
    monkeypatch.setattr(commands, "draw_validation", lambda plan: ["case"] * 3)
    assert validated(SimpleNamespace(suites=SimpleNamespace(seed=7)), Path("folder")) == (0.5, 3)
    played = ("its policy", ["case"] * 3, "target", derive(7, "play"))
    assert done == [{"model": "folder"}, played, "closed"]


def test_what_any_of_the_runs_validates_or_tests_on_is_held_out(monkeypatch):
    from mapf_frozenlake.generator.symmetry import canonical_keys

    suites = {name: mfl.generate(mfl.LakeConfig.single(3), 4, seed=seed) for seed, name in enumerate("abc")}
    drawn = {"one": ["a", "b"], "two": ["b", "c"]}
    monkeypatch.setattr(commands, "Plan", SimpleNamespace(of=lambda spec: spec))
    monkeypatch.setattr(
        commands, "draw_suites", lambda spec: SimpleNamespace(held_out=[suites[name] for name in drawn[spec]])
    )
    keys = commands.held_out_keys(["one", "two"])
    every = np.concatenate([canonical_keys(boards) for boards in suites.values()])
    assert keys.tolist() == sorted(set(every.tolist()))
