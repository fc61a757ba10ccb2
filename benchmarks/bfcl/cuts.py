"""Makes the cuts that ``envtuning.worlds.bfcl.splits`` stores: related scenarios stay together."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from envtuning.worlds.bfcl.package import SPLITS, Package
from envtuning.worlds.bfcl.splits import LATEST, SIZES, Cut, CutName
from envtuning.worlds.bfcl.tasks import load_tasks

SEED = 20_251_010


def without(package: Package, held_out: str, name: CutName = LATEST) -> Cut:
    """Test: all scenarios that use the held-out class. Train and validation: the others, in the stored cut's proportions.

    ``name``: the cut whose rule decides which scenarios stay together.
    """
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
