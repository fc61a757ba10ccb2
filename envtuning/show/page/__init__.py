"""One self-contained HTML page about one run, or several side by side: it has no script and loads nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from engineers.shared.counts import money
from engineers.shared.extras import needs
from envtuning import atomic
from envtuning.runs import checked
from envtuning.runs.log import RunLog
from envtuning.runs.state import COMPARISON
from envtuning.show.page.figures import arms_of, learning_chart, progress_chart, slice_chart
from envtuning.show.page.first_screen import first_screen
from envtuning.show.page.line_chart import colour
from envtuning.show.page.outcomes import outcome_chart, share_chart, slices_seen
from envtuning.show.page.replays import replays
from envtuning.show.page.view import RunView, view_run

if TYPE_CHECKING:
    import jinja2

MOST_NAMED = 3  # runs, in a title


class _Table(TypedDict):
    """The table that `envtuning compare` printed."""

    title: str | None
    caption: str | None
    headings: list[str]
    rows: list[list[str]]


class _Figures(TypedDict, total=False):
    """The parts of a comparison's file that the page uses."""

    table: _Table


def write_page(runs: Sequence[RunLog | str | Path], out: str | Path) -> Path:
    """Write the page about these runs or run folders, finished or not, to ``out``; returns its path."""
    path = Path(out)
    views = [view_run(run if isinstance(run, RunLog) else RunLog.open(run)) for run in runs]
    folders = [view.log.path for view in views]
    for view, name in zip(views, _told_apart(folders)):
        view.name = name
    atomic.write_text(path, render_page(views, _comparison(folders)))
    return path


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """The runs' names: their paths below the folder that holds all of them, such as ``rules/seed0`` in a comparison."""
    if len(paths) == 1:
        return [paths[0].name]
    common = common_folder(paths)
    return [path.absolute().relative_to(common).as_posix() for path in paths]


def common_folder(paths: Sequence[Path]) -> Path:
    """The deepest folder that holds all of these runs."""
    return Path(os.path.commonpath([path.absolute().parent for path in paths]))


def _comparison(paths: Sequence[Path]) -> _Table | None:
    """The table that `envtuning compare` left beside these runs; None if there is none. Raises ``RunError`` for a damaged one."""
    folders = {path.absolute().parents[1] for path in paths}  # a comparison's runs are ARM/seedN
    file = folders.pop() / COMPARISON
    if len(paths) < 2 or folders:
        return None
    found = checked.figures(file, _Figures)
    return found.get("table") if found else None


def render_page(runs: Sequence[RunView], comparison: _Table | None = None) -> str:
    """The whole page as text, with the table that `envtuning compare` stored, if there is one."""
    return _template().render(
        runs=runs,
        comparison=comparison,
        title=" · ".join(run.name for run in runs) if len(runs) <= MOST_NAMED else f"{len(runs)} runs",
        style=resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8"),
        arms=(arms := arms_of(runs)),
        progress=progress_chart(arms),
        screen=first_screen(runs, arms),
        slice_chart=slice_chart,
        learning_chart=learning_chart,
        slices_seen=slices_seen,
        outcome_chart=outcome_chart,
        share_chart=share_chart,
        replays=replays,
        run_colour=colour,
    )


def _template() -> jinja2.Template:
    try:
        import jinja2
    except ImportError as error:
        raise needs("the report page", error) from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(percent=_percent, number=_number, money=money, heat=_heat)
    return environment.get_template("page.html.j2")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _heat(rate: float | None) -> str:
    """A background from white (0) to green (1)."""
    return "" if rate is None else f"background: color-mix(in srgb, #009e73 {100 * rate * 0.75:.0f}%, var(--page))"
