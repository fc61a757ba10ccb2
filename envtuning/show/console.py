"""Shows a run in a terminal: its tables, and its progress while it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from io import StringIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from engineers.report import Incident, SliceResult, trained_on, wilson
from engineers.shared.counts import counted, money, short
from envtuning.loop.observer import Observer, Progress
from envtuning.runs.log import RunLog
from envtuning.runs.state import Choice, RunState, Stage
from envtuning.runs.tasks import Train, next_task
from envtuning.show.pace import Pace
from envtuning.worlds.episodes import pooled

PRINT_EVERY = 0.1  # of a stage, if the output is not a terminal
HTML_WIDTH = 160
KEPT = "kept"
IN_TRAINING = "*"  # after the rates of a stage that was not validated
BAR_WIDTH = 20  # columns of an unfinished stage's bar; "1,234,567 / 2,000,000" is not much longer


class FittingTable:
    """A table where there is room for it, else its rows as blocks: no heading and no figure is ever cut."""

    def __init__(self, table: Table, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.table, self.headings, self.rows = table, headings, rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unbounded = options.update(max_width=10_000)
        whole = Measurement.get(console, unbounded, self.table).maximum
        if whole <= options.max_width:
            yield self.table
            return
        if self.table.title:
            yield Text(str(self.table.title), style="bold")
        wide = max(len(heading) for heading in self.headings)
        for name, *cells in self.rows:
            yield Text(f"\n{name}")
            yield from (
                Text(f"  {heading:{wide}}  {cell}") for heading, cell in zip(self.headings[1:], cells) if cell.strip()
            )
        if self.table.caption:
            yield Text(f"\n{self.table.caption}")


def plain_table(title: str, caption: str | None = None) -> Table:
    """A table without a frame, which leaves the width to the figures."""
    return Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def run_table(run: RunLog) -> Table:
    """A row for each stage: its name or its config's author, its data, its cost, and its results on the validation suite, or else in training."""
    spec, world, stages = run.plan.spec, run.plan.world, run.state.stages
    about = world.about
    unfinished = next_task(run.plan, run.state) is not None
    table = plain_table(f"{run.name}: {spec.description or spec.name}")
    for heading in ("stage", "data"):
        table.add_column(heading, no_wrap=True)
    table.add_column(
        in_words(run.plan.unit), justify="right", no_wrap=True, min_width=BAR_WIDTH if unfinished else None
    )
    slices = list(world.slices(run.plan.target))
    for heading in (*about.headings.values(), *(about.label(name) for name in slices)):
        table.add_column(heading, justify="right", no_wrap=True)
    for number in range(max(len(spec.stages), len(stages))):
        listed, stage = spec.stage(number), stages[number] if number < len(stages) else None
        written = not listed.asks
        name = f"{number} {listed.name if written and listed.name else author_of(run.state, number)}".strip()
        if stage is None:
            table.add_row(name, "", f"– / {listed.budget:,}", style="dim")
        elif stage.done is None or stage.report is None:
            table.add_row(name, "\n".join(data_summary(run, stage)), bar(stage, listed.budget))
        else:
            unvalidated = not stage.report.results
            told = trained_on(stage.report) if unvalidated else stage.report.results
            rates = {row.name: row.metrics.get(about.objective) for row in told}
            mark = IN_TRAINING if unvalidated else ""
            table.caption = f"{mark} in training" if unvalidated else table.caption
            overall = [percent(stage.done.metrics.get(metric), 1) for metric in about.headings]
            spent = f"{stage.spent(run.plan.unit):,}"
            cells = [percent(rates.get(name)) + mark if name in rates else "" for name in slices]
            table.add_row(name, "\n".join(data_summary(run, stage)), spent, *overall, *cells)
    return table


def author_of(state: RunState, number: int) -> str:
    """The author of the stage's config; ``KEPT`` if the engineer gave no usable one, so that the previous config continues."""
    if number >= len(state.stages):
        return ""
    chosen = state.stages[number].chosen
    return KEPT if chosen.incidents else chosen.engineer


def percent(rate: float | None, digits: int = 0) -> str:
    return "–" if rate is None else f"{rate:.{digits}%}"


def in_words(name: str) -> str:
    return name.replace("_", " ")


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
    return run.plan.world.summary(stage.chosen.config if stage.trained_on is None else stage.trained_on)


def test_table(run: RunLog) -> Table | None:
    """The first and the last stage on the test suite, with 95 % intervals; None before the test was opened."""
    record, about = run.state.test, run.plan.world.about
    if record is None:
        return None
    objective, others = about.objective, [metric for metric in about.headings if metric != about.objective]
    word = about.headings[objective]
    table = plain_table(f"test suite: {about.case}s that nobody saw before, 95 % intervals")
    last_stage = len(run.state.done) - 1
    compared = {"stage 0": record.first, f"stage {last_stage}": record.last}  # the same in a run of one stage
    if record.start is not None:
        compared = {"before": record.start} | compared
    for heading in (
        "slice",
        f"{about.case}s",
        *(f"{word}, {when}" for when in compared),
        *(about.headings[metric] for metric in others),
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, last in enumerate(record.last):
        table.add_row(
            about.label(last.name),
            str(last.episodes),
            *(rate(rows[number], objective) for rows in compared.values()),
            *(percent(last.metrics.get(metric), 1) for metric in others),
        )
    if len(record.last) == 1:  # then its row is already the total
        return table
    total = sum(row.episodes for row in record.last)
    columns = [*((rows, objective) for rows in compared.values()), *((record.last, metric) for metric in others)]
    table.add_section()
    cells = [rate_with_interval(pooled(rows, metric), total) for rows, metric in columns]
    table.add_row("all", str(total), *cells, style="bold")
    return table


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


def as_html(run: RunLog) -> str:
    """The summary for a notebook."""
    paper = Console(
        record=True,
        file=StringIO(),
        force_jupyter=False,  # in a notebook Rich would display what is printed here, too
        width=HTML_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
    )
    paper.print(Text(str(run.path), "bold"))
    paper.print(summary(run))
    return paper.export_html(
        inline_styles=True, code_format='<pre style="line-height:1.2;overflow-x:auto">{code}</pre>'
    )


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
        if self.status is not None:
            self.status.stop()
        if done := stage.done:
            unit = self.run.plan.unit
            spent = f"{stage.spent(unit):,} {in_words(unit)}"
            self.console.print(f"  ended: {done.reason}; {spent}, {done.seconds:.0f} s")

    def engineer_asked(self, stage: Stage, name: str) -> None:
        self.console.print(Text.assemble("asking ", (name, "bold"), " …"))
        self._turn()

    def engineer_answered(self, stage: Stage, choice: Choice) -> None:
        if self.status is not None:
            self.status.stop()
        if choice.proposal and not choice.proposal.reasons:
            self.console.print("  nothing is changed")
        for change in choice.proposal.reasons if choice.proposal else []:
            reason = f"  ({change.reason})" if change.reason else ""
            self.console.print(Text(f"  {change.path}: {short(change.old)} → {short(change.new)}{reason}"))

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
        if self.status is not None:
            self.status.stop()  # shows the terminal's cursor again
