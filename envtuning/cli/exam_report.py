"""What the command ``exam`` does: sittings with their progress, and the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import get_args

from rich.console import Console
from rich.table import Table

import engineers as making
from engineers.model.meter import BudgetExceeded
from engineers.redaction import redact
from engineers.shared.counts import counted
from envtuning.errors import SpecError
from envtuning.exam import sheet
from envtuning.exam.families import NAMED, NULL, Family, named
from envtuning.exam.hall import WITHOUT_A_MODEL, Hall, available_cores, papers
from envtuning.exam.reading import Reads
from envtuning.exam.scores import Score, by_root, scores
from envtuning.exam.session import Start
from envtuning.exam.sitting import BOUNDS, NEVER_ASK, SAMPLERS, Sitting, asks_a_model
from envtuning.show.console import FittingTable
from envtuning.show.pace import Pace
from envtuning.show.pulse import Pulse
from envtuning.studies.intervals import Interval, t_mean

MOST_JOBS = 3  # by default: with this process, these take less than 2 GB
RULE = "once"  # the simplest rule that reads: what a language model adds is its difference to this one


def examine(
    *, engineers: Sequence[str] | None, families: str, roots: Sequence[int], trainings: int, decisions: int, reads: str,
    max_cost: float | None, timeout: float, out: Path, json: Path | None, jobs: int | None, ray: bool, console: Console,
) -> list[Score]:  # fmt: skip
    """Carry out an exam, print its table and return its scores."""
    asked, chosen = list(WITHOUT_A_MODEL) if engineers is None else list(engineers), families_named(families)
    raise_unless_known(asked, reads)
    raise_unless_askable(asked, max_cost)
    starts = [Start(root, training) for root in roots for training in range(trainings)]
    read = next(one for one in get_args(Reads) if one == reads)
    wanted = papers(asked, chosen, starts, decisions=decisions, reads=read)
    hall = Hall(out, jobs=jobs_for(asked) if jobs is None else jobs, ray=ray, max_cost=max_cost, timeout=timeout)
    done = hall.kept()
    pace = Pace(sum(paper.key not in done for paper in wanted), noun="sittings")
    with telling(console, ahead(pace.of)) as tell:

        def ended(one: Sitting) -> None:
            last = f"{one.paper.engineer} on root {one.paper.root} of {one.paper.family.name}"
            tell(f"{pace.step()}; the last was {last}")

        found = hall.sittings(wanted, ended)
        tell("the table is made")
        told = scores(found)
    console.print(table(told, f"{counted(len(roots), 'root')}, {counted(trainings, 'training')} of each"))
    console.print(legend(told, chosen))
    for line in beside_a_rule(found):
        console.print(line, markup=False)
    if json is not None:
        sheet.write(found, json)
        console.print(f"sittings and scores: {json}")
    return told


def jobs_for(engineers: Sequence[str]) -> int:
    """Of sittings at a time, unless told. Who may ask a model is asked in this process: it may load the model, or sit at this terminal."""
    return min(available_cores(), MOST_JOBS) if set(engineers) <= set(NEVER_ASK) else 1


def ahead(sittings: int) -> str:
    return f"{counted(sittings, 'sitting')}; each root is trained before its first one"


@contextmanager
def telling(console: Console, first: str) -> Iterator[Callable[[str], None]]:
    """Says what goes on: in one moving line on a terminal, elsewhere in a line at first, and one after every few silent seconds."""
    if not console.is_terminal:
        console.print(first)
    with Pulse(console) as pulse, console.status(first) as status:
        pulse.now(first)

        def tell(what: str) -> None:
            status.update(what)
            pulse.now(what)

        yield tell


def families_named(names: str) -> list[Family]:
    """'all', or names separated by commas."""
    if names.strip() == "all":
        return list(NAMED.values())
    found = [named(part.strip()) for part in names.split(",") if part.strip()]
    if not found:
        raise SpecError(f"no family is named: give one of {', '.join(NAMED)}")
    if len(set(found)) < len(found):
        raise SpecError(f"families {names}: give none twice")
    return found


def raise_unless_known(names: Sequence[str], reads: str) -> None:
    """Before the first training, whatever would stop a later one."""
    if reads not in get_args(Reads):
        raise SpecError(f"reads={reads!r:.40}: give one of {', '.join(get_args(Reads))}")
    if len(set(names)) < len(names) or not names:
        raise SpecError(f"engineers {', '.join(names) or 'none'}: give at least one, none twice")
    for name in names:
        if name in BOUNDS:
            raise SpecError(f"{name!r} is in every exam: leave it out")


def raise_unless_askable(names: Sequence[str], max_cost: float | None) -> None:
    for name in names:
        if name in SAMPLERS:
            continue
        try:
            making.make(name, max_cost=max_cost).check_askable()
        except BudgetExceeded as error:
            raise SpecError(
                f"--max-cost cannot be kept, because no price is known for {redact(name)}: leave it out, and bound the questions, "
                "one before each stage but the first, by --roots, --trainings and --decisions"
            ) from error


def verified(path: Path, console: Console, jobs: int | None = None, ray: bool = False) -> bool:
    """Print what does not hold; whether all does."""
    result = sheet.read(path)
    of, faults = len(result.sittings), list[sheet.Fault]()
    at_once = min(of, jobs_for([])) if jobs is None else jobs  # nobody is asked who may ask a model
    with telling(console, ahead(of)) as tell, closing(sheet.verify(result, at_once, ray)) as played:
        for done, fault in enumerate(played, 1):
            tell(f"{min(done, of)} of {of} sittings")  # the scores come last
            if fault is not None:
                faults.append(fault)
    for fault in sorted(faults):
        console.print(f"sitting {fault.sitting}: {fault.why}" if fault.sitting < of else fault.why, markup=False)
    here = "equal" if result.machine == sheet.this_machine() else f"within {sheet.TOLERANCE}: made on {result.machine}"
    console.print(f"{path}: {counted(len(faults), 'fault')}" if faults else f"{path} holds: {counted(of, 'sitting')}, {here}", markup=False)  # fmt: skip
    return not faults


def table(found: Sequence[Score], title: str) -> FittingTable:
    """A row for each engineer: success and gain by family, and the part of what an oracle gains."""
    names = list(found[0].families)
    made = Table(title=f"The exam: {title}", title_justify="left")
    headings = ["engineer", "reads"]
    for name in names:
        headings += [f"{name}, %" if len(names) > 1 else "success, %", "over best open loop"]
    headings += ["of the oracle's gain", "failed"]
    for heading in headings:
        made.add_column(heading, justify="left" if heading in ("engineer", "reads") else "right", no_wrap=True)
    for one in found:
        cells = [one.engineer, "" if one.engineer in BOUNDS else one.reads]
        for name in names:
            of = one.families[name]
            cells += [f"{100 * of.success:.1f}{' ↓' if of.below_even else ''}", points(of.over_open_loop)]
        cells += [part_in_words(one.part), f"{one.failed} of {one.decided}" if one.failed else ""]
        made.add_row(*cells)
    return FittingTable(made)


def points(of: Interval) -> str:
    spread = "" if of.low is None or of.high is None else f" ({100 * of.low:+.1f}, {100 * of.high:+.1f})"
    return f"{100 * of.mean:+.1f}{spread}"


def part_in_words(part: Interval | None) -> str:
    if part is None:
        return "–"
    spread = "" if part.low is None or part.high is None else f" ({100 * part.low:.0f}, {100 * part.high:.0f})"
    return f"{100 * part.mean:.0f} %{spread}"


def legend(found: Sequence[Score], families: Sequence[Family]) -> str:
    said = [
        "Success over all tasks at the end; points over the best schedule that reads nothing. In brackets: two-sided 95 % intervals over roots."
    ]
    if any(of.below_even for one in found for of in one.families.values()):
        said.append("↓: worse than even draws: the two-sided 95 % interval of that difference is below 0.")
    if any(family.name == NULL for family in families):
        said.append("On null nothing can be gained; it does not count in the last column.")
    if failed := [one.engineer for one in found if one.failed]:
        said.append(
            f"Failed: decisions of {', '.join(failed)} that were refused or not taken; the shares before them stayed."
        )
    costs = [f"{one.engineer} US$ {one.cost:.2f}" for one in found if one.cost is not None]
    return " ".join([*said, *([f"Cost: {', '.join(costs)}."] if costs else [])])


def beside_a_rule(found: Sequence[Sitting]) -> list[str]:
    """A line for each engineer that has asked a model: its points over ``RULE`` on the same roots, family by family."""
    told = list[str]()
    families = dict.fromkeys(one.paper.family for one in found)
    for name in dict.fromkeys(
        one.paper.engineer for one in found if asks_a_model(one.paper.engineer) or one.usage.tokens
    ):
        gains = list[str]()
        for family in families:
            here = [one for one in found if one.paper.family == family]
            mine, theirs = (by_root([one for one in here if one.paper.engineer == who]) for who in (name, RULE))
            if theirs:
                over = t_mean([end - theirs[root] for root, end in mine.items()])
                gains.append(f"{points(over)} on {family.name}")
        missing = f"unknown, because {RULE} is not among the engineers"
        told.append(f"{redact(name)}, points over the rule {RULE}: {', '.join(gains) or missing}.")
    return told
