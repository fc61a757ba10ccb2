"""What the infos of finished episodes say: slice, success and score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engineers.roles import WHOLE
from envtuning.curriculum.curriculum import Column
from envtuning.outcomes import Outcome

SliceOf = Callable[[Mapping[str, Any]], str]  # the slice of the episode with this last info
SUCCESS = ("is_success", "success")


def outcome_of(
    info: Mapping[str, Any], otherwise: bool, success_key: str | None = None, slice_of: SliceOf | None = None
) -> Outcome:
    """The outcome of an episode with this last info. ``otherwise``: its success if the info has none.

    Without ``slice_of``, the slice is the info's ``slice``, or else that of a config without slices. The score is the info's
    ``score``, from 0 to 1, or else 1 for a success and 0 for a failure.
    """
    info = info.get("final_info", info)  # same-step autoreset keeps the finished episode's info apart
    success = succeeded(info, otherwise, success_key)
    name = info.get("slice") if slice_of is None else slice_of(info)
    score = info.get("score")
    return Outcome(WHOLE if name is None else str(name), success, float(success if score is None else score))


def succeeded(info: Mapping[str, Any], otherwise: bool, success_key: str | None = None) -> bool:
    """The success in the info, under ``success_key`` if there is one."""
    for key in SUCCESS if success_key is None else (success_key,):
        if info.get(key) is not None:
            return bool(info[key])
    if success_key is not None:
        raise no_success(success_key, info)
    return otherwise


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
    won, known = _column(infos, SUCCESS if success_key is None else (success_key,), rows)
    if won is None or not known.all():
        if success_key is not None:
            raise no_success(success_key, infos)
        won = otherwise() if won is None else np.where(known, won, otherwise())
    scores, known = _column(infos, ("score",), rows)
    if scores is not None and not known.all():
        scores = np.where(known, scores, won)
    if slice_of is not None:
        return [str(slice_of(_info_of(infos, row))) for row in rows.tolist()], won.astype(bool), scores
    names, known = _column(infos, ("slice",), rows)
    if names is None:
        return [WHOLE] * len(rows), won.astype(bool), scores
    return (names if known.all() else np.where(known, names, WHOLE)), won.astype(bool), scores


def _column(
    infos: Mapping[str, Any], keys: Sequence[str], rows: NDArray[np.intp]
) -> tuple[NDArray[Any] | None, NDArray[np.bool_]]:
    """The rows' values under the first key that has them, and whether any key has. Gymnasium's ``_key`` masks the rows that have one."""
    found, known = None, np.zeros(len(rows), np.bool_)
    for key in keys:
        if infos.get(key) is None:
            continue
        mask = infos.get(f"_{key}")
        here = np.ones(len(rows), np.bool_) if mask is None else np.asarray(mask)[rows]
        values = np.asarray(infos[key])[rows]
        found = values if found is None else np.where(known, found, values)
        known = known | here
        if known.all():
            break
    return found, known


def _info_of(infos: Mapping[str, Any], row: int) -> dict[str, Any]:
    """The info of one row."""
    return {
        key: column[row]
        for key, column in infos.items()
        if not key.startswith("_") and (mask := infos.get(f"_{key}")) is not None and mask[row]
    }
