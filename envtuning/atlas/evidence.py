"""Does an engineer read its reports? It is asked on trees of one stage whose root lacks one known skill.

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
    """How an engineer answers known weaknesses."""

    asked: int
    right: float  # part of the questions in whose answer the diagnosis is named
    gain: Interval  # of the test's success over keeping the config, by what was chosen
    followed: Interval  # the same by always following the diagnosis
    at_random: Interval  # and by choosing evenly
    best: Interval  # and by always taking the entry that turned out best
    fallbacks: int  # questions without a usable answer: the config is kept


def diagnosis_of(tree: Tree) -> str:
    assert tree.spec.diagnosis is not None, f"{tree.spec.name} has no diagnosis"
    return tree.spec.diagnosis


def choice_of(tree: Tree, player: Player) -> str | None:
    """The entry that is chosen at the root; None where there was no usable answer."""
    step = player.step(tree, ())
    return None if step.fallback else step.entry


def gain(tree: Tree, entry: str) -> float:
    """What one stage on the entry brings over one more stage on what there was."""
    return tree.tested[(entry,)] - tree.tested[(tree.spec.first_entry,)]


def gains(trees: Sequence[Tree]) -> dict[str, dict[str, Interval]]:
    """By weakness and entry, what one stage brings over keeping the config: whether each diagnosis is one."""
    found: dict[str, dict[str, Interval]] = {}
    for name in dict.fromkeys(diagnosis_of(tree) for tree in trees):
        weak = [tree for tree in trees if diagnosis_of(tree) == name]
        found[name] = {entry: t_mean([gain(tree, entry) for tree in weak]) for entry in weak[0].spec.menu}
    return found


def confirmed(trees: Sequence[Tree]) -> list[Tree]:
    """Those whose weakness measurement bears out: over its seeds, following the diagnosis gains, the interval clear of zero."""
    found = gains(trees)
    lows = {name: found[name][name].low for name in found}
    sure = {name for name, low in lows.items() if low is not None and low > 0}
    return [tree for tree in trees if diagnosis_of(tree) in sure]


def planted(trees: Sequence[Tree], player: Player) -> Planted | None:
    """Every weakness on every seed; intervals over all of them. None without a tree."""
    if not trees:
        return None
    chosen = [choice_of(tree, player) for tree in trees]
    trained = [tree.spec.first_entry if entry is None else entry for tree, entry in zip(trees, chosen, strict=True)]
    return Planted(
        asked=len(trees),
        right=fmean(entry == diagnosis_of(tree) for tree, entry in zip(trees, chosen, strict=True)),
        gain=t_mean([gain(tree, entry) for tree, entry in zip(trees, trained, strict=True)]),
        followed=t_mean([gain(tree, diagnosis_of(tree)) for tree in trees]),
        at_random=t_mean([fmean(gain(tree, entry) for entry in tree.spec.menu) for tree in trees]),
        best=t_mean([max(gain(tree, entry) for entry in tree.spec.menu) for tree in trees]),
        fallbacks=chosen.count(None),
    )


def with_root_report(tree: Tree, report: StageReport, label: str) -> Tree:
    """The tree with another report at its root."""
    return replace(tree, reports={**tree.reports, (): report}, label=label)


@dataclass(frozen=True)
class Altered:
    """How answers change with the evidence, and with changes that are no evidence: shares of the questions; None: not asked.

    Where one of two answers to compare is missing, the pair is left out.
    """

    same_totals: float  # right where only the causes differ, not the totals
    falsified: float | None  # kept where one number is a lie and all others say what they said
    renamed: float | None  # kept where the knob has another name and the entries other letters
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
    """The part of the pairs of answers in which both are the same; None where there are no two answers."""
    whole = [one == other for one, other in pairs if one is not None and other is not None]
    return fmean(whole) if whole else None
