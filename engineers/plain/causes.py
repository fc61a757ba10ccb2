"""Which kind of failure a knob works against, read from names alone: an option ``collision`` and the kind ``collisions`` are one.

A choice whose options name kinds of failure is a *remedy*: data with an option is assumed to work only against that kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engineers.knobs import Knob

SMOOTHED = 10.0  # failures that are spread over all kinds before any is seen
CLEAR = 1.15  # a kind stands out if its part is this many times its even part


@dataclass(frozen=True)
class Remedy:
    """A choice, the kind that each of its options works against, and the option that works against all alike."""

    knob: Knob
    against: Mapping[str, str]  # option by kind
    neutral: str | None

    def choice(self, failures: Mapping[str, float]) -> tuple[str | None, float]:
        """The option against the kind that stands out, and how many times a sample counts with it; else the neutral one."""
        parts = self.parts(failures)
        kind = max(parts, key=lambda one: parts[one])
        if parts[kind] * len(parts) <= CLEAR:
            return self.neutral, 1.0
        return self.against[kind], parts[kind] * len(parts)

    def strength(self, option: object, failures: Mapping[str, float]) -> float:
        """How many times a sample with this option counts for a slice that fails like this."""
        parts = self.parts(failures)
        kind = next((one for one, named in self.against.items() if named == option), None)
        if kind is None or max(parts.values()) * len(parts) <= CLEAR:
            return 1.0
        return parts[kind] * len(parts)

    def parts(self, failures: Mapping[str, float]) -> dict[str, float]:
        """What part of the failures each kind has, drawn towards equal parts."""
        total = sum(failures.get(kind, 0.0) for kind in self.against) + SMOOTHED
        return {kind: (failures.get(kind, 0.0) + SMOOTHED / len(self.against)) / total for kind in self.against}


def remedies(knobs: Iterable[Knob], kinds: Iterable[str]) -> list[Remedy]:
    """The choices of which two options or more name kinds of failure, each another."""
    kinds, found = list(kinds), []
    for knob in knobs:
        options = [option for option in knob.options if isinstance(option, str)]
        against = {kind: option for option in options for kind in kinds if words(option) == words(kind)}
        if len(against) > 1 and len(set(against.values())) == len(against):
            others = [option for option in options if option not in against.values()]
            found.append(Remedy(knob, against, others[0] if len(others) == 1 else None))
    return found


def words(name: str) -> frozenset[str]:
    """The words of a name without the endings that a plural has: crash and crashes, hole and holes are one."""
    return frozenset(re.sub(r"e?s?$", "", word) for word in re.findall(r"[a-z0-9]+", name.lower()))
