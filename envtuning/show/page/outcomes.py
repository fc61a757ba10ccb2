"""What training showed of each slice over the whole run: small charts of its success and score, with its share of the data beneath."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from engineers.roles import natural_key
from envtuning.outcomes import Tally, total
from envtuning.show.page.figures import WHOLE
from envtuning.show.page.line_chart import Chart, Series, colour, draw
from envtuning.show.page.view import RunView
from envtuning.trainees.base import OUTCOMES

POINTS = 40  # of a line: more iterations are summed to as many pieces
SHARE = "#5b7386"


def slices_seen(run: RunView) -> list[str]:
    """The slices that training has shown, in natural order; none if the trainee gives no outcomes."""
    names = {name for _, tally in tallies(run) for name in (*tally.first, *tally.repeats)}
    return sorted(names, key=natural_key)


def tallies(run: RunView) -> list[tuple[float, Tally]]:
    """The cost at the end of each piece of training, and its outcomes; a piece is one iteration or several of a stage."""
    found = []
    for stage, begin in zip(run.stages, _borders(run)):
        told = [
            (begin + float(line.get("spent", 0)), Tally.model_validate(line[OUTCOMES]))
            for line in stage.lines
            if line.get("kind") == "iteration" and OUTCOMES in line
        ]
        size = -(-len(told) * max(len(run.stages), 1) // POINTS) or 1
        pieces = [told[start : start + size] for start in range(0, len(told), size)]
        found += [(piece[-1][0], total(tally for _, tally in piece)) for piece in pieces]
    return found


def outcome_chart(run: RunView, name: str) -> str:
    """Success on first visits, and dashed the mean score if it is another number."""
    told = tallies(run)
    repeated = not any(name in tally.first for _, tally in told)
    seen = [
        (cost, counts)
        for cost, tally in told
        if (counts := (tally.repeats if repeated else tally.first).get(name)) is not None and counts.episodes
    ]
    success = [counts.successes / counts.episodes for _, counts in seen]
    score = [counts.score_sum / counts.episodes for _, counts in seen]
    x = [cost for cost, _ in seen]
    lines = [Series(f"success in training, slice {name}", x, success, marks=False, colour=colour(0))]
    if any(abs(one - other) > 1e-9 for one, other in zip(success, score, strict=True)):
        lines.append(Series(f"score, slice {name}", x, score, marks=False, dashed=True, colour=colour(1)))
    return draw(_over_the_run(run, lines, "success and score in training"))


def share_chart(run: RunView, name: str) -> str:
    """The slice's part of the data in every stage."""
    x, y = list[float](), list[float]()
    for stage, begin_and_end in zip(run.stages, pairwise(_borders(run)), strict=True):
        part = run.shares(stage).get(name, 0.0)
        x += begin_and_end
        y += [part, part]
    return draw(
        _over_the_run(run, [Series(f"share of slice {name}", x, y, marks=False, colour=SHARE)], "share of the data")
    )


def _over_the_run(run: RunView, lines: Sequence[Series], label: str) -> Chart:
    borders = _borders(run)
    # An empty line from the run's beginning to its end gives all charts the same axis.
    axis = Series("", [0.0, borders[-1]], [0.0, 0.0], marks=False, width=0.0)
    return Chart([axis, *lines], run.unit_in_words, label, WHOLE, percent=True, borders=borders[1:-1])


def _borders(run: RunView) -> list[float]:
    """The run's cost where each stage begins, and where the last ends."""
    return list(accumulate((stage.spent(run.unit) for stage in run.stages), initial=0.0))
