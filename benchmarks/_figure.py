"""Common parts of the benchmarks' pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#ccb974", "#64b5cd", "#8c8c8c")


@contextmanager
def picture(path: Path, columns: int = 1, **settings: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes to draw on; the file is written at the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, columns, layout="constrained", **settings)
    yield figure, axes
    for one in figure.axes:
        one.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    pyplot.close(figure)
