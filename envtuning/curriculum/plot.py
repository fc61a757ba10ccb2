"""A picture of a curriculum: success by slice over training, and the shares of the data beneath."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engineers.report import StageRecord
from envtuning.extras import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MANY = 12  # slices that a legend names


def drawn(stages: Sequence[StageRecord], names: Sequence[str], shares: Sequence[dict[str, float]], unit: str) -> Figure:
    """One line a slice. A stage is as wide as what it trained on; a slice that was not played has no point there."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise needs("plot", error, extra="rllib") from None
    ends = np.cumsum([stage.cost.get(unit, 0.0) for stage in stages])
    middles = ends - np.diff(ends, prepend=0.0) / 2
    colours = plt.get_cmap("viridis")(np.linspace(0, 0.95, len(names)))
    figure, (above, beneath) = plt.subplots(2, 1, sharex=True, figsize=(8, 5), layout="constrained")
    rates: dict[str, list[Any]] = {name: [] for name in names}
    for stage in stages:
        found = {row.name: row.rate("success_rate") for row in stage.training_results}
        for name in names:
            rates[name].append(found.get(name))
    for name, colour in zip(names, colours, strict=True):
        above.plot(middles, np.array(rates[name], float), "o-", color=colour, label=name, markersize=3)
    beneath.stackplot(
        np.repeat(np.concatenate([[0.0], ends]), 2)[1:-1],
        [np.repeat([part.get(name, 0.0) for part in shares], 2) for name in names],
        colors=colours,
    )
    above.set(ylabel="success", ylim=(-0.02, 1.02))
    beneath.set(ylabel="share of the data", xlabel=unit, ylim=(0, 1))
    if 1 < len(names) <= MANY:
        above.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    plt.close(figure)
    return figure
