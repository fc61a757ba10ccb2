"""One small Ray for the whole session, because starting it takes longer than most tests; and a trainee in the place of the spec's."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from envtuning.trainees import TraineeKind


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


@pytest.fixture
def with_trainee(monkeypatch):
    """Puts this class in the place of the spec's trainee; a fresh copy of it is returned."""
    from tests.envtuning.written_down import Asked

    def use(cls: type | None = None, **changes: Any) -> type:
        made = type("One", (cls or Asked,), {"budgets": [], "seeds": [], "made": 0, **changes})
        monkeypatch.setattr(TraineeKind, "make", lambda kind, options, unit, **given: made(**given, **options))
        return made

    return use
