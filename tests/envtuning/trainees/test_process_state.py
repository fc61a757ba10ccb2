"""Trainers take randomness and threads from the process; it is left as it was found."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")

from envtuning.trainees.process_state import process_state  # noqa: E402


def drawn():
    return random.random(), float(np.random.random()), float(torch.rand(()))  # noqa: NPY002


def states():
    return random.getstate(), str(np.random.get_state()), torch.get_rng_state().tolist(), torch.get_num_threads()  # noqa: NPY002


def test_each_generator_begins_with_the_seed_and_all_is_put_back():
    before = states()
    found = []
    for seed in (1, 1, 2):
        with process_state(seed, before[3] + 2):
            assert torch.get_num_threads() == before[3] + 2
            found.append(drawn())
        assert states() == before
    assert found[0] == found[1]
    assert all(one != other for one, other in zip(found[0], found[2], strict=True))


def test_all_is_put_back_after_an_error_too():
    before = states()
    with suppress(KeyError), process_state(1, before[3] + 2):
        drawn()
        raise KeyError
    assert states() == before
