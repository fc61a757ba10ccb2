"""One small Ray for the whole session: starting it takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

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
