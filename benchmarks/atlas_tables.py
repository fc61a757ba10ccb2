"""Make the atlas's tables, pictures and stored walks again: ``python -m benchmarks.atlas_tables``.

Every engineer without a model walks through every published tree; ``--evidence`` tests whether they read; ``--real small-corridors``
trains real runs, to compare the atlas's order of engineers with theirs. ``--publish`` writes the index of the package's trees anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks._command import errors_in_one_sentence
from benchmarks._record import RESULTS, raise_unless_committed, record
from benchmarks.atlas_figure import draw
from envtuning.atlas import questions
from envtuning.atlas.published import StoredTree, StoredWalks, load, names, publish, spec_named
from envtuning.atlas.real import real_arms, real_success
from envtuning.atlas.roster import ROSTER
from envtuning.atlas.rows import Agreement, Row, above_open_loop, agreement, headroom, references, reliability
from envtuning.atlas.standing import Asked, score
from envtuning.atlas.tables import markdown
from envtuning.runs import checked
from envtuning.studies.study import execute, folder_name


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.atlas_tables", description=__doc__.split("\n\n")[0])
    parser.add_argument("--evidence", action="store_true", help="the table of evidence in place of the scores")
    parser.add_argument("--engineer", action="append", help="whom to ask for evidence; default: the roster")
    parser.add_argument("--real", metavar="TREE", help="real runs in place of the scores")
    parser.add_argument("--jobs", type=int, default=1, help="how many real runs at a time")
    parser.add_argument("--out", type=Path, default=Path("runs/atlas-real"), help="folder of the real runs")
    parser.add_argument("--publish", action="store_true", help="store the walks beside the trees; records nothing")
    arguments = parser.parse_args()
    if not arguments.publish:
        raise_unless_committed()
    with errors_in_one_sentence():
        if arguments.evidence:
            named = "" if arguments.engineer is None else "_" + folder_name("-".join(arguments.engineer))
            record(f"atlas_evidence{named}", evidence(arguments.engineer or list(ROSTER)))
        elif arguments.real:
            record(f"atlas_{arguments.real}_real", {"success": real(arguments.real, arguments.out, arguments.jobs)})
        elif arguments.publish:
            publish({name: {row.name: StoredWalks.of(row) for row in walked(load(name))} for name in names()})
        else:
            for name in names():
                store(load(name))


def walked(tree: StoredTree) -> list[Row]:
    """The roster, the best first."""
    rows = [score(name, [tree])[tree.name].row for name in ROSTER]
    return sorted(rows, key=lambda row: -row.success.mean)


def store(tree: StoredTree) -> None:
    """One tree's table, picture and figures."""
    rows = [*references(tree.seeds), *walked(tree)]
    found = checked.figures(RESULTS / f"atlas_{tree.name}_real.json", dict[str, Any])
    agree = agreed(rows, found["figures"]["success"]) if found else None
    draw(tree.seeds, rows, RESULTS / f"atlas_{tree.name}.png")
    (RESULTS / f"atlas_{tree.name}.md").write_text(markdown(tree.seeds, rows, agree), encoding="utf-8")
    figures = {
        "seeds": [seed.seed for seed in tree.seeds],
        "held_out": tree.spec.held_out,
        "rows": [as_json(row, rows) for row in rows],
        "headroom": asdict(headroom(tree.seeds)),
        "reliability": asdict(reliability(tree.seeds)),
        "agreement": None if agree is None else asdict(agree),
    }
    print(record(f"atlas_{tree.name}", figures))


def agreed(rows: Sequence[Row], real: dict[str, dict[str, float]]) -> Agreement:
    truth = {name: {int(seed): value for seed, value in by_seed.items()} for name, by_seed in real.items()}
    return agreement({row.name: row.values for row in rows if row.counts}, truth)


def as_json(row: Row, rows: Sequence[Row]) -> dict[str, Any]:
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


def evidence(asked: Sequence[str]) -> dict[str, Any]:
    weak = [load(name) for name in names(weak=True)]
    trees = [seed for one in weak for seed in one.seeds]
    players = {name: Asked.of(name, "menu", None, None, None, {}).asked_by_menu(weak[0], print) for name in asked}
    found = questions.as_data(trees, {name: questions.answers_of(player, trees) for name, player in players.items()})
    return found | {"named": {name: questions.named(player, trees) for name, player in players.items()}}


def real(tree: str, out: Path, jobs: int) -> dict[str, dict[int, float]]:
    spec = spec_named(tree)
    arms = real_arms(spec, list(ROSTER))
    execute(arms, list(spec.seeds), out / spec.name, jobs=jobs, ended=lambda job, pace: print(job.folder, pace))
    return real_success(arms, list(spec.seeds), out / spec.name)


if __name__ == "__main__":
    main()
