"""What the infos of finished episodes say: slice, success and score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engineers.roles import WHOLE
from envtuning.curriculum.curriculum import Column
from envtuning.outcomes import LONGEST_KIND, Outcome

SliceOf = Callable[[Mapping[str, Any]], str]  # the slice of the episode with this last info
SUCCESS = ("is_success", "success")
# A lake's last info has both: all agents arrived; and without any violation, as suites count.
OF_LAKES = ("success", "valid")


def outcome_of(
    info: Mapping[str, Any],
    otherwise: Callable[[], bool],
    success_key: str | None = None,
    slice_of: SliceOf | None = None,
) -> Outcome:
    """The outcome of an episode with this last info. ``otherwise``: its success if the info has none.

    Without a ``success_key``, the success is a lake's ``valid``, and elsewhere ``is_success`` or ``success``. Without ``slice_of``,
    the slice is the info's ``slice``, or else that of a config without slices. The score is the info's ``score``, from 0 to 1, or
    else 1 for a success and 0 for a failure. The kind of a failure is the info's ``failure``, if that is a text.
    """
    info = info.get("final_info", info)  # same-step autoreset keeps the finished episode's info apart
    success = succeeded(info, otherwise, success_key)
    name = info.get("slice") if slice_of is None else slice_of(info)
    score, failure = info.get("score"), info.get("failure")
    return Outcome(
        slice=WHOLE if name is None else str(name),
        success=success,
        score=float(success if score is None else score),
        failure=failure[:LONGEST_KIND] if isinstance(failure, str) and not success else "",
    )


def succeeded(info: Mapping[str, Any], otherwise: Callable[[], bool], success_key: str | None = None) -> bool:
    """The success in the info, under ``success_key`` if there is one."""
    for key in _success_keys(info, success_key):
        if info.get(key) is not None:
            return bool(info[key])
    if success_key is not None:
        raise no_success(success_key, info)
    return bool(otherwise())


def _success_keys(told: Mapping[str, Any], success_key: str | None) -> tuple[str, ...]:
    """The entries that may say the success: the first one that is there counts.

    A ``valid`` without ``success`` beside it may mean anything, such as a legal action: it is no lake's.
    """
    if success_key is not None:
        return (success_key,)
    is_lake = all(told.get(key) is not None for key in OF_LAKES)
    return ("valid", *SUCCESS) if is_lake else SUCCESS


def no_success(success_key: str, info: Mapping[str, Any]) -> ValueError:
    return ValueError(f"success_key={success_key!r} is not in an episode's last info: its keys are {sorted(info)}")


def outcomes_of_rows(
    infos: Mapping[str, Any],
    rows: NDArray[np.intp],
    otherwise: Callable[[], NDArray[np.bool_]],
    success_key: str | None = None,
    slice_of: SliceOf | None = None,
) -> tuple[Column, NDArray[np.bool_], NDArray[Any] | None]:
    """The same for finished rows of a vector environment: slices, successes, and scores if there are any."""
    infos = infos.get("final_info", infos)
    keys = _success_keys(infos, success_key)
    if slice_of is None and (told := _under_one_mask(infos, keys[0], rows)) is not None:
        return told
    won, missing = _column(_with_lakes_marked(infos) if success_key is None else infos, keys, rows)
    if success_key is not None and (won is None or missing is not None):
        raise no_success(success_key, infos)
    if won is None:
        won = otherwise()
    elif missing is not None:
        won = np.where(missing, otherwise(), won)
    scores, missing = _column(infos, ("score",), rows)
    if scores is not None and missing is not None:
        scores = np.where(missing, won, scores)
    won = np.asarray(won, np.bool_)
    if slice_of is not None:
        return [str(slice_of(_info_of(infos, row))) for row in rows.tolist()], won, scores
    names, missing = _column(infos, ("slice",), rows)
    if names is None:
        return [WHOLE] * len(rows), won, scores
    return (names if missing is None else np.where(missing, WHOLE, names)), won, scores


def _with_lakes_marked(infos: Mapping[str, Any]) -> Mapping[str, Any]:
    """The infos in which only the rows that have ``success``, too, have ``valid``: the other rows are no lakes."""
    masks = [mask for key in OF_LAKES if (mask := infos.get(f"_{key}")) is not None]
    return {**infos, "_valid": np.logical_and.reduce(masks)} if masks else infos


def _under_one_mask(
    infos: Mapping[str, Any], key: str, rows: NDArray[np.intp]
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any]] | None:
    """Slices, successes and scores, if one mask of all three covers the rows. So lakes have it, and every step of theirs comes here."""
    mask = infos.get(f"_{key}")
    if infos.get("_score") is not mask or infos.get("_slice") is not mask:
        return None
    if mask is None or np.count_nonzero(mask[rows]) < len(rows):
        return None
    return infos["slice"][rows], np.asarray(infos[key][rows], np.bool_), infos["score"][rows]


def _column(
    infos: Mapping[str, Any], keys: Sequence[str], rows: NDArray[np.intp]
) -> tuple[NDArray[Any] | None, NDArray[np.bool_] | None]:
    """The rows' values under the first key that has them, and which rows have none under any key; None if all rows have one.

    Gymnasium's ``_key`` masks the rows that have one.
    """
    found: NDArray[Any] | None = None
    missing = None
    for key in keys:
        column = infos.get(key)
        if column is None:
            continue
        values = np.asarray(column)[rows]
        found = values if found is None or missing is None else np.where(missing, values, found)
        mask = infos.get(f"_{key}")
        if mask is None:
            return found, None
        here = np.asarray(mask)[rows]
        if np.count_nonzero(here) == len(rows):
            return found, None
        missing = ~here if missing is None else missing & ~here
        if not missing.any():
            return found, None
    return found, missing


def _info_of(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """The info of one row."""
    return {
        key: _value_of(column, row)
        for key, column in infos.items()
        if not key.startswith("_") and (mask := infos.get(f"_{key}")) is not None and mask[row]
    }


def _value_of(column: Any, row: int) -> Any:
    """The row's value. A mapping within an info has a column for each of its entries; where they have no masks, that of the mapping counts."""
    if not isinstance(column, Mapping):
        return column[row]
    return {
        key: _value_of(inner, row)
        for key, inner in column.items()
        if not str(key).startswith("_") and ((mask := column.get(f"_{key}")) is None or mask[row])
    }
