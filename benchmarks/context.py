"""The first paper's ablation for cents: one language model with more and more context, on stored training stages.

``python -m benchmarks.context --engineer openai/gpt-5-mini`` asks it in every context, V1 to V6 and ours, through every tree of the
atlas; the caps hold for all questions together.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from benchmarks._command import errors_in_one_sentence
from benchmarks._record import record
from benchmarks.atlas_tables import as_json
from engineers.counts import money
from engineers.model.context import CONTEXTS, NAMES, context_named
from engineers.model.meter import Meter
from envtuning.atlas.published import load, names
from envtuning.atlas.rows import Row, references, row_of
from envtuning.atlas.standing import exchanges
from envtuning.atlas.store import Tree
from envtuning.atlas.walk import Chooser, Player, by_name
from envtuning.show.console import plain_table
from envtuning.show.terminal import make_console

ASKED = ("V1", "V2", "V3", "V4", "V5", "V6", "informed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--engineer", required=True, help="a language model, as engineers.make takes it")
    parser.add_argument("--atlas", action="append", help="a tree; default: all that are published")
    parser.add_argument(
        "--contexts", type=known, default=",".join(ASKED), metavar="NAME,NAME", help=f"of {', '.join(CONTEXTS)}"
    )
    parser.add_argument("--max-cost", type=float, help="US dollars that all questions together may cost")
    parser.add_argument("--max-total-tokens", type=int, help="tokens that they may take")
    parser.add_argument("--transcripts", type=Path, default=Path("runs/context"), help="folder for the exchanges")
    parser.add_argument("--trees", type=Path, help="trees in a folder of your own")
    parser.add_argument("--record", action="store_true", help="store the table in benchmarks/results")
    with errors_in_one_sentence():
        ablate(parser.parse_args())


def known(contexts: str) -> list[str]:
    """Contexts separated by commas."""
    named = contexts.split(",")
    if strangers := [name for name in named if name not in NAMES]:
        raise argparse.ArgumentTypeError(f"{strangers[0]!r} is no context: there are {', '.join(CONTEXTS)}")
    return named


def ablate(arguments: argparse.Namespace) -> None:
    meter = Meter(max_total_tokens=arguments.max_total_tokens, max_cost=arguments.max_cost)
    figures = {}
    for name in arguments.atlas or names():
        trees = load(name, arguments.trees).seeds
        rows = ablation(trees, players(arguments.engineer, arguments.contexts, meter, arguments.transcripts))
        make_console().print(table(trees, rows))
        figures[name] = [as_json(row, rows) for row in rows]
    if arguments.record:
        record(f"context_{arguments.engineer.replace('/', '_')}", figures)


def players(engineer: str, contexts: list[str], meter: Meter, transcripts: Path) -> dict[str, Player]:
    """The engineer once for each context, choosing from the menu; its exchanges are kept apart."""
    found: dict[str, Player] = {}
    for context in contexts:
        kept = exchanges(transcripts, engineer, context)
        found[context] = Chooser(by_name(engineer, mode="menu", transcripts=kept, meter=meter, context=context))
    return found


def ablation(trees: list[Tree], asked: dict[str, Player]) -> list[Row]:
    """A row for each context, in the order given, and what could have been reached."""
    return [
        *(row_of(context, trees, player, tier=context_named(context).tier) for context, player in asked.items()),
        *references(trees),
    ]


def table(trees: list[Tree], rows: list[Row]) -> Table:
    drawn = plain_table(f"{trees[0].spec.name}: {len(trees)} seeds, % of the test at the leaf, 95 % intervals")
    for heading in ("told", "success", "fallbacks", "tokens", "cost"):
        drawn.add_column(heading, justify="left" if heading == "told" else "right")
    for row in rows:
        drawn.add_row(row.name, row.success.percent(), str(row.fallbacks), f"{row.tokens:,}", money(row.cost))
    return drawn


if __name__ == "__main__":
    main()
