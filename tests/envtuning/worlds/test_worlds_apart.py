"""Every world keeps validation, test and training apart by fingerprint, is refused where it is too small, and can be compared."""

from __future__ import annotations

from contextlib import closing
from itertools import combinations, permutations, product

import pytest
from rich.console import Console

from envtuning.runs.plan import Plan
from envtuning.runs.spec import RunSpec, load_spec
from envtuning.show.page import write_page
from envtuning.studies.compare import compare, tables
from envtuning.worlds import make_world
from envtuning.worlds.world import InfeasibleConfig, TooFewCases
from examples.own_world_mountain_car import Hill, HillsConfig, HillsWorld
from mapf_frozenlake import LakeConfig, generate
from mapf_frozenlake.generator import canonical_key
from tests.envtuning.gym_worlds import CORRIDORS, CorridorConfig, CorridorWorld, FlatConfig, PoleWorld
from tests.envtuning.text_worlds import GuessConfig, GuessWorld
from tests.oracles.brute_force import least_makespan

LAKES = LakeConfig.model_validate({"num_agents": 1, "slices": {3: {"hole_ratio": 0.3}, 4: {"hole_ratio": 0.2}}})
WORLDS = {
    "lakes": (make_world("lakes"), LAKES),
    "corridor": (CorridorWorld(), CorridorConfig()),
    "pole": (PoleWorld(), FlatConfig()),
    "guess": (GuessWorld(), GuessConfig()),
    "hills": (HillsWorld(), HillsConfig(hills={40: Hill(power=4.0), 100: Hill()})),
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


class Seen:
    """What a learner sees first of each case that a world deals: an oracle that does not ask the world's own fingerprint."""

    def __init__(self, name, world, config):
        self.world, self.config, self.of_lakes = world, config, name == "lakes"

    def of(self, cases):
        if self.of_lakes:
            return {canonical_key(board) for board in cases}
        return {(case.slice, self._first(case.slice, case.seed)) for case in cases}

    def _first(self, name, seed):
        with closing(self.world.make(self.config, name)) as env:
            return env.reset(seed=seed)[0].tobytes()

    def at_resets(self, held_out, count):
        """Of so many training episodes, the first one with a seed and the others going on from there."""
        capacity = self.world.capacity([self.config])
        with closing(self.world.make_env(self.config, exclude=held_out, capacity=capacity, seed=3)) as env:
            for number in range(count):
                first, info = env.reset(seed=7 if number == 0 else None)
                yield canonical_key(env.unwrapped.instance) if self.of_lakes else (info["slice"], first.tobytes())


@pytest.mark.parametrize("name", ["lakes", "corridor", "pole", "hills"])
def test_no_training_reset_deals_a_held_out_case(name):
    """``guess`` has no training environment: its trainee draws probes, which the test before compares."""
    world, config = WORLDS[name]
    validation = world.draw(config, 8, seed=0, purpose="validation", exclude=())
    test = world.draw(config, 8, seed=0, purpose="test", exclude=(validation,))
    seen = Seen(name, world, config)
    held_out = seen.of(validation) | seen.of(test)
    dealt = set(seen.at_resets((validation, test), 60))
    assert len(dealt) > 20
    assert not dealt & held_out
    if name in {"lakes", "corridor"}:  # spaces so small that what nobody leaves out comes up
        assert set(seen.at_resets((), 60)) & held_out


def boards_of_three():
    """Every 3×3 board with one agent and two holes, one of each class of rotations and reflections, by brute force."""
    cells = list(product(range(3), repeat=2))
    symmetries = [lambda r, c: (r, c), lambda r, c: (2 - r, c), lambda r, c: (r, 2 - c), lambda r, c: (2 - r, 2 - c)]
    symmetries += [lambda r, c, of=of: of(c, r) for of in symmetries]
    found = set()
    for start, goal in permutations(cells, 2):
        for holes in combinations(sorted(set(cells) - {start, goal}), 2):
            grid = [[(row, column) in holes for column in range(3)] for row in range(3)]
            if least_makespan(grid, (start,), (goal,)) is not None:
                found.add(min((of(*start), of(*goal), *sorted(of(*hole) for hole in holes)) for of in symmetries))
    return found


def test_lakes_too_small_for_their_sets_are_refused_with_their_number_of_boards():
    world, config = make_world("lakes"), LakeConfig.single(3, num_agents=1, hole_ratio=0.3)
    boards = len(boards_of_three())
    assert boards == 190
    with pytest.raises(TooFewCases, match=rf"1 agent.*\b191 different boards\b.*\b{boards}:"):
        world.draw(config, boards + 1, seed=0, purpose="validation", exclude=())
    validation = world.draw(config, boards, seed=0, purpose="validation", exclude=())  # by chance not all of them
    held_out = len(validation.fingerprints())
    rest = boards - held_out
    assert 0 < rest < boards
    with pytest.raises(TooFewCases, match=f"there are {boards}, {held_out} of them held out"):
        world.draw(config, rest + 1, seed=0, purpose="test", exclude=(validation,))
    test = world.draw(config, rest, seed=0, purpose="test", exclude=(validation,))
    assert not validation.fingerprints() & test.fingerprints()


def test_lakes_whose_boards_are_all_held_out_are_refused():
    world, corners = (
        make_world("lakes"),
        LakeConfig.single(3, num_agents=1, hole_ratio=0.0, min_distance=4),
    )  # one board: corner to corner
    with pytest.raises(TooFewCases, match=r"all 1 different boards"):
        world.draw(corners, 1, seed=0, purpose="validation", exclude=())
    edges = LakeConfig.single(3, num_agents=1, hole_ratio=0.0, min_distance=3)
    every = generate(edges, 200)
    with pytest.raises(TooFewCases, match=r"\b1 different boards\b.*\b3, 3 of them held out"):
        world.draw(edges, 1, seed=0, purpose="test", exclude=(every,))


def test_lakes_judge_each_kind_of_board_by_itself():
    """Boards that need no wait make up for none that need one; what no draw can meet is no lack of cases."""
    world = make_world("lakes")
    waiting = LakeConfig.single(3, num_agents=2, hole_ratio=0.6, wait_ratio=0.5)
    with pytest.raises(TooFewCases, match=r"3 holes\) that need a wait: a set needs 200"):
        world.draw(waiting, 400, seed=0, purpose="validation", exclude=())
    held_out = world.draw(LakeConfig.single(3, num_agents=2), 5, seed=0, purpose="validation", exclude=())
    with pytest.raises(InfeasibleConfig, match="no board that needs a wait"):
        world.draw(
            LakeConfig.single(3, num_agents=2, hole_ratio=0.7, min_distance=4, wait_ratio=1.0),
            5,
            seed=0,
            purpose="test",
            exclude=(held_out,),
        )


@pytest.mark.parametrize("name", ["corridor", "guess"])
def test_a_world_too_small_for_its_sets_is_refused_with_its_number(name):
    world, config = WORLDS[name]
    there_are = {"corridor": 6 * 5, "guess": 40}[name]  # in the first slice: a start and a flag; numbers
    with pytest.raises(TooFewCases, match=rf"\b3000 different (?:cases|boards)\b.*\b{there_are}\b"):
        world.draw(config, 3_000, seed=0, purpose="test", exclude=())


@pytest.mark.parametrize("name", ["lakes", "corridor"])
def test_engineers_are_compared_on_either_world(name, tmp_path):
    lakes = load_spec("scripted").with_rounds(2).model_copy(update={"stages": load_spec("scripted").stages[:2]})
    spec = RunSpec.model_validate(CORRIDORS) if name == "corridor" else lakes
    spec = spec.model_copy(update={"suites": RunSpec.model_validate(CORRIDORS).suites})
    found = compare(spec, ["fixed", "uniform", "rules"], [0, 1], tmp_path / name)
    assert found.headings == Plan.of(spec).world.about.headings
    assert [row.arm for row in found.rows] == ["fixed", "uniform", "rules"]
    console = Console(width=200, record=True)
    console.print(*tables(found))
    heading = "success" if name == "corridor" else "valid"
    assert heading in console.export_text()
    page = write_page([tmp_path / name / "rules" / "seed0"], tmp_path / "page.html").read_text()
    assert ("9 cells" in page) == (name == "corridor")
    assert ("4×4" in page) == (name == "lakes")
