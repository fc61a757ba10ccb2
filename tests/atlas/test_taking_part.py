"""How engineers of every kind take part: whose caps hold, whose answers count, what they are shown, what is replayed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

import engineers
from engineers import Proposal, SliceResult, StageReport
from engineers.model.engineer import ModelEngineer
from engineers.model.meter import Meter
from engineers.model.transcript import TranscriptError
from envtuning.atlas.distance import Distances
from envtuning.atlas.evidence import (
    Altered,
    altered,
    by_weakness,
    confirmed,
    gains,
    lead,
    planted,
    probed_by_validation,
    with_root_report,
)
from envtuning.atlas.menu import REPEAT, menu_at
from envtuning.atlas.rows import row_of
from envtuning.atlas.spec import AtlasSpec
from envtuning.atlas.walk import Chooser, Step, Writer, bound, recorded_in
from envtuning.errors import RunError
from envtuning.runs.spec import load_spec
from tests.atlas.conftest import SMALL, weak


class Asks:
    """Of one's own, no ``ModelEngineer``."""

    name = "asks"

    def propose(self, report, current, editable=None): ...


def test_caps_and_context_hold_for_every_engineer_that_asks_a_model():
    meter = Meter(max_total_tokens=5)
    own = ModelEngineer(SimpleNamespace(model="mine"), context="informed", max_cost=9.0)
    assert bound(own, meter, "V1") is own
    assert (own.meter, own.context.name) == (meter, "V1")
    assert bound(own, None, None).meter is meter
    assert (own.meter, own.context.name) == (meter, "V1")
    with pytest.raises(RunError, match="the caps cannot limit asks"):
        bound(Asks(), meter, None)
    for harmless in (engineers.make("rules"), engineers.make("fixed")):
        assert bound(harmless, meter, "V1") is harmless
    asks = Asks()
    assert bound(asks, Meter(), "V1") is asks


def test_who_raises_or_answers_off_the_menu_falls_back_and_the_walk_goes_on(trees):
    tree = trees[0]

    def made(propose):
        return lambda tree, stage: SimpleNamespace(name="own", propose=propose)

    def raises(report, current, editable=None):
        raise OSError("no line")

    def off(report, current, editable=None):
        return Proposal(config=current.model_copy(update={"choice": "Z"}), engineer="own")

    distances = Distances(tree.spec.plan.world)
    for player, said in (
        (Chooser(made(raises)), "OSError: no line"),
        (Chooser(made(off)), "choice='Z' is not on the menu"),
        (Writer(made(raises), distances), "OSError: no line"),
    ):
        row = row_of("own", [tree], player)
        assert row.paths == {tree.seed: (tree.spec.first_entry,) * tree.spec.depth}
        assert row.fallbacks == tree.spec.depth
        assert said in row.fault


def meanings(menu):
    return menu.model.model_fields["choice"].json_schema_extra["meanings"]


def test_what_was_trained_on_is_not_described_where_it_is_hidden(trees):
    tree = trees[0]
    for path, entry in (((), tree.spec.first_entry), (("target",), "target")):
        open_, hidden = (menu_at(tree, path, hide_current=hide) for hide in (False, True))
        said = [meanings(menu)[open_.letters[entry]] for menu in (open_, hidden)]
        assert REPEAT in said[0]
        assert REPEAT in said[1]
        assert len(said[1]) < len(said[0])
        assert not any(label in said[1] for label in ("hole", "×"))
        assert open_.letters == hidden.letters


def test_a_replay_finds_the_one_walk_below_a_folder(tmp_path):
    tree = SimpleNamespace(spec=SimpleNamespace(name="small"))
    assert recorded_in(tmp_path, tree) == tmp_path
    (tmp_path / "one-menu" / "small").mkdir(parents=True)
    assert recorded_in(tmp_path, tree) == recorded_in(tmp_path / "one-menu", tree) == tmp_path / "one-menu"
    (tmp_path / "two-menu" / "small").mkdir(parents=True)
    with pytest.raises(TranscriptError, match=r"holds several walks: replay one of .*one-menu, .*two-menu"):
        recorded_in(tmp_path, tree)


def test_a_tree_belongs_to_what_its_preset_says_too(tmp_path):
    def digest(**changes):
        preset = load_spec("scripted", changes=changes).model_dump(mode="json")
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump(preset))
        return AtlasSpec.model_validate(SMALL | {"preset": str(tmp_path / "mine.yaml")}).digest

    first = digest()
    assert digest() == digest(description="other words") == first
    assert len({first, digest(**{"target.horizon": 9}), digest(**{"trainee.options.speed": 0.123})}) == 3


def test_answers_that_are_missing_are_neither_right_nor_kept():
    trees = [weak("waits", 0.2, 0.5, 0.1)]
    silent = SimpleNamespace(step=lambda tree, path: Step("keep", {}, fallback=True))
    found = planted(trees, silent)
    assert (found.right, found.gain.mean, found.fallbacks) == (0.0, 0.0, 1)
    reports = {"waits": StageReport(stage=0, config={})}
    assert altered(trees, lambda tree: reports, lambda report: report, silent, silent) == Altered(0.0, None, None, 3)


def test_a_weakness_is_confirmed_where_the_diagnosis_beats_every_other_entry():
    sure = [weak("waits", 0.2, 0.5, 0.1, seed=seed) for seed in (1, 2, 3)]
    unsure = [weak("holes", 0.2, 0.5, holes, seed=seed) for seed, holes in ((4, 0.1), (5, 0.9), (6, 0.5))]
    assert confirmed([*sure, *unsure]) == sure
    assert confirmed(unsure) == []
    anything_helps = [
        weak("waits", 0.1, 0.5, 0.5 + shift, seed=seed) for seed, shift in ((1, 0.01), (2, -0.01), (3, 0.0))
    ]
    assert gains(anything_helps)["waits"]["waits"].low > 0
    assert lead(anything_helps)[0] == "holes"
    assert confirmed(anything_helps) == []


def test_the_seeds_of_two_weaknesses_are_no_sample_together():
    trees = [weak("waits", 0.2, 0.5, 0.1, seed=1), weak("holes", 0.4, 0.6, 0.5, seed=1), weak("waits", 0, 1, 0, seed=2)]
    assert {name: [tree.seed for tree in one] for name, one in by_weakness(trees).items()} == {
        "waits": [1, 2],
        "holes": [1],
    }


def test_a_policys_probe_does_not_name_what_it_never_met():
    tree = weak("holes", 0, 0, 0)
    told = SliceResult(name="4", episodes=9)
    report = StageReport(
        stage=0, config={}, results=[told], training_results=[told], environment_stats={"4": {"hole_ratio": 0.0}}
    )
    seen = probed_by_validation(with_root_report(tree, report, "lie"))
    assert (seen.label, seen.reports[()].results) == ("lie", [told])
    assert not seen.reports[()].environment_stats
    assert not seen.reports[()].training_results
