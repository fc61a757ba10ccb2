"""A tree is the same whoever builds it and however often it was killed, and a node of it is what a real run reaches."""

from __future__ import annotations

from concurrent.futures import Executor, Future

import pytest
from typer.testing import CliRunner

from envtuning.atlas.build import build, build_seed
from envtuning.atlas.spec import AtlasSpec
from envtuning.atlas.store import is_stored, read_tree, read_trees
from envtuning.cli import app
from envtuning.errors import RunError
from envtuning.loop import run as loop
from envtuning.studies.outcomes import played_on
from tests.atlas.conftest import SMALL
from tests.lazily import needed


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.prove  # `make test` builds twice in one process, the second time with kills
def test_two_builds_are_identical_in_one_process_and_in_two(spec, stored, tmp_path):
    build(spec, tmp_path / "again", tmp_path / "work", jobs=2)
    assert len(files(tmp_path / "again")) == 2 * len(spec.seeds)
    assert files(tmp_path / "again") == files(stored)
    assert not any((tmp_path / "work" / f"{spec.name}-{spec.digest}").iterdir())


def test_a_build_on_a_cluster_gives_it_every_seed_and_stores_the_same(spec, stored, tmp_path, monkeypatch):
    needed("ray", extra="rllib")
    asked: list[str] = []

    class Here(Executor):
        """In the cluster's place: does each work at once."""

        def __init__(self, waiting, trainee_of):
            asked.extend(trainee_of(seed).kind for seed in waiting)

        def submit(self, work, *given):
            done: Future[None] = Future()
            done.set_result(work(*given))
            return done

    monkeypatch.setattr("envtuning.studies.on_ray.Cluster", Here)
    build(spec, tmp_path / "out", tmp_path / "work", ray=True)
    assert asked == [spec.run.trainee.kind] * len(spec.seeds)
    assert files(tmp_path / "out") == files(stored)


@pytest.mark.parametrize(
    ("words", "at_a_time", "on_ray"), [([], 1, False), (["--jobs", "2"], 2, False), (["--ray"], 1, True)]
)
def test_the_command_says_who_builds(words, at_a_time, on_ray, monkeypatch):
    asked: list[dict] = []
    monkeypatch.setattr("envtuning.atlas.build.build", lambda *given, **how: asked.append(how))
    done = CliRunner().invoke(app, ["atlas", "build", "small-corridors", *words])
    assert done.exit_code == 0, done.output
    assert [(how["jobs"], how["ray"]) for how in asked] == [(at_a_time, on_ray)]


def test_a_build_that_is_killed_goes_on_and_ends_alike(spec, stored, tmp_path, monkeypatch):
    """Killed after every few nodes, and once in the middle of a stage."""

    class Killed(BaseException):
        pass

    lives = iter([1, 7])

    def until_killed():
        left = next(lives, None)

        def ended(line):
            nonlocal left
            if left is not None:
                left -= 1
                if left < 0:
                    raise Killed

        return ended

    for _ in range(2):
        with pytest.raises(Killed):
            build_seed(spec, tmp_path / "out", tmp_path / "work", spec.seeds[0], until_killed())
        assert not is_stored(tmp_path / "out", spec.seeds[0])
    build_seed(spec, tmp_path / "out", tmp_path / "work", spec.seeds[0], until_killed())
    whole = files(stored)
    assert files(tmp_path / "out") == {name: whole[name] for name in files(tmp_path / "out")}
    assert len(files(tmp_path / "out")) == 2


def test_every_node_has_every_child_and_the_children_differ(spec, trees):
    for tree in trees:
        assert len(tree.reports) == len(tree.tested) == 1 + 4 + 16
        assert tree.entries(()) == spec.entries(tree.seed, ())
        assert len({report.model_dump_json() for report in tree.reports.values()}) == 21
    drawn = [tree.entries(path)["any"] for tree in trees for path in [(), ("easy",), ("target",)]]
    assert len({config.model_dump_json() for config in drawn}) > len(drawn) / 2  # anew at every node, of few


def test_a_node_is_what_a_real_run_of_these_configs_reaches_and_is_told(spec, trees, tmp_path):
    tree, path = trees[1], ("any", "crowded")
    run = loop.start(spec.along(tree.seed, path), tmp_path / "run")
    told = run.state.done[-1].report.model_copy(update={"run": ""})
    ours = tree.report(path, "file")
    assert ours.model_dump() == told.model_dump()
    success = played_on(run, run.plan.target, run.cases("test"))
    assert tree.tested[path] == pytest.approx(sum(success) / len(success), abs=1e-6)


def test_what_an_engineer_may_read_says_nothing_of_the_test(trees, stored, tmp_path):
    for file in stored.glob("*.reports.*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    sealed = read_tree(tmp_path, trees[0].spec, trees[0].seed)
    assert sealed.report(("easy",)) == trees[0].report(("easy",))
    with pytest.raises(RunError, match="build this seed again"):
        _ = sealed.tested


def test_what_is_no_atlas_is_said_so(spec, tmp_path):
    with pytest.raises(RunError, match="envtuning atlas build small"):
        read_trees(tmp_path, spec)
    (tmp_path / "seed1.reports.json.xz").write_bytes(b"no")
    with pytest.raises(RunError, match="build this seed again"):
        read_tree(tmp_path, spec, 1)


@pytest.mark.parametrize(
    ("menu", "said"),
    [
        ({"easy": "first", "hard": "target"}, "at least 3"),
        ({"easy": "target", "b": "uniform", "c": "uniform"}, "exactly one entry must be 'first'"),
        ({"easy": "first", "b": "target", "c": "target"}, "at most one entry may be 'target'"),
        ({"easy": "first", "hard": "target", "a-b": "uniform"}, "letters and digits"),
    ],
)
def test_a_menu_that_is_none(menu, said):
    with pytest.raises(ValueError, match=said):
        AtlasSpec.model_validate(SMALL | {"menu": menu})
