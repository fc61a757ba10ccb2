"""Every world keeps validation, test and training apart by fingerprint, is refused where it is too small, and can be compared."""

from __future__ import annotations

import pytest
from rich.console import Console

from envtuning.runs.spec import RunSpec, load_spec
from envtuning.show.page import write_page
from envtuning.studies.compare import compare, table
from envtuning.worlds import make_world
from envtuning.worlds.world import InfeasibleConfig, TooFewCases
from mapf_frozenlake import LakeConfig
from tests.envtuning.gym_worlds import CorridorConfig, CorridorWorld, FlatConfig, PoleWorld
from tests.envtuning.text_worlds import GuessConfig, GuessWorld

LAKES = LakeConfig.model_validate({"num_agents": 1, "slices": {3: {"hole_ratio": 0.3}, 4: {"hole_ratio": 0.2}}})
WORLDS = {
    "lakes": (make_world("lakes"), LAKES),
    "corridor": (CorridorWorld(), CorridorConfig()),
    "pole": (PoleWorld(), FlatConfig()),
    "guess": (GuessWorld(), GuessConfig()),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_three_sets_share_no_fingerprint(name):
    world, config = WORLDS[name]
    for seed in range(5):
        validation = world.draw(config, 6, seed=seed, purpose="validation", exclude=())
        test = world.draw(config, 6, seed=seed, purpose="test", exclude=(validation,))
        training = world.draw(config, 40, seed=seed, purpose="probe", exclude=(validation, test))
        sets = [cases.fingerprints() for cases in (validation, test, training)]
        assert len(sets[0]) == len(validation) == len(test) == len(sets[1])
        assert not sets[0] & sets[1]
        assert not (sets[0] | sets[1]) & sets[2]


@pytest.mark.parametrize("name", ["lakes", "corridor", "guess"])
def test_a_world_too_small_for_its_sets_is_refused_with_a_number(name):
    """Lakes may repeat a board within one set: the first set takes them all, and the second finds none."""
    world, config = WORLDS[name]
    config = LakeConfig.single(3, num_agents=1, hole_ratio=0.3) if name == "lakes" else config
    taken = (world.draw(config, 3_000, seed=0, purpose="validation", exclude=()),) if name == "lakes" else ()
    with pytest.raises((TooFewCases, InfeasibleConfig), match=r"\d"):
        world.draw(config, 3_000, seed=0, purpose="test", exclude=taken)


CORRIDORS = {
    "name": "corridors-of-tests",
    "world": "tests.envtuning.gym_worlds:CorridorWorld",
    "target": {"slices": {9: {"tightness": 1.0}, 12: {"tightness": 1.0}}},
    "stages": [{"config": {"slices": {6: {}, 9: {"share": 0.0}, 12: {"share": 0.0}}}, "budget": 800}, {"budget": 800}],
    "trainee": {"kind": "tests.envtuning.gym_worlds:WalkerTrainee"},
    "suites": {"validation_per_slice": 4, "test_per_slice": 8, "probe_per_slice": 2},
}


@pytest.mark.parametrize("name", ["lakes", "corridor"])
def test_engineers_are_compared_on_either_world(name, tmp_path):
    lakes = load_spec("scripted").with_rounds(2).model_copy(update={"stages": load_spec("scripted").stages[:2]})
    spec = RunSpec.model_validate(CORRIDORS) if name == "corridor" else lakes
    spec = spec.model_copy(update={"suites": RunSpec.model_validate(CORRIDORS).suites})
    found = compare(spec, ["fixed", "uniform", "rules"], [0, 1], tmp_path / name)
    assert found.world == spec.world.made.about.name
    assert [row.engineer for row in found.rows] == ["fixed", "uniform", "rules"]
    console = Console(width=200, record=True)
    console.print(table(found))
    heading = "success" if name == "corridor" else "valid"
    assert heading in console.export_text()
    page = write_page([tmp_path / name / "rules" / "seed0"], tmp_path / "page.html").read_text()
    assert ("9 cells" in page) == (name == "corridor")
    assert ("4×4" in page) == (name == "lakes")
