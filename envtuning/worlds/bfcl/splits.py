"""Divides the scenarios into training, validation and test. A scenario's variants in all four splits stay together.

The paper does not list its halves of 400 tasks. If each split were divided separately, variants of one scenario would be on both
sides: for 180 to 195 of the 200, the ground truth's calls are equal. So all variants of a scenario are on the same side, and so
are scenarios with equal ground truths or equal first states.

Cuts have names, and a cut never changes. ``scenarios-1`` compares the first states of the classes that a task involves. It separates
scenarios of three groups that have equal first states but involve different classes. ``scenarios-2`` compares all first states. It is
the first cut with scenarios 63, 66, 70 and 133 moved to the test set; four scenarios without relation to a training scenario take
their place. ``benchmarks.bfcl.cuts`` has made them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal, get_args

from envtuning.worlds.bfcl.package import SPLITS, TOOL_CLASSES, Package, ToolClass, Version
from envtuning.worlds.bfcl.tasks import Task, load_tasks

CutName = Literal["scenarios-1", "scenarios-2"]
LATEST: CutName = "scenarios-2"
Subset = Literal["train", "validation", "test"]
SUBSETS: tuple[Subset, ...] = get_args(Subset)
# Scenarios; times four splits: 320, 80, 400 tasks.
SIZES: dict[Subset, int] = {"train": 80, "validation": 20, "test": 100}


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
    if name not in get_args(CutName):
        raise ValueError(f"cut={name!r}: the cuts are {', '.join(get_args(CutName))}")
    stored = _stored("scenarios.json")[name]
    return Cut(**{subset: frozenset(stored[subset]) for subset in SUBSETS})


@cache
def by_tool_class(version: Version, held_out: ToolClass, name: CutName = LATEST) -> Cut:
    """A stored cut. Test: all scenarios that use the held-out class, and those related to them. Train and validation: the others.

    ``name``: the cut whose rule decides which scenarios stay together.
    """
    if held_out not in TOOL_CLASSES:
        raise ValueError(f"held_out={held_out!r}: the tool classes are {', '.join(TOOL_CLASSES)}")
    by_scenario(name)  # refuses an unknown one
    stored = _stored("held_out.json")[f"{name} {version} {held_out}"]
    train, validation = frozenset(stored["train"]), frozenset(stored["validation"])
    return Cut(train, validation, frozenset(range(sum(SIZES.values()))) - train - validation)


def _stored(file: str) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = json.loads(
        (resources.files(__package__) / file).read_text(encoding="utf-8")
    )
    return found
