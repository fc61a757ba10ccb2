"""Quotas in every prefix, for any weights."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mapf_frozenlake.generator.apportion import NO_WAIT, WAIT, apportion, normalised

N = 400
some_weights = st.lists(st.floats(0.001, 1.0), min_size=1, max_size=8)


def off_by(chosen, quotas):
    """The largest distance between what came and what was due, over all prefixes."""
    came = np.cumsum(chosen[:, None] == np.arange(len(quotas)), axis=0)
    due = np.arange(1, len(chosen) + 1)[:, None] * quotas
    return np.abs(came - due).max() if len(chosen) else 0.0


@given(some_weights, some_weights, st.data())
@settings(max_examples=200)
def test_every_prefix_is_within_one(shares, weights, data):
    ratios = data.draw(st.lists(st.floats(0, 1), min_size=len(shares), max_size=len(shares)))
    shares, weights = normalised(shares), normalised(weights)
    slices, labels, counts = apportion(shares, np.array(ratios), weights, N)
    assert off_by(slices, shares) < 1 + 1e-6
    assert off_by(counts, weights) < 1 + 1e-6
    for piece, ratio in enumerate(ratios):
        assert off_by(labels[slices == piece], np.array([1 - ratio, ratio])) <= 0.5 + 1e-6


@given(some_weights, some_weights, st.integers(0, N))
@settings(max_examples=50)
def test_a_longer_sequence_begins_with_a_shorter_one(shares, weights, n):
    arguments = normalised(shares), np.full(len(shares), 0.3), normalised(weights)
    for long, short in zip(apportion(*arguments, N), apportion(*arguments, n)):
        assert np.array_equal(long[:n], short)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), min_size=1, max_size=3),
    st.sampled_from([0.25, 0.5, 0.75]),
)
@example([1, 1], [1, 1], 0.5)  # all three alternate: in step, half the combinations would never come
@settings(max_examples=100)
def test_sizes_labels_and_counts_do_not_march_in_step(shares, weights, ratio):
    shares, weights = normalised(shares), normalised(weights)
    n = 4000
    slices, labels, counts = apportion(shares, np.full(len(shares), ratio), weights, n)
    for piece, share in enumerate(shares):
        for label, label_share in ((NO_WAIT, 1 - ratio), (WAIT, ratio)):
            for count, weight in enumerate(weights):
                came = np.sum((slices == piece) & (labels == label) & (counts == count))
                assert abs(came - n * share * label_share * weight) < 3


def test_no_wait_ratio_means_any_label():
    _, labels, _ = apportion(np.ones(1), np.array([np.nan]), np.ones(1), 10)
    assert (labels == -1).all()
