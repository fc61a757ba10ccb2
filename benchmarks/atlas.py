"""The atlas: ``python -m benchmarks.atlas --engineer rules`` scores an engineer in seconds, on stages that were trained once.

``build`` trains what is not stored yet and goes on where it was killed; ``real`` does the same choices' real runs, for how far the
atlas orders engineers as those do. Trees are written down in ``benchmarks/atlases``, beside what was built of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks._command import errors_in_one_sentence
from benchmarks._record import RESULTS, record
from benchmarks.atlas_figure import draw
from benchmarks.causes import HELD_OUT, KIND, falsified, report_of
from engineers.model.context import NAMES
from engineers.model.meter import Meter
from engineers.registry import tier_named
from envtuning.atlas.build import build
from envtuning.atlas.distance import Distances
from envtuning.atlas.evidence import (
    Altered,
    Planted,
    altered,
    by_weakness,
    confirmed,
    evenly,
    gains,
    lead,
    planted,
    probed_by_validation,
)
from envtuning.atlas.score import Agreement, Row, above_open_loop, agreement, headroom, references, reliability, row_of
from envtuning.atlas.spec import AtlasSpec, load_atlas
from envtuning.atlas.store import Tree, read_trees, stored_seeds
from envtuning.atlas.walk import Chooser, by_name, player_of, reads_menus
from envtuning.cli.arguments import parse_seeds
from envtuning.errors import RunError
from envtuning.runs import checked
from envtuning.runs.log import RunLog
from envtuning.runs.sections import EngineerSpec
from envtuning.runs.spec import SpecError
from envtuning.show.console import percent, plain_table
from envtuning.show.terminal import make_console
from envtuning.studies.closed_loop import in_words
from envtuning.studies.intervals import Interval
from envtuning.studies.study import Arms, execute, folder_name
from envtuning.studies.table import bounded
from envtuning.worlds.episodes import pooled

HERE = Path(__file__).parent / "atlases"

# Engineers without a model, thresholds varied: by the name in the tables the engineer and its options.
ROSTER: dict[str, tuple[str, dict[str, Any]]] = {
    "fixed": ("fixed", {}),
    "uniform": ("uniform", {}),
    "random": ("random", {}),
    "rules": ("rules", {}),
    "rules, bold": ("rules", {"thresholds": {"frontier": 0.2, "alive": 0.05}}),
    "rules, timid": ("rules", {"thresholds": {"frontier": 0.8, "alive": 0.6, "settled": 0.0}}),
    "half-success": ("half-success", {}),
    "progress-share": ("progress-share", {}),
    "ladder": ("schedule", {"parts": [0.4, 0.7]}),
    "ladder, late": ("schedule", {"parts": [0.0, 0.5]}),
    "ladder, short of it": ("schedule", {"parts": [0.2, 0.4, 0.6]}),
    "straight to the target": ("schedule", {"parts": [1.0]}),
    "half way and no further": ("schedule", {"parts": [0.5, 0.5, 0.5]}),
}

Answers = tuple[dict[str, Planted], Altered]  # by confirmed weakness; and to altered reports

ABOVE = (  # what two columns of a table say
    "tier: what whoever chooses knows, from 0 (the config's class) over 1 (the target), 3 (other seeds) and 5 (success for each slice) to 10 "
    "(hindsight); − best open loop: the mean gain of who reads over the best who does not, its one-sided 95 % bound over each of them, and who it is"
)


def main() -> None:
    given = sys.argv[1:]
    if not given or (given[0].startswith("--") and given[0] != "--help"):
        given = ["score", *given]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    _add_build(commands)
    _add_score(commands)
    _add_real(commands)
    _add_evidence(commands)
    arguments = parser.parse_args(given)
    with errors_in_one_sentence():
        arguments.do(arguments)


def spec_named(name: str) -> AtlasSpec:
    """Of this folder, or of a file."""
    own = HERE / f"{name}.yaml"
    if not own.exists() and not Path(name).exists():
        raise SpecError(f"{name!r} is neither a file nor a tree: there are {', '.join(names())}")
    return load_atlas(own if own.exists() else name)


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.yaml"))


def named_or_built(arguments: argparse.Namespace) -> list[str]:
    """The trees that the caller names, or all that there are. Raises ``RunError`` for none."""
    if chosen := arguments.atlas or built(arguments.trees):
        return chosen
    raise RunError(f"{arguments.trees} has no tree: python -m benchmarks.atlas build small-corridors")


def built(folder: Path, *, weak: bool = False) -> list[str]:
    """The trees of which a seed is stored, those that are held out last; or those of weak policies."""
    specs = [spec for spec in map(spec_named, names()) if (spec.diagnosis is not None) == weak]
    found = [spec for spec in specs if stored_seeds(folder / spec.name, spec)]
    return [spec.name for spec in sorted(found, key=lambda spec: spec.held_out)]


# Building


def _add_build(commands: Any) -> None:
    parser = commands.add_parser("build", help="train and store the seeds that are not stored yet")
    parser.add_argument("atlas", help=f"one of {', '.join(names())}, or a file")
    parser.add_argument("--seeds", help="only these seeds: a list such as 7000,7001")
    parser.add_argument("--jobs", type=int, default=1, help="how many seeds at a time")
    parser.add_argument("--out", type=Path, default=HERE, help="folder of all trees: OUT/NAME/seedN.reports.json.xz")
    parser.add_argument("--work", type=Path, default=Path("runs/atlas"), help="folder for what is unfinished")
    parser.set_defaults(do=do_build)


def do_build(arguments: argparse.Namespace) -> None:
    console, spec = make_console(), spec_named(arguments.atlas)
    seeds = parse_seeds(arguments.seeds + ",") if arguments.seeds else None
    ended = lambda line: console.print(line, highlight=False)  # noqa: E731
    build(spec, arguments.out / spec.name, arguments.work, seeds=seeds, jobs=arguments.jobs, ended=ended)


# Scoring


def _add_score(commands: Any) -> None:
    parser = commands.add_parser("score", help="how far engineers come, beside what could be reached")
    _add_engineer(parser)
    parser.add_argument("--mode", choices=("menu", "free"), default="menu", help="choose an entry, or write any config")
    parser.add_argument("--context", choices=NAMES, help="what a language model is told")
    parser.add_argument("--record", action="store_true", help="store the table and the figure in benchmarks/results")
    parser.set_defaults(do=do_score)


def _add_engineer(parser: Any) -> None:
    """What every command has that asks an engineer."""
    parser.add_argument("--atlas", action="append", help="a tree; default: all that are built")
    parser.add_argument("--engineer", action="append", help="as engineers.make takes it; default: all without a model")
    parser.add_argument("--max-cost", type=float, help="US dollars that all questions together may cost")
    parser.add_argument("--max-total-tokens", type=int, help="tokens that they may take")
    parser.add_argument(
        "--transcripts",
        type=Path,
        default=Path("runs/atlas-transcripts"),
        help="folder for models' exchanges; --engineer replay/FOLDER reads one",
    )
    parser.add_argument("--trees", type=Path, default=HERE, help="folder of all trees")


def do_score(arguments: argparse.Namespace) -> None:
    console = make_console()
    options = model_options(arguments)
    for name in named_or_built(arguments):
        spec = spec_named(name)
        trees = read_trees(arguments.trees / spec.name, spec)
        rows = scored(trees, wanted(arguments.engineer), arguments.mode, options, arguments.transcripts)
        console.print(table(trees, rows))
        real = RESULTS / f"atlas_{spec.name}_real.json"
        agree = agreed(rows, found["figures"]) if (found := checked.figures(real, dict[str, Any])) else None
        console.print("\n".join(notes(trees, rows, agree)), highlight=False)
        if arguments.record:
            store(trees, rows, agree)


def wanted(named: list[str] | None) -> dict[str, tuple[str, dict[str, Any]]]:
    """The engineers to ask, by the name in the table: of the roster, or as ``engineers.make`` takes them."""
    return ROSTER if named is None else {name: ROSTER.get(name, (name, {})) for name in named}


def model_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What language models are made with: one meter for all questions, so that the caps hold for all together."""
    meter = Meter(max_total_tokens=arguments.max_total_tokens, max_cost=arguments.max_cost)
    context = getattr(arguments, "context", None)
    return {"meter": meter} | ({"context": context} if context is not None else {})


def scored(
    trees: list[Tree],
    asked: Mapping[str, tuple[str, dict[str, Any]]],
    mode: str,
    options: Mapping[str, Any],
    transcripts: Path | None,
) -> list[Row]:
    """Reference rows, then the engineers', the best first."""
    distances = Distances(trees[0].spec.plan.world)
    rows = []
    for label, (engineer, own) in asked.items():
        kept = exchanges(transcripts, engineer, mode)
        player = player_of(engineer, mode, distances, transcripts=kept, **own, **options)
        told = own if options.get("context") is None else {**own, "context": options["context"]}
        rows.append(row_of(label, trees, player, tier=tier_named(engineer, **told)))
    return [*references(trees), *sorted(rows, key=lambda row: -row.success.mean)]


def exchanges(transcripts: Path | None, engineer: str, mode: str) -> Path | None:
    """Where this engineer's exchanges in this mode are kept, apart from all others'."""
    return None if transcripts is None else transcripts / folder_name(f"{engineer} {mode}")


def table(trees: list[Tree], rows: list[Row]) -> Table:
    spec = trees[0].spec
    found = plain_table(
        f"{spec.name}: {len(trees)} seeds, {spec.depth} stages from a menu of {len(spec.menu)}, % of the test at the leaf",
        f"means over seeds, Student's t intervals; {ABOVE}",
    )
    for heading in ("who chooses", "tier", "success", "− best open loop", "distance", "fallbacks", "tokens", "cost"):
        found.add_column(heading, justify="left" if heading == "who chooses" else "right", no_wrap=True)
    for row in rows:
        found.add_row(*cells(row, rows))
    return found


def cells(row: Row, rows: list[Row]) -> list[str]:
    near = row.nearness
    return [
        row.name,
        str(int(row.tier)),
        row.success.percent() if row.counts else "no score",
        bounded(above_open_loop(row, rows)),
        "" if near is None else f"{near.median:.2f} (bound {near.bound:.2f})",
        str(row.fallbacks or ""),
        f"{row.tokens:,}" if row.tokens else "",
        "unknown" if row.cost is None else f"${row.cost:.4f}" if row.cost else "",
    ]


def notes(trees: list[Tree], rows: list[Row], agree: Agreement | None) -> list[str]:
    said = [f"**{in_words(headroom(trees))}**"]
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


def agreed(rows: list[Row], real: Mapping[str, Any]) -> Agreement:
    truth = {name: {int(seed): value for seed, value in by_seed.items()} for name, by_seed in real["success"].items()}
    return agreement({row.name: row.values for row in rows if row.counts}, truth)


def store(trees: list[Tree], rows: list[Row], agree: Agreement | None) -> None:
    spec = trees[0].spec
    draw(trees, rows, RESULTS / f"atlas_{spec.name}.png")
    figures: dict[str, Any] = {
        "seeds": [tree.seed for tree in trees],
        "held_out": spec.held_out,
        "rows": [as_json(row, rows) for row in rows],
        "headroom": asdict(headroom(trees)),
        "reliability": asdict(reliability(trees)) if len(trees) > 1 else None,
        "agreement": None if agree is None else asdict(agree),
    }
    (RESULTS / f"atlas_{spec.name}.md").write_text(markdown(trees, rows, agree), encoding="utf-8")
    record(f"atlas_{spec.name}", figures)


def markdown(trees: list[Tree], rows: list[Row], agree: Agreement | None) -> str:
    """The table for a page."""
    lines = [["who chooses", "tier", "% of the test", "− best open loop", "distance"], ["---", *["---:"] * 4]]
    lines += [cells(row, rows)[:5] for row in rows]
    written = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    said = f"{len(trees)} seeds, means and 95 % intervals; {ABOVE}."
    return "\n\n".join([written, " ".join([said, *notes(trees, rows, agree)])]) + "\n"


def as_json(row: Row, rows: list[Row]) -> dict[str, Any]:
    above = above_open_loop(row, rows)
    return {
        "name": row.name,
        "success": asdict(row.success),
        "tier": int(row.tier),
        "above_open_loop": None if above is None else asdict(above),
        "by_seed": row.values,
        "paths": {seed: list(path) for seed, path in row.paths.items()},
        "median_distance": None if row.nearness is None else row.nearness.median,
        "bound": None if row.nearness is None else row.nearness.bound,
        "counts": row.counts,
    }


# Evidence


def _add_evidence(commands: Any) -> None:
    parser = commands.add_parser("evidence", help="whether engineers read what they are told")
    _add_engineer(parser)
    parser.add_argument("--context", choices=NAMES, help="what a language model is told")
    parser.add_argument("--record", action="store_true", help="store the table in benchmarks/results")
    parser.set_defaults(do=do_evidence)


def do_evidence(arguments: argparse.Namespace) -> None:
    console, options = make_console(), model_options(arguments)
    specs = [spec_named(name) for name in arguments.atlas or built(arguments.trees, weak=True)]
    if not specs:
        raise RunError("no tree of a weak policy is built: python -m benchmarks.atlas build weak-waits, and the others")
    if healthy := [spec.name for spec in specs if spec.diagnosis is None]:
        raise SpecError(f"{healthy[0]} has no diagnosis: evidence is asked for on trees whose root lacks something")
    trees = [tree for spec in specs for tree in read_trees(arguments.trees / spec.name, spec)]
    distances = Distances(trees[0].spec.plan.world)
    found = {
        label: read_by(
            trees, engineer, own | options, distances, exchanges(arguments.transcripts, engineer, "evidence")
        )
        for label, (engineer, own) in wanted(arguments.engineer).items()
    }
    console.print(gains_table(trees))
    console.print(evidence_table(found))
    if arguments.record:
        brings = {weak: {entry: asdict(one) for entry, one in row.items()} for weak, row in gains(trees).items()}
        answers = {
            name: {"planted": {weak: asdict(one) for weak, one in known.items()}, "altered": asdict(two)}
            for name, (known, two) in found.items()
        }
        leads = {weak: {"over": over, **asdict(ahead)} for weak, (over, ahead) in all_leads(trees).items()}
        sure = sorted(by_weakness(confirmed(trees)))
        blind = {weak: asdict(evenly(group, but_keep=True)) for weak, group in by_weakness(trees).items()}
        named = "" if arguments.engineer is None else "_" + folder_name("-".join(arguments.engineer))
        record(
            f"atlas_evidence{named}",
            {
                "held_out_causes": HELD_OUT,
                "gains": brings,
                "leads": leads,
                "evenly_but_keep": blind,
                "confirmed": sure,
                "engineers": answers,
            },
        )


def all_leads(trees: list[Tree]) -> dict[str, tuple[str, Interval]]:
    return {name: lead(weak) for name, weak in by_weakness(trees).items()}


def gains_table(trees: list[Tree]) -> Table:
    found, leads, sure = gains(trees), all_leads(trees), by_weakness(confirmed(trees))
    drawn = plain_table(
        "what one stage on an entry brings a policy that lacks one thing, over keeping its config, in points",
        "ahead: of the diagnosis over the entry that it is least clearly ahead of; confirmed: it is ahead of every other entry, with "
        "each interval clear of zero; planted weaknesses are asked about in these alone",
    )
    for heading in ("lacks", *trees[0].spec.menu, "ahead", "confirmed"):
        drawn.add_column(heading, justify="left" if heading == "lacks" else "right")
    for weak, row in found.items():
        over, ahead = leads[weak]
        brought = [one.percent(signed=True) for one in row.values()]
        drawn.add_row(weak, *brought, f"{ahead.percent(signed=True)} ({over})", "yes" if weak in sure else "no")
    return drawn


def read_by(
    trees: list[Tree], engineer: str, options: Mapping[str, Any], distances: Distances, transcripts: Path | None
) -> Answers:
    player = player_of(engineer, "menu", distances, transcripts=transcripts, **options)
    if reads_menus(engineer):
        player = Chooser(by_name(engineer, mode="menu"))
    renamed = None
    if isinstance(player, Chooser):
        trees = [probed_by_validation(tree) for tree in trees]
        player = replace(player, hide_current=True)
        renamed = replace(player, shift=1, knob="variant")
    causes = lambda tree: {cause: report_of(cause, tree.report(())) for cause in KIND if cause in tree.spec.menu}  # noqa: E731
    one_each = [weak[-1] for weak in by_weakness(trees).values()]
    known = {name: planted(weak, player) for name, weak in by_weakness(confirmed(trees)).items()}
    return known, altered(one_each, causes, falsified, player, renamed)


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
        "right: names what the policy lacks; same totals: right where totals say nothing; kept: the answer stays where one "
        "number is a lie, and where names and letters change",
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


# Real runs


def _add_real(commands: Any) -> None:
    parser = commands.add_parser("real", help="the same engineers in real runs of the same root, depth and budgets")
    parser.add_argument("atlas", help=f"one of {', '.join(names())}, or a file")
    parser.add_argument("--engineers", help="only these of the roster, separated by semicolons")
    parser.add_argument("--seeds", help="only these seeds")
    parser.add_argument("--jobs", type=int, default=1, help="how many runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/atlas-real"), help="folder of the runs")
    parser.set_defaults(do=do_real)


def do_real(arguments: argparse.Namespace) -> None:
    console, spec = make_console(), spec_named(arguments.atlas)
    chosen = arguments.engineers.split(";") if arguments.engineers else list(ROSTER)
    if strangers := [name for name in chosen if name not in ROSTER]:
        raise SpecError(f"{strangers[0]!r} is not in the roster: {'; '.join(ROSTER)}")
    out = arguments.out / spec.name
    arms = real_arms(spec, chosen)
    seeds = parse_seeds(arguments.seeds + ",") if arguments.seeds else list(spec.seeds)
    execute(
        arms, seeds, out, jobs=arguments.jobs, ended=lambda job, pace: console.print(f"finished {job.folder} ({pace})")
    )
    everybody = real_arms(spec, list(ROSTER))  # also those that another call ran
    record(f"atlas_{spec.name}_real", {"success": real_success(everybody, list(spec.seeds), out)})


def real_arms(spec: AtlasSpec, chosen: list[str]) -> Arms:
    """The run of the tree, once for each engineer."""
    run = spec.run
    common = run.engineer.common_options
    return {
        name: run.model_copy(update={"engineer": EngineerSpec(name=ROSTER[name][0], options=common | ROSTER[name][1])})
        for name in chosen
    }


def real_success(arms: Arms, seeds: list[int], out: Path) -> dict[str, dict[int, float]]:
    """Success on the test after the last stage, by engineer and seed, of what is finished."""
    found: dict[str, dict[int, float]] = {}
    for name in arms:
        for seed in seeds:
            folder = out / folder_name(name) / f"seed{seed}"
            if (folder / "test.json").exists():
                run = RunLog.open(folder)
                assert run.state.test is not None
                found.setdefault(name, {})[seed] = pooled(run.state.test.last, run.plan.world.about.objective)
    return found


if __name__ == "__main__":
    main()
