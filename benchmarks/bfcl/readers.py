"""Readers that need no message: what could be recovered without any, and with all that there is to know."""

from __future__ import annotations

import random

from envtuning.worlds.bfcl.actionability.readers import Desk, Repair, looked_up
from envtuning.worlds.bfcl.calls import Call


def blindly(message: str, desk: Desk, generator: random.Random) -> Repair | None:
    """Looks up one thing at random, without reading the message."""
    thing = generator.choice([*desk.arguments, "the tool", *(call.name for call in desk.left_out)])
    first = tuple(call for call in desk.left_out if call.name == thing)
    name = desk.meant.name if thing == "the tool" else desk.written.name
    return Repair(first, looked_up(desk, [thing], name))


def by_looking_around(message: str, desk: Desk, generator: random.Random) -> Repair | None:
    """Calls every tool that only reads, then makes the same call again."""
    return Repair(tuple(Call(name) for name in desk.read_only), desk.written)


def told_everything(message: str, desk: Desk, generator: random.Random) -> Repair | None:
    """Looks everything up again and makes up for every step left out: no message could do better."""
    return Repair(desk.left_out, desk.meant)
