"""How the tests are spread over processes: everything that starts Ray runs in one of them, or each would start its own.

So does what shares the small atlas, which takes long to build, and what shares a small language model.
"""

from __future__ import annotations

import pytest


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("ray") or "ray_session" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("ray"))
        elif "trees" in getattr(item, "fixturenames", ()) or "stored" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("atlas"))
        elif "language" in item.path.parts or item.path.stem == "test_language":
            item.add_marker(pytest.mark.xdist_group("language"))
