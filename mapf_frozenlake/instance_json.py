"""An ``Instance`` as JSON: rows of letters for the board, cells as pairs, and the certified facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args

import numpy as np

from mapf_frozenlake.constants import BoolGrid, Cells, Certificate
from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.letters import HOLE, ICE

REQUIRED = ("board", "starts", "goals")
FACTS = ("makespan", "needs_wait", "certificate", "sample_id")  # None if unknown; may be left out


def text_of(holes: BoolGrid, starts: Cells, goals: Cells, facts: Mapping[str, Any]) -> str:
    """One line; ``fields_of`` reads it back. ``facts`` has a value for each of ``FACTS``."""
    content: dict[str, Any] = {
        "board": ["".join(row) for row in np.where(holes, HOLE, ICE)],
        "starts": starts.tolist(),
        "goals": goals.tolist(),
    }
    return json.dumps(content | dict(facts))


def fields_of(given: str | bytes | Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an instance from the JSON of ``text_of``, text or parsed, for ``Instance`` to check; other input raises ``LakeError``."""
    content = _parsed(given)
    missing = [name for name in REQUIRED if name not in content]
    unknown = sorted(set(content) - {*REQUIRED, *FACTS})
    if missing or unknown:
        fault = f"has no {missing[0]!r}" if missing else f"has an unknown field {unknown[0]!r}"
        raise LakeError(f"an instance's JSON {fault}: it has {', '.join(REQUIRED)}, and may have {', '.join(FACTS)}")
    board = content["board"]
    if not (
        isinstance(board, list) and board and all(isinstance(row, str) and set(row) <= {ICE, HOLE} for row in board)
    ):
        raise LakeError(f"board={board!r:.80}: give rows of {ICE} (ice) and {HOLE} (hole)")
    if len({len(row) for row in board}) > 1:
        raise LakeError(f"board={board!r:.80}: make all rows equally long")
    facts = {name: content.get(name) for name in FACTS}
    holes = np.array([[letter == HOLE for letter in row] for row in board])
    return {"holes": holes, "starts": content["starts"], "goals": content["goals"], **facts}


def _parsed(given: str | bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    try:
        content = json.loads(given)
    except (ValueError, TypeError, RecursionError):
        raise LakeError(f"instance={given!r:.80}: give an Instance, or what Instance.to_json() wrote") from None
    if not isinstance(content, dict):
        raise LakeError(f"instance={given!r:.80}: its JSON must be an object with {', '.join(REQUIRED)}")
    return content


def checked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts in JSON's types, from those or NumPy's; others raise ``LakeError``."""
    makespan, wait = facts["makespan"], facts["needs_wait"]
    is_whole = isinstance(makespan, int | np.integer) and not isinstance(makespan, bool)
    if makespan is not None and not (is_whole and 0 <= makespan < 2**31):
        raise LakeError(f"makespan={makespan!r}: give a whole number, 0 or more, or null")
    if not isinstance(wait, bool | np.bool_ | None):
        raise LakeError(f"needs_wait={wait!r}: give true, false or null")
    if facts["certificate"] not in (None, *get_args(Certificate)):
        raise LakeError(
            f"certificate={facts['certificate']!r}: give one of {', '.join(get_args(Certificate))}, or null"
        )
    if not isinstance(facts["sample_id"], str | None):
        raise LakeError(f"sample_id={facts['sample_id']!r}: give a string or null")
    known = {
        "makespan": None if makespan is None else int(makespan),
        "needs_wait": None if wait is None else bool(wait),
    }
    return dict(facts) | known
