"""The page's three charts: progress over stages, each slice over stages, and the learning inside the stages."""

from __future__ import annotations

from collections.abc import Sequence

from envtuning.show.page.chart import Chart, Series, colour, draw
from envtuning.show.page.view import RunView

WHOLE = (0.0, 1.0)


def progress_chart(runs: Sequence[RunView]) -> str:
    """Valid rate on the validation suite over env steps: a line a run, with its interval; optimal rate dashed."""
    series = []
    for number, run in enumerate(runs):
        for metric, dashed in (("valid_rate", False), ("optimal_rate", True)):
            steps, rates, lows, highs = [], [], [], []
            spent = 0
            for stage in run.done:
                spent += stage.done.env_steps if stage.done else 0
                measured = stage.rate(metric)
                if measured:
                    steps.append(spent)
                    rates.append(measured[0])
                    lows.append(measured[1])
                    highs.append(measured[2])
            name = f"{run.name}, {metric.removesuffix('_rate')}"
            low, high = (None, None) if dashed else (lows, highs)
            series.append(Series(name, steps, rates, low, high, dashed=dashed, colour=colour(number)))
    return draw(Chart(series, "env steps", "rate on the validation suite", y_range=WHOLE, percent=True))


def slice_chart(run: RunView) -> str:
    """Valid rate of each slice over the stages of one run."""
    series = []
    for number, name in enumerate(run.slices):
        found = [
            (stage.number, result.metrics["valid_rate"])
            for stage in run.done
            for result in stage.results
            if result.name == name and "valid_rate" in result.metrics
        ]
        series.append(Series(f"slice {name}", [x for x, _ in found], [y for _, y in found], colour=colour(number)))
    return draw(Chart(series, "stage", "valid rate", y_range=WHOLE, percent=True, whole_x=True))


def learning_chart(run: RunView, metric: str) -> str:
    """A training metric over all env steps of the run; thin lines mark where stages begin."""
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
        before += stage.done.env_steps if stage.done else spent
        borders.append(before)
    series = [Series(metric.replace("_", " "), steps, values, marks=False)]
    return draw(
        Chart(
            series,
            "env steps",
            metric,
            WHOLE if metric.endswith("rate") else None,
            metric.endswith("rate"),
            borders=borders[:-1],
        )
    )
