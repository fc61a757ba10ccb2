"""The benchmark's package: CI has both versions and fails without them; elsewhere these tests say how to get it and are skipped."""

from __future__ import annotations

import os

import pytest

from envtuning.worlds.bfcl import package as packages


def need(version: packages.Version) -> None:
    try:
        packages.find(version)
    except packages.PackageError:
        message = f"bfcl-eval {version} is absent: make tools-data, or {packages.INSTALL} --version {version}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)


@pytest.fixture(scope="session")
def v4() -> packages.Package:
    need("v4")
    return packages.load("v4")


@pytest.fixture(scope="session")
def v3_paper() -> None:
    """Only its presence: it is loaded in processes of its own."""
    need("v3-paper")
