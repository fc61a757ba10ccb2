"""Divides the scenarios into training, validation and test. A scenario's variants in all four splits stay together.

The paper does not list its halves of 400 tasks. If each split were divided separately, variants of one scenario would be on both
sides: for 180 to 195 of the 200, the ground truth's calls are equal. So all variants of a scenario are on the same side, and so
are scenarios with equal ground truths or equal first states.

Cuts have names, and a cut never changes. ``scenarios-1`` compares the first states of the classes that a task involves. It separates
scenarios of three groups that have equal first states but involve different classes. ``scenarios-2`` compares all first states. It is
the first cut with scenarios 63, 66, 70 and 133 moved to the test set; four scenarios without relation to a training scenario take
their place.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES, Package
from envtuning.worlds.bfcl.tasks import Task, load_tasks

CutName = Literal["scenarios-1", "scenarios-2"]
LATEST: CutName = "scenarios-2"
Subset = Literal["train", "validation", "test"]
SUBSETS: tuple[Subset, ...] = get_args(Subset)
SIZES: dict[Subset, int] = {
    "train": 80,
    "validation": 20,
    "test": 100,
}  # scenarios; times four splits: 320, 80, 400 tasks
SEED = 20_251_010


@dataclass(frozen=True)
class Cut:
    """Disjoint sets of scenarios."""

    train: frozenset[int]
    validation: frozenset[int]
    test: frozenset[int]

    def tasks(self, package: Package, subset: Subset, splits: Sequence[str] = SPLITS) -> list[Task]:
        """The subset's tasks of these splits, by split and number."""
        if subset not in SUBSETS:
            raise ValueError(f"subset={subset!r}: give one of {', '.join(SUBSETS)}")
        return [
            task for split in splits for task in load_tasks(package, split) if task.scenario in getattr(self, subset)
        ]


@cache
def by_scenario(name: CutName = LATEST) -> Cut:
    """A stored cut. It is the same for both versions, so that their figures can be compared."""
    every = json.loads((resources.files(__package__) / "scenarios.json").read_text(encoding="utf-8"))
    if name not in every:
        raise ValueError(f"cut={name!r}: the cuts are {', '.join(every)}")
    stored = every[name]
    return Cut(**{subset: frozenset(stored[subset]) for subset in SUBSETS})


def by_tool_class(package: Package, held_out: str, name: CutName = LATEST) -> Cut:
    """Test: all scenarios that use the held-out class. Train and validation: the others, in the stored cut's proportions.

    ``name``: the cut whose rule decides which scenarios stay together.
    """
    if held_out not in TOOL_CLASSES:
        raise ValueError(f"held_out={held_out!r}: the tool classes are {', '.join(TOOL_CLASSES)}")
    test = frozenset(task.scenario for task in load_tasks(package, "base") if held_out in task.classes)
    groups = [group for group in related(package, name=name) if not test & set(group)]
    left = sum(map(len, groups))
    validation = left * SIZES["validation"] // (SIZES["train"] + SIZES["validation"])
    subsets = _deal(groups, {"validation": validation, "train": left - validation}, SEED)
    return Cut(train=subsets["train"], validation=subsets["validation"], test=test | _rest(package, test, subsets))


def _rest(package: Package, test: frozenset[int], subsets: dict[str, frozenset[int]]) -> frozenset[int]:
    """Scenarios that are related to a test scenario, and so must not be used in training either."""
    return frozenset(range(len(load_tasks(package, "base")))) - subsets["train"] - subsets["validation"] - test


def related(*packages: Package, name: CutName = LATEST) -> list[list[int]]:
    """Groups of scenarios with equal ground truths or equal first states in some split, compared by the rule of this cut."""
    leader = list(range(len(load_tasks(packages[0], "base"))))

    def find(number: int) -> int:
        while leader[number] != number:
            number = leader[number]
        return number

    seen: dict[object, int] = {}
    for package in packages:
        for split in SPLITS:
            for task in load_tasks(package, split):
                flat = tuple(call for turn in task.ground_truth for call in turn)
                involved = json.dumps(task.state_json, sort_keys=True)
                for kind in (flat, involved) if name == "scenarios-1" else (flat, involved, task.whole_state):
                    other = seen.setdefault((package.version, kind), task.scenario)
                    leader[find(task.scenario)] = find(other)
    groups: dict[int, list[int]] = {}
    for number in range(len(leader)):
        groups.setdefault(find(number), []).append(number)
    return list(groups.values())


def draw(groups: list[list[int]], seed: int = SEED) -> Cut:
    """A random cut of the stored sizes that keeps every group together."""
    return Cut(**_deal(groups, SIZES, seed))


def _deal(groups: list[list[int]], sizes: Mapping[Any, int], seed: int) -> dict[str, frozenset[int]]:
    """Groups in random order, larger ones first; each goes into the subset with the most room left."""
    order = list(groups)
    random.Random(seed).shuffle(order)
    order.sort(key=len, reverse=True)
    room: dict[str, int] = dict(sizes)
    subsets: dict[str, set[int]] = {subset: set() for subset in sizes}
    generator = random.Random(seed + 1)
    for group in order:
        fitting = [subset for subset in room if room[subset] >= len(group)]
        subset = generator.choices(fitting, [room[subset] for subset in fitting])[0]
        subsets[subset].update(group)
        room[subset] -= len(group)
    return {subset: frozenset(scenarios) for subset, scenarios in subsets.items()}
