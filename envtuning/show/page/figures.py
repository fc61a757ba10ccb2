"""The page's three charts: progress over stages, each slice over stages, and the learning inside the stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

from engineers.shared.counts import in_words
from envtuning.show.page.line_chart import Chart, Series, colour, draw
from envtuning.show.page.view import RunView

Values = Sequence[float]
WHOLE = (0.0, 1.0)
NARROWEST = 0.1  # of the axis of rates


@dataclass(frozen=True)
class Arm:
    """Runs that differ only in their seed. They share a colour and have one mean."""

    name: str
    colour: str
    runs: list[RunView]


def arms_of(runs: Sequence[RunView]) -> list[Arm]:
    """The runs by arm, in the order of the first runs. A run with a spec of its own is an arm of its own."""
    alike: dict[str, list[RunView]] = {}
    for number, run in enumerate(runs):
        alike.setdefault(run.but_for_its_seed or str(number), []).append(run)
    return [Arm(_name_of(members), colour(number), members) for number, members in enumerate(alike.values())]


def _name_of(members: Sequence[RunView]) -> str:
    """The name of a single run, or the common name without the seed: ``rules`` for ``rules/seed0`` and ``rules/seed1``."""
    first = members[0]
    return first.name if len(members) == 1 else re.sub(r"[/_-]*(seed)?\d*$", "", first.name) or first.spec.engineer.name


def progress_chart(arms: Sequence[Arm]) -> str:
    """The objective on the validation suite over the cost; other rates are dashed.

    A single run is a line with its interval. Several seeds are thin lines, with a thick line for their mean up to the last stage that
    all of them have. The axis covers the drawn values.
    """
    series = [one for arm in arms for one in (_mean_of_runs(arm) if len(arm.runs) > 1 else _one_run(arm))]
    rates = [rate for one in series for rate in (*one.y, *(one.low or ()), *(one.high or ()))]
    return draw(
        Chart(
            series,
            " or ".join(dict.fromkeys(run.unit_in_words for arm in arms for run in arm.runs)),
            "rate on the validation suite",
            y_range=_around(rates),
            percent=True,
        )
    )


def _around(rates: Sequence[float]) -> tuple[float, float]:
    """A range within 0 to 1 that contains these rates. It has a minimal width, so that close lines can be told apart."""
    if not rates:
        return WHOLE
    high = min(1.0, max(*rates, min(rates) + NARROWEST))
    return max(0.0, min(*rates, high - NARROWEST)), high


def _one_run(arm: Arm) -> list[Series]:
    (run,) = arm.runs
    series = []
    for metric, word in run.about.headings.items():
        steps, rates, *interval = _measured(run, metric)
        dashed = metric != run.about.objective
        low, high = (None, None) if dashed else interval
        series.append(Series(f"{run.name}, {word}", steps, rates, low, high, dashed=dashed, colour=arm.colour))
    return series


def _mean_of_runs(arm: Arm) -> list[Series]:
    about = arm.runs[0].about
    series = []
    for metric, word in about.headings.items():
        dashed = metric != about.objective
        measured = [_measured(run, metric)[:2] for run in arm.runs]
        if not dashed:
            thin = [Series(f"{run.name}, {word}", *lines, colour=arm.colour, width=1.0, marks=False)
                    for run, lines in zip(arm.runs, measured, strict=True)]  # fmt: skip
            series += thin
        steps, rates = ([fmean(stage) for stage in zip(*lines)] for lines in zip(*measured, strict=True))
        name = f"{arm.name}, {word}, mean of {len(arm.runs)}"
        series.append(Series(name, steps, rates, dashed=dashed, colour=arm.colour, width=3.0))
    return series


def _measured(run: RunView, metric: str) -> tuple[Values, Values, Values, Values]:
    """At the end of each validated stage: the cost so far, the metric, and the two ends of its interval."""
    costs = accumulate(stage.spent(run.unit) for stage in run.done)
    found = [(cost, *rated) for cost, stage in zip(costs, run.done) if (rated := stage.rate(metric))]
    steps, rates, low, high = map(list, zip(*found)) if found else ([], [], [], [])
    return steps, rates, low, high


def slice_chart(run: RunView) -> str:
    """The objective of each slice over the stages of one run."""
    objective = run.about.objective
    series = []
    for number, name in enumerate(run.slices):
        found = [
            (stage.number, result.metrics[objective])
            for stage in run.done
            for result in stage.results
            if result.name == name and objective in result.metrics
        ]
        series.append(
            Series(
                f"slice {run.about.label(name)}", [x for x, _ in found], [y for _, y in found], colour=colour(number)
            )
        )
    return draw(Chart(series, "stage", run.about.headings[objective], y_range=WHOLE, percent=True, whole_x=True))


def learning_chart(run: RunView, metric: str) -> str:
    """A training metric over the run's cost; thin lines mark where stages begin."""
    steps: list[float] = []
    values: list[float] = []
    borders: list[float] = []
    before = 0.0
    for stage in run.stages:
        spent = 0.0
        for line in stage.lines:
            spent = max(spent, float(line.get("spent", 0)))
            if line.get("kind") == "iteration" and metric in line:
                steps.append(before + spent)
                values.append(float(line[metric]))
        before += stage.spent(run.unit) if stage.done else spent
        borders.append(before)
    series = [Series(in_words(metric), steps, values, marks=False)]
    return draw(
        Chart(
            series,
            run.unit_in_words,
            metric,
            WHOLE if metric.endswith("rate") else None,
            metric.endswith("rate"),
            borders=borders[:-1],
        )
    )
