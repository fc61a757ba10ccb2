"""What a run looks like in a terminal: its tables, and its progress while it goes."""

from __future__ import annotations

import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from engineers.report import Incident, SliceResult, wilson
from envtuning.loop.observer import Observer, Progress
from envtuning.runs.folder import Answer, RunFolder, StageFolder, next_task
from envtuning.worlds.lakes.episodes import pooled

PRINT_EVERY = 0.1  # of a stage, where the output is no terminal
LOG_WIDTH = 120  # columns, where the output is no terminal
BAR_WIDTH = 20  # columns of an unfinished stage's bar; "1,234,567 / 2,000,000" is not much longer


def make_console() -> Console:
    """For tables and sentences: no line is broken but in tables, and a log file is not taken for 80 columns.

    Square brackets are themselves, not markup: engineers, files and error messages write what they like.
    """
    return Console(soft_wrap=True, markup=False, emoji=False, width=None if sys.stdout.isatty() else LOG_WIDTH)


def print_error(kind: str, message: str) -> None:
    """One sentence on the error stream, word for word."""
    Console(stderr=True, soft_wrap=True).print(Text.assemble((f"{kind}:", "red"), f" {message}"))


def plain_table(title: str, caption: str | None = None) -> Table:
    """No frame: the width is for figures."""
    return Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        title_style="bold",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def run_table(run: RunFolder) -> Table:
    """A row per stage, by its name or its config's author: what it dealt, cost, and reached on the validation suite."""
    spec = run.spec
    table = plain_table(f"{run.name}: {spec.description or spec.name}")
    for heading in ("stage", "data"):
        table.add_column(heading, no_wrap=True)
    table.add_column("env steps", justify="right", no_wrap=True, min_width=BAR_WIDTH if next_task(run) else None)
    for heading in ("valid", "optimal"):
        table.add_column(heading, justify="right", no_wrap=True)
    sizes = [str(size) for size in sorted(spec.target.slices)]
    for size in sizes:
        table.add_column(f"{size}×{size}", justify="right", no_wrap=True)
    for number, plan in enumerate(spec.stages):
        stage = run.stage(number)
        chosen, done, report = stage.config, stage.done, stage.report
        written = not isinstance(plan.config, str)
        name = f"{number} {plan.name if written and plan.name else chosen.engineer if chosen else ''}".strip()
        if chosen is None:
            table.add_row(name, "", f"– / {plan.budget:,}", style="dim")
        elif done is None or report is None:
            table.add_row(name, "\n".join(data_summary(stage)), bar(stage, plan.budget))
        else:
            per_size = {row.name: f"{row.metrics['valid_rate']:.0%}" for row in report.results}
            overall = (f"{done.metrics['valid_rate']:.1%}", f"{done.metrics['optimal_rate']:.1%}")
            cells = [per_size.get(size, "") for size in sizes]
            table.add_row(name, "\n".join(data_summary(stage)), f"{done.env_steps:,}", *overall, *cells)
    return table


def bar(stage: StageFolder, budget: int) -> RenderableType:
    """How far an unfinished stage has come, from its metrics file."""
    lines = [line for line in stage.metrics() if "spent" in line]
    spent = int(lines[-1]["spent"]) if lines else 0
    return Group(ProgressBar(total=budget, completed=min(spent, budget), width=BAR_WIDTH), f"{spent:,} / {budget:,}")


def data_summary(stage: StageFolder) -> list[str]:
    """What the stage's config deals, a size a line: '4×4 80 %, holes .10' is 80 % of the data at a hole ratio of 0.10."""
    report, chosen = stage.report, stage.config
    if chosen is None:
        return []
    slices = report.config["slices"] if report else chosen.config.model_dump(mode="json")["slices"]
    total = sum(piece["share"] for piece in slices.values()) or 1.0
    dealt = sorted(
        ((int(size), piece) for size, piece in slices.items() if piece["share"] > 0), key=lambda pair: pair[0]
    )
    return [f"{size}×{size} {piece['share'] / total:.0%}, {_knobs(piece)}" for size, piece in dealt]


def _knobs(piece: dict[str, Any]) -> str:
    waits = "" if piece["wait_ratio"] is None else f", waits {_ratio(piece['wait_ratio'])}"
    return f"holes {_ratio(piece['hole_ratio'])}{waits}"


def _ratio(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def test_table(run: RunFolder) -> Table | None:
    """First against last stage on the test suite, with 95 % intervals; None before the test was opened."""
    record = run.test
    if record is None:
        return None
    table = plain_table("test suite: boards that nobody saw before, 95 % intervals")
    for heading in (
        "size",
        "boards",
        "valid, stage 0",
        f"valid, stage {len(run.spec.stages) - 1}",
        "optimal",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for first, last in zip(record.first, record.last, strict=True):
        table.add_row(first.name, str(last.episodes), rate(first), rate(last), f"{last.metrics['optimal_rate']:.1%}")
    total = sum(row.episodes for row in record.last)
    cells = [
        rate_with_interval(pooled(rows, metric), total)
        for rows, metric in ((record.first, "valid_rate"), (record.last, "valid_rate"), (record.last, "optimal_rate"))
    ]
    table.add_section()
    table.add_row("all", str(total), *cells, style="bold")
    return table


def rate(row: SliceResult, metric: str = "valid_rate") -> str:
    return rate_with_interval(row.metrics[metric], row.episodes)


def rate_with_interval(value: float, episodes: int) -> str:
    low, high = wilson(value, episodes)
    return f"{value:.1%} [{low:.0%}, {high:.0%}]"


def gain_line(run: RunFolder) -> str:
    """The run in one sentence; empty before the test was opened."""
    if run.test is None:
        return ""
    first, last = pooled(run.test.first), pooled(run.test.last)
    boards = sum(row.episodes for row in run.test.last)
    return f"valid on {boards:,} unseen boards: {first:.1%} after the first stage, {last:.1%} after the last"


def usage_line(run: RunFolder) -> str:
    """What the engineer took: tokens, cost, questions."""
    answers = [stage.answer for stage in run.done_stages if stage.answer]
    usages = [answer.proposal.usage for answer in answers if answer.proposal]
    tokens = sum(usage.prompt_tokens + usage.completion_tokens for usage in usages)
    costs = [usage.cost for usage in usages]
    cost = "unknown" if any(one is None for one in costs) else f"${sum(one or 0.0 for one in costs):.4f}"
    return f"engineer {run.spec.engineer.name}: {counted(len(usages), 'proposal')}, {tokens:,} tokens, cost {cost}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def summary(run: RunFolder) -> Group:
    """All that there is to say about a run."""
    parts: list[RenderableType] = [run_table(run)]
    if (test := test_table(run)) is not None:
        parts += [test, gain_line(run)]
    if any(stage.config == "engineer" for stage in run.spec.stages):
        parts.append(usage_line(run))
    incidents = run.incidents()
    if incidents:
        lines = "\n".join(f"stage {one.stage}, {one.kind}: {one.message}" for one in incidents)
        parts.append(Panel(lines, title="what went wrong and was survived", title_align="left", expand=False))
    return Group(*parts)


class ConsoleObserver(Observer):
    """Prints what happens; on a terminal the running stage has a bar that moves."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.status = console.status("") if console.is_terminal else None
        self._printed = -1.0

    def run_began(self, run: RunFolder) -> None:
        self.console.print(f"run in {run.path}", style="bold", highlight=False)

    def stage_began(self, stage: StageFolder, allowance: int) -> None:
        chosen = stage.config
        who = chosen.engineer if chosen else "?"
        rest = f" (config by {who}; {allowance:,} env steps): {'; '.join(data_summary(stage))}"
        self.console.print(Text.assemble((f"stage {stage.number}", "bold"), rest))
        self._printed = -1.0
        if self.status is not None:
            self.status.start()

    def progressed(self, progress: Progress) -> None:
        part = min(1.0, progress.env_steps / max(1, progress.allowance))
        shown = " ".join(
            f"{name} {progress.metrics[name]:.3f}" for name in ("success_rate", "grad_norm") if name in progress.metrics
        )
        line = f"  {progress.env_steps:>9,} env steps  {shown}"
        if self.status is not None:
            filled = round(part * 30)
            self.status.update(f"{'━' * filled}[dim]{'━' * (30 - filled)}[/] {part:4.0%} {line}")
        elif part - self._printed >= PRINT_EVERY:
            self._printed = part
            self.console.print(line)

    def validated(self, stage: StageFolder, metrics: dict[str, float]) -> None:
        self.console.print(f"  validation: valid {metrics['valid_rate']:.1%}, optimal {metrics['optimal_rate']:.1%}")

    def stage_ended(self, stage: StageFolder) -> None:
        if self.status is not None:
            self.status.stop()
        if done := stage.done:
            self.console.print(f"  ended: {done.reason}; {done.env_steps:,} env steps, {done.seconds:.0f} s")

    def engineer_asked(self, stage: StageFolder, name: str) -> None:
        self.console.print(Text.assemble("asking ", (name, "bold"), " …"))

    def engineer_answered(self, stage: StageFolder, answer: Answer) -> None:
        for change in answer.proposal.reasons if answer.proposal else []:
            reason = f"  ({change.reason})" if change.reason else ""
            self.console.print(Text(f"  {change.path}: {_short(change.old)} → {_short(change.new)}{reason}"))

    def went_wrong(self, incident: Incident) -> None:
        self.console.print(Text.assemble((f"  {incident.kind}:", "yellow"), f" {incident.message}"))

    def test_opened(self, boards: int) -> None:
        self.console.print(f"opening the test suite: {boards:,} boards")

    def run_left(self) -> None:
        if self.status is not None:
            self.status.stop()  # gives the terminal its cursor back


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
