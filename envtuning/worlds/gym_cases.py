"""Cases of a Gymnasium world: each is a slice and a seed with a fingerprint; they are stored in a JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envtuning.worlds.world import TooFewCases

FIRST_HELD_OUT, END_OF_SEEDS = 2**30, 2**31
TRAINING_SEEDS = range(FIRST_HELD_OUT)  # of training episodes and probes
HELD_OUT_SEEDS = range(FIRST_HELD_OUT, END_OF_SEEDS)  # of validation and test; no training episode has one
PATIENCE = 1_000  # a slice is exhausted after this many seeds in a row without a new case


@dataclass(frozen=True)
class Case:
    """One episode to play: the environment of its slice, reset with its seed."""

    slice: str
    seed: int
    fingerprint: str  # equal for cases that are the same to a learner


@dataclass(frozen=True)
class GymCases:
    """Cases of one config, in a fixed order."""

    config: dict[str, Any]  # the config that they were drawn from, as JSON
    cases: tuple[Case, ...]

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    def __getitem__(self, index: int) -> Case:
        return self.cases[index]

    def fingerprints(self) -> frozenset[str]:
        return frozenset(case.fingerprint for case in self.cases)

    def save(self, path: Path) -> Path:
        """Write them to exactly this path, as JSON."""
        stored = {"config": self.config, "cases": [asdict(case) for case in self.cases]}
        path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> GymCases:
        """The cases that were saved there."""
        stored = json.loads(path.read_text(encoding="utf-8"))
        return cls(stored["config"], tuple(Case(**case) for case in stored["cases"]))


def digest(fingerprint: str | bytes | int) -> str:
    """The stored form of a fingerprint: the hash of bytes, the text of anything else."""
    if isinstance(fingerprint, bytes):
        return hashlib.sha256(fingerprint).hexdigest()
    return str(fingerprint)


def draw_cases(
    wanted: Mapping[str, int],
    fingerprint_of: Callable[[str, int], str],
    *,
    seed: int,
    seeds: range,
    taken: AbstractSet[Hashable],
    distinct: bool,
) -> list[Case]:
    """The given number of cases of each slice, none with a fingerprint in ``taken``; if ``distinct``, no two with the same.

    A pure function of its arguments. Raises ``TooFewCases`` with the number that exists.
    """
    rng = np.random.default_rng(seed)
    met = set[Hashable](taken)
    cases: list[Case] = []
    for name, count in wanted.items():
        found, in_vain = 0, 0
        while found < count:
            one = int(rng.integers(seeds.start, seeds.stop))
            fingerprint = fingerprint_of(name, one)
            if fingerprint in met:
                in_vain += 1
                if in_vain == PATIENCE:
                    raise TooFewCases(_exhausted(name, count, found, len(taken)))
                continue
            found, in_vain = found + 1, 0
            cases.append(Case(name, one, fingerprint))
            if distinct:
                met.add(fingerprint)
    return cases


def _exhausted(name: str, wanted: int, found: int, taken: int) -> str:
    others = f" besides the {taken} that other sets hold" if taken else ""
    return (
        f"slice {name}: a set needs {wanted} different cases, but only {found} were found{others} (then {PATIENCE:,} seeds gave no new "
        "one): ask for fewer cases, or let the config or its environment vary more from seed to seed"
    )


def apportioned(shares: Mapping[str, float], count: int) -> dict[str, int]:
    """``count`` cases dealt by share, by largest remainders."""
    exact = {name: share * count for name, share in shares.items()}
    dealt = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: dealt[name] - exact[name])
    for name in by_remainder[: count - sum(dealt.values())]:
        dealt[name] += 1
    return dealt
