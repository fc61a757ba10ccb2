"""One small Ray for the whole session: starting it takes longer than most tests."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator

import pytest


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    ray = pytest.importorskip("ray", reason="needs ray: pip install 'mapf-frozenlake[rllib]'")
    pytest.importorskip("torch", reason="needs torch: pip install 'mapf-frozenlake[rllib]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            address="local", include_dashboard=False, num_cpus=4, object_store_memory=100 * 1024**2, log_to_driver=False
        )
        yield
        ray.shutdown()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Ray's dozen processes take a part of a core as long as they live: they end with the last test that needs them."""
    result = yield
    if "ray" in groups_of(item) and "ray" not in groups_of(nextitem) and "ray" in sys.modules:
        sys.modules["ray"].shutdown()
    return result


def groups_of(item: pytest.Item | None) -> set[str]:
    return set() if item is None else {mark.args[0] for mark in item.iter_markers("xdist_group")}
