"""The contents of observations: ``LAYERS`` has the name, meaning and kernel of every number."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from mapf_frozenlake.types import NUM_ACTIONS
from mapf_frozenlake.world import observe
from mapf_frozenlake.world.jit import subkernel
from mapf_frozenlake.world.state import NOWHERE

ObservationName = Literal["grid", "ego", "compact", "pogema"]
# A plane with a number for each cell of the window or of the board; a single number.
WINDOW, BOARD, NUMBER = "window", "board", "number"


class Layer(NamedTuple):
    """Planes or numbers of an observation that one kernel writes together."""

    names: dict[str, str]  # name -> meaning
    extent: str  # WINDOW, BOARD or NUMBER, for each name
    see: Any  # kernel (state, e, i, sight, out, at): writes agent i's numbers in env e, from out[at] on
    is_hint: bool = False  # only in observations with hints
    needs_distance: bool = False  # the kernel reads state.distance

    def is_shown(self, hints: bool) -> bool:
        return hints or not self.is_hint


def _each_action(name: str, meaning: str) -> dict[str, str]:
    return {f"{name}_{action}": meaning for action in range(NUM_ACTIONS)}


# A new layer is one entry here and one kernel in ``observe``. An observation has them in this order, planes before numbers.
LAYERS: dict[ObservationName, tuple[Layer, ...]] = {
    "ego": (
        Layer(
            {
                "blocked": "1: a hole, or off the board",
                "others": "1: an agent of a lower number (higher priority); 0.5: one of a higher number",
                "goal": "1: the agent's own goal",
                "others_goals": "1: another's goal",
            },
            WINDOW,
            observe.see_surroundings,  # has to be the first
        ),
        Layer(
            {"way": "how much nearer to the goal each cell is, over the radius, in [-1, 1]; -1: no way"},
            WINDOW,
            observe.see_way,
            is_hint=True,
            needs_distance=True,
        ),
        Layer(
            {
                "goal_row": "rows to the goal over (max_size - 1)",
                "goal_col": "columns to the goal over (max_size - 1)",
                "on_goal": "1: the agent stands on its goal",
                "priority": "(the agent's number + 1) over max_agents",
                "crowd": "agents over max_agents",
                "time": "share of the horizon that has passed",
            },
            NUMBER,
            observe.see_facts,
        ),
        Layer(_each_action("mask", "1: the action stays on the board"), NUMBER, observe.see_mask),
        Layer(_each_action("legal", "1: the action ends on ice"), NUMBER, observe.see_legal, is_hint=True),
    ),
    "grid": (
        Layer(
            {
                "hole": "1: a hole",
                "off_board": "1: beyond a board smaller than max_size",
                "self": "1: the agent",
                "goal": "1: its goal",
                "others": "1: another agent",
                "others_goals": "1: another's goal",
            },
            BOARD,
            observe.see_board,
        ),
    ),
    "pogema": (
        Layer(
            {
                "obstacles": "1: a hole, or a cell next to the board",
                "agents": "1: an agent, itself included",
                "target": "1: its goal, or the cell of the window's edge that is nearest to it",
            },
            WINDOW,
            observe.see_as_pogema,
        ),
    ),
    "compact": (
        Layer(
            {
                "row": "the agent's row",
                "col": "its column",
                "goal_row": "its goal's row",
                "goal_col": "its goal's column",
            },
            NUMBER,
            observe.see_cells,
        ),
    ),
}
OBSERVATIONS: tuple[ObservationName, ...] = tuple(LAYERS)


@subkernel
def _see_no_more(state, e, i, sight, out, at):
    pass


def _see_and_then(layer: Layer, others: Any) -> Any:
    """One kernel for a layer and all after it, because numba cannot call functions from an array."""
    see, names, extent, is_hint = layer.see, len(layer.names), layer.extent, layer.is_hint

    @subkernel
    def see_all(state, e, i, sight, out, at):
        if sight.hints or not is_hint:
            see(state, e, i, sight, out, at)
            if extent == WINDOW:
                at += names * sight.window * sight.window
            elif extent == BOARD:
                at += names * sight.max_size * sight.max_size
            else:
                at += names
        others(state, e, i, sight, out, at)

    return see_all


def _kernel_of(name: ObservationName, empty: int) -> Any:
    """Write the observations of an env's agents to out[n, A, numbers]; slots without an agent, and agents that have left the board, get the number ``empty``."""
    see_layers = _see_no_more
    planes_first = sorted(LAYERS[name], key=lambda layer: layer.extent == NUMBER)
    for layer in reversed(planes_first):
        see_layers = _see_and_then(layer, see_layers)

    @subkernel
    def see(state, e, sight, out):
        for i in range(out.shape[1]):
            seen = out[e, i]
            if state.cells[e, i] != NOWHERE:
                see_layers(state, e, i, sight, seen, 0)
            else:
                seen[:] = empty

    return see


see_ego, see_grid, see_pogema = _kernel_of("ego", 0), _kernel_of("grid", 0), _kernel_of("pogema", 0)
see_compact = _kernel_of("compact", -1)
