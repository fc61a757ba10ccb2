"""An engineer beside all others; and its result as a file: what its walks do not give is refused, and the walk is named."""

from __future__ import annotations

import copy
import json

import pytest
from typer.testing import CliRunner

import engineers
from engineers import Proposal
from engineers.knobs import KnobError
from engineers.model.chat import Completion
from engineers.model.engineer import ModelEngineer
from engineers.plain.rules import RulesEngineer
from engineers.tiers import Tier
from envtuning.atlas.published import load
from envtuning.atlas.result import Result, read_result, result_of, verify
from envtuning.atlas.standing import score
from envtuning.cli import app
from envtuning.errors import RunError, SpecError

TREE = "small-corridors"


class Middle:
    """Takes what the menu says is half way."""

    name = "middle"
    tier = Tier.SLICE_SUCCESS

    def propose(self, report, current, editable=None):
        said = type(current).model_fields["choice"].json_schema_extra["meanings"]
        [letter] = [one for one, meaning in said.items() if "wait ratio 0.6" in meaning]
        return Proposal(config=type(current)(choice=letter), engineer=self.name)


class Chat:
    model = "fake"

    def complete(self, messages, schema, *, max_tokens):
        return Completion(json.dumps({"reasons": [], "config": {"choice": "B"}}), 10, 5, 0.001)


@pytest.fixture(scope="module")
def tree():
    return load(TREE)


@pytest.fixture(scope="module")
def stood(tree):
    return score(Middle(), [tree])


@pytest.fixture(scope="module")
def told(stood):
    return result_of(stood.values()).model_dump(mode="json")


def test_an_own_engineer_stands_beside_the_best_open_loop_and_the_plainest(stood, tree):
    found = stood[TREE]
    assert set(found.row.paths.values()) == {("middle",) * 3}
    assert found.success == pytest.approx(sum(one.tested[("middle",) * 3] for one in tree.seeds) / 5)
    beside = {row.name: row for row in found.beside}
    assert {"best path", "one-step oracle", "target only", "mean path", "fixed", "uniform", "rules"} <= beside.keys()
    best = max((row for row in found.references if not row.tier.reads and row.counts), key=lambda row: row.success.mean)
    assert best.name in beside
    assert found.above.above in {row.name for row in found.references if not row.tier.reads}
    assert found.above.mean <= found.success - best.success.mean + 1e-9
    assert "middle" in str(stood)


def test_a_result_that_is_as_it_was_written_is_verified(told, tree, stood):
    [row] = verify(Result.model_validate(told), {TREE: tree})
    assert row.values == stood[TREE].row.values


def changed(told, change):
    found = copy.deepcopy(told)
    change(found["standings"][0])
    return Result.model_validate(found)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda one: one["figures"].update(success=0.9), "success"),
        (lambda one: one["figures"].update(low=0.3), "low"),
        (lambda one: one["figures"].update(above_open_loop=0.1), "above_open_loop"),
        (lambda one: one["figures"].update(tokens=1), "tokens"),
        (lambda one: one["walks"][2].update(success=0.9), "seed 7002"),
        (lambda one: one["walks"][2]["steps"][1].update(entry="target"), "seed 7002: in stage 2"),
        (lambda one: one["walks"][4]["steps"][0]["wanted"].update(choice="Z"), "seed 7004"),
        (lambda one: one["walks"][1]["steps"].pop(), "seed 7001"),
        (lambda one: one["walks"][0]["steps"][0].update(tokens=7), "seed 7000: a model was asked"),
        (lambda one: one["walks"].pop(), "other seeds"),
        (lambda one: one.update(digest="0" * 12), "tree"),
        (lambda one: one.update(tier=0), "above_open_loop"),
    ],
)  # fmt: skip
def test_a_changed_figure_is_refused_and_the_walk_is_named(told, tree, change, named):
    with pytest.raises(RunError, match=named):
        verify(changed(told, change), {TREE: tree})


def test_what_a_model_replied_is_read_again(tree, tmp_path):
    asked = score(ModelEngineer(Chat(), name="fake"), [tree], transcripts=tmp_path)
    told = result_of(asked.values()).model_dump(mode="json")
    assert told["standings"][0]["figures"]["tokens"] == 15 * 15
    assert all(len(walk["exchanges"]) == 3 for walk in told["standings"][0]["walks"])
    verify(Result.model_validate(told), {TREE: tree})

    def replied_otherwise(one):
        exchange = one["walks"][3]["exchanges"][0]
        exchange["reply"] = exchange["reply"].replace("B", "C")

    def asked_otherwise(one):
        one["walks"][3]["exchanges"][2]["messages"][-1]["content"] += "!"

    for change in (replied_otherwise, asked_otherwise):
        with pytest.raises(RunError, match="seed 7003"):
            verify(changed(told, change), {TREE: tree})


def test_a_tree_of_the_small_world_is_scored_from_its_folder(stored, spec, tmp_path):
    """Configs that are written are compared again, too."""
    from envtuning.atlas.published import StoredTree
    from envtuning.atlas.store import read_trees

    small = StoredTree(spec, read_trees(stored, spec))
    assert small.roster == []
    stood = score("rules", [small])
    told = result_of(stood.values()).model_dump(mode="json")
    verify(Result.model_validate(told), {"small": small})
    wanted = told["standings"][0]["walks"][0]["steps"][0]["wanted"]

    def written_otherwise(one):
        one["walks"][0]["steps"][0]["wanted"] = small.seeds[0].config(("crowded",)).model_dump(mode="json")

    assert wanted["slices"]
    with pytest.raises(RunError, match="seed 1: in stage 1"):
        verify(changed(told, written_otherwise), {"small": small})


def test_a_class_an_object_and_a_name_are_the_same_engineer(tree):
    assert score(Middle, [tree])[TREE].row == score(Middle(), [TREE])[TREE].row
    assert score(RulesEngineer(), [tree]).keys() == {TREE}


class Unable(Middle):
    """Says that it can change nothing in the config."""

    def check_able(self, current, editable=None):
        raise KnobError(f"nothing to turn in {sorted(type(current).model_fields)}")


@pytest.mark.parametrize("mode", ["menu", "free"])
def test_a_model_without_a_key_is_refused_before_the_first_walk(tree, tmp_path, monkeypatch, mode):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for asked in ("openai/some-model", engineers.make("openai/some-model")):
        with pytest.raises(SpecError, match="OPENAI_API_KEY"):
            score(asked, [tree], mode=mode, transcripts=tmp_path)
    assert not list(tmp_path.iterdir())


def test_an_engineer_that_can_turn_nothing_is_refused(tree):
    with pytest.raises(SpecError, match="choice"):
        score(Unable(), [tree])


@pytest.mark.parametrize("command", ["score", "evidence"])
def test_a_command_with_an_engineer_without_a_key_walks_with_none(tmp_path, monkeypatch, command):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("envtuning.atlas.walk.Chooser.step", None)
    monkeypatch.setattr("envtuning.atlas.walk.Writer.step", None)
    asked = ["--engineer", "reader", "--engineer", "openai/some-model", "--transcripts", str(tmp_path)]
    tree = ["--tree", TREE] if command == "score" else []
    done = CliRunner().invoke(app, ["atlas", command, *asked, *tree])
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert done.stdout == ""
    assert "OPENAI_API_KEY" in done.stderr


def test_what_is_no_result_is_told(tmp_path):
    with pytest.raises(RunError, match="no such file"):
        read_result(tmp_path / "none.json")
    (tmp_path / "odd.json").write_text(json.dumps({"format": 1}))
    with pytest.raises(RunError, match="is damaged"):
        read_result(tmp_path / "odd.json")


def test_the_same_walk_recorded_twice_is_kept_once(tree, tmp_path):
    for _ in range(2):
        asked = score(ModelEngineer(Chat(), name="fake"), [tree], transcripts=tmp_path)
    [standing] = result_of(asked.values()).standings
    assert [len(walk.exchanges) for walk in standing.walks] == [3] * 5
    assert standing.figures.tokens == 15 * 15
