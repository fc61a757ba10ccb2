"""The benchmark's package: CI has both versions and fails without them; elsewhere these tests say how to get it and are skipped."""

from __future__ import annotations

import os

import pytest

from envtuning.worlds.bfcl import package as packages


def available(version: packages.Version) -> bool:
    try:
        return packages.find(version).is_dir()
    except packages.PackageError:
        return False


def need(version: packages.Version) -> None:
    if available(version):
        return
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
