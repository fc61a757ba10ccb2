"""The commands of the atlas: list, score, evidence, build, real, verify."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from engineers.model.context import CONTEXTS, NAMES
from engineers.model.meter import Meter
from envtuning import atomic
from envtuning.atlas import published
from envtuning.atlas.published import StoredTree
from envtuning.atlas.roster import ROSTER
from envtuning.cli.arguments import OnRay, Trusted, listed_seeds
from envtuning.cli.base import app, console, trusting
from envtuning.errors import RunError, SpecError

group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
app.add_typer(group, name="atlas", help="Score any engineer in seconds, on stored training stages.")


class Mode(StrEnum):
    menu = "menu"
    free = "free"


Named = Annotated[str, typer.Argument(help="A published tree's name, or a file that describes one.")]
Trees = Annotated[list[str] | None, typer.Option("--tree", help="A tree; may be given several times. Default: all.")]
Folder = Annotated[Path | None, typer.Option(help="Your own folder of trees, made by `build`.")]
Engineers = Annotated[
    list[str] | None,
    typer.Option(
        "--engineer", help="rules, openai/MODEL, mine:make, …; may be given several times. Default: the roster."
    ),
]
Context = Annotated[
    str | None, typer.Option(help=f"The parts of the report in a language model's prompt: {', '.join(CONTEXTS)}.")
]
MaxCost = Annotated[float | None, typer.Option(help="Upper limit in US dollars for all questions together.")]
MaxTokens = Annotated[int | None, typer.Option(help="Upper limit of tokens for all questions together.")]
Transcripts = Annotated[
    Path, typer.Option(help="Folder for the transcripts of models; --engineer replay/FOLDER replays one.")
]
Written = Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")]
Jobs = Annotated[int, typer.Option(min=1, help="Number of runs at a time.")]
Seeds = Annotated[str | None, typer.Option(help="Only these seeds: a list such as 7000,7001.")]
KEPT = Path("runs/atlas-transcripts")


@group.command("list")
def list_trees() -> None:
    """List the published trees."""
    from envtuning.show.console import plain_table

    found = published.index()
    drawn = plain_table(f"version {found.version} of the trees, index {published.digest_of_index()}")
    for heading in ("tree", "digest", "seeds", "stages", "menu", ""):
        drawn.add_column(heading)
    for name in [*published.names(), *published.names(weak=True)]:
        spec = published.spec_named(name)
        held = "held out: nobody may tune on it" if spec.held_out else "the root lacks one thing" if spec.diagnosis else ""  # fmt: skip
        digest = found.trees[name].digest
        drawn.add_row(name, digest, str(len(spec.seeds)), str(spec.depth), ", ".join(spec.menu), held)
    console.print(drawn)


@group.command()
def score(
    engineer: Engineers = None,
    tree: Trees = None,
    folder: Folder = None,
    mode: Annotated[
        Mode, typer.Option(help="menu: the engineer chooses an entry; free: it writes any config.")
    ] = Mode.menu,
    context: Context = None,
    max_cost: MaxCost = None,
    max_total_tokens: MaxTokens = None,
    transcripts: Transcripts = KEPT,
    json: Written = None,
    trust: Trusted = None,
) -> None:
    """Score engineers, beside the best result that could be reached."""
    asked = list(engineer or ROSTER)
    with trusting(trust, engineers=asked):
        from envtuning.atlas import result, standing, tables

        told = known(context)
        meter = Meter(max_total_tokens=max_total_tokens, max_cost=max_cost)
        trees = loaded(tree, folder)
        every = [standing.Asked.of(name, mode.value, told, meter, transcripts, {}) for name in asked]
        standing.raise_unless_able(every, trees, say)
        found = []
        for one in trees:
            here = [each.on(one, say) for each in every]
            own = sorted((each.row for each in here), key=lambda row: -row.success.mean)
            names = {row.name for row in own}
            beside = [row for row in here[0].beside if row.name not in names]
            rows = [*(row for row in here[0].references if row.name not in names), *own]
            console.print(tables.scores_table(one.seeds, [*beside, *own], rows))
            console.print("\n".join(tables.notes(one.seeds, own)))
            found += here
        if json is not None:
            atomic.write_text(json, result.result_of(found).model_dump_json(indent=1) + "\n")
            console.print(f"figures: {json}")


@group.command()
def evidence(
    engineer: Engineers = None,
    tree: Trees = None,
    folder: Folder = None,
    context: Context = None,
    max_cost: MaxCost = None,
    max_total_tokens: MaxTokens = None,
    transcripts: Transcripts = KEPT,
    json: Written = None,
    trust: Trusted = None,
) -> None:
    """Test whether engineers use their reports, on policies that lack one skill."""
    asked = list(engineer or ROSTER)
    with trusting(trust, engineers=asked):
        from envtuning.atlas import questions, standing, tables

        told = known(context)
        weak = loaded(tree, folder, weak=True)
        if healthy := [one.name for one in weak if one.spec.diagnosis is None]:
            raise SpecError(f"{healthy[0]} has no diagnosis: give trees that have one, such as weak-waits")
        seeds = [seed for one in weak for seed in one.seeds]
        meter = Meter(max_total_tokens=max_total_tokens, max_cost=max_cost)
        every = [standing.Asked.of(name, "menu", told, meter, transcripts / "evidence", {}) for name in asked]
        players = {name: one.asked_by_menu(weak[0], say) for name, one in zip(asked, every, strict=True)}
        for player in players.values():
            player.raise_unless_able(seeds[0])
        found = {name: questions.answers_of(player, seeds) for name, player in players.items()}
        console.print(tables.gains_table(seeds))
        console.print(tables.evidence_table(found))
        write(json, questions.as_data(seeds, found))


@group.command()
def build(
    file: Named,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    ray: OnRay = False,
    out: Annotated[Path, typer.Option(help="Folder of all trees: OUT/NAME/seedN.reports.json.xz.")] = Path(
        "runs/atlas"
    ),
    work: Annotated[Path, typer.Option(help="Folder for unfinished work.")] = Path("runs/atlas-work"),
    trust: Trusted = None,
) -> None:
    """Train and store the seeds that are not stored yet. After a kill, the same command continues."""
    with trusting(trust):
        from envtuning.atlas.build import build as train

        spec = published.spec_named(file)
        train(spec, out / spec.name, work, seeds=listed_seeds(seeds), jobs=jobs, ray=ray, ended=console.print)
        console.print(f"`envtuning atlas score --tree {file} --folder {out}` scores on it")


@group.command()
def real(
    file: Named,
    engineer: Engineers = None,
    seeds: Seeds = None,
    jobs: Jobs = 1,
    ray: OnRay = False,
    out: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/atlas-real"),
    json: Written = None,
    trust: Trusted = None,
) -> None:
    """Train real runs with engineers, from a tree's root and with its depth and budgets."""
    asked = list(engineer or ROSTER)
    with trusting(trust, engineers=asked):
        from envtuning.atlas.real import real_arms, real_success
        from envtuning.show.console import plain_table
        from envtuning.studies.intervals import t_mean
        from envtuning.studies.study import execute

        spec = published.spec_named(file)
        arms, chosen = real_arms(spec, asked), listed_seeds(seeds) or list(spec.seeds)
        execute(
            arms,
            chosen,
            out / spec.name,
            jobs=jobs,
            ray=ray,
            ended=lambda job, pace: console.print(f"finished {job.folder} ({pace})"),
        )
        success = real_success(arms, chosen, out / spec.name)
        drawn = plain_table(f"{spec.name}: real runs, % of the test after the last stage")
        for heading in ("engineer", "seeds", "success"):
            drawn.add_column(heading)
        for name, values in success.items():
            drawn.add_row(name, str(len(values)), t_mean(list(values.values())).percent())
        console.print(drawn)
        write(json, {"success": success})


@group.command()
def verify(
    file: Annotated[Path, typer.Argument(help="A result of `score --json`.")],
    folder: Folder = None,
) -> None:
    """Check a result: repeat its walks, and refuse it if they give other figures."""
    from envtuning.atlas import result

    read = result.read_result(file)
    trees = {name: published.load(name, folder) for name in dict.fromkeys(one.tree for one in read.standings)}
    for told, row in zip(read.standings, result.verify(read, trees, say), strict=True):
        console.print(f"{row.name} on {told.tree}: {len(told.walks)} walks give {row.success.percent()} %")
    console.print(
        "That is what these answers reach on these trees. The trees' test is in the package: a claim needs fresh real runs"
    )


def say(line: str) -> None:
    """Print progress on stderr, apart from the table."""
    typer.echo(line, err=True)


def known(context: str | None) -> str | None:
    """Raises ``SpecError`` for an unknown context."""
    if context is not None and context not in NAMES:
        raise SpecError(f"{context!r} is not a context: the contexts are {', '.join(CONTEXTS)}")
    return context


def loaded(named: Sequence[str] | None, folder: Path | None, *, weak: bool = False) -> list[StoredTree]:
    """The named trees, or all. Raises ``RunError`` if there are none."""
    if named:
        return [published.load(name, folder) for name in named]
    there = published.names(weak=weak) if folder is None else published.stored_in(folder, weak=weak)
    if not there:
        raise RunError(f"{folder} has no tree: envtuning atlas build small-corridors --out {folder}")
    return [published.load(name, folder) for name in there]


def write(path: Path | None, figures: dict[str, Any]) -> None:
    if path is not None:
        atomic.write_json(path, figures)
        console.print(f"figures: {path}")
