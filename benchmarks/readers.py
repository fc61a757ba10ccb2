"""A better reader, or a better report? ``python -m benchmarks.readers RUN_A RUN_B [--seeds 5]``, on finished runs.

Each reader is asked about each report, and its configs are measured alike. Readers are models (the base and the checkpoints of
finished runs); reports are those of finished runs. The measures are the paper's criteria for good proposals, computed from the
report and the two configs alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

import engineers
from benchmarks._record import record
from engineers.knobs import dump, find_knobs, validated
from engineers.model.engineer import ModelEngineer
from engineers.report import StageReport
from engineers.roles import find_slices, natural_key, shares_of
from envtuning.errors import RunError
from envtuning.runs.log import RunLog
from envtuning.show.console import percent, plain_table
from envtuning.show.terminal import make_console

WORKS = 0.7  # success from which a slice works
FRONTIER = (0.1, WORKS)  # success of a slice just under the frontier
DROP = 0.5  # of a slice's share: what is left above it is kept


@dataclass(frozen=True)
class Merits:
    """One proposal. Each is 0 to 1, None where the report has no such slice."""

    kept: float | None  # part of the working slices whose share is not halved
    frontier: float | None  # part of the data on slices just under the frontier
    large: bool | None  # whether the largest slice in use keeps half of its share
    fallback: bool  # no usable config was written; the measures are of the current config


MEASURES = tuple(field.name for field in fields(Merits))


def merits(report: StageReport, before: Any, after: Any, *, fallback: bool = False) -> Merits:
    """What the step from one config to the next is worth by this report."""
    old, new = _shares(before), _shares(after)
    rates = {row.name: row.metrics.get(report.objective, 0.0) for row in report.results}
    working = [name for name, rate in rates.items() if rate >= WORKS and old.get(name)]
    near = [name for name, rate in rates.items() if FRONTIER[0] <= rate < FRONTIER[1]]
    used = sorted((name for name, share in old.items() if share > 0), key=natural_key)
    return Merits(
        kept=sum(new.get(name, 0.0) >= DROP * old[name] for name in working) / len(working) if working else None,
        frontier=sum(new.get(name, 0.0) for name in near) if near else None,
        large=new.get(used[-1], 0.0) >= DROP * old[used[-1]] if used else None,
        fallback=fallback,
    )


def _shares(config: Any) -> dict[str, float]:
    slices = [slice_ for slice_ in find_slices(find_knobs(config, ("*",))) if slice_.share is not None]
    return shares_of(dump(config), slices)


def readers_of(runs: Mapping[str, RunLog]) -> dict[str, str]:
    """The base and each run's checkpoint of the last stage, as engineers' names. Raises ``RunError``."""
    bases = {str(run.plan.spec.trainee.options.get("model")) for run in runs.values()}
    if len(bases) != 1 or bases == {"None"}:
        raise RunError(f"the runs began with {', '.join(sorted(bases))}: compare runs of one base model")
    found = {"base": f"local/{bases.pop()}"}
    for name, run in runs.items():
        checkpoint = _last(run).checkpoint
        written = ("config.json", "adapter_config.json")  # the second with lora
        if not any((checkpoint / name).is_file() for name in written):
            raise RunError(f"{checkpoint} is not the folder of a language model: give runs of the trainee 'grpo'")
        found[f"checkpoint {name}"] = f"local/{checkpoint}"
    return found


def read(runs: Mapping[str, RunLog], seeds: Sequence[int] = (0,), **options: Any) -> list[dict[str, Any]]:
    """A row for each reader, report and seed; a reader's weights are loaded once. ``options`` are the engineers'."""
    return [row for reader, made in readers_of(runs).items() for row in _answers(reader, made, runs, seeds, options)]


def _answers(
    reader: str, made: str, runs: Mapping[str, RunLog], seeds: Sequence[int], options: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    chat: Any = None
    for name, run in runs.items():
        report, spec = _last(run).report, run.plan.spec
        assert report is not None, "a stage that is done has a report"
        current = validated(run.plan.world.config_type, report.config)
        given = spec.engineer.common_options | {"feasible": run.plan.world.check} | dict(options)
        engineer = engineers.make(made, **given)
        assert isinstance(engineer, ModelEngineer)
        chat = engineer.chat = chat or engineer.chat
        for seed in seeds:
            chat.seed = seed
            proposal = engineer.propose(report, current=current, editable=spec.editable)
            found = merits(report, current, proposal.config, fallback=proposal.fallback)
            yield {"reader": reader, "report": name, "seed": seed, **asdict(found)}


def means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each reader and report: means over its answers, of those that a measure has."""
    asked = dict.fromkeys((row["reader"], row["report"]) for row in rows)
    found = []
    for reader, report in asked:
        own = [row for row in rows if (row["reader"], row["report"]) == (reader, report)]
        by_measure = {name: [float(row[name]) for row in own if row[name] is not None] for name in MEASURES}
        figures = {name: fmean(values) if values else None for name, values in by_measure.items()}
        found.append({"reader": reader, "report": report, "answers": len(own), **figures})
    return found


def run_at(path: str | Path) -> RunLog:
    """A finished run. Raises ``RunError``."""
    run = RunLog.open(path)
    if not run.state.done:
        raise RunError(f"{path} has no finished stage: finish it with `envtuning resume {path}`")
    return run


def _last(run: RunLog) -> Any:
    return run.state.done[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", help="folders of finished runs of the trainee 'grpo'")
    parser.add_argument("--seeds", type=int, default=5, help="answers of each reader to each report")
    parser.add_argument("--max-tokens", type=int, default=4_096, help="of one answer")
    parser.add_argument("--name", default="readers", help="name of the result in benchmarks/results")
    arguments = parser.parse_args()
    runs = {chr(ord("A") + number): run_at(path) for number, path in enumerate(arguments.runs)}
    rows = read(runs, range(arguments.seeds), max_tokens=arguments.max_tokens)
    make_console().print(table(rows))
    stages = {name: run.state.done[-1].number for name, run in runs.items()}
    print(f"figures: {record(arguments.name, {'stages': stages, 'means': means(rows), 'rows': rows})}")


def table(rows: list[dict[str, Any]]) -> Table:
    drawn = plain_table(
        "what each reader makes of each report, means over its answers",
        "kept: of the slices that work; frontier: part of the data just under it; large: the largest slice keeps half of its share; "
        "fallback: no usable config, the current one counts",
    )
    for heading in ("reader", "report", "answers", *MEASURES):
        drawn.add_column(heading, justify="left" if heading in ("reader", "report") else "right")
    for row in means(rows):
        cells = ["" if row[name] is None else percent(row[name]) for name in MEASURES]
        drawn.add_row(row["reader"], row["report"], str(row["answers"]), *cells)
    return drawn


if __name__ == "__main__":
    main()
