"""What ``generate`` promises, checked by obvious code that shares nothing with it."""

import itertools
import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mapf_frozenlake as mfl
from mapf_frozenlake import GenerationError, LakeConfig, LakeError
from mapf_frozenlake.generator import Limits, check_config, generate
from mapf_frozenlake.generator.strata import displacements, hole_count
from tests.oracles.brute_force import least_makespan

MIXED = LakeConfig(
    slices={
        3: {"share": 0.5, "hole_ratio": 0.2, "wait_ratio": 0.5},
        5: {"share": 0.3, "hole_ratio": 0.3, "wait_ratio": 0.25, "min_distance": 3},
        6: {"share": 0.2, "hole_ratio": 0.1},
    },
    num_agents={2: 2, 3: 1},
)


def certificate_of(instance):
    """(makespan, needs_wait) by joint breadth-first search; (None, None) if there is no plan."""
    holes = instance.holes.tolist()
    starts, goals = (tuple(map(tuple, cells.tolist())) for cells in (instance.starts, instance.goals))
    makespan = least_makespan(holes, starts, goals)
    if makespan is None:
        return None, None
    return makespan, least_makespan(holes, starts, goals, waits="goals_only") != makespan


def test_instance_j_depends_on_config_seed_and_j_alone():
    whole = generate(MIXED, 120, seed=5)
    for first, n in ((0, 120), (0, 7), (7, 50), (57, 63), (119, 1), (40, 0)):
        for threads in (1, 2, 3, 5):
            assert generate(MIXED, n, seed=5, first=first, num_threads=threads) == whole[first : first + n]
    assert generate(MIXED, 120, seed=6) != whole


def test_another_process_draws_the_same():
    script = (
        "import mapf_frozenlake as mfl, sys; "
        "print(mfl.generate(mfl.LakeConfig.model_validate_json(sys.argv[1]), 60, seed=9).checksum)"
    )
    there = subprocess.run(
        [sys.executable, "-c", script, MIXED.model_dump_json()], capture_output=True, text=True, check=True
    )
    assert there.stdout.strip() == generate(MIXED, 60, seed=9).checksum


def test_rules_that_only_concern_episodes_do_not_change_the_boards():
    other = MIXED.model_copy(update={"collisions": "end", "reward": "progress", "is_slippery": True, "horizon": 9})
    assert list(generate(other, 40)) == list(generate(MIXED, 40))


def test_quotas_hold_in_every_prefix():
    drawn = generate(MIXED, 400, seed=1)
    sizes, waits, agents = drawn.heights, drawn.needs_wait, drawn.num_agents
    for k in range(1, 401):
        for size, piece in MIXED.slices.items():
            of_size = sizes[:k] == size
            assert abs(of_size.sum() - piece.share * k) <= 1
            if piece.wait_ratio is not None:
                assert abs((waits[:k][of_size] == 1).sum() - piece.wait_ratio * of_size.sum()) <= 0.5
        assert abs((agents[:k] == 2).sum() - 2 / 3 * k) <= 1


def test_each_instance_is_as_the_config_says():
    for instance in generate(MIXED, 300, seed=2):
        piece = MIXED.slices[instance.height]
        ice_or_hole = instance.height * instance.width - 2 * instance.num_agents
        assert instance.height == instance.width
        assert instance.holes.sum() == math.floor(piece.hole_ratio * ice_or_hole + 0.5)
        assert (np.abs(instance.starts - instance.goals).sum(axis=1) >= piece.min_distance).all()


@pytest.mark.parametrize(
    ("ratio", "size", "agents", "holes"),
    [(0.5, 3, 3, 2), (0.5, 3, 2, 3), (0.25, 4, 2, 3), (0.1, 3, 2, 1), (0.3, 4, 3, 3)],
)
def test_hole_counts_round_half_up(ratio, size, agents, holes):
    assert hole_count(size, size, agents, ratio) == holes


@given(
    st.sampled_from([(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2)]),
    st.floats(0, 0.9),
    st.sampled_from([None, 0.0, 0.5]),
    st.integers(0, 99),
)
@settings(max_examples=40)
def test_certificates_are_true(size_and_agents, hole_ratio, wait_ratio, seed):
    """Solvable, makespan and label: all as joint breadth-first search finds them."""
    size, agents = size_and_agents
    try:
        config = LakeConfig.single(size=size, num_agents=agents, hole_ratio=hole_ratio, wait_ratio=wait_ratio)
        drawn = generate(config, 4, seed=seed)
    except ValueError:
        return  # does not fit the board, or cannot be met: other tests look at the message
    for instance in drawn:
        makespan, needs_wait = certificate_of(instance)
        assert instance.certificate == "exact"
        assert (instance.makespan, instance.needs_wait) == (makespan, needs_wait)


def all_boards(size, agents, holes, min_distance):
    """Every board of a stratum, listed."""
    cells = list(itertools.product(range(size), range(size)))
    for ends in itertools.permutations(cells, 2 * agents):
        starts, goals = ends[:agents], ends[agents:]
        if any(abs(a - c) + abs(b - d) < min_distance for (a, b), (c, d) in zip(starts, goals)):
            continue
        for dug in itertools.combinations([cell for cell in cells if cell not in ends], holes):
            board = np.zeros((size, size), bool)
            for cell in dug:
                board[cell] = True
            yield mfl.Instance(holes=board, starts=starts, goals=goals)


@pytest.mark.parametrize(
    ("size", "agents", "hole_ratio", "min_distance", "wait_ratio"),
    [
        (3, 1, 0.5, 1, None),
        (3, 1, 0.45, 3, None),
        (2, 2, 0.0, 1, None),
        (3, 2, 0.0, 3, None),
        (3, 2, 0.2, 3, 1.0),
        (3, 2, 0.2, 3, 0.0),
    ],
)
def test_boards_are_uniform_given_size_count_and_label(size, agents, hole_ratio, min_distance, wait_ratio):
    """Chi-square against all boards that fit; the seed is fixed, so the test does not flicker."""
    config = LakeConfig.single(
        size=size, num_agents=agents, hole_ratio=hole_ratio, min_distance=min_distance, wait_ratio=wait_ratio
    )
    fitting = set()
    for board in all_boards(size, agents, hole_count(size, size, agents, hole_ratio), min_distance):
        makespan, needs_wait = certificate_of(board)
        if makespan is not None and (wait_ratio is None or needs_wait == bool(wait_ratio)):
            fitting.add(board.key())
    n = 20 * len(fitting)
    came = Counter(instance.key() for instance in generate(config, n, seed=11))
    assert set(came) <= fitting
    expected = n / len(fitting)
    chi_square = sum((came[key] - expected) ** 2 / expected for key in fitting)
    degrees = len(fitting) - 1
    assert abs(chi_square - degrees) < 4 * math.sqrt(2 * degrees)


def test_both_ways_to_place_pairs_are_uniform():
    """The second way (pairs first) is taken where distances are long; here it must give what the first gives."""
    assert displacements(5, 5, 1, 1).size == 0
    assert displacements(8, 8, 3, 12).size > 0
    far = LakeConfig.single(size=3, num_agents=1, hole_ratio=0, min_distance=3)
    assert displacements(3, 3, 1, 3).size > 0
    n = 8000
    came = Counter((*map(int, one.starts[0]), *map(int, one.goals[0])) for one in generate(far, n))
    pairs = [(a, b, c, d) for a, b, c, d in itertools.product(range(3), repeat=4) if abs(a - c) + abs(b - d) >= 3]
    assert set(came) == set(pairs)
    chi_square = sum((came[pair] - n / len(pairs)) ** 2 / (n / len(pairs)) for pair in pairs)
    assert chi_square < len(pairs) + 4 * math.sqrt(2 * len(pairs))


def test_beyond_ten_by_ten_a_plan_was_found():
    drawn = generate(LakeConfig(slices={10: {}, 12: {}}, num_agents={5: 1, 12: 1}), 20)
    exact = [one for one in drawn if one.certificate == "exact"]
    assert {(one.height, one.num_agents) for one in exact} == {(10, 5)}
    for instance in drawn:
        if instance.certificate == "solvable":
            assert instance.makespan is None
            assert instance.needs_wait is None


def test_excluded_boards_never_come_back_in_any_guise():
    config = LakeConfig.single(size=3, num_agents=1, hole_ratio=0.3)
    held_out = generate(config, 40, seed=1)
    seen = {guise for one in held_out for guise in guises(one)}
    drawn = generate(config, 400, seed=2, exclude=held_out)
    assert not seen & {one.key() for one in drawn}
    assert seen & {one.key() for one in generate(config, 400, seed=2)}
    assert generate(config, 400, seed=2, exclude=[held_out[:20], held_out[20:]]) == drawn


def guises(instance):
    """The instance under all 8 symmetries, by numpy's own rotations of a board of numbers."""
    size, agents = instance.height, instance.num_agents
    for turns, flip in itertools.product(range(4), (False, True)):
        turned = np.rot90(np.arange(size * size).reshape(size, size), turns)
        turned = turned.T if flip else turned
        where = {int(cell): place for place, cell in np.ndenumerate(turned)}
        holes = instance.holes.ravel()[turned]
        for order in itertools.permutations(range(agents)):
            starts = [where[int(r) * size + int(c)] for r, c in instance.starts[list(order)]]
            goals = [where[int(r) * size + int(c)] for r, c in instance.goals[list(order)]]
            yield mfl.Instance(holes=holes, starts=starts, goals=goals).key()


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_keys_are_equal_exactly_for_guises(seed):
    config = LakeConfig.single(size=3, num_agents=2, hole_ratio=0.2)
    one, other = generate(config, 2, seed=seed, certify="reachable")
    same = set(guises(one))
    keys = {canonical_of(key, one) for key in same}
    assert len(keys) == 1
    if other.key() not in same:
        assert mfl.generator.canonical_key(other) not in keys


def canonical_of(key, like):
    """The canonical key of the board with this plain key."""
    return next(mfl.generator.canonical_key(guise) for guise in guise_instances(like) if guise.key() == key)


def guise_instances(instance):
    size = instance.height
    for key in guises(instance):
        bits = (size * size + 7) // 8
        holes = np.unpackbits(np.frombuffer(key[6 : 6 + bits], np.uint8))[: size * size].reshape(size, size)
        ends = np.frombuffer(key[6 + bits :], np.int16).reshape(2, instance.num_agents, 2)
        yield mfl.Instance(holes=holes, starts=ends[0], goals=ends[1])


UNREACHABLE_CONFIGS = {
    "wait_ratio=0.5 on 3×3 with 1 agent: an agent alone never needs to wait": LakeConfig.single(3, 1, wait_ratio=0.5),
    "2×2 with 2 agents.* of 20000 solvable boards 0 needed a wait, so wait_ratio=0.5": LakeConfig.single(
        2, 2, wait_ratio=0.5
    ),
    "no room was found for 3 starts and goals at least 14 apart": LakeConfig.single(8, 3, min_distance=14),
    "40×40 with 16 agents.*100000 cut an agent off.*lower hole_ratio": LakeConfig.single(40, 16, hole_ratio=0.7),
}


@pytest.mark.parametrize("message", UNREACHABLE_CONFIGS)
def test_what_cannot_be_met_says_what_is_reachable(message):
    config = UNREACHABLE_CONFIGS[message]
    if "40×40" not in message:  # 100,000 large boards take ten seconds; a tenth of them says the same below
        with pytest.raises(GenerationError, match=message):
            generate(config, 64)
    with pytest.raises(GenerationError, match=message.replace("20000", "2000").replace("100000", "10000")):
        check_config(config)


def test_excluding_everything_is_said():
    config = LakeConfig.single(size=2, num_agents=1, hole_ratio=0.0)
    with pytest.raises(GenerationError, match=r"were excluded.*exclude less"):
        generate(config, 5, exclude=generate(config, 200))


def test_what_fits_and_is_excluded_is_told_from_what_does_not_fit():
    config = LakeConfig.single((2, 3), 2, hole_ratio=0.0, wait_ratio=1.0)
    with pytest.raises(GenerationError, match=r"needed no wait\); the \d+ that fit are excluded: exclude less"):
        generate(config, 5, exclude=generate(config, 400, seed=1))


def test_a_seed_of_numpys_is_a_seed(tmp_path):
    config = LakeConfig.single(4, 2)
    drawn = generate(config, 3, seed=np.int64(3))
    drawn.save(tmp_path / "boards.lakes")
    assert drawn == generate(config, 3, seed=3)


def test_a_wait_ratio_needs_the_exact_certificate():
    with pytest.raises(GenerationError, match='known only with certify="exact"'):
        generate(LakeConfig.single(4, 2, wait_ratio=0.5), 1, certify="reachable")
    beyond = generate(LakeConfig.single(12, 2, wait_ratio=0.5), 8)
    assert set(beyond.certificates) == {3}


def test_limits_end_the_search():
    rare = LakeConfig.single(size=10, num_agents=2, hole_ratio=0.0, wait_ratio=1.0)
    with pytest.raises(GenerationError, match="in 3 draws"):
        generate(rare, 1, limits=Limits(draws=3))
    with pytest.raises(LakeError, match="n=-1"):
        generate(rare, -1)


def test_check_config_passes_what_can_be_drawn():
    check_config(MIXED)
    check_config(LakeConfig.single(10, 5, hole_ratio=0.5, wait_ratio=0.75))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 2.5}, r"n=2\.5: give a whole number"),
        ({"certify": "nope"}, "certify='nope': give one of 'exact'"),
        ({"exclude": "quick"}, "exclude='quick': give an InstanceSet"),
        ({"exclude": 5}, "exclude=5: give an InstanceSet"),
        ({"exclude": [7]}, "exclude holds an object of type int"),
        ({"config": {"num_agents": 2}}, "a dict for a config"),
    ],
)
def test_what_is_no_argument_is_refused_in_a_sentence(arguments, message):
    with pytest.raises(LakeError, match=message):
        generate(**{"config": LakeConfig(), "n": 1} | arguments)


def test_the_error_is_the_same_on_any_number_of_threads():
    rare = {"hole_ratio": 0.0, "wait_ratio": 1.0}
    config = LakeConfig(slices={4: {}, 9: rare, 10: rare}, num_agents=2)
    messages = set()
    for num_threads in (1, 2, 3, 5):
        with pytest.raises(GenerationError) as refused:
            generate(config, 200, limits=Limits(draws=30), num_threads=num_threads)
        messages.add(str(refused.value))
    assert len(messages) == 1
