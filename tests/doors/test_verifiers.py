"""Where verifiers is not installed; where it is, ``clients/checks/with_verifiers.py`` evaluates by it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import pytest


@pytest.mark.skipif(find_spec("verifiers") is not None, reason="verifiers is installed here")
def test_the_taskset_says_which_extra_it_needs():
    ran = subprocess.run([sys.executable, "-c", "import mapf_lake"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert "ImportError" in ran.stderr
    assert "mapf-frozenlake[verifiers]" in ran.stderr
