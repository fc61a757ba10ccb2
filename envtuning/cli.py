"""The commands: run, resume, show, report, tensorboard, compare, replay, pretrain, evaluate, presets."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.live import Live
from rich.table import Table
from rich.text import Text

from engineers import UnknownEngineer
from envtuning.loop import run as loop
from envtuning.loop.ask import EngineerUnavailable
from envtuning.loop.observer import Observers, UnknownObserver, observer_at
from envtuning.loop.stage import RunStopped
from envtuning.runs import atomic
from envtuning.runs.folder import RunError, RunFolder, next_task
from envtuning.runs.spec import RunSpec, SpecError, load_spec, preset_names, preset_text
from envtuning.show.console import ConsoleObserver, in_words, make_console, print_error, run_table, summary
from envtuning.show.page import write_page
from envtuning.show.tensorboard import EventFiles
from envtuning.studies import compare as comparing
from envtuning.studies.study import run_folders
from envtuning.trainees import UnknownTrainee
from envtuning.worlds.registry import UnknownWorld
from envtuning.worlds.world import Film, InfeasibleConfig, TooFewCases

app = typer.Typer(
    name="envtuning",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
console = make_console()


def print_version(asked: bool) -> None:
    if asked:
        console.print(f"envtuning {version('mapf-frozenlake')}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Train in stages, validate, report, and let an engineer write the next stage's config."""


Run = Annotated[Path, typer.Argument(help="A run's folder.")]
Runs = Annotated[list[Path], typer.Argument(help="Runs' folders; a comparison's folder stands for its runs.")]
Engineer = Annotated[
    str | None,
    typer.Option(help="Who writes the next config: rules, fixed, random, uniform, openai/MODEL, local/MODEL, …"),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="A key of the run's file and its value: trainee.options.lr=3e-4. May be given several times."
    ),
]
Observed = Annotated[
    list[str] | None,
    typer.Option("--observer", help="package.module:factory of an observer of your own. May be given several times."),
]


@app.command()
def run(
    what: Annotated[str, typer.Argument(help="A preset's name (see `envtuning presets`), or a YAML or JSON file.")],
    engineer: Engineer = None,
    seeds: Annotated[
        str | None, typer.Option(help="'3' for seeds 0 to 2, or a list: 0,4,7. One run folder each.")
    ] = None,
    stages: Annotated[
        int | None, typer.Option(min=1, help="Only so many stages, or more: the last one repeated.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="What a language model is told: V1 to V6, or full.")] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="US dollars that the engineer may cost in a run.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; with several seeds, the folder that holds them.")
    ] = None,
    settings: Settings = None,
    observer: Observed = None,
) -> None:
    """Run a preset or a file to its end. A run that was interrupted goes on where it was."""
    with told():
        spec = load_spec(what, changes=parse_settings(settings))
        spec = adjusted(spec, engineer=engineer, stages=stages, context=context, max_cost=max_cost)
        chosen = parse_seeds(seeds) if seeds else [spec.seed]
        for seed in chosen:
            one = spec.model_copy(update={"seed": seed})
            folder = (
                out if out is not None and len(chosen) == 1 else (out or Path("runs")) / f"{run_name(one)}-seed{seed}"
            )
            carry_out(loop.create(folder, one), observer)


@app.command()
def resume(folder: Run, observer: Observed = None) -> None:
    """Go on with a run that was interrupted; it ends as if it had not been."""
    with told():
        carry_out(RunFolder(folder), observer)


@app.command()
def show(
    folders: Runs,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep the table up to date until the run ends.")] = False,
) -> None:
    """Each run's table: configs, costs, results, and what went wrong."""
    with told():
        for one in opened(folders):
            if watch:
                watch_table(one)
            console.print(summary(one))
            if next_task(one) is not None:
                state = (
                    "is running" if atomic.is_locked(one.path) else f"stopped: `envtuning resume {one.path}` goes on"
                )
                console.print(f"this run {state}")


@app.command()
def report(
    folders: Runs,
    out: Annotated[Path | None, typer.Option(help="The page's file; default: report.html in the first run.")] = None,
) -> None:
    """Write one self-contained HTML page about one run, or about several side by side."""
    with told():
        console.print(f"report: {page(opened(folders), out)}", highlight=False)


@app.command()
def tensorboard(
    folders: Runs,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep them up to date until the runs end.")] = False,
) -> None:
    """Write the runs' metrics as TensorBoard event files, in a folder `tensorboard` each; `tensorboard --logdir RUN` shows them."""
    with told():
        files = [EventFiles(one) for one in opened(folders)]
        for each in files:
            console.print(f"event files: {each.catch_up()}", highlight=False)
        while watch and any(atomic.is_locked(each.run.path) for each in files):
            time.sleep(2)
            for each in files:
                each.catch_up()
        for each in files:
            each.close()


@app.command()
def compare(
    engineers: Annotated[str, typer.Option(help="Names, separated by commas.")] = "fixed,random,uniform,rules",
    seeds: Annotated[str, typer.Option(help="'3' for seeds 0 to 2, or a list: 0,4,7.")] = "3",
    what: Annotated[str, typer.Option("--preset", help="The preset or file that all of them run.")] = "engineer",
    stages: Annotated[int | None, typer.Option(min=1, help="Only so many stages, or more.")] = None,
    out: Annotated[Path, typer.Option(help="Folder of all runs; interrupted comparisons go on there.")] = Path(
        "runs/compare"
    ),
    jobs: Annotated[int, typer.Option(min=1, help="How many runs at a time, each in a process of its own.")] = 1,
    settings: Settings = None,
) -> None:
    """Engineers against each other: equal budgets, paired seeds, a shared first stage, one table."""
    with told():
        spec = adjusted(load_spec(what, changes=parse_settings(settings)), stages=stages)
        names = [name.strip() for name in engineers.split(",") if name.strip()]
        result = comparing.compare(
            spec,
            names,
            parse_seeds(seeds),
            out,
            ConsoleObserver(console) if jobs == 1 else None,
            jobs,
            lambda job: console.print(f"finished {job.folder}", highlight=False),
        )
        console.print(comparing.table(result))
        console.print(f"figures: {comparing.write(result, out)}", highlight=False)


@app.command()
def replay(
    folder: Run,
    stage: Annotated[int, typer.Option(min=0, help="Which stage's validation.")] = 0,
    case: Annotated[int | None, typer.Option(min=0, help="Which board; default: the first that failed.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save a film (.gif or .svg) instead of showing it here.")] = None,
    seconds: Annotated[float, typer.Option(min=0, help="Seconds per step.")] = 0.5,
) -> None:
    """Show how a validation board was played."""
    with told():
        one = RunFolder(folder)
        film = find_film(one, stage, case)
        if out is not None:
            with atomic.storage_errors(out):
                film.save(out, seconds)
            console.print(f"{out}: {film.title}", highlight=False)
            return
        show_film(film.frames, seconds)
        console.print(f"stage {stage}, {film.title}")


@app.command()
def pretrain(
    out: Annotated[Path, typer.Argument(help="The model's folder; must not exist yet.")],
    what: Annotated[
        str, typer.Option("--for", help="The preset or file of the run that the model is made for.")
    ] = "paper-in-miniature",
    hold_out: Annotated[
        list[str] | None, typer.Option(help="Another preset or file whose held-out boards are left out, too.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Boards that it is taught.")] = 48_000,
    seed: Annotated[int, typer.Option(min=0, help="Of weights and boards.")] = 0,
) -> None:
    """Make a small language model from nothing and teach it certified plans, for `trainee: {kind: grpo}`."""
    with told():
        from envtuning.trainees.language.commands import pretrain_for
        from envtuning.trainees.language.pretrain import Pretraining

        spec = load_spec(what)
        options = Pretraining(samples=samples, seed=seed, style=spec.world.options.get("style", "paper"))
        with console.status("making the model …") as status:
            made = pretrain_for(
                spec,
                out,
                also=[load_spec(name) for name in hold_out or ()],
                options=options,
                progress=lambda done, loss: status.update(
                    f"{min(done, samples):,} of {samples:,} boards, loss {loss:.3f}"
                ),
            )
        console.print(f"model: {made}", highlight=False)


@app.command()
def evaluate(
    model: Annotated[str, typer.Option(help="openai/MODEL, server/http://HOST:PORT/v1#MODEL, local/FOLDER, …")],
    suite: Annotated[str, typer.Option(help="A shipped suite.")] = "mapf-frozenlake-3150",
    out: Annotated[
        Path, typer.Option(help="The file that keeps the replies: what it holds is not asked again.")
    ] = Path("answers.jsonl"),
    style: Annotated[str, typer.Option(help="How boards are written: paper, coordinates or short.")] = "paper",
    workers: Annotated[int, typer.Option(min=1, help="Questions at the same time.")] = 4,
    max_tokens: Annotated[int, typer.Option(min=1, help="Of one reply, thoughts included.")] = 8_192,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="US dollars; needs a model whose price is known.")
    ] = None,
    max_total_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of all questions and replies.")] = None,
) -> None:
    """Score a language model on the papers' benchmark, their published rows beside it."""
    with told():
        from envtuning.trainees.language.evaluate import evaluate_model

        with console.status("asking …") as status:
            table, meter = evaluate_model(
                model,
                suite,
                answers=out,
                style=style,  # type: ignore[arg-type]
                workers=workers,
                max_tokens=max_tokens,
                max_cost=max_cost,
                max_total_tokens=max_total_tokens,
                progress=lambda done, of: status.update(f"{done:,} of {of:,} boards answered"),
            )
        console.print(str(table), highlight=False, markup=False)
        cost = "unknown" if meter.cost is None else f"${meter.cost:.2f}"
        console.print(f"asked now: {meter.questions:,} questions, {meter.tokens:,} tokens, cost {cost}; replies: {out}")


@app.command()
def presets(
    name: Annotated[str | None, typer.Argument(help="Print this preset's file, to copy and change.")] = None,
) -> None:
    """List the presets, or print one."""
    with told():
        if name is not None:
            if name not in preset_names():
                raise SpecError(f"no preset {name!r}: there are {', '.join(preset_names())}")
            console.print(preset_text(name), highlight=False, markup=False, end="")
            return
        listing = Table(box=None)
        for heading in ("preset", "stages", "budget", "what it is"):
            listing.add_column(heading, justify="right" if heading in ("stages", "budget") else "left")
        for each in preset_names():
            spec = load_spec(each)
            listing.add_row(each, str(len(spec.stages)), f"{spec.budget:,} {in_words(spec.unit)}", spec.description)
        console.print(listing)


def carry_out(one: RunFolder, observers: list[str] | None = None) -> None:
    """Run what is left, then print the tables and where the page lies."""
    heard_by = Observers([ConsoleObserver(console), *map(observer_at, observers or [])])
    if next_task(one) is None:
        console.print(f"{one.path} is finished; remove it or choose another --out to run it again")
    else:
        loop.go(one, heard_by)
    console.print(summary(one))
    console.print(f"report page: {page([one], None)}", highlight=False)


def watch_table(one: RunFolder) -> None:
    """The table, kept up to date while somebody works on the run."""
    with Live(run_table(one), console=console, refresh_per_second=2) as live:
        while next_task(one) is not None and atomic.is_locked(one.path):
            time.sleep(0.5)
            live.update(run_table(one))


def opened(folders: list[Path]) -> list[RunFolder]:
    """The runs that these folders are or, as a comparison does, hold; of several, those that are neither are passed over."""
    found: list[RunFolder] = []
    for folder in folders:
        here = [folder] if (folder / "run.json").is_file() else run_folders(folder)
        if not here and len(folders) > 1:
            console.print(f"{folder} is no run: passed over")
        elif not here:
            here = [folder]  # to be told what a run folder is
        found += [RunFolder(each) for each in here]
    if not found:
        raise RunError(f"none of {len(folders)} folders is a run: `envtuning run` makes one")
    return found


def page(runs: list[RunFolder], out: Path | None) -> Path:
    """Write the page about these runs; returns where."""
    return write_page([one.path for one in runs], out or runs[0].path / "report.html")


def adjusted(
    spec: RunSpec,
    *,
    engineer: str | None = None,
    stages: int | None = None,
    context: str | None = None,
    max_cost: float | None = None,
) -> RunSpec:
    """The spec with what the command line says."""
    if stages is not None:
        spec = spec.with_rounds(stages)
    changed = spec.engineer
    if engineer is not None and engineer != changed.name:
        changed = changed.model_copy(update={"name": engineer, "options": {}})
    extra = {"context": context, "max_cost": max_cost}
    options = changed.options | {name: value for name, value in extra.items() if value is not None}
    return spec.model_copy(update={"engineer": changed.model_copy(update={"options": options})})


def parse_settings(settings: list[str] | None) -> dict[str, Any]:
    """``trainee.options.lr=3e-4`` by its dotted key; values are read as YAML."""
    changes: dict[str, Any] = {}
    for setting in settings or []:
        key, sign, value = setting.partition("=")
        if not sign or not all(key.split(".")):
            raise SpecError(f"--set {setting!r}: write KEY=VALUE with a dotted key, such as trainee.options.lr=3e-4")
        try:
            changes[key] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise SpecError(f"--set {setting!r}: {value!r} is no value ({error})") from error
    return changes


def parse_seeds(text: str) -> list[int]:
    """'3' is 0, 1, 2; '4,7' is 4 and 7; '4,' is 4 alone."""
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise SpecError(f"seeds {text!r}: give a number of seeds, or a list such as 0,4,7") from None
    chosen = numbers if "," in text else list(range(numbers[0] if numbers else 0))
    if not chosen or min(chosen) < 0 or len(set(chosen)) != len(chosen):
        raise SpecError(f"seeds {text!r}: give at least one seed, none below 0, none twice")
    return chosen


def run_name(spec: RunSpec) -> str:
    """The preset's name, and the engineer's where it is not the preset's own."""
    writes = any(stage.config == "engineer" for stage in spec.stages)
    named_after = spec.engineer.name.replace("/", "_").replace(":", "_").replace("#", "_")
    return f"{spec.name}-{named_after}" if writes and named_after != spec.name else spec.name


def find_film(one: RunFolder, stage: int, case: int | None) -> Film:
    """The film of a case of a stage's closing validation; of the first that failed where none is named."""
    recorded = one.stage(stage).episodes()
    if not recorded:
        raise RunError(
            f"stage {stage} of {one.path} has no episodes: its {len(one.done_stages)} finished stages start at 0"
        )
    if case is None:
        case = next((episode.case for episode in recorded if not episode.succeeded), 0)
    if case >= len(recorded):
        raise RunError(f"case {case}: stage {stage} has cases 0 to {len(recorded) - 1}")
    film = one.world.film(one.world.load(one.validation_file), recorded[case])
    if film is None:
        raise RunError(
            f"the world {one.world.about.name!r} has no films: `envtuning report {one.path}` shows the failed cases"
        )
    return film


def show_film(pictures: Sequence[str], seconds: float) -> None:
    """One picture over the other on a terminal, one below the other elsewhere."""
    if not console.is_terminal:
        console.print("\n\n".join(Text.from_ansi(picture).plain for picture in pictures), markup=False, highlight=False)
        return
    with Live(console=console, auto_refresh=False) as live:
        for picture in pictures:
            live.update(Text.from_ansi(picture), refresh=True)
            time.sleep(seconds)


@contextmanager
def told() -> Iterator[None]:
    """What a user can mend is told in one sentence, without a traceback."""
    expected = (
        SpecError, RunError, RunStopped, UnknownTrainee, UnknownWorld, UnknownObserver, EngineerUnavailable,
        InfeasibleConfig, TooFewCases, ImportError, atomic.StorageError, atomic.RunLocked, UnknownEngineer,
    )  # fmt: skip
    try:
        yield
    except expected as error:
        print_error("error", str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print_error("interrupted", "`envtuning resume` goes on where it was")
        raise typer.Exit(130) from None
