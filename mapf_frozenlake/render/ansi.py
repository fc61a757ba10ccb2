"""A board for the terminal: ice, holes, goals and agents, each agent in its colour."""

from __future__ import annotations

from mapf_frozenlake.render.palette import agent_colour, rgb, text_on
from mapf_frozenlake.types import Action, Event
from mapf_frozenlake.world.snapshot import Snapshot

RESET = "\x1b[0m"


def ansi(snapshot: Snapshot, *, colour: bool = True) -> str:
    """One text line per row: ``.`` ice, ``O`` hole, ``[n]`` agent n, ``<n>`` its goal; then the events, in words."""
    height, width = snapshot.holes.shape
    goals = {tuple(cell): agent for agent, cell in enumerate(snapshot.goals.tolist())}
    agents = {tuple(cell): agent for agent, cell in enumerate(snapshot.positions.tolist())}
    pitch = len(str(len(snapshot.positions) - 1)) + 2

    def cell(row: int, col: int) -> str:
        if (row, col) in agents:
            agent = agents[row, col]
            left, right = "**" if goals.get((row, col)) == agent else "[]"
            return _paint(f"{left}{agent}{right}".center(pitch), agent, colour, filled=True)
        if (row, col) in goals:
            return _paint(f"<{goals[row, col]}>".center(pitch), goals[row, col], colour, filled=False)
        return ("O" if snapshot.holes[row, col] else ".").center(pitch)

    lines = ["".join(cell(row, col) for col in range(width)).rstrip() for row in range(height)]
    return "\n".join([*lines, _caption(snapshot)])


def _paint(text: str, agent: int, colour: bool, *, filled: bool) -> str:
    if not colour:
        return text
    red, green, blue = rgb(agent_colour(agent))
    if not filled:
        return f"\x1b[38;2;{red};{green};{blue}m{text}{RESET}"
    ink = "\x1b[38;2;{};{};{}m".format(*rgb(text_on(agent_colour(agent))))
    return f"\x1b[48;2;{red};{green};{blue}m{ink}{text}{RESET}"


def _caption(snapshot: Snapshot) -> str:
    horizon = f"/{snapshot.horizon}" if snapshot.horizon else ""
    text = f"step {snapshot.step}{horizon}"
    if snapshot.actions is not None:
        text += "  " + " ".join(f"{agent}:{Action(int(move)).name}" for agent, move in enumerate(snapshot.actions))
    if snapshot.events is not None and snapshot.events.any():
        faults = [f"{agent}:{Event(int(event)).name}" for agent, event in enumerate(snapshot.events) if event]
        text += "  ! " + " ".join(faults)
    return text
