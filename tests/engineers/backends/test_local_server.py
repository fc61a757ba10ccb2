"""``server/…`` asks a real server: a process of its own that runs a tiny Qwen3."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

import engineers
from engineers.report import StageReport

pytestmark = pytest.mark.slow  # a process that imports torch and transformers


@pytest.fixture(scope="module")
def served(tiny_qwen3: Path) -> Iterator[str]:
    """The address of a server process with the tiny model, as it prints it."""
    for name in ("llguidance", "openai"):
        pytest.importorskip(name)
    command = [sys.executable, str(Path(__file__).with_name("model_server.py")), str(tiny_qwen3)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert address, "the server did not start"
    yield address
    process.terminate()
    process.wait(timeout=30)


def test_an_untrained_model_gives_valid_configs(
    served: str, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    proposal = engineers.make(served, max_tokens=500, timeout=100).propose(report, config, editable)
    assert not proposal.fallback, proposal.refusals
    assert proposal.refusals == []
    assert 0 < proposal.usage.completion_tokens <= 500
    assert proposal.usage.prompt_tokens > 0


def test_a_question_that_the_server_cannot_answer_is_a_fallback(
    served: str, report: StageReport, config: BaseModel, editable: tuple[str, ...]
) -> None:
    proposal = engineers.make(served, max_tokens=5, timeout=100).propose(report, config, editable)
    assert proposal.fallback
    assert "the shortest reply may take" in proposal.refusals[0]
