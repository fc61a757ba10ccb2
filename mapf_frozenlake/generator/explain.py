"""Says in one sentence why an instance could not be drawn: the counts, and what to change."""

from __future__ import annotations

from numpy.typing import NDArray

from mapf_frozenlake.generator.apportion import NO_WAIT, WAIT
from mapf_frozenlake.generator.kernel import (
    EXCLUDED,
    NEEDS_NO_WAIT,
    NEEDS_WAIT,
    NO_PLACE,
    UNDECIDED,
    UNREACHABLE,
    UNSOLVABLE,
)
from mapf_frozenlake.generator.strata import Stratum

_FATES = {
    NO_PLACE: "found no room for starts and goals that far apart",
    UNREACHABLE: "cut an agent off from its goal",
    EXCLUDED: "were excluded",
    UNSOLVABLE: "were unsolvable for all agents together",
    UNDECIDED: "were left undecided by the solver",
    NEEDS_WAIT: "needed a wait",
    NEEDS_NO_WAIT: "needed no wait",
}


def why_not(kind: Stratum, tally: NDArray) -> str:
    """The reason in one sentence; ``tally`` counts the draws by why they were rejected."""
    draws = int(tally.sum())
    if tally[NO_PLACE] == draws:
        return (
            f"{kind}: no room was found for {kind.num_agents} starts and goals at least {kind.min_distance} apart; "
            "lower min_distance or num_agents"
        )
    label = {NO_WAIT: " that needs no wait", WAIT: " that needs a wait"}.get(kind.label, "")
    fates = ", ".join(f"{int(tally[fate])} {words}" for fate, words in _FATES.items() if tally[fate])
    return f"{kind}: no board{label} in {draws} draws ({fates}); {_remedy(kind, tally)}"


def _remedy(kind: Stratum, tally: NDArray) -> str:
    if tally[EXCLUDED]:  # only boards that fit are looked up
        return f"the {int(tally[EXCLUDED])} that fit are excluded: exclude less, or choose another size, hole_ratio or num_agents"
    holes = "hole_ratio, " if kind.family == "random" else ""
    solvable = int(tally[NEEDS_WAIT] + tally[NEEDS_NO_WAIT])
    if solvable:
        return (
            f"of {solvable} solvable boards {int(tally[NEEDS_WAIT])} needed a wait, so wait_ratio={kind.wait_ratio:g} is "
            f"out of reach here: {'lower' if kind.label == WAIT else 'raise'} it, or change {holes.replace(', ', ' or ')}num_agents"
        )
    if tally[UNDECIDED] > tally[UNSOLVABLE]:
        return f'raise limits.expansions, lower {holes}num_agents or min_distance, or use certify="reachable"'
    return f"lower {holes}num_agents or min_distance"
