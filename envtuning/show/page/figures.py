"""The page's three charts: progress over stages, each slice over stages, and the learning inside the stages."""

from __future__ import annotations

from collections.abc import Sequence

from envtuning.show.page.line_chart import Chart, Series, colour, draw
from envtuning.show.page.view import RunView

WHOLE = (0.0, 1.0)


def progress_chart(runs: Sequence[RunView]) -> str:
    """The objective on the validation suite over what was spent: a line a run, with its interval; other rates dashed."""
    series = []
    for number, run in enumerate(runs):
        for metric, word in run.about.headings.items():
            dashed = metric != run.about.objective
            steps, rates, lows, highs = [], [], [], []
            spent = 0
            for stage in run.done:
                spent += stage.spent(run.unit)
                measured = stage.rate(metric)
                if measured:
                    steps.append(spent)
                    rates.append(measured[0])
                    lows.append(measured[1])
                    highs.append(measured[2])
            name = f"{run.name}, {word}"
            low, high = (None, None) if dashed else (lows, highs)
            series.append(Series(name, steps, rates, low, high, dashed=dashed, colour=colour(number)))
    return draw(
        Chart(
            series,
            " or ".join(dict.fromkeys(run.unit_in_words for run in runs)),
            "rate on the validation suite",
            y_range=WHOLE,
            percent=True,
        )
    )


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
    """A training metric over all that the run spent; thin lines mark where stages begin."""
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
    series = [Series(metric.replace("_", " "), steps, values, marks=False)]
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
