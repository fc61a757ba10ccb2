"""`make test` spreads the tests over two processes; what shares a slow setup stays in one."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("together")
def test_the_processes_know_of_groups(request):
    """pytest-xdist writes a test's group behind its name, and spreads by that. Where it fails to, nothing is said, and all takes longer."""
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("the tests run in one process, or are spread in another way")
    assert request.node.nodeid.endswith("@together")
