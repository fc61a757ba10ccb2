"""The command line: ``propose``, ``prompt`` and ``list``."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel, ValidationError
from rich.markup import escape
from rich.table import Table

from engineers.engineer import Engineer
from engineers.guard import Guard, read_back
from engineers.knobs import KnobError, as_text, dump, validated
from engineers.model.answer_format import AnswerFormat
from engineers.model.chat import ChatError
from engineers.model.context import CONTEXTS, WITH_CASES, context_named
from engineers.model.prompt import Prompt, build_prompt, build_summary_prompt
from engineers.proposal import Proposal
from engineers.registry import DEFAULT_ENGINEER, NEEDS_MODEL, available, make, what_it_does
from engineers.report import EXAMPLE_REPORT, StageReport
from engineers.shared import own
from engineers.shared.counts import apart, counted, money
from engineers.shared.errors import UserError
from engineers.shared.own import object_at
from engineers.shared.places import place_of, with_place
from engineers.shared.sentences import in_sentences
from engineers.shared.terminal import TextConsole

DEFAULT_CONFIG_CLASS = "mapf_frozenlake:LakeConfig"

app = typer.Typer(
    help="Try an engineer on a report file, show its prompt, or list all engineers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,
)
out, err = TextConsole(), TextConsole(stderr=True)

EXAMPLE = "example"


class EngineerFailed(ValueError):
    """An engineer of the user's own raised an error, or gave no config that can be trained on."""


def _report_file(given: Path) -> Path:
    """The file of a report; ``example`` names the one in the package."""
    file = EXAMPLE_REPORT if str(given) == EXAMPLE else given
    if not file.is_file():
        raise typer.BadParameter(f"{given} is not a file: give a StageReport as JSON, or the word {EXAMPLE!r}")
    return file


ReportFile = Annotated[
    Path,
    typer.Option(
        "--report",
        help=f"A StageReport as JSON; the word {EXAMPLE} stands for an example report.",
        callback=_report_file,
    ),
]
ConfigClass = Annotated[
    str,
    typer.Option(
        help=f"The config's class, module:Class, or a world whose configs it makes, module:world. Default: the report's own, else {DEFAULT_CONFIG_CLASS}."
    ),
]
CONTEXT_HELP = f"Which parts of the report the model reads: {', '.join(CONTEXTS)}; each also with {WITH_CASES}."
ContextName = Annotated[str, typer.Option("--context", help=CONTEXT_HELP)]
ProposeContext = Annotated[
    str | None, typer.Option("--context", help=f"{CONTEXT_HELP} Default: informed for models, full for humans.")
]
Editable = Annotated[
    list[str] | None, typer.Option(help="A knob that may change, e.g. 'slices.*.share'; repeat for more.")
]
Named = Annotated[str, typer.Option("--engineer", help="The engineer: see 'list'; your own is module:factory.")]


@app.command()
def propose(
    report: ReportFile,
    engineer: Named = DEFAULT_ENGINEER,
    context: ProposeContext = None,
    config_class: ConfigClass = "",
    editable: Editable = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    max_attempts: Annotated[int, typer.Option(help="Questions before the current config is kept.")] = 3,
    max_cost: Annotated[float | None, typer.Option(help="Hard cap, US dollars.")] = None,
    max_total_tokens: Annotated[int | None, typer.Option(help="Hard cap, tokens.")] = None,
    max_drop: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Largest part of a working slice's share that one proposal may remove."),
    ] = None,
    transcript: Annotated[Path | None, typer.Option(help="JSONL file to record the exchanges in.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="name=value for the backend, e.g. timeout=60.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the proposed config here, as JSON.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole proposal as JSON.")] = False,
) -> None:
    """Ask ENGINEER for the next config and show what it changes and why. Exit code 3: every reply was refused and the current config is kept."""
    read, current = _load(report, config_class)
    shared = {
        "seed": seed,
        "context": context,
        "transcript": transcript,
        "max_attempts": max_attempts,
        "max_cost": max_cost,
        "max_total_tokens": max_total_tokens,
        "max_drop": max_drop,
    }
    given = {name: value for name, value in shared.items() if value is not None}
    if save is not None:
        save.parent.mkdir(parents=True, exist_ok=True)
    made, guard = make(engineer, **(given | _options(option))), Guard(max_drop=max_drop)
    if as_json:
        proposal = _asked(made, read, current, editable or None, guard)
        print(as_text(proposal, indent=2))
    else:
        with err.status(f"{made.name} is reading the report of stage {read.stage} …"), _telling_each_question():
            proposal = _asked(made, read, current, editable or None, guard)
        _show(proposal, read)
    if save is not None:
        save.write_text(as_text(proposal.config, indent=2) + "\n", encoding="utf-8")
    if proposal.fallback:
        raise typer.Exit(3)


@app.command()
def prompt(
    report: ReportFile,
    context: ContextName = "informed",
    config_class: ConfigClass = "",
    editable: Editable = None,
    schema: Annotated[bool, typer.Option(help="Show the JSON Schema of the answer, too.")] = False,
) -> None:
    """Show a model's prompt without sending it."""
    read, current = _load(report, config_class)
    answer_format, told = AnswerFormat(current, editable or None), context_named(context)
    if told.summary:
        _show_prompt(build_summary_prompt(read, answer_format, told), "first question: the summary")
    _show_prompt(
        build_prompt(read, answer_format, told, "(the model's summary)" if told.summary else ""),
        f"context {told.name}, tier {told.tier.value}: {told.tier.meaning}",
    )
    if schema:
        out.print_json(json.dumps(answer_format.schema))


@app.command(name="list")
def list_engineers() -> None:
    """List all engineers, how to name them, and what they do."""
    table = Table(box=None, header_style="bold")
    table.add_column("name", overflow="fold")  # what is cut cannot be typed
    table.add_column("what it does", overflow="fold")
    for backend in available():
        default = "The default. " if backend == DEFAULT_ENGINEER else ""
        table.add_row(
            f"[cyan]{escape(NEEDS_MODEL.get(backend, backend))}[/]", escape(f"{default}{what_it_does(backend)}")
        )
    out.print(table)


def main() -> None:
    """The command line, with errors as one line each."""
    try:
        app(standalone_mode=True)
    except (ChatError, ImportError, OSError, TypeError, ValueError) as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(1 if isinstance(error, EngineerFailed) else 2)


def _asked(
    made: Engineer, report: StageReport, current: BaseModel, editable: list[str] | None, guard: Guard
) -> Proposal[Any]:
    """The engineer's proposal, guarded if it does not guard itself. Raises ``EngineerFailed`` if the user's own code is at fault, and the errors of this package's as they are."""
    try:
        proposal = made.propose(report, current=current, editable=editable)
    except UserError:
        raise
    except Exception as error:  # one's own engineer may fail in any way
        if not place_of(error):
            raise
        raise EngineerFailed(f"{made.name} failed ({with_place(error)})") from error
    if not isinstance(proposal, Proposal):
        raise EngineerFailed(
            f"{made.name} failed (TypeError: propose returned a {type(proposal).__name__}, not a Proposal)"
        )
    try:
        config = read_back(proposal.config, current)
    except KnobError as error:
        raise EngineerFailed(f"{made.name}'s config was refused ({error})") from error
    if made.guard is None and not proposal.fallback:
        refusals = guard.rules(config, current, report.records(), editable=editable, objective=report.objective)
        if refusals:
            raise EngineerFailed(f"{made.name}'s config was refused ({'; '.join(refusals)})")
    return proposal.model_copy(update={"config": config}).with_changes(current)


@contextmanager
def _telling_each_question() -> Iterator[None]:
    """A line before and after each question to a model, because a local one may think for minutes."""
    logger, told = logging.getLogger("engineers"), logging.StreamHandler(sys.stderr)
    level = logger.level
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(told)
        logger.setLevel(level)


def _load(file: Path, config_class: str) -> tuple[StageReport, BaseModel]:
    """The report and its config, as an object of the config's class."""
    try:
        report = StageReport.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{file.name} is not a report: {in_sentences(error)}") from None
    own.trust(own.chosen_in(config_class))
    found = _find_class(config_class) if config_class else _class_of(report, file)
    try:
        config = validated(found, report.config)
    except KnobError as error:
        raise ValueError(
            f"the config in {file.name} is not a valid {found.__name__}: {error}; give its --config-class"
        ) from None
    if lost := sorted(report.config.keys() - dump(config).keys()):  # a class may ignore what it does not know
        raise ValueError(
            f"the config in {file.name} has {lost[0]!r}, and {found.__name__} has no such field; give its --config-class"
        )
    return report, config


def _class_of(report: StageReport, file: Path) -> type[BaseModel]:
    """The config class that the report names. The report may come from another person."""
    named = report.config_class or DEFAULT_CONFIG_CLASS
    try:
        return _find_class(named)
    except own.NotTrusted as error:
        raise ValueError(
            f"{file.name} names {named!r}, and importing it runs its code: if you trust it, give --config-class {named}"
        ) from error


def _find_class(dotted: str) -> type[BaseModel]:
    try:
        named = object_at(dotted)
    except own.NotTrusted:
        raise
    except ImportError as error:
        raise ValueError(f"{error}: give --config-class module:Class") from None
    found = getattr(named, "config_type", named)  # a world makes the class of its tasks itself
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise ValueError(f"{dotted!r} is not a pydantic model: give --config-class module:Class")
    return found


def _options(pairs: list[str] | None) -> dict[str, Any]:
    """name=value pairs; values are read as JSON where they are JSON."""
    options: dict[str, Any] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--option {pair!r}: write name=value")
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options


def _show(proposal: Proposal[Any], report: StageReport) -> None:
    out.print(f"[bold]{escape(proposal.engineer)}[/] on the config of stage {report.stage + 1}")
    for sentence in proposal.refusals:
        out.print(f"  [yellow]refused:[/] {escape(sentence)}", soft_wrap=True)
    if proposal.fallback:
        out.print("  [bold yellow]the current config is kept[/]")
    elif not proposal.reasons:
        out.print("  no change")
        for line in proposal.told_reasons():
            out.print(f"  {escape(line)}", soft_wrap=True)
    if proposal.reasons:
        table = Table("knob", "now", "", "next", "why", box=None, header_style="bold", padding=(0, 1))
        for change in proposal.reasons:
            old, new = map(escape, apart(change.old, change.new, digits=6, other=json.dumps))
            table.add_row(
                f"[cyan]{escape(change.path)}[/]", f"[red]{old}[/]", "→", f"[green]{new}[/]", escape(change.reason)
            )
        out.print(table)
    usage = proposal.usage
    if usage.attempts:
        tokens = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens"
        cost = f"cost {money(usage.cost)}, {usage.seconds:.1f} s"
        out.print(f"[dim]{counted(usage.attempts, 'question')}, {tokens}, {cost}[/]")


def _show_prompt(shown: Prompt, title: str) -> None:
    left_out = f"; left out: {', '.join(shown.left_out)}" if shown.left_out else ""
    out.rule(escape(f"{title}, about {shown.tokens} tokens{left_out}"))
    for message in shown.messages:
        out.print(f"[bold magenta]{message['role']}[/]")
        out.print(message["content"], markup=False, highlight=False, soft_wrap=True)
