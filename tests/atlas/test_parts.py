"""The parts of the atlas by hand-made trees: distances, evidence, letters, files, what a tree's file may be, how walks are made."""

from __future__ import annotations

import json
import lzma
import math
from types import SimpleNamespace

import numpy as np
import pytest

from engineers import StageReport, Usage
from engineers.guard import Guard
from engineers.report import SliceResult
from envtuning.atlas import build as building
from envtuning.atlas import legend
from envtuning.atlas import menu as menus
from envtuning.atlas.distance import Distances
from envtuning.atlas.evidence import Altered, altered, diagnosis_of, gain, planted
from envtuning.atlas.rows import agreement, greedy, references, row_of
from envtuning.atlas.spec import AtlasSpec
from envtuning.atlas.store import Tree, as_key, as_path, is_stored, read_tree, stored_seeds, write_tree
from envtuning.atlas.walk import Step, Walk, by_name, transcript_of, walk, writes_by_rule
from envtuning.errors import RunError
from envtuning.runs.plan import Plan
from envtuning.seeds import derive
from envtuning.studies.intervals import t_mean
from tests.atlas.conftest import SMALL, weak


class Line:
    """A world whose cases are numbers from 0 to 1, drawn in turn from the config's; it remembers how it was asked."""

    def __init__(self):
        self.asked = []

    def slices(self, config):
        return config.cases

    def draw(self, config, per_slice, *, seed, purpose, exclude):
        self.asked.append((per_slice, seed, purpose, exclude))
        return config.cases

    def features(self, cases):
        return np.array(cases, float)[:, None]


def drawing(*cases):
    return SimpleNamespace(cases=cases, model_dump_json=lambda: json.dumps(cases))


def test_two_points_are_as_far_apart_as_the_energy_distance_says():
    """Between points d apart: the root of 2d. Half of the cases there: 2·d/2 less d/2, the gap within that half."""
    distances = Distances(Line())
    at_0, at_1, half = drawing(0.0), drawing(1.0), drawing(0.0, 1.0)
    assert distances.between(at_0, at_1) == pytest.approx(math.sqrt(2))
    assert distances.between(at_0, drawing(0.5)) == pytest.approx(1.0)
    assert distances.between(at_0, half) == pytest.approx(math.sqrt(2 * 0.5 - 0.5))
    assert distances.between(at_0, drawing(0.02)) == 0.0  # one cell of twenty
    assert distances.between(at_0, drawing(0.03)) == pytest.approx(math.sqrt(0.1))
    cells, weights = distances.histogram(drawing(0.0, 0.0, 1.0, 0.5))
    assert (cells[:, 0].tolist(), weights.tolist()) == ([0.0, 0.5, 1.0], [0.5, 0.25, 0.25])


def test_the_nearest_entry_and_how_far_entries_are_from_each_other():
    distances = Distances(Line())
    entries = {"a": drawing(0.0), "b": drawing(0.5), "c": drawing(1.0)}
    assert distances.nearest(drawing(0.9), entries) == ("c", pytest.approx(math.sqrt(0.2)))
    assert distances.spacing(entries) == pytest.approx(1.0)
    assert distances.spacing({"a": drawing(0.0), "b": drawing(0.5), "c": drawing(0.55)}) == pytest.approx(
        (1.0 + 2 * math.sqrt(0.1)) / 3
    )


def test_a_config_is_drawn_once_with_240_cases_over_its_slices():
    world = Line()
    distances = Distances(world)
    for _ in range(2):
        distances.histogram(drawing(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
        distances.histogram(drawing(0.0))
    assert world.asked == [(35, 0, "probe", ()), (240, 0, "probe", ())]


class Chooses:
    def __init__(self, choose):
        self.choose = choose

    def step(self, tree, path):
        assert path == ()
        return Step(self.choose(tree), {})


def test_planted_weaknesses_by_hand():
    trees = [weak("holes", 0.2, 0.5, 0.1), weak("holes", 0.4, 0.6, 0.5), weak("holes", 0.1, 0.1, 0.9, seed=3)]
    assert (diagnosis_of(trees[1]), gain(trees[1], "waits")) == ("holes", pytest.approx(0.2))
    found = planted(trees, Chooses(lambda tree: "holes" if tree.seed == 3 else "waits"))
    assert (found.asked, found.right) == (3, pytest.approx(1 / 3))
    assert found.gain == t_mean([0.5 - 0.2, 0.6 - 0.4, 0.9 - 0.1])
    assert found.followed == t_mean([0.1 - 0.2, 0.5 - 0.4, 0.9 - 0.1])
    assert found.best == t_mean([0.5 - 0.2, 0.6 - 0.4, 0.9 - 0.1])
    assert found.evenly.mean == pytest.approx(((0.3 - 0.1) / 3 + (0.2 + 0.1) / 3 + 0.8 / 3) / 3)
    assert found.evenly_but_keep.mean == pytest.approx(((0.3 - 0.1) / 2 + (0.2 + 0.1) / 2 + 0.8 / 2) / 3)


def test_altered_reports_are_asked_under_labels_of_their_own():
    trees = [weak("waits", 0, 0, 0), weak("holes", 0, 0, 0, seed=2)]
    asked = []

    def choose(tree):
        asked.append((tree.seed, tree.label, tree.reports[()].run))
        return {"waits": "waits", "holes": "keep", "waits-lie": "waits", "holes-lie": "holes"}.get(tree.label, "waits")

    reports = {
        cause: StageReport(objective="valid_rate", stage=0, config={}, run=cause) for cause in ("waits", "holes")
    }

    def lie(report):
        return report.model_copy(update={"run": "lie"})

    found = altered(trees, lambda tree: reports, lie, Chooses(choose), Chooses(choose))
    assert found == Altered(same_totals=0.5, falsified=0.5, renamed=0.5)
    assert asked[:6] == [
        (1, "waits", "waits"), (1, "waits-lie", "lie"), (1, "waits-renamed", "waits"),
        (1, "holes", "holes"), (1, "holes-lie", "lie"), (1, "holes-renamed", "holes"),
    ]  # fmt: skip
    assert altered(trees, lambda tree: reports, lie, Chooses(choose), None).renamed is None


def test_letters_are_of_the_seed_and_a_menu_takes_nothing_else():
    names = ["keep", "waits", "holes"]
    assert sorted(menus.deal(names, 1).values()) == ["A", "B", "C"]
    assert len({tuple(menus.deal(names, seed).items()) for seed in range(20)}) > 3
    for seed in range(20):
        one, other = menus.deal(names, seed), menus.deal(names, seed, shift=1)
        assert sorted(other.values()) == ["A", "B", "C"]
        assert all(one[name] != other[name] for name in names), "no entry keeps its letter"
    menu = menus.menu_of({"keep": "B", "waits": "A"}, {"keep": "as it was", "waits": "more waits"}, "variant")
    assert menu.model.model_fields["variant"].json_schema_extra == {"meanings": {"A": "more waits", "B": "as it was"}}
    assert (menu.json("keep"), menu.entry(menu.config("waits"))) == ({"variant": "B"}, "waits")
    for wrong in ({"variant": "C"}, {"variant": "A", "more": 1}):
        with pytest.raises(ValueError, match=r"variant|more"):
            menu.model.model_validate(wrong)
    with pytest.raises(ValueError, match="frozen"):
        menu.config("keep").variant = "A"
    with pytest.raises(ValueError, match=r"variant='Z' is not on the menu: A, B"):
        menu.entry(SimpleNamespace(variant="Z"))
    assert (legend.said({2: 0.5, 3: 0.5}), legend.said(3)) == ("2 or 3", "3")
    assert legend.said({2: 0.9, 3: 0.1, 4: 0.0}) == "2 (90%) or 3 (10%)"
    assert (legend.said({"a": 1, "b": 0}), legend.said({"a": "x"})) == ("a", "{'a': 'x'}")


def test_a_tree_goes_to_the_disk_and_back_and_only_whole_ones_are_stored(tmp_path):
    spec = AtlasSpec.model_validate(SMALL | {"name": "t", "seeds": [5, 4, 3], "depth": 1})
    paths = [path for length in (0, 1) for path in spec.paths(length)]
    configs = {path: spec.written.get(path[0], spec.first) if path else spec.first for path in paths}
    reports = {
        path: StageReport(objective="valid_rate", stage=len(path), config=configs[path].model_dump(mode="json"))
        for path in paths
    }
    tested = {path: 0.25 + 0.5 * len(path) for path in paths}
    write_tree(
        tmp_path / "new" / "t", spec, 4, {path: one.model_dump(mode="json") for path, one in reports.items()}, tested
    )
    folder = tmp_path / "new" / "t"
    tree = read_tree(folder, spec, 4)
    assert (tree.reports, tree.tested, tree.seed, tree.label) == (reports, tested, 4, "")
    assert stored_seeds(folder, spec) == [4]
    (folder / "seed4.test.json.xz").rename(folder / "seed3.test.json.xz")
    assert not is_stored(folder, 4)
    assert not is_stored(folder, 3)
    assert (as_path(""), as_path("a-b"), as_key(()), as_key(("a", "b"))) == ((), ("a", "b"), "", "a-b")
    head = {"format": 2, "atlas": "t", "seed": 4, "digest": spec.digest, "reports": {}}
    for wrong in ({"format": 1}, {"atlas": "u"}, {"seed": 3}):
        (folder / "seed4.reports.json.xz").write_bytes(lzma.compress(json.dumps(head | wrong).encode()))
        with pytest.raises(RunError, match=r"is format .* of '.', seed .: wanted \(2, 't', 4\)"):
            read_tree(folder, spec, 4)
    (folder / "seed4.reports.json.xz").write_bytes(lzma.compress(json.dumps(head | {"digest": "e"}).encode()))
    said = (
        r"seed4\.reports\.json\.xz was built from another file of t, or from another preset scripted: undo the changes"
    )
    with pytest.raises(RunError, match=said):
        read_tree(folder, spec, 4)


def test_a_tree_belongs_to_a_files_menu_and_budgets_and_not_to_its_seeds():
    spec = AtlasSpec.model_validate(SMALL)
    for same in ({"seeds": [8]}, {"held_out": True}, {"diagnosis": "easy"}):
        assert AtlasSpec.model_validate(SMALL | same).digest == spec.digest
    menu = {**SMALL["menu"], "other": {"num_agents": 2}}
    others = [{"stage_budget": 4000}, {"root_budget": 1}, {"depth": 1}, {"menu": menu}, {"changes": {"seed": 1}}]
    assert len({spec.digest, *(AtlasSpec.model_validate(SMALL | other).digest for other in others)}) == 6


def test_an_engineers_report_has_the_stages_before_it_and_their_authors():
    def one(stage, rate):
        results = [SliceResult(name="4", episodes=10, metrics={"valid_rate": rate})]
        return StageReport(
            objective="valid_rate", stage=stage, config={"n": stage}, results=results, training={"steps": stage}
        )

    tree = Tree(SimpleNamespace(), 1, {(): one(0, 0.1), ("a",): one(1, 0.2), ("a", "b"): one(2, 0.3)})
    report = tree.report(("a", "b"), "mine")
    assert report.stage == 2
    assert [(record.stage, record.engineer, record.training) for record in report.history] == [
        (0, "default", {"steps": 0.0}), (1, "mine", {"steps": 1.0}),
    ]  # fmt: skip
    assert tree.report(()).history == []
    assert [tree.validated(path) for path in ((), ("a",))] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "Small"}, "name"), ({"name": ""}, "name"), ({"seeds": []}, "seeds"), ({"depth": 0}, "depth"),
        ({"depth": 7}, "depth"), ({"root_budget": 0}, "root_budget"), ({"stage_budget": 0}, "stage_budget"),
        ({"diagnosis": "none"}, "diagnosis 'none' is not on the menu: easy, target, crowded, any"), ({"more": 1}, "more"),
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        AtlasSpec.model_validate(SMALL | wrong)


def test_a_trees_run_is_its_root_and_a_stage_for_each_step():
    little = {"root_budget": 1, "stage_budget": 1, "depth": 6, "diagnosis": "easy"}
    assert AtlasSpec.model_validate(SMALL | little).diagnosis == "easy"
    said = {key: value for key, value in SMALL.items() if key != "depth"}
    written = {name: entry for name, entry in SMALL["menu"].items() if entry != "uniform"}
    spec = AtlasSpec.model_validate(said | {"menu": written})
    assert (spec.depth, spec.held_out, spec.diagnosis, spec.first_entry, spec.target_entry) == (
        3, False, None, "easy", "target",
    )  # fmt: skip
    run, target = spec.run, spec.plan.target
    assert (run.name, run.suites.test_seed, run.budget) == ("small", None, 2000 + 3 * 3000)
    assert [(stage.name, stage.budget) for stage in run.stages] == [
        ("root", 2000), ("round 1", 3000), ("round 2", 3000), ("round 3", 3000),
    ]  # fmt: skip
    assert len(list(spec.paths(2))) == 9
    way = spec.along(9, ("target", "crowded"))
    assert (way.seed, way.engineer.name) == (9, "fixed")
    assert Plan.of(way).configs == (spec.first, target, spec.written["crowded"], None)
    crowded = spec.written["crowded"].slices
    assert {size: (piece.share, piece.hole_ratio) for size, piece in crowded.items() if piece.share} == {5: (1.0, 0.5)}
    assert spec.written["target"] == target


def test_a_build_trains_the_seeds_that_are_asked_for_and_not_stored_yet(tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(building, "build_seed", lambda spec, folder, work, seed, ended: built.append(seed))
    checked = []
    monkeypatch.setattr(building, "is_stored", lambda folder, seed: seed == 2)
    monkeypatch.setattr(building, "raise_unless_stored_of", lambda folder, spec, seed: checked.append(seed))
    spec = SimpleNamespace(name="t", seeds=(1, 2, 3))
    building.build(spec, tmp_path, tmp_path)
    building.build(spec, tmp_path, tmp_path, seeds=[2, 3])
    assert built == [1, 3, 3]
    assert checked == [2, 2]
    with pytest.raises(RunError, match=r"^9 is not a seed of t: its file has 1, 2, 3; add it there$"):
        building.build(spec, tmp_path, tmp_path, seeds=[3, 9])
    assert built == [1, 3, 3]


class Walks:
    """Takes the same entry at each step, with this usage."""

    def __init__(self, *steps):
        self.steps, self.at = steps, []

    def step(self, tree, path):
        self.at.append((tree.seed, path))
        return self.steps[len(path)]


def tree_of(seed, **tested):
    paths = {as_path(key): value for key, value in tested.items()}
    spec = SimpleNamespace(
        depth=2, menu={"a": None, "b": None}, target_entry=None, paths=lambda n: [("a", "b"), ("b", "a")]
    )
    return SimpleNamespace(seed=seed, spec=spec, tested={("a", "b"): 0.2 * seed, ("b", "a"): 0.1} | paths)


def test_a_walk_asks_at_every_node_on_its_way_and_its_row_adds_up():
    first = Step("a", {}, 0.25, 1.0, usage=Usage(prompt_tokens=5, cost=0.5, attempts=1))
    last = Step("b", {}, 0.0, 2.0, fallback=True, usage=Usage(completion_tokens=2, cost=0.25, attempts=1))
    player, heard = Walks(first, last), []
    row = row_of("mine", [tree_of(1), tree_of(2)], player, heard.append)
    assert player.at == [(1, ()), (1, ("a",)), (2, ()), (2, ("a",))]
    assert heard == [Walk(1, (first, last)), Walk(2, (first, last))]
    assert (row.name, row.values, row.paths) == ("mine", {1: 0.2, 2: 0.4}, {1: ("a", "b"), 2: ("a", "b")})
    assert (row.fallbacks, row.tokens, row.cost) == (2, 14, 1.5)
    assert (row.nearness.distances, row.nearness.spacings) == ([0.25, 0.0] * 2, [1.0, 2.0] * 2)
    free = Step("b", {}, usage=Usage(cost=None))
    other = row_of("mine", [tree_of(1)], Walks(Step("a", {}, usage=Usage(cost=0.0)), free))
    assert (other.nearness, other.cost) == (None, None)
    assert row_of("mine", [tree_of(1)], Walks(Step("a", {}), Step("b", {}))).cost == 0.0
    assert walk(tree_of(3), Walks(first, last)).path == ("a", "b")


def test_the_one_step_oracle_takes_what_validates_best_step_by_step():
    values = {("a",): 0.1, ("b",): 0.3, ("b", "a"): 0.2, ("b", "b"): 0.1}
    tree = tree_of(1)
    tree.validated = values.__getitem__
    assert greedy([tree]).paths == {1: ("b", "a")}
    assert [row.name for row in references([tree])] == [
        "one-step oracle",
        "mean path",
    ]  # without a target, and of one seed


def test_agreement_needs_three_seeds_of_both_and_a_difference_that_excludes_nothing_else():
    atlas = {"a": {1: 0.4}, "b": {1: 0.3}}
    assert agreement(atlas, {"a": {1: 0.5, 2: 0.5}, "b": {1: 0.1, 2: 0.1}}).resolved == 0
    below = {"a": {1: 0.1, 2: 0.11, 3: 0.1}, "b": {1: 0.5, 2: 0.52, 3: 0.5}}
    found = agreement(atlas, below)
    assert (found.pairs, found.resolved, found.agree) == (1, 1, 0.0)


def test_an_engineer_of_a_walk_is_made_as_one_of_a_run_is_with_the_guard_in_free_mode_alone(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr("engineers.make", lambda name, **options: made.append((name, options)))
    run = SimpleNamespace(engineer=SimpleNamespace(common_options={"space": {}}))
    spec = SimpleNamespace(name="small", run=run, plan=SimpleNamespace(guard=Guard(max_drop=0.5)))
    tree = SimpleNamespace(spec=spec, seed=3, label="")
    by_name("x", transcripts=tmp_path, context="V1")(tree, 2)
    by_name("x", mode="menu")(tree, 2)
    by_name(f"replay/{tmp_path}", mode="menu")(tree, 0)
    seed = derive(3, "engineer", 2)
    kept = tmp_path / "small" / "transcript-seed3.jsonl"
    assert made == [
        ("x", {"seed": seed, "space": {}, "guard": tree.spec.plan.guard, "transcript": kept}),
        ("x", {"seed": seed}),
        (f"replay/{kept}", {"seed": derive(3, "engineer", 0)}),
    ]
    tree.label = "waits-lie"
    assert transcript_of(tmp_path, tree) == tmp_path / "small" / "transcript-seed3-waits-lie.jsonl"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rules", True), ("fixed", True), ("schedule", True), ("human", False), ("server/http://localhost:1/v1#m", False),
        ("engineers.plain.rules:RulesEngineer", True), ("engineers.human:make", False), ("openai/gpt:x", False),
    ],
)  # fmt: skip
def test_who_writes_by_rule_cannot_choose_from_a_menu(name, expected):
    assert writes_by_rule(name, transcripts=None) is expected
