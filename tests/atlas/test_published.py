"""The trees in the package can be read, are whole and those of the index, and say what can be drawn."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from envtuning.atlas import published
from envtuning.atlas.legend import words_of
from envtuning.atlas.published import FOLDER, StoredWalks, load, names, spec_named
from envtuning.atlas.roster import ROSTER
from envtuning.atlas.standing import score
from envtuning.atlas.store import read_tree
from envtuning.errors import RunError
from envtuning.loop.validation import draw_test, draw_validation

ALL = sorted(published.index().trees)


def test_the_index_has_every_tree_and_only_these():
    assert {path.stem for path in FOLDER.glob("*.yaml")} == set(ALL) == {*names(), *names(weak=True)}
    assert names()[-1] == "long-corridors", "what is held out comes last"
    for name in names():
        assert published.index().trees[name].walks.keys() == ROSTER.keys()


@pytest.mark.parametrize("name", ALL)
def test_a_tree_s_entries_can_be_drawn_and_its_run_can_be_run(name):
    spec = spec_named(name)
    for config in spec.entries(spec.seeds[0], ()).values():
        spec.plan.world.check(config)
    assert len(draw_test(spec.plan, draw_validation(spec.plan))), "there are enough boards of every kind to hold out"
    assert spec.run.budget == spec.root_budget + spec.depth * spec.stage_budget


def test_trees_share_no_seed():
    seeds = [seed for name in ALL for seed in spec_named(name).seeds]
    assert len(seeds) == len(set(seeds))


@pytest.mark.parametrize("name", ALL)
def test_what_is_published_passes_every_check_of_a_built_tree(name):
    tree = load(name)
    assert [one.seed for one in tree.seeds] == list(tree.spec.seeds)
    assert tree.digest == tree.spec.digest
    first, spec = tree.seeds[0], tree.spec
    assert read_tree(FOLDER / name, spec, first.seed).reports == first.reports
    assert len(first.reports) == len(first.tested) == sum(len(spec.menu) ** stage for stage in range(spec.depth + 1))
    assert first.words[()] == words_of(spec, first.config(()), first.entries(()))


def test_stored_walks_are_those_of_the_engineers_of_today():
    """One that reads, on one tree; ``make prove`` asks all on all."""
    assert walked("rules", "small-corridors") == published.index().trees["small-corridors"].walks["rules"]


@pytest.mark.prove
@pytest.mark.parametrize("name", names())
def test_all_stored_walks_are_those_of_the_engineers_of_today(name):
    stored = published.index().trees[name].walks
    assert {engineer: walked(engineer, name) for engineer in ROSTER} == stored


def walked(engineer, name):
    return StoredWalks.of(score(engineer, [name])[name].row)


def test_the_page_s_python_runs_and_says_what_the_page_s_table_has(capsys):
    page = (Path(__file__).parents[2] / "docs" / "atlas.md").read_text(encoding="utf-8")
    [block] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec(block, {})
    said = capsys.readouterr().out.splitlines()
    table = page[page.index("`corridors` is one size larger") :]
    success, over = re.search(r"\| rules \| 5 \| (\S+) ± \S+ \| (\S+)", table).groups()
    assert said[0].startswith("5×5 50%, hole ratio 0.286, wait ratio 0.6, min distance 2; 6×6 50%")
    assert said[-1] == f"{success} %, {over} points over the best open loop"


def test_all_trees_together_are_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) < 2e6


@pytest.mark.parametrize(
    "file", ["corridors/seed7100.reports.json.xz", "corridors/seed7102.test.json.xz", "corridors.yaml"]
)
def test_a_file_that_was_changed_since_is_refused(file, tmp_path, monkeypatch):
    copied = tmp_path / "trees"
    shutil.copytree(
        FOLDER, copied, ignore=lambda place, found: [one for one in found if one.startswith(("weak", "long", "small"))]
    )
    monkeypatch.setattr(published, "FOLDER", copied)
    with (copied / file).open("ab") as changed:
        changed.write(b"\n")
    with pytest.raises(RunError, match="not the published file"):
        [tree.tested for tree in load("corridors").seeds]


MENU_CHOOSER = """
import sys
from engineers import Proposal
from envtuning import atlas
class First:
    name = "first"
    def propose(self, report, current, editable=None):
        return Proposal(config=type(current)(choice="A"), engineer=self.name)
found = atlas.score(First(), trees=["corridors"])
assert atlas.load("corridors").menu["middle"].startswith("5×5 50%")
print(found["corridors"].success, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_who_chooses_from_a_menu_needs_neither_torch_nor_numba_nor_the_world():
    ran = subprocess.run([sys.executable, "-c", MENU_CHOOSER], capture_output=True, text=True, check=True)
    success, *loaded = ran.stdout.split()
    assert float(success) == pytest.approx(0.292, abs=0.001)
    assert not {"torch", "numba", "scipy", "ray", "gymnasium", "mapf_frozenlake"} & set(loaded)
    assert ran.stderr == ""


def test_stored_walks_keep_the_distance_and_its_bound():
    distance, bound = 0.25, 0.75
    stored = StoredWalks(tier=2, paths={}, distance=distance, bound=bound)
    nearness = stored.row("mine", []).nearness
    assert (nearness.median, nearness.bound) == (distance, bound)
    assert StoredWalks(tier=2, paths={}, distance=None, bound=None).row("mine", []).nearness is None
