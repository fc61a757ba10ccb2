"""A picture of a curriculum over training: success by slice, the shares of the data, and each difficulty that was turned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engineers.knobs import Knob, get_or_none
from engineers.report import StageRecord
from engineers.roles import WHOLE, role_of
from engineers.shared.extras import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 12  # slices that a legend names
COLUMNS = 3  # difficulties side by side
ELSEWHERE = "0.3"  # grey, for a knob that is in no slice

# Each knob's values in all stages, by its name in a slice and by slice.
Turned = Mapping[str, Mapping[str, Sequence[float]]]


def turned_knobs(stages: Sequence[StageRecord], knobs: Sequence[Knob], places: Mapping[str, tuple[str, ...]]) -> Turned:
    """The numbers beside shares that had more than one value. ``places`` is where each slice stands in the config."""
    found: dict[str, dict[str, list[float]]] = {}
    for knob in knobs:
        if not knob.types & {"number", "integer"} or role_of(knob) == "share":
            continue
        values = [get_or_none(stage.config, knob.path) for stage in stages]
        if len(set(values)) < 2:
            continue
        around = [name for name, place in places.items() if knob.path[: len(place)] == place]
        slice_ = max(around, key=lambda name: len(places[name]), default=WHOLE)
        heading = ".".join(knob.path[len(places.get(slice_, ())) :])
        found.setdefault(heading, {})[slice_] = [np.nan if value is None else value for value in values]
    return found


def drawn(
    stages: Sequence[StageRecord], names: Sequence[str], shares: Sequence[dict[str, float]], turned: Turned, unit: str
) -> Figure:
    """One line a slice. A stage is as wide as what it trained on; a slice that was not played has no point there."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise needs("plot", error, extra="rllib") from None
    ends = np.cumsum([stage.cost.get(unit, 0.0) for stage in stages])
    middles = ends - np.diff(ends, prepend=0.0) / 2
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.95, len(names)))
    columns = min(max(len(turned), 1), COLUMNS)
    rows = -(-len(turned) // columns)
    figure = plt.figure(figsize=(8, 5 + 1.8 * rows), layout="constrained")
    grid = figure.add_gridspec(2 + rows, columns, height_ratios=[2.5, 2.5, *[1.8] * rows])
    above = figure.add_subplot(grid[0, :])
    beneath = figure.add_subplot(grid[1, :], sharex=above)
    above.tick_params(labelbottom=False)
    rates: dict[str, list[Any]] = {name: [] for name in names}
    for stage in stages:
        found = {row.name: row.rate("success_rate") for row in stage.training_results}
        for name in names:
            rates[name].append(found.get(name))
    for name, colour in zip(names, colours, strict=True):
        above.plot(middles, np.array(rates[name], float), "o-", color=colour, label=name, markersize=3)
    edges = np.repeat(np.concatenate([[0.0], ends]), 2)[1:-1]
    beneath.stackplot(
        edges,
        [np.repeat([part.get(name, 0.0) for part in shares], 2) for name in names],
        colors=colours,
    )
    above.set(ylabel="success", ylim=(-0.02, 1.02))
    beneath.set(ylabel="share of the data", xlabel=unit, ylim=(0, 1))
    if 1 < len(names) <= MANY:
        above.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    coloured = dict(zip(names, colours, strict=True))
    for place, (heading, by_slice) in enumerate(turned.items()):
        panel = figure.add_subplot(grid[2 + place // columns, place % columns])
        widths = 1.5 + 3 * np.arange(len(by_slice))[::-1] / len(by_slice)  # or a line would hide its equal
        for width, (name, values) in zip(widths, by_slice.items(), strict=True):
            levels = np.repeat(np.array(values, float), 2)
            panel.plot(edges, levels, color=coloured.get(name, ELSEWHERE), label=name, linewidth=width)
        panel.set_title(heading, fontsize="medium")
        panel.set(xlabel=unit, xlim=above.get_xlim())
        panel.locator_params("x", nbins=9 // columns)  # or their labels overlap
    plt.close(figure)
    return figure
