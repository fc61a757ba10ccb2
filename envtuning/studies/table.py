"""The table of comparisons: every arm's mean over its seeds, its tier, and its gain over arms of lower tiers.

Differences are paired by seed, on the seeds that all compared arms have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from engineers.plain.open_loop import OPEN_LOOP
from engineers.registry import tier_named
from engineers.shared.counts import money
from engineers.tiers import Tier
from envtuning.runs.sections import EngineerSpec
from envtuning.show.console import FittingTable, plain_table
from envtuning.studies.closed_loop import Gain, best_reader, gain, lowest
from envtuning.studies.intervals import FEWEST, Interval, t_mean
from envtuning.studies.outcomes import IGNITED, Outcome

MEANINGS = {  # of columns that need an explanation
    "tier": "the highest kind of information that an arm uses",
    "gain": "success minus that after the first stage",
    "− best open loop": "mean gain over the best arm that reads nothing (≥: its one-sided 95 % lower bound over all such arms, and the name of the best)",
    "− lower tiers": "the same over all arms of lower tiers",
    "ignited": f"share of seeds whose validation reached {IGNITED:.0%}, and their median cost until then",
    "tests": "percent of the run's cost that validation and probes took",
    "fallbacks": "answers after which the current config was kept, in all runs",
}


@dataclass(frozen=True)
class Known:
    """What is known of an arm before its runs."""

    tier: Tier
    tuning_runs: int = 0  # runs on other seeds that it was tuned on
    warms_up: bool = False  # whether easier stages, fixed beforehand, come before the target

    @classmethod
    def of(cls, engineer: EngineerSpec, tuning_runs: int = 0) -> Known:
        """What is known of an engineer. The model under training knows its weights."""
        name = engineer.name
        tier = Tier.WEIGHTS if name == "checkpoint" else tier_named(name, **engineer.options)
        open_loop = OPEN_LOOP.get(name)
        return cls(tier, tuning_runs, warms_up=tier == Tier.FAMILY if open_loop is None else open_loop.warms_up)


@dataclass(frozen=True)
class Row:
    """One arm over its seeds."""

    arm: str
    tier: Tier
    tuning_runs: int
    seeds: int
    success: Interval
    others: dict[str, Interval]  # the world's other rates
    gain: Interval  # success minus that after the first stage
    above_open_loop: Gain | None  # of an arm that reads
    above_lower_tiers: Gain | None  # if this differs from ``above_open_loop``
    against: dict[str, Interval]  # its success minus each baseline's
    ignited: float  # share of seeds whose validation ever reached IGNITED
    ignited_after: float | None  # budget spent until then, the median of those that did
    tokens: float  # mean per run
    cost: float | None  # US dollars; None where no price is known
    spent: dict[str, float]  # by unit, mean per run
    incidents: int  # of all runs together, like fallbacks; an engineer that always fails is the same as `fixed`
    fallbacks: int
    tests: float  # part of the cost that validation and probes took, the mean


Success = Mapping[str, Mapping[int, float]]  # by arm and seed


def success_of(outcomes: Sequence[Outcome]) -> Success:
    found: dict[str, dict[int, float]] = {}
    for one in outcomes:
        found.setdefault(one.arm, {})[one.seed] = one.success
    return found


def rows(outcomes: Sequence[Outcome], arms: Mapping[str, Known], baselines: Sequence[str]) -> list[Row]:
    """One row for each arm that has a run, in the order given."""
    success = success_of(outcomes)
    return [_row(name, outcomes, success, arms, baselines) for name in arms if name in success]


def headroom(outcomes: Sequence[Outcome], arms: Mapping[str, Known]) -> Gain | None:
    """The gain of the best arm that reads over the best that does not; None if one kind is missing."""
    success = success_of(outcomes)
    readers = [name for name in success if arms[name].tier.reads]
    blind = [name for name in success if not arms[name].tier.reads]
    columns = _paired(success, [*readers, *blind]) if readers and blind else {}
    if not any(columns.values()):
        return None
    return replace(best_reader(columns, readers, blind), matched=any(arms[name].warms_up for name in blind))


def _row(
    name: str, outcomes: Sequence[Outcome], success: Success, arms: Mapping[str, Known], baselines: Sequence[str]
) -> Row:
    own, known = [one for one in outcomes if one.arm == name], arms[name]
    blind = [other for other in success if known.tier.reads and not arms[other].tier.reads]
    lower = [other for other in success if arms[other].tier < known.tier]
    lit = [one.ignited_after for one in own if one.ignited_after is not None]
    costs = [one.cost for one in own]
    return Row(
        arm=name,
        tier=known.tier,
        tuning_runs=known.tuning_runs,
        seeds=len(own),
        success=t_mean([one.success for one in own]),
        others={metric: t_mean([one.others[metric] for one in own]) for metric in own[0].others},
        gain=t_mean([one.success - one.first for one in own]),
        above_open_loop=_above(name, blind, success),
        above_lower_tiers=None if set(lower) == set(blind) else _above(name, lower, success),
        against={
            base: t_mean([ours - theirs for ours, theirs in zip(*pair.values(), strict=True)])
            for base in baselines
            if base != name and base in success and (pair := _paired(success, [name, base]))[name]
        },
        ignited=len(lit) / len(own),
        ignited_after=median(lit) if lit else None,
        tokens=fmean(one.tokens for one in own),
        cost=None if None in costs else fmean(cost or 0.0 for cost in costs),
        spent={unit: fmean(one.spent.get(unit, 0) for one in own) for unit in own[0].spent},
        incidents=sum(one.incidents for one in own),
        fallbacks=sum(one.fallbacks for one in own),
        tests=fmean(one.tests for one in own),
    )


def _paired(success: Success, arms: Sequence[str]) -> dict[str, list[float]]:
    """The success of these arms on the seeds that all of them have."""
    seeds = [seed for seed in success[arms[0]] if all(seed in success[arm] for arm in arms)]
    return {arm: [success[arm][seed] for seed in seeds] for arm in arms}


def _above(name: str, others: Sequence[str], success: Success) -> Gain | None:
    columns = _paired(success, [name, *others])
    return gain(columns, name, others) if others and columns[name] else None


def cells(found: Sequence[Row], headings: Mapping[str, str], *, wide: bool) -> list[list[str]]:
    """The table as text, in percent, headings first. ``headings``: the world's rates, the objective first.

    A ``wide`` table fits on a page, not in a terminal. Empty columns are left out.
    """
    baselines = dict.fromkeys(base for row in found if wide for base in row.against)
    lines = [_line(row, headings, baselines, wide) for row in found]
    kept = [heading for heading in (lines[0] if lines else ()) if any(line[heading] for line in lines)]
    return [kept, *([line[heading] for heading in kept] for line in lines)]


def _line(row: Row, headings: Mapping[str, str], baselines: Iterable[str], wide: bool) -> dict[str, str]:
    """What each column says of an arm."""
    (_, objective), *others = headings.items()
    against = {f"− {base}": row.against.get(base) for base in baselines}
    return {
        "arm": row.arm,
        "tier": str(row.tier),
        "tuning runs": str(row.tuning_runs or ""),
        "n": str(row.seeds) if wide else "",
        objective: row.success.percent(),
        **{word: row.others[metric].percent() if metric in row.others else "" for metric, word in others},
        "gain": row.gain.percent(signed=True),
        "− best open loop": bounded(row.above_open_loop),
        "− lower tiers": bounded(row.above_lower_tiers) if wide or row.tier.reads else "",
        **{heading: "" if found is None else found.percent(signed=True) for heading, found in against.items()},
        "ignited": _ignition(row) if wide else "",
        "tests": f"{100 * row.tests:.1f}" if row.tests else "",
        "tokens": f"{row.tokens:,.0f}" if row.tokens else "",
        "cost": "" if row.cost == 0 else money(row.cost),
        "incidents": str(row.incidents or ""),
        "fallbacks": str(row.fallbacks or ""),
    }


def legend(lines: Sequence[Sequence[str]], found: Sequence[Row]) -> str:
    """The meanings of these columns and tiers."""
    said = [f"{heading}: {MEANINGS[heading]}" for heading in lines[0] if heading in MEANINGS]
    tiers = "; ".join(f"{int(tier)} {tier.meaning}" for tier in sorted({row.tier for row in found}))
    shown = any(row.seeds >= FEWEST for row in found)
    spread = "; ±: two-sided 95 % intervals by Student's t, for three seeds or more" if shown else ""
    few = " A table of fewer than three seeds decides nothing." if any(row.seeds < FEWEST for row in found) else ""
    said = [f"means over seeds{spread}", "differences are paired by seed", *said]
    return f"{'; '.join(said)}. Tiers, each of which includes the lower ones: {tiers}.{few}"


def bounded(found: Gain | None) -> str:
    """+2.9 (≥ -2.4, ladder)."""
    if found is None:
        return ""
    bound = "" if found.low is None else f"≥ {lowest(found.low)}, "
    return f"{100 * found.mean:+.1f} ({bound}{found.above})"


def _ignition(row: Row) -> str:
    after = "" if row.ignited_after is None else f" after {row.ignited_after / 1000:.0f}k"
    return f"{row.ignited:.0%}{after}"


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """The table for a page: headings, then rows, with the arms' names as code."""
    head, *body = lines
    ruled = [head, ["---", *["---:"] * (len(head) - 1)], *([f"`{name}`", *more] for name, *more in body)]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled)


def drawn(lines: Sequence[Sequence[str]], title: str, caption: str) -> FittingTable:
    """The table for a terminal; blocks of lines where it is too wide for one."""
    head, *body = lines
    found = plain_table(title, head, caption, left=1)
    for line in body:
        found.add_row(*line)
    return FittingTable(found)
