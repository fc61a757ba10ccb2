"""Which scenarios are trained on, validated on and tested on. The cut runs between scenarios, across all four splits.

The paper does not list its halves of 400 tasks. To cut each split by itself would put variants of the same scenario on
both sides: in 180 to 195 of 200 the ground truth's calls are equal. So here all variants of a scenario are on one side, and so are
scenarios with equal ground truths or equal first states.

Cuts have names, and a cut never changes. ``scenarios-1`` compared the first states of the classes that a task involves: three groups
with equal first states that involve different classes have scenarios on several sides of it. ``scenarios-2`` compares all first states: it
is the first cut with 63, 66, 70 and 133 tested on, too, and four scenarios that are related to none trained on in their place.
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
Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
SIZES: dict[Part, int] = {
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

    def tasks(self, package: Package, part: Part, splits: Sequence[str] = SPLITS) -> list[Task]:
        """The part's tasks of these splits, by split and number."""
        if part not in PARTS:
            raise ValueError(f"part={part!r}: give one of {', '.join(PARTS)}")
        return [task for split in splits for task in load_tasks(package, split) if task.scenario in getattr(self, part)]


@cache
def by_scenario(name: CutName = LATEST) -> Cut:
    """A stored cut: the same for both versions, so that figures of one can stand beside those of the other."""
    every = json.loads((resources.files(__package__) / "scenarios.json").read_text(encoding="utf-8"))
    if name not in every:
        raise ValueError(f"cut={name!r}: the cuts are {', '.join(every)}")
    stored = every[name]
    return Cut(**{part: frozenset(stored[part]) for part in PARTS})


def by_tool_class(package: Package, held_out: str, name: CutName = LATEST) -> Cut:
    """Test: all scenarios that use the held-out class. Train and validation: the others, in the stored cut's proportions.

    ``name``: of the cut whose rule says which scenarios are kept together.
    """
    if held_out not in TOOL_CLASSES:
        raise ValueError(f"held_out={held_out!r}: the tool classes are {', '.join(TOOL_CLASSES)}")
    test = frozenset(task.scenario for task in load_tasks(package, "base") if held_out in task.classes)
    groups = [group for group in related(package, name=name) if not test & set(group)]
    left = sum(map(len, groups))
    validation = left * SIZES["validation"] // (SIZES["train"] + SIZES["validation"])
    parts = _deal(groups, {"validation": validation, "train": left - validation}, SEED)
    return Cut(train=parts["train"], validation=parts["validation"], test=test | _rest(package, test, parts))


def _rest(package: Package, test: frozenset[int], parts: dict[str, frozenset[int]]) -> frozenset[int]:
    """Scenarios that are related to one of the test's, and so must not be trained on either."""
    return frozenset(range(len(load_tasks(package, "base")))) - parts["train"] - parts["validation"] - test


def related(*packages: Package, name: CutName = LATEST) -> list[list[int]]:
    """Scenarios in groups: within a group ground truths or first states are equal in some split, as the cut of this name compares them."""
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
    """A cut of the stored sizes that keeps every group together."""
    return Cut(**_deal(groups, SIZES, seed))


def _deal(groups: list[list[int]], sizes: Mapping[Any, int], seed: int) -> dict[str, frozenset[int]]:
    """Groups in a drawn order, the larger ones first, each into the part with the most room left."""
    order = list(groups)
    random.Random(seed).shuffle(order)
    order.sort(key=len, reverse=True)
    room: dict[str, int] = dict(sizes)
    parts: dict[str, set[int]] = {part: set() for part in sizes}
    generator = random.Random(seed + 1)
    for group in order:
        fitting = [part for part in room if room[part] >= len(group)]
        part = generator.choices(fitting, [room[part] for part in fitting])[0]
        parts[part].update(group)
        room[part] -= len(group)
    return {part: frozenset(scenarios) for part, scenarios in parts.items()}
