"""How POGEMA 1.4.0 resolves conflicts: its three collision systems, as rules on all targets at once."""

from __future__ import annotations

from mapf_frozenlake.types import Event
from mapf_frozenlake.world.jit import rare

PRIORITY, BLOCK_BOTH, SOFT = range(3)
_NONE, _VERTEX, _SWAP, _BLOCKED = int(Event.NONE), int(Event.VERTEX), int(Event.SWAP), int(Event.BLOCKED)


@rare
def resolve_as_pogema(system, cells, targets, events, num_agents, occupant, claims):
    """Send back the agents that may not enter their targets; the arguments are those of ``move_agents``.

    PRIORITY    agents move one after another by number; an agent may enter a cell that is free at its turn
    BLOCK_BOTH  no agent may enter a cell on which an agent stands, or that another agent wants
    SOFT        of the agents that want a cell, the lowest number gets it if its occupant leaves; agents cannot exchange cells

    An agent that is sent back gets SWAP if it wanted to exchange cells, VERTEX if another agent wanted its target, else BLOCKED.
    """
    for i in range(num_agents):
        claims[targets[i]] += 1
    for i in range(num_agents):
        there = targets[i]
        if there != cells[i]:
            other = occupant[there] - 1
            if other >= 0 and targets[other] == cells[i]:
                events[i] = _SWAP
            elif claims[there] > 1:
                events[i] = _VERTEX
            elif other >= 0:
                events[i] = _BLOCKED
    for i in range(num_agents - 1, -1, -1):  # claims[there] counts the agents up to i
        there = targets[i]
        if system == SOFT and there != cells[i] and (events[i] == _SWAP or claims[there] > 1):
            targets[i] = cells[i]
        claims[there] -= 1
    caught = True
    while caught:
        caught = False
        for i in range(num_agents):
            there = targets[i]
            other = occupant[there] - 1
            if there == cells[i]:
                continue
            if system == SOFT:  # an agent that stays keeps its cell; this may stop others in turn
                free = other < 0 or targets[other] != cells[other]
                caught |= not free
            else:
                free = other < 0 if system == PRIORITY else events[i] == _NONE
            if not free:
                targets[i] = cells[i]
            elif system == PRIORITY:  # agents of higher numbers find the board as this one leaves it
                occupant[cells[i]] = 0
                occupant[there] = i + 1
    for i in range(num_agents):
        if targets[i] != cells[i]:
            events[i] = _NONE
