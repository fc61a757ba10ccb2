"""Tests whether an engineer reads its reports, on trees of one stage whose root lacks one known skill.

*Planted*: reports of policies with a weakness; the right entry teaches the missing skill, and its real gain was measured by
training. *Altered*: the same question with other evidence, or with the same evidence in other words. An engineer that
follows the evidence changes its answer in the first case and keeps it in the second; one that follows a habit does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from engineers.report import StageReport
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import Player
from envtuning.studies.intervals import Interval, t_mean


@dataclass(frozen=True)
class Planted:
    """How an engineer answers one known weakness; intervals over the weakness's seeds."""

    asked: int
    right: float  # part of the answers that name the diagnosis
    gain: Interval  # gain in test success over keeping the config, for the chosen entries
    followed: Interval  # the same by always following the diagnosis
    evenly: Interval  # by choosing evenly among all entries
    evenly_but_keep: Interval  # by choosing evenly among the entries that change the config, which needs no reading
    best: Interval  # by always taking the best entry in hindsight
    fallbacks: int  # questions without a usable answer, for which the config is kept


def diagnosis_of(tree: Tree) -> str:
    assert tree.spec.diagnosis is not None, f"{tree.spec.name} has no diagnosis"
    return tree.spec.diagnosis


def by_weakness(trees: Sequence[Tree]) -> dict[str, list[Tree]]:
    """The seeds of each weakness, because seeds of different weaknesses are not one sample."""
    names = dict.fromkeys(diagnosis_of(tree) for tree in trees)
    return {name: [tree for tree in trees if diagnosis_of(tree) == name] for name in names}


def choice_of(tree: Tree, player: Player) -> str | None:
    """The entry that is chosen at the root; None without a usable answer."""
    step = player.step(tree, ())
    return None if step.fallback else step.entry


def gain(tree: Tree, entry: str) -> float:
    """The gain of one stage on the entry over one more stage on the old config."""
    return tree.tested[(entry,)] - tree.tested[(tree.spec.first_entry,)]


def gains(trees: Sequence[Tree]) -> dict[str, dict[str, Interval]]:
    """The gain of one stage over keeping the config, by weakness and entry."""
    return {
        name: {entry: t_mean([gain(tree, entry) for tree in weak]) for entry in weak[0].spec.menu}
        for name, weak in by_weakness(trees).items()
    }


def evenly(weak: Sequence[Tree], *, but_keep: bool = False) -> Interval:
    """The gain of choosing evenly among the entries, for one weakness."""
    skipped = weak[0].spec.first_entry if but_keep else None
    entries = [entry for entry in weak[0].spec.menu if entry != skipped]
    return t_mean([fmean(gain(tree, entry) for entry in entries) for tree in weak])


def lead(weak: Sequence[Tree]) -> tuple[str, Interval]:
    """For one weakness: the entry (or keeping) that comes closest to the diagnosis, and the diagnosis's lead over it."""
    diagnosis = diagnosis_of(weak[0])
    ahead = {
        entry: t_mean([gain(tree, diagnosis) - gain(tree, entry) for tree in weak])
        for entry in weak[0].spec.menu
        if entry != diagnosis
    }
    least = {entry: one.mean if one.low is None else one.low for entry, one in ahead.items()}
    nearest = min(least, key=lambda entry: least[entry])
    return nearest, ahead[nearest]


def confirmed(trees: Sequence[Tree]) -> list[Tree]:
    """The trees of confirmed weaknesses: the diagnosis beats every other entry, with each interval clear of zero."""
    sure = []
    for weak in by_weakness(trees).values():
        low = lead(weak)[1].low
        sure += weak if low is not None and low > 0 else []
    return sure


def planted(weak: Sequence[Tree], player: Player) -> Planted:
    """One weakness on every seed."""
    chosen = [choice_of(tree, player) for tree in weak]
    trained = [tree.spec.first_entry if entry is None else entry for tree, entry in zip(weak, chosen, strict=True)]
    return Planted(
        asked=len(weak),
        right=fmean(entry == diagnosis_of(tree) for tree, entry in zip(weak, chosen, strict=True)),
        gain=t_mean([gain(tree, entry) for tree, entry in zip(weak, trained, strict=True)]),
        followed=t_mean([gain(tree, diagnosis_of(tree)) for tree in weak]),
        evenly=evenly(weak),
        evenly_but_keep=evenly(weak, but_keep=True),
        best=t_mean([max(gain(tree, entry) for entry in tree.spec.menu) for tree in weak]),
        fallbacks=chosen.count(None),
    )


def probed_by_validation(tree: Tree) -> Tree:
    """The tree without its root's probe, because the boards of training (without holes, for example) would reveal the answer.

    Instead, the probe is validation, which covers the target.
    """
    report = tree.reports[()].model_copy(update={"environment_stats": {}, "training_results": []})
    return with_root_report(tree, report, tree.label)


def with_root_report(tree: Tree, report: StageReport, label: str) -> Tree:
    """The tree with another report at its root."""
    return replace(tree, reports={**tree.reports, (): report}, label=label)


@dataclass(frozen=True)
class Altered:
    """How answers change with the evidence, and with irrelevant changes: shares of the questions; None: not asked.

    If one of two answers is missing, the pair is left out.
    """

    same_totals: float  # right if only the causes differ and not the totals
    falsified: float | None  # kept after one false number
    renamed: float | None  # kept after another name of the knob and other letters of the entries
    fallbacks: int = 0


def altered(
    trees: Sequence[Tree],
    causes: Callable[[Tree], Mapping[str, StageReport]],
    falsify: Callable[[StageReport], StageReport],
    player: Player,
    renamed: Player | None,
) -> Altered:
    """``causes``: for a tree, by diagnosis, reports with equal totals."""
    right: list[bool] = []
    lied: list[tuple[str | None, str | None]] = []
    named: list[tuple[str | None, str | None]] = []
    for tree in trees:
        for cause, report in causes(tree).items():
            chosen = choice_of(with_root_report(tree, report, cause), player)
            right.append(chosen == cause)
            lied.append((chosen, choice_of(with_root_report(tree, falsify(report), f"{cause}-lie"), player)))
            if renamed is not None:
                named.append((chosen, choice_of(with_root_report(tree, report, f"{cause}-renamed"), renamed)))
    missing = [one for one, _ in lied] + [other for _, other in [*lied, *named]]
    return Altered(fmean(right), kept(lied), kept(named), missing.count(None))


def kept(pairs: Sequence[tuple[str | None, str | None]]) -> float | None:
    """The part of the pairs of answers in which both are the same; None without a pair."""
    whole = [one == other for one, other in pairs if one is not None and other is not None]
    return fmean(whole) if whole else None
