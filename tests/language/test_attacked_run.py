"""A language model's run whose folder is damaged: told with the file's name, or without effect. `make prove`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envtuning.loop import run as loop
from envtuning.runs.log import RunLog
from envtuning.runs.plan import Plan
from tests.envtuning.runs.test_damaged_folders import attacks, outcome, told
from tests.language.test_run import make_spec
from tests.lazily import needed

needed("trl", "llguidance", extra="grpo")

pytestmark = [pytest.mark.prove, pytest.mark.timeout(7_200)]


@pytest.fixture(scope="module")
def whole(foreign, tmp_path_factory) -> Path:
    return loop.start(make_spec(foreign, "rules"), tmp_path_factory.mktemp("whole") / "run").path


@pytest.fixture(scope="module")
def half(foreign, tmp_path_factory) -> Path:
    """One of two stages."""
    run = RunLog.create(tmp_path_factory.mktemp("half") / "run", Plan.of(make_spec(foreign, "rules")))
    loop.continue_run(run, stages=1)
    return run.path


def test_forty_corruptions(whole, half, tmp_path):
    copy = tmp_path / "undamaged" / "run"
    shutil.copytree(half, copy)
    assert told(["resume", str(copy)])[0] == 0
    assert outcome(copy) == outcome(whole)
    ended = attacks(40, 3, whole, half, tmp_path)
    assert ended["told"] > 20
