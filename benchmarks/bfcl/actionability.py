"""The actionability table: the faults from which scripted readers recover, with several kinds of messages."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.bfcl.abstention import abstention, gaps
from benchmarks.bfcl.forks import with_tools
from benchmarks.bfcl.halves import half_of
from benchmarks.bfcl.measure import (
    Condition,
    Sample,
    draw_samples,
    recovered,
)
from benchmarks.bfcl.readers import READERS, blindly, by_looking_around, complains, told_everything
from benchmarks.bfcl.statistics import summary
from benchmarks.bfcl.text_table import aligned, percent
from benchmarks.bfcl.traces import kinds_in, reweighted
from envtuning.worlds.bfcl.events import CallAugmenter
from envtuning.worlds.bfcl.hints import augment
from envtuning.worlds.bfcl.package import SPLITS, Package, Version, load
from envtuning.worlds.bfcl.tasks import load_tasks


def masked(message: str) -> str:
    """Tells only whether the message complains."""
    return "Error." if complains(message) else "Done."


def conditions(augmenters: dict[str, CallAugmenter]) -> list[Condition]:
    """Both readers under each kind of messages, and what needs no message."""
    rows = [Condition(f"masked, {name}", reader, None, masked) for name, reader in READERS.items()]
    rows += [Condition("blind retry", blindly), Condition("calls every tool that only reads", by_looking_around)]
    rows += [Condition(f"stock, {name}", reader) for name, reader in READERS.items()]
    for kind, augmenter in augmenters.items():
        rows += [Condition(f"{kind}, {name}", reader, augmenter) for name, reader in READERS.items()]
    rows += [
        Condition(f"{kind} in place of the message, {name}", reader, augmenter, hint_place="instead")
        for kind, augmenter in augmenters.items()
        for name, reader in READERS.items()
    ]
    rows += [
        Condition(f"{kind}, replies in XML, {name}", reader, augmenter, reply_format="xml")
        for kind, augmenter in augmenters.items()
        for name, reader in READERS.items()
    ]
    return [*rows, Condition("everything looked up again at each complaint", told_everything)]


AUGMENTERS: dict[str, CallAugmenter] = {"ours": augment}


def run(
    version: Version,
    augmenters: dict[str, CallAugmenter] | None = None,
    per_task: int = 4,
    fork: str | None = None,
    traces: str | None = None,
) -> dict[str, Any]:
    """Every row on every split; with a fork's tool folder also the stock readers on the fork's messages."""
    package = load(version)
    forked = with_tools(package, fork) if fork is not None else None
    rows = conditions(AUGMENTERS if augmenters is None else augmenters)
    tables: dict[str, Any] = {}
    every: list[Sample] = []
    outcomes: dict[str, list[bool]] = {}
    for split in SPLITS:
        samples = draw_samples(package, load_tasks(package, split), per_task=per_task, seed=0)
        solved = {row.name: recovered(package, samples, row) for row in rows}
        if forked is not None:
            readers = [Condition(f"the fork, {name}", reader) for name, reader in READERS.items()]
            solved |= {row.name: recovered(forked, samples, row) for row in readers}
        tables[split] = _table(samples, solved, lambda sample: sample.visible)
        every += samples
        for name, values in solved.items():
            outcomes.setdefault(name, []).extend(values)
    halves = {
        half: _table(every, outcomes, lambda s, half=half: s.visible and half_of(package, s.fault) == half)
        for half in ("looked at", "mixed", "not looked at")
    }
    seen = _table(every, outcomes, lambda sample: sample.visible)
    weights = kinds_in(package, traces) if traces is not None else {}
    by_traces = {name: reweighted(row["variants"], weights) for name, row in seen.items()} if weights else {}
    return {
        "version": version,
        "weighted by traces": {"kinds": dict(weights), "rates": by_traces},
        "visible harmful faults": tables,
        "by half": halves,
        "silent harmful faults": _table(every, outcomes, lambda sample: not sample.visible),
        "where something is missing": _abstention(package, rows),
    }


def table(figures: dict[str, Any]) -> str:
    """What each row recovers from, in percent; faults without a stock message are in the last column. The JSON has more."""
    columns = figures["visible harmful faults"] | {
        "not looked at": figures["by half"]["not looked at"],
        "silent": figures["silent harmful faults"],
    }
    rows = [
        [name, *(percent(rows[name]["micro"], rows[name]["interval"]) for rows in columns.values())]
        for name in columns["silent"]
    ]
    weighted = figures["weighted by traces"]["rates"]
    blocks = [aligned(["faults recovered from, %", *columns], rows)]
    if weighted:
        blocks.append(
            aligned(["weighted by traces, %", ""], [[name, f"{100 * rate:.1f}"] for name, rate in weighted.items()])
        )
    return "\n\n".join(blocks)


def _table(samples: list[Sample], outcomes: dict[str, list[bool]], wanted: Any) -> dict[str, Any]:
    chosen = [index for index, sample in enumerate(samples) if wanted(sample)]
    picked = [samples[index] for index in chosen]
    return {name: summary(picked, [values[index] for index in chosen]) for name, values in outcomes.items()}


def _abstention(package: Package, rows: list[Condition]) -> dict[str, Any]:
    found = {split: gaps(package, load_tasks(package, split)) for split in ("miss_func", "miss_param")}
    return {
        split: {row.name: dict(Counter(abstention(package, gap, row) for gap in of_split)) for row in rows}
        for split, of_split in found.items()
    }
