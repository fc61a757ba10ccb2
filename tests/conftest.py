"""How the tests are spread over processes, and what none of them waits for.

Tests that share what takes long to build run in one process, or each would build its own: everything that starts Ray, what shares a
small language model, what imports the libraries of providers, what loads the tool-use benchmark, and the tests of a file that has
something of its own for all of them.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from engineers.shared import own

LANGUAGE = {"tiny_qwen3", "byte_tokens", "untaught"}  # what is made for tests of local models
EVERYWHERE = {"what_a_file_of_tests_trusts_it_trusts_alone"}  # which every file has, and which costs nothing
PROVIDERS = {"test_network", "test_hostile_replies", "test_caps"}  # which import the providers' libraries


# An example of a property may take any time: machines are shared.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# No test asks the hub: without a network, its library takes minutes to give up. It reads this when it is imported.
os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups = {item: group_of(item) for item in items}
    for item, group in groups.items():
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    # A group's tests run one after the other in a single process too; a cluster of nodes comes before there is another Ray.
    items.sort(key=lambda item: (groups[item] or "~", item.path.stem != "test_ray_cluster"))


def group_of(item: pytest.Item) -> str | None:
    fixtures = set(getattr(item, "fixturenames", ()))
    if item.get_closest_marker("ray") or "ray_session" in fixtures:
        return "ray"
    if "language" in item.path.parts or item.path.stem == "test_language" or fixtures & LANGUAGE:
        return "language"
    if item.path.stem in PROVIDERS:
        return "providers"
    if "v4" in fixtures:
        return "tools"
    made = getattr(item, "_fixtureinfo", None)  # pytest has no public way to ask for a fixture's scope
    shared = {name: found for name, found in made.name2fixturedefs.items() if name not in EVERYWHERE} if made else {}
    if any(one.scope == "module" for found in shared.values() for one in found):
        return item.path.stem
    return None


def pytest_collection_finish() -> None:
    """What is imported by now stays: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_forced_to_the_disk() -> Iterator[None]:
    """The tests kill processes and never the machine: what a process has written stays with the system."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: os.fstat(handle) and None)
        yield


def pytest_configure() -> None:
    """Files of the tests name worlds, trainees and engineers of the tests and of the examples."""
    own.trust(("tests", "examples"))


@pytest.fixture(scope="module", autouse=True)
def what_a_file_of_tests_trusts_it_trusts_alone() -> Iterator[None]:
    with own.also_trusting(()):
        yield


@pytest.fixture(autouse=True)
def what_a_test_trusts_it_trusts_alone() -> Iterator[None]:
    with own.also_trusting(()):
        yield


@pytest.fixture
def exam_roots(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of one's own for the exam's roots, and one thread, as a sitting has."""
    import torch

    monkeypatch.setenv("ENVTUNING_EXAM", str(tmp_path_factory.mktemp("roots")))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
