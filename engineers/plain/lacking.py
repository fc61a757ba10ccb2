"""Finds what a policy lacks from the places of its failures, and the option of a menu that gives most of it.

A *lack* is a part of the episodes that fails while the rest succeeds: some slices, or the episodes that have something in common
(``StageReport.splits``). If no part stands out, it is the kind of failure
that does. If no option mentions that kind, weaker evidence counts. A slice's success is the median of its rate, its failures
and its parts, so that one false number changes nothing.

An option with a written meaning ("5×5 50%, hole ratio 0.3") counts by its numbers beside the lack's words. The names and letters of
the choice are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, median

from engineers.plain.causes import words
from engineers.plain.signals import variance
from engineers.report import SliceResult, Split, StageReport, wilson

CLEAR = 0.3  # least difference in success between the failing part and the rest
STANDS_OUT = 1.5  # a kind of failure stands out from this many times its even part
SAYS_NOTHING = words("a is are where with the of no valid needed")
FAR, DISTANCE = words("far"), words("distance")  # what is far has a large distance
PHRASE = re.compile(r"([A-Za-z][A-Za-z ]*?) (\d+(?:\.\d+)?)(?![\d%×])")
PART_OF_DATA = re.compile(r"(\S+) (\d+(?:\.\d+)?)%")
Compared = Callable[[Sequence[Split], Sequence[Split]], tuple[float, float]]  # a part's success and that of the rest


@dataclass(frozen=True)
class Lack:
    """``failing`` and ``others`` are the success on the lack and elsewhere; slices or words name the data to increase."""

    name: str
    failing: float
    others: float
    slices: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()
    number: float | None = None  # in the part's own name: the 3 of 3_agents

    @property
    def size(self) -> float:
        return self.others - self.failing

    @property
    def reason(self) -> str:
        return f"{self.name}: success {self.failing:.2f} there, {self.others:.2f} elsewhere"

    def given_by(self, meaning: str) -> float | None:
        """The amount of it in an option, by the option's meaning; None if the meaning does not mention it."""
        if self.slices:
            shares = [(label, float(part)) for label, part in PART_OF_DATA.findall(meaning)]
            return sum(part for label, part in shares if _number_or_name(label) in self.slices) if shares else None
        values = [float(value) for phrase, value in PHRASE.findall(meaning) if words(phrase) & self.words]
        if not values:
            return None
        return fmean(values) if self.number is None else fmean(value == self.number for value in values)


def answer(report: StageReport, meanings: Mapping[str, str]) -> tuple[str, Lack] | None:
    """The option against the first lack that any option mentions, and this lack."""
    for lack in lacks_of(report):
        if (option := option_against(lack, meanings)) is not None:
            return option, lack
    return None


def lacks_of(report: StageReport) -> Iterator[Lack]:
    """From the surest on: parts and slices that differ by all the evidence, the kind of failure that stands out, parts that differ
    by their rates, the part that this kind's name mentions, and parts whose difference is only above chance.
    """
    yield from _largest([*_in_parts(report.splits, _sure), *_in_slices(report)])
    kind = _in_kinds(report.results)
    if kind:
        yield kind
    told = _in_parts(report.splits, _told)
    above_chance = [lack for lack, least in zip(told, _in_parts(report.splits, _chance), strict=True) if least.size > 0]
    yield from _largest(above_chance)
    if kind:
        yield from _largest([lack for lack in told if lack.size > 0 and lack.words & kind.words], 0.0)
    yield from _largest(above_chance, 0.0)


def _largest(lacks: Sequence[Lack], least: float = CLEAR) -> list[Lack]:
    """The largest of those of this size; none if none has it."""
    return [max(lacks, key=lambda lack: round(lack.size, 9))] if lacks and max(x.size for x in lacks) >= least else []


def option_against(lack: Lack, meanings: Mapping[str, str]) -> str | None:
    """The option that gives most of the lack; None if no option mentions it, or all give the same."""
    given = {option: amount for option, said in meanings.items() if (amount := lack.given_by(said)) is not None}
    if not given or (len(given) > 1 and len(set(given.values())) == 1):
        return None
    best = max(given.values())
    return min((option for option in given if given[option] == best), key=lambda option: meanings[option])


def _in_parts(splits: Mapping[str, Mapping[str, Split]], compared: Compared) -> list[Lack]:
    """Of each part, over all slices that have it: its success, and that of all other parts of its kind."""
    names = dict.fromkeys(name for parts in splits.values() for name in parts)
    found = []
    for name in names:
        inside = [parts[name] for parts in splits.values() if name in parts]
        rest = [
            split
            for parts in splits.values()
            if name in parts
            for other, split in parts.items()
            if other != name and _kind(other) == _kind(name)
        ]
        if rest and _words_of(name):
            found.append(
                Lack(
                    name.replace("_", " "),
                    *compared(inside, rest),
                    words=_words_of(name),
                    number=_number_in(name),
                )
            )
    return found


def _in_slices(report: StageReport) -> list[Lack]:
    """The slices below the middle of the best and the worst, against the others."""
    success = {row.name: _success(row, report) for row in report.results if row.episodes}
    if len(success) < 2:
        return []
    middle = (max(success.values()) + min(success.values())) / 2
    low = tuple(name for name, rate in success.items() if rate < middle)
    high = [rate for rate in success.values() if rate >= middle]
    if not low:
        return []
    return [Lack(f"slices {', '.join(low)}", fmean(success[name] for name in low), fmean(high), slices=low)]


def _in_kinds(results: Sequence[SliceResult]) -> Lack | None:
    counts: dict[str, int] = {}
    for row in results:
        for kind, count in row.failures.items():
            counts[kind] = counts.get(kind, 0) + count
    total, episodes = sum(counts.values()), sum(row.episodes for row in results)
    if not total or not episodes:
        return None
    kind = max(sorted(counts), key=lambda one: counts[one])
    if len(counts) > 1 and counts[kind] * len(counts) < STANDS_OUT * total:
        return None
    return Lack(f"failures by {kind.replace('_', ' ')}", 1 - counts[kind] / episodes, 1.0, words=_words_of(kind))


def _success(row: SliceResult, report: StageReport) -> float:
    """The median of the success figures of a slice."""
    parts = report.splits.get(row.name, {}).values()
    told = [1 - sum(row.failures.values()) / row.episodes]
    told += [rate] if (rate := row.metrics.get(report.objective)) is not None else []
    told += [sum(part.succeeded for part in parts) / sum(part.episodes for part in parts)] if parts else []
    return median(told) if len(told) > 2 else told[0]


def _sure(inside: Sequence[Split], rest: Sequence[Split]) -> tuple[float, float]:
    """The nearest ends of their intervals."""
    return wilson(*_rate(inside))[1], wilson(*_rate(rest))[0]


def _told(inside: Sequence[Split], rest: Sequence[Split]) -> tuple[float, float]:
    """Their rates."""
    return _rate(inside)[0], _rate(rest)[0]


def _chance(inside: Sequence[Split], rest: Sequence[Split]) -> tuple[float, float]:
    """As near to each other as the 95 % interval of their difference allows."""
    (low, n_low), (high, n_high) = _rate(inside), _rate(rest)
    return low + 1.96 * sqrt(variance(low, n_low) + variance(high, n_high)), high


def _rate(splits: Sequence[Split]) -> tuple[float, int]:
    episodes = sum(split.episodes for split in splits)
    return sum(split.succeeded for split in splits) / episodes, episodes


def _kind(name: str) -> frozenset[str]:
    """The common name of parts that exclude each other: 2_agents and 3_agents, a wait is needed and no wait is needed."""
    return words(_without_numbers(name)) - _OPPOSITES


def _words_of(name: str) -> frozenset[str]:
    """Its significant words; empty for a part that only lacks what its opposite has, because no knob gives more of it."""
    if "no" in name.lower().split("_"):
        return frozenset()
    found = words(_without_numbers(name)) - SAYS_NOTHING
    return found | DISTANCE if found >= FAR else found


def _without_numbers(name: str) -> str:
    return re.sub(r"\d+", " ", name)


_OPPOSITES = words("a no near far")


def _number_in(name: str) -> float | None:
    found = re.search(r"\d+", name)
    return float(found[0]) if found else None


def _number_or_name(label: str) -> str:
    """The slice that a label is of: 5×5 is 5."""
    found = re.match(r"(\d+)×\d+$", label)
    return found[1] if found else label
