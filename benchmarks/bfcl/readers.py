"""The scripted readers: how a message leads to the next call.

A reader knows the plan and can look up any part of it again, but does not know which part it got wrong. A look-up of something that
was right costs nothing and changes nothing. There are two readers. One needs names, and acts on all of them at once. The other also
recognises values that it sent, and follows one pointer after another. Three more need no message: they show what could be recovered
without any, and with all that there is to know.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from envtuning.worlds.bfcl.calls import Call

RETRIES = 3  # per call that complains
LOOK_UPS = 3  # at most so many arguments, and so many tools, that a reader takes from one message

_COMPLAINT = re.compile(r"error|invalid|not found|cannot|\": false|hint:", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASK = re.compile(r"\bask\b", re.IGNORECASE)


def complains(message: str) -> bool:
    return _COMPLAINT.search(message) is not None


@dataclass(frozen=True)
class Desk:
    """What the reader knows when a message complains."""

    written: Call  # the call as it was made
    meant: Call  # the call if everything is looked up again
    left_out: tuple[Call, ...]  # calls of the plan, up to this one, that were not made
    offered: frozenset[str]  # the names of all tools
    read_only: tuple[str, ...]  # tools without arguments that change nothing

    @property
    def arguments(self) -> list[str]:
        """The arguments that can be looked up: all that the call has or should have."""
        return list(dict.fromkeys([*self.written.named, *self.meant.named]))


@dataclass(frozen=True)
class Repair:
    """Calls to make first, and the call to make again. ``asks``: the reader ends the turn with a question instead."""

    first: tuple[Call, ...] = ()
    again: Call | None = None
    asks: bool = False


# What a reader does about a message; None: it continues as if there were no message.
Reader = Callable[[str, Desk, random.Random], Repair | None]


def by_names(message: str, desk: Desk, generator: random.Random) -> Repair | None:
    """Looks up the first few named things again, all at once, and makes up for the named steps that were left out."""
    arguments, tools = _named(message, desk)
    first = tuple(call for call in desk.left_out if call.name in tools)
    name = desk.meant.name if desk.meant.name in tools else desk.written.name
    again = looked_up(desk, arguments, name)
    if not first and again == desk.written:
        return _ask(message)
    return Repair(first, again)


def one_by_one(message: str, desk: Desk, generator: random.Random) -> Repair | None:
    """Follows the first pointer that leads to something wrong: a name, or a value that was sent."""
    arguments, tools = _named(message, desk)
    by_value = [name for name in desk.written.named if _shows(message, desk.written.named[name])]
    for name in [*arguments, *by_value[:LOOK_UPS]]:
        again = looked_up(desk, [name], desk.written.name)
        if again != desk.written:
            return Repair((), again)
    for tool in tools:
        first = tuple(call for call in desk.left_out if call.name == tool)
        if first:
            return Repair(first, desk.written)
        if tool == desk.meant.name != desk.written.name:
            return Repair((), looked_up(desk, (), tool))
    return _ask(message)


READERS: dict[str, Reader] = {"by names": by_names, "one by one": one_by_one}


def _named(message: str, desk: Desk) -> tuple[list[str], list[str]]:
    """The first few arguments and the first few other tools that the message names. A message that names everything locates nothing."""
    words = list(dict.fromkeys(_WORD.findall(message)))
    arguments = [word for word in words if word in desk.arguments]
    known = desk.offered | {call.name for call in desk.left_out} | {desk.meant.name}
    tools = [word for word in words if word in known and word != desk.written.name]
    return arguments[:LOOK_UPS], tools[:LOOK_UPS]


def _shows(message: str, value: object) -> bool:
    shown = value if isinstance(value, str) else json.dumps(value)
    return len(shown) > 1 and shown in message


def looked_up(desk: Desk, arguments: Sequence[str], name: str) -> Call:
    """The call with these arguments corrected, and the others as they were."""
    named = {}
    for key in desk.arguments:
        source = desk.meant.named if key in arguments else desk.written.named
        if key in source:
            named[key] = source[key]
    return Call(name, (), named)


def _ask(message: str) -> Repair | None:
    return Repair(asks=True) if _ASK.search(message) else None


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
