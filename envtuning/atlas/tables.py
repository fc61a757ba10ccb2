"""The atlas's tables, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from engineers.shared.counts import money
from envtuning.atlas.evidence import by_weakness, confirmed, gains, lead
from envtuning.atlas.questions import Answers
from envtuning.atlas.rows import Agreement, Row, above_open_loop, headroom, reliability
from envtuning.atlas.store import Tree
from envtuning.show.console import percent, plain_table
from envtuning.studies.closed_loop import in_words
from envtuning.studies.table import bounded

ABOVE = (  # the legend of a table's columns
    "tier: the highest kind of information used: 0 (the config's class), 1 (the target), 3 (other seeds), 5 (success for each slice), 10 "
    "(hindsight); − best open loop: the mean gain over the best row that reads nothing, with the one-sided 95 % bound over all such rows, and the "
    "best one's name; distance: from the engineer's configs to the entries it got, a median; above the bound there is no score"
)


def scores_table(trees: Sequence[Tree], shown: Sequence[Row], all_rows: Sequence[Row]) -> Table:
    """``all_rows``: the rows for the gains, including those that are not shown."""
    spec = trees[0].spec
    found = plain_table(
        f"{spec.name}: {len(trees)} seeds, {spec.depth} stages from a menu of {len(spec.menu)}, % of the test at the leaf",
        f"means over seeds, Student's t intervals; {ABOVE}",
    )
    for heading in ("who chooses", "tier", "success", "− best open loop", "distance", "fallbacks", "tokens", "cost"):
        found.add_column(heading, justify="left" if heading == "who chooses" else "right", no_wrap=True)
    for row in shown:
        found.add_row(*cells(row, all_rows))
    return found


def cells(row: Row, rows: Sequence[Row]) -> list[str]:
    near = row.nearness
    return [
        row.name,
        str(int(row.tier)),
        row.success.percent() if row.counts else "no score",
        bounded(above_open_loop(row, rows)),
        "" if near is None else f"{near.median:.2f} (bound {near.bound:.2f})",
        str(row.fallbacks or ""),
        f"{row.tokens:,}" if row.tokens else "",
        "" if row.cost == 0 else money(row.cost),
    ]


def notes(trees: Sequence[Tree], rows: Sequence[Row], agree: Agreement | None = None) -> list[str]:
    said = [in_words(headroom(trees))]
    if len(trees) > 1:
        found = reliability(trees)
        more = "" if found.ships else f"; {found.seeds_needed} seeds would make .8"
        said.append(
            f"Reliability of paths across seeds: {found.of_the_mean:.2f} of the mean of {found.seeds} seeds ({found.of_one_seed:.2f} "
            f"of one, {found.upper_half:.2f} among the better half of the paths){more}."
        )
    said += [
        f"{row.name}: {row.fallbacks} answers were not usable, the first: {row.fault}" for row in rows if row.fault
    ]
    if agree is not None and agree.pairs:
        said.append(
            f"Real runs tell {agree.resolved} of {agree.pairs} pairs of engineers apart; the atlas orders {agree.agree:g} of "
            "these alike."
        )
    return said


def markdown(trees: Sequence[Tree], rows: Sequence[Row], agree: Agreement | None) -> str:
    """The table for a page."""
    lines = [["who chooses", "tier", "% of the test", "− best open loop", "distance"], ["---", *["---:"] * 4]]
    lines += [cells(row, rows)[:5] for row in rows]
    written = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    said = f"{len(trees)} seeds, means and 95 % intervals; {ABOVE}."
    headline, *others = notes(trees, rows, agree)
    return "\n\n".join([written, " ".join([said, f"**{headline}**", *others])]) + "\n"


def gains_table(trees: Sequence[Tree]) -> Table:
    found, sure = gains(trees), by_weakness(confirmed(trees))
    drawn = plain_table(
        "gain of one stage on an entry over keeping the config, for a policy that lacks one skill, in points",
        "ahead: the diagnosis minus the entry that comes closest; confirmed: ahead of every other entry, with each interval clear of "
        "zero; engineers are asked only about confirmed weaknesses",
    )
    for heading in ("lacks", *trees[0].spec.menu, "ahead", "confirmed"):
        drawn.add_column(heading, justify="left" if heading == "lacks" else "right")
    for weak, group in by_weakness(trees).items():
        over, ahead = lead(group)
        brought = [one.percent(signed=True) for one in found[weak].values()]
        drawn.add_row(weak, *brought, f"{ahead.percent(signed=True)} ({over})", "yes" if weak in sure else "no")
    return drawn


def evidence_table(found: Mapping[str, Answers]) -> Table:
    known, _ = next(iter(found.values()))
    said = [
        f"{weak} ({one.asked} policies): following the diagnosis gains {one.followed.percent(signed=True)}, choosing evenly "
        f"{one.evenly.percent(signed=True)}, evenly without keep {one.evenly_but_keep.percent(signed=True)}, the best entry "
        f"{one.best.percent(signed=True)}"
        for weak, one in known.items()
    ]
    drawn = plain_table(
        "; ".join(said) or "no weakness is confirmed",
        "right: names the missing skill; same totals: right although all totals are equal; kept: the answer stays after one "
        "false number, and after other names and letters",
    )
    for heading in ("engineer", "right", "gain", "same totals", "kept, a lie", "kept, renamed", "fallbacks"):
        drawn.add_column(heading, justify="left" if heading == "engineer" else "right")
    for name, (known, two) in found.items():
        right = "; ".join(f"{weak} {percent(one.right)}" for weak, one in known.items())
        gained = "; ".join(f"{weak} {one.gain.percent(signed=True)}" for weak, one in known.items())
        lie, renamed = ("" if part is None else percent(part) for part in (two.falsified, two.renamed))
        unusable = two.fallbacks + sum(one.fallbacks for one in known.values())
        drawn.add_row(name, right, gained, percent(two.same_totals), lie, renamed, str(unusable or ""))
    return drawn
