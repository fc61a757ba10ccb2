"""The questions of ``evidence``, put to one engineer: on confirmed weaknesses, and with reports that are altered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from engineers.report import StageReport
from envtuning.atlas.causes import HELD_OUT, KIND, falsified, report_of
from envtuning.atlas.evidence import (
    Altered,
    Planted,
    altered,
    by_weakness,
    confirmed,
    evenly,
    gains,
    lead,
    planted,
    probed_by_validation,
)
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import Chooser, Player

Answers = tuple[dict[str, Planted], Altered]  # by confirmed weakness; and to altered reports


def answers_of(player: Player, trees: Sequence[Tree]) -> Answers:
    """Answers on the trees of weak policies."""
    trees, player = told_no_training(trees, player)
    renamed = replace(player, shift=1, knob="variant") if isinstance(player, Chooser) else None
    one_each = [weak[-1] for weak in by_weakness(trees).values()]
    known = {name: planted(weak, player) for name, weak in by_weakness(confirmed(trees)).items()}
    return known, altered(one_each, causes_of, falsified, player, renamed)


def told_no_training(trees: Sequence[Tree], player: Player) -> tuple[Sequence[Tree], Player]:
    """An engineer that chooses from a menu does not see the config of the policy's training, nor a probe of it."""
    if not isinstance(player, Chooser):
        return trees, player
    return [probed_by_validation(tree) for tree in trees], replace(player, hide_current=True)


def named(player: Player, trees: Sequence[Tree]) -> dict[str, float]:
    """By weakness, confirmed or not: the part of the policies that lack it for which its entry is chosen."""
    trees, player = told_no_training(trees, player)
    return {name: planted(weak, player).right for name, weak in by_weakness(trees).items()}


def causes_of(tree: Tree) -> dict[str, StageReport]:
    """Reports with equal totals, by the entry that answers each."""
    return {cause: report_of(cause, tree.report(())) for cause in KIND if cause in tree.spec.menu}


def as_data(trees: Sequence[Tree], found: Mapping[str, Answers]) -> dict[str, Any]:
    """The content of the tables of evidence, as JSON."""
    weak = by_weakness(trees)
    leads = {name: lead(group) for name, group in weak.items()}
    return {
        "held_out_causes": HELD_OUT,
        "gains": {name: {entry: asdict(one) for entry, one in row.items()} for name, row in gains(trees).items()},
        "leads": {name: {"over": over, **asdict(ahead)} for name, (over, ahead) in leads.items()},
        "evenly_but_keep": {name: asdict(evenly(group, but_keep=True)) for name, group in weak.items()},
        "confirmed": sorted(by_weakness(confirmed(trees))),
        "engineers": {
            name: {"planted": {lacking: asdict(one) for lacking, one in known.items()}, "altered": asdict(two)}
            for name, (known, two) in found.items()
        },
    }
