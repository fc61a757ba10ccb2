"""Failures in real traces, by the actionability table's kinds of faults: they weight its rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.events import CallEvent
from envtuning.worlds.bfcl.hints import rules
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.tasks import find_task

# The rule that speaks up about an error says of which kind it is; what no rule knows counts as a wrong value.
KINDS: dict[rules.Rule, tuple[str, ...]] = {
    rules.unknown_tool: ("wrong_tool",),
    rules.missing_argument: ("missing_argument",),
    rules.unexpected_argument: ("unexpected_argument",),
    rules.wrong_value: ("wrong_type", "wrong_enumeration"),
    rules.path_for_name: ("path_for_name",),
    rules.not_there: ("wrong_directory",),
    rules.unmet_precondition: ("unmet_precondition",),
    rules.wrong_id: ("wrong_id",),
}


def kinds_in(package: Package, file: str | Path) -> Counter[str]:
    """How often each kind of fault is in the replies of a stage's episodes file; they are played again."""
    counts: Counter[str] = Counter()

    def count(event: CallEvent) -> None:
        if event.error:
            counts.update(kinds_of(event)[:1])

    for episode in json.loads(Path(file).read_text(encoding="utf-8")):
        talk = Conversation(package, find_task(package, episode["trace"]["task"]), augmenter=count, tool_style="none")
        for reply in episode["trace"]["replies"]:
            if not talk.over:
                talk.act(reply)
    return counts


def kinds_of(event: CallEvent) -> tuple[str, ...]:
    return next((kinds for rule, kinds in KINDS.items() if rule(event)), ("wrong_value",))


def reweighted(rates: Mapping[str, float], weights: Mapping[str, int]) -> float | None:
    """The mean of the rates by variant, each kind with its weight; None where no kind of the traces is among them."""
    by_kind: dict[str, list[float]] = {}
    for variant, rate in rates.items():
        by_kind.setdefault(variant.split("/")[0], []).append(rate)
    shared: Sequence[str] = [kind for kind in weights if kind in by_kind]
    total = sum(weights[kind] for kind in shared)
    if not total:
        return None
    return round(sum(weights[kind] * sum(by_kind[kind]) / len(by_kind[kind]) for kind in shared) / total, 4)
