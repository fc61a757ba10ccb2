"""DataFrames of this package's results. pandas is imported only here, at the first use of a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def frame(columns: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Any:
    """A pandas DataFrame of columns, or of rows."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install pandas") from None
    return pd.DataFrame(columns)
