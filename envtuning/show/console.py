"""Shows a run in a terminal: its tables, and its progress while it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from engineers.report import Incident, SliceResult, trained_on, wilson
from engineers.shared.counts import apart, counted, in_words, money
from envtuning.loop.observer import Observer, Progress
from envtuning.runs.log import RunLog
from envtuning.runs.state import Choice, RunState, Stage
from envtuning.runs.tasks import Train, next_task
from envtuning.show.pace import Pace
from envtuning.worlds.episodes import pooled

PRINT_EVERY = 0.1  # of a stage, if the output is not a terminal
KEPT = "kept"
IN_TRAINING = "*"  # after the rates of a stage that was not validated
DATA_LINES = 4  # of a stage, where its table has no room for its slices
BAR_WIDTH = 20  # columns of an unfinished stage's bar; "1,234,567 / 2,000,000" is not much longer


@dataclass(frozen=True)
class FittingTable:
    """A table where there is room for it, else what says the same in less width: no heading and no figure is ever cut."""

    table: Table
    narrower: Sequence[RenderableType] = ()  # empty: the table's rows as blocks of lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if fits(self.table, console, options):
            yield self.table
        else:
            yield from self.narrower or in_blocks(self.table)


@dataclass(frozen=True)
class StagesInTurn:
    """A narrow column for each stage, a row for each slice. Where there is no room for all, the rows are told again for the next stages."""

    title: str
    caption: str
    slices: Sequence[str]
    columns: Mapping[str, Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        left = list(self.columns)
        while left:
            count = len(left)
            while count > 1 and not fits(self._of(left[:count]), console, options):
                count -= 1
            yield self._of(left[:count])
            left = left[count:]

    def _of(self, headings: Sequence[str]) -> Table:
        table = plain_table(self.title, ["slice", *headings], self.caption)
        for name, *cells in zip(self.slices, *(self.columns[heading] for heading in headings), strict=True):
            table.add_row(name, *cells)
        return table


def fits(table: Table, console: Console, options: ConsoleOptions) -> bool:
    """Whether there is room for all cells. A title and a caption may take more lines."""
    unbounded = options.update(max_width=10_000)
    return Measurement.get(console, unbounded, table).maximum <= options.max_width


def in_blocks(table: Table) -> Iterator[Text]:
    """The rows of a table one below the other, each cell in a line behind its heading."""
    if table.title:
        yield Text(str(table.title), style="bold")
    headings = [str(column.header) for column in table.columns]
    wide = max(map(len, headings))
    for name, *cells in zip(*(column.cells for column in table.columns)):
        yield Text(f"\n{name}")
        for heading, cell in zip(headings[1:], map(str, cells)):
            if cell.strip():
                more = "\n" + " " * (wide + 4)
                yield Text(f"  {heading:{wide}}  {cell.replace(chr(10), more)}")
    if table.caption:
        yield Text(f"\n{table.caption}")
    yield Text()


def plain_table(title: str, headings: Sequence[str], caption: str = "", *, left: int = 0) -> Table:
    """A table without a frame, which leaves the width to the figures; all but the first columns, ``left`` of them, stand to the right."""
    table = Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place < left else "right", no_wrap=True)
    return table


@dataclass(frozen=True)
class StageLine:
    """What the table of a run says of one stage."""

    name: str  # its number, and its own name or its config's author
    data: Sequence[str]
    spent: str | Text
    overall: Sequence[str] = ()
    rates: Mapping[str, str] = field(default_factory=dict)  # by slice
    begun: bool = True


def run_table(run: RunLog) -> FittingTable:
    """A row for each stage: its name or its config's author, its data, its cost, and its results on the validation suite, or else in training.

    Where slices are too many for columns, they are the rows of a second table.
    """
    spec, about = run.plan.spec, run.plan.world.about
    slices = list(run.plan.world.slices(run.plan.target))
    lines = [stage_line(run, number, slices) for number in range(max(len(spec.stages), len(run.state.stages)))]
    title = f"{run.name}: {spec.description or spec.name}"
    caption = f"{IN_TRAINING} in training" if any(IN_TRAINING in "".join(one.rates.values()) for one in lines) else ""
    common = ["stage", "data", in_words(run.plan.unit), *about.headings.values()]
    labels = [about.label(name) for name in slices]
    unfinished = next_task(run.plan, run.state) is not None

    def table_of(headings: Sequence[str], rows: Sequence[Sequence[str | Text]], caption: str) -> Table:
        table = plain_table(title, headings, caption, left=2)
        if unfinished:
            table.columns[2].min_width = BAR_WIDTH
        for line, row in zip(lines, rows, strict=True):
            table.add_row(*row, style=None if line.begun else "dim")
        return table

    by_slice = [[*cells(one, one.data), *(one.rates.get(name, "") for name in slices)] for one in lines]
    overall = [cells(one, shortened(one.data)) for one in lines]
    narrower: list[RenderableType] = [FittingTable(table_of(common, overall, ""))]
    by_stage = {
        str(number): [one.rates.get(name, "") for name in slices] for number, one in enumerate(lines) if one.rates
    }
    if by_stage:
        heading = f"{about.headings[about.objective]} by slice, after each stage"
        narrower.append(StagesInTurn(heading, caption, labels, by_stage))
    return FittingTable(table_of([*common, *labels], by_slice, caption), narrower)


def cells(line: StageLine, data: Sequence[str]) -> list[str | Text]:
    return [line.name, "\n".join(data), line.spent, *line.overall]


def shortened(data: Sequence[str]) -> list[str]:
    """The first lines of a stage's data, and how many more there are."""
    if len(data) <= DATA_LINES:
        return list(data)
    return [*data[: DATA_LINES - 1], f"and {len(data) - DATA_LINES + 1} more"]


def stage_line(run: RunLog, number: int, slices: Sequence[str]) -> StageLine:
    about, listed = run.plan.world.about, run.plan.spec.stage(number)
    stage = run.state.stages[number] if number < len(run.state.stages) else None
    written = not listed.asks
    name = f"{number} {listed.name if written and listed.name else author_of(run.state, number)}".strip()
    if stage is None:
        return StageLine(name, [], f"– / {listed.budget:,}", begun=False)
    if stage.done is None or stage.report is None:
        return StageLine(name, data_summary(run, stage), bar(stage, listed.budget))
    unvalidated = not stage.report.results
    told = trained_on(stage.report) if unvalidated else stage.report.results
    rates = {row.name: row.metrics.get(about.objective) for row in told}
    mark = IN_TRAINING if unvalidated else ""
    return StageLine(
        name,
        data_summary(run, stage),
        f"{stage.spent(run.plan.unit):,}",
        [percent(stage.done.metrics.get(metric), 1) for metric in about.headings],
        {name: percent(rates.get(name)) + mark for name in slices if name in rates},
    )


def author_of(state: RunState, number: int) -> str:
    """The author of the stage's config; ``KEPT`` if the engineer gave no usable one, so that the previous config continues."""
    if number >= len(state.stages):
        return ""
    chosen = state.stages[number].chosen
    return KEPT if chosen.incidents else chosen.engineer


def percent(rate: float | None, digits: int = 0) -> str:
    return "–" if rate is None else f"{rate:.{digits}%}"


def bar(stage: Stage, budget: int) -> Text:
    """A progress bar of an unfinished stage, from its metrics file."""
    spent = spent_so_far(stage)
    count = f"{spent:,} / {budget:,}"
    filled = round(BAR_WIDTH * min(1.0, spent / budget))
    drawn = ("━" * filled, "bar.complete"), ("─" * (BAR_WIDTH - filled), "bar.back")
    return Text.assemble(*drawn, f"\n{count}", justify="right", no_wrap=True, overflow="ignore")


def spent_so_far(stage: Stage) -> int:
    """The cost of an unfinished stage so far, from its metrics file."""
    lines = [line for line in stage.metrics() if "spent" in line]
    return int(lines[-1]["spent"]) if lines else 0


def data_summary(run: RunLog, stage: Stage) -> list[str]:
    """The stage's data in the world's words, one line for each slice."""
    return run.plan.world.summary(stage.config)


def test_table(run: RunLog) -> FittingTable | None:
    """The first and the last stage on the test suite, with 95 % intervals; None before the test was opened."""
    record, about = run.state.test, run.plan.world.about
    if record is None:
        return None
    objective, others = about.objective, [metric for metric in about.headings if metric != about.objective]
    word = about.headings[objective]
    last_stage = len(run.state.done) - 1
    compared = {"stage 0": record.first, f"stage {last_stage}": record.last}  # the same in a run of one stage
    if record.start is not None:
        compared = {"before": record.start} | compared
    headings = [
        "slice",
        f"{about.case}s",
        *(f"{word}, {when}" for when in compared),
        *(about.headings[metric] for metric in others),
    ]
    table = plain_table(f"test suite: {about.case}s that nobody saw before, 95 % intervals", headings)
    for number, last in enumerate(record.last):
        table.add_row(
            about.label(last.name),
            str(last.episodes),
            *(rate(rows[number], objective) for rows in compared.values()),
            *(percent(last.metrics.get(metric), 1) for metric in others),
        )
    if len(record.last) == 1:  # then its row is already the total
        return FittingTable(table)
    total = sum(row.episodes for row in record.last)
    columns = [*((rows, objective) for rows in compared.values()), *((record.last, metric) for metric in others)]
    table.add_section()
    in_all = [rate_with_interval(pooled(rows, metric), total) for rows, metric in columns]
    table.add_row("all", str(total), *in_all, style="bold")
    return FittingTable(table)


def rate(row: SliceResult, metric: str) -> str:
    value = row.metrics.get(metric)
    return "–" if value is None else rate_with_interval(value, row.episodes)


def rate_with_interval(value: float, episodes: int) -> str:
    low, high = wilson(value, episodes)
    return f"{value:.1%} [{low:.0%}, {high:.0%}]"


def gain_line(run: RunLog) -> str:
    """The run's result in one sentence; empty before the test was opened."""
    test, about = run.state.test, run.plan.world.about
    if test is None:
        return ""
    first, last = pooled(test.first, about.objective), pooled(test.last, about.objective)
    cases = sum(row.episodes for row in test.last)
    before = "" if test.start is None else f"{pooled(test.start, about.objective):.1%} before the first stage, "
    return (
        f"{about.headings[about.objective]} on {cases:,} unseen {about.case}s: {before}{first:.1%} after the first stage, "
        f"{last:.1%} after the last"
    )


def usage_line(run: RunLog) -> str:
    """The engineer's cost: proposals, tokens, dollars."""
    usage = run.state.usage()
    said = f"{counted(len(run.state.proposals), 'proposal')}, {usage.tokens:,} tokens, cost {money(usage.cost)}"
    return f"engineer {run.plan.spec.engineer.name}: {said}"


def summary(run: RunLog) -> Group:
    """All tables and lines about a run."""
    parts: list[RenderableType] = [run_table(run)]
    if (test := test_table(run)) is not None:
        parts += [test, gain_line(run)]
    if run.plan.spec.asks_an_engineer:
        parts.append(usage_line(run))
    incidents = run.state.incidents()
    if incidents:
        lines = "\n".join(f"stage {one.stage}, {one.kind}: {one.message}" for one in incidents)
        whole = Text(lines, no_wrap=False, overflow="fold")  # a console that does not break lines would cut them
        parts.append(Panel(whole, title="what went wrong and was survived", title_align="left", expand=False))
    return Group(*parts)


class ConsoleObserver(Observer):
    """Prints what happens; on a terminal the running stage has a bar that moves."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status = console.status("") if console.is_terminal else None
        self._printed = -1.0

    def run_began(self, run: RunLog) -> None:
        self.run = run
        self.console.print(f"run in {run.path}", style="bold")
        if isinstance(next_task(run.plan, run.state), Train) and (spent := spent_so_far(run.state.stages[-1])):
            stage, unit = run.state.stages[-1].number, in_words(run.plan.unit)
            self.console.print(f"stage {stage} was interrupted after {spent:,} {unit}: from its last checkpoint again")

    def stage_began(self, stage: Stage, allowance: int) -> None:
        author = author_of(self.run.state, stage.number)
        who = author if author == KEPT else f"by {'the file' if author in ('default', 'file') else author}"
        listed = self.run.plan.spec.stage(stage.number).name
        name = f" {listed}" if listed else ""
        unit = in_words(self.run.plan.unit)
        rest = f"{name} (config {who}; {max(0, allowance):,} {unit}): {'; '.join(data_summary(self.run, stage))}"
        self.console.print(Text.assemble((f"stage {stage.number}", "bold"), rest))
        self._printed = -1.0
        if self.status is not None:
            self._began = time.monotonic()
            self.status.start()

    def progressed(self, progress: Progress) -> None:
        part = min(1.0, progress.spent / max(1, progress.allowance))
        shown = " ".join(
            f"{name} {progress.metrics[name]:.3f}" for name in ("success_rate", "grad_norm") if name in progress.metrics
        )
        line = f"  {progress.spent:>9,} {in_words(progress.unit)}  {shown}"
        if self.status is not None:
            filled = round(part * 30)
            left = Pace(progress.allowance, progress.spent, self._began).left()
            self.status.update(f"{'━' * filled}[dim]{'━' * (30 - filled)}[/] {part:4.0%} {line}{left}")
        elif part - self._printed >= PRINT_EVERY:
            self._printed = part
            self.console.print(line)

    def validated(self, stage: Stage, metrics: dict[str, float]) -> None:
        headings = self.run.plan.world.about.headings
        said = ", ".join(f"{word} {percent(metrics.get(metric), 1)}" for metric, word in headings.items())
        self.console.print(f"  validation: {said}")

    def stage_ended(self, stage: Stage) -> None:
        self._stop()
        if done := stage.done:
            unit = self.run.plan.unit
            spent = f"{stage.spent(unit):,} {in_words(unit)}"
            self.console.print(f"  ended: {done.reason}; {spent}, {done.seconds:.0f} s")

    def engineer_asked(self, stage: Stage, name: str) -> None:
        self.console.print(Text.assemble("asking ", (name, "bold"), " …"))
        self._turn()

    def engineer_answered(self, stage: Stage, choice: Choice) -> None:
        self._stop()
        if choice.proposal and not choice.proposal.reasons:
            self.console.print("  nothing is changed")
            for line in choice.proposal.told_reasons():
                self.console.print(Text(f"  {line}"))
        for change in choice.proposal.reasons if choice.proposal else []:
            reason = f"  ({change.reason})" if change.reason else ""
            self.console.print(Text(f"  {change.path}: {' → '.join(apart(change.old, change.new))}{reason}"))

    def went_wrong(self, incident: Incident) -> None:
        self.console.print(Text.assemble((f"  {incident.kind}:", "yellow"), f" {incident.message}"))

    def test_opened(self, cases: int) -> None:
        self.console.print(f"opening the test suite: {counted(cases, self.run.plan.world.about.case)}")
        self._turn()

    def _turn(self) -> None:
        """On a terminal something moves while nothing is counted."""
        if self.status is not None:
            self.status.update("")
            self.status.start()

    def run_left(self) -> None:
        self._stop()

    def _stop(self) -> None:
        """Nothing moves any more, and the terminal's cursor is shown again."""
        if self.status is not None:
            self.status.stop()
