"""Two hundred files from a stranger: read, or refused in a sentence; nothing written, no hang, no flood of memory."""

from __future__ import annotations

import pytest

from benchmarks.fuzz import files


@pytest.mark.parametrize("count", [200, pytest.param(5_000, marks=pytest.mark.prove)])
def test_a_strangers_files_are_read_or_refused(count):
    told = files.run(count, seed=46)
    assert told["files"] == count
    for kind in ("run", "study", "state", "transcript", "ledger"):
        assert told[f"{kind} refused"] > 0
    assert sum(number for name, number in told.items() if name.endswith(" read")) > 0
