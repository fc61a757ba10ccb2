"""What counting outcomes costs: the stored figures, and that its clock counts calls within calls once."""

from __future__ import annotations

import json
import time

from benchmarks import counting
from benchmarks._record import RESULTS


def test_no_trainee_spends_more_than_two_percent_on_counting():
    figures = json.loads((RESULTS / "counting.json").read_bytes())["figures"]
    assert figures.keys() == counting.BUDGETS.keys()
    for name, row in figures.items():
        assert 0 < row["counting"] <= 0.02 * row["training"], name
        assert row["percent"] == round(100 * row["counting"] / row["training"], 2)


def test_a_call_within_a_call_is_counted_once():
    clock = counting.Clock()

    def work() -> None:
        begin = time.thread_time()
        while time.thread_time() - begin < 0.02:
            pass

    inner = clock.timed(work)
    begin = time.thread_time()
    clock.timed(lambda: [inner(), inner()])()
    assert 0.04 <= clock.spent <= time.thread_time() - begin
