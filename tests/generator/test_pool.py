"""The pool: entry j is instance j, whoever asks, in whatever order, ahead of time or not."""

import copy
import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import mapf_frozenlake as mfl
from mapf_frozenlake import GenerationError, InstancePool, LakeConfig, LakeError
from mapf_frozenlake.generator.pool import _POOLS

CONFIG = LakeConfig(slices={3: {"wait_ratio": 0.5}, 5: {}}, num_agents={2: 1, 3: 1})
SIZE = 200


@pytest.fixture(scope="module")
def wanted():
    return mfl.generate(CONFIG, SIZE, seed=8)


def rows_of(pool, rows):
    """What the pool holds in these rows, checked as a set of its own."""
    arrays = {name: getattr(pool.arrays, name)[rows] for name in mfl.instance_set.ARRAYS}
    return list(mfl.InstanceSet(**arrays))


def test_entry_j_is_instance_j(wanted):
    pool = InstancePool(CONFIG, size=SIZE, seed=8)
    for rows in ([5], [7, 5, 199, 7], np.arange(50, 90)):
        pool.ensure(np.array(rows))
        assert rows_of(pool, rows) == [wanted[int(row)] for row in rows]


def test_room_for_larger_boards_and_more_agents(wanted):
    pool = InstancePool(CONFIG, size=SIZE, seed=8, max_size=7, max_agents=6)
    pool.ensure(np.arange(10))
    assert pool.arrays.holes.shape == (SIZE, 7, 7)
    assert pool.arrays.starts.shape == (SIZE, 6, 2)
    assert rows_of(pool, range(10)) == list(wanted[:10])
    with pytest.raises(LakeError, match="max_size=4, max_agents=3: raise these two"):
        InstancePool(CONFIG, max_size=4)


def test_prefetched_rows_are_there_and_the_same(wanted):
    pool = InstancePool(CONFIG, size=SIZE, seed=8)
    pool.prefetch(np.arange(SIZE))
    deadline = time.monotonic() + 60
    while not pool.is_ready(np.arange(SIZE)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert pool.is_ready(np.arange(SIZE))
    assert rows_of(pool, range(SIZE)) == list(wanted)


def test_many_threads_at_once(wanted):
    pool = InstancePool(CONFIG, size=SIZE, seed=8)
    wrong = []

    def ask(number):
        rng = np.random.default_rng(number)
        for _ in range(40):
            rows = rng.integers(SIZE, size=7)
            pool.prefetch(rng.integers(SIZE, size=7))
            pool.ensure(rows)
            wrong.extend(row for row, one in zip(rows, rows_of(pool, rows)) if one != wanted[int(row)])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_equal_arguments_share_a_pool():
    held_out = mfl.generate(CONFIG, 5, seed=1)
    one = InstancePool.shared(CONFIG, size=50, exclude=held_out)
    assert (
        InstancePool.shared(LakeConfig.model_validate_json(CONFIG.model_dump_json()), size=50, exclude=held_out) is one
    )
    assert (
        InstancePool.shared(CONFIG.model_copy(update={"reward": "shaped", "horizon": 5}), size=50, exclude=held_out)
        is one
    )
    assert InstancePool.shared(CONFIG, size=50) is not one
    assert InstancePool.shared(CONFIG, size=51, exclude=held_out) is not one


def test_boards_stay_held_out_after_a_change_of_config():
    """Also if the sets come from an iterator, which can be read only once."""
    small = LakeConfig.single(3, 1)
    held_out = mfl.generate(small, 5)
    batch = mfl.LakeBatch(CONFIG, max_size=5, max_agents=3, pool_size=8, exclude=iter([held_out]))
    batch.reset()
    batch.reset(config=small)
    batch.pool.ensure(np.arange(8))
    assert not batch.pool.arrays.fingerprints() & held_out.fingerprints()


def test_a_pickle_draws_the_same(wanted):
    pool = InstancePool(CONFIG, size=SIZE, seed=8)
    pool.ensure(np.arange(20))
    pool.prefetch(np.arange(30))
    sent = pickle.dumps(pool)
    assert len(sent) < 5_000
    for other in (pickle.loads(sent), copy.deepcopy(pool)):
        other.ensure(np.arange(15, 40))
        assert rows_of(other, range(15, 40)) == list(wanted[15:40])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_can_go_on_drawing(wanted):
    pool = InstancePool(CONFIG, size=SIZE, seed=8)
    pool.prefetch(np.arange(SIZE))

    def in_child(answer):
        pool.prefetch(np.arange(100))
        pool.ensure(np.arange(SIZE))
        answer.put(pool.arrays.holes.tobytes())

    context = multiprocessing.get_context("fork")
    answer = context.Queue()
    child = context.Process(target=in_child, args=(answer,), daemon=True)
    child.start()
    try:
        holes = answer.get(timeout=60)
    finally:
        child.kill()
        child.join()
    assert holes == wanted.holes.tobytes()


def test_what_cannot_be_drawn_is_raised_where_it_is_needed():
    pool = InstancePool(LakeConfig.single(2, 2, wait_ratio=0.5), size=10)
    pool.prefetch(np.arange(10))  # raises nothing
    pool.ensure(np.array([1]))  # the second instance needs no wait
    with pytest.raises(GenerationError, match="0 needed a wait"):
        pool.ensure(np.array([0]))


def test_a_pool_is_freed_while_its_rows_are_still_wanted():
    pool = InstancePool(LakeConfig.single(6, 4), size=16_384, seed=12345)
    pool.prefetch(np.arange(16_384))
    deadline = time.monotonic() + 60
    del pool
    while [pool for pool in _POOLS if pool.seed == 12345] and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.01)
    assert not [pool for pool in _POOLS if pool.seed == 12345]


def test_a_process_with_rows_still_wanted_ends_at_once():
    script = (
        "import numpy as np, mapf_frozenlake as mfl\n"
        "pool = mfl.InstancePool(mfl.LakeConfig.single(5, 5, hole_ratio=0.5), size=100_000)\n"
        "pool.ensure(np.arange(2)); pool.prefetch(np.arange(100_000))"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_size_must_be_positive():
    with pytest.raises(LakeError, match="pool size 0"):
        InstancePool(CONFIG, size=0)
