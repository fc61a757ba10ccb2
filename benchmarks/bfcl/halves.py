"""The seeded split of faults and tools: rules are written against the first half and scored on the second.

Each half has one variant of every fault type and half of the tools of every tool class. A fault belongs to a half if both its
variant and its tool do; all other faults are mixed.
"""

from __future__ import annotations

import random
from typing import Literal

from benchmarks.bfcl.faults import VARIANTS
from benchmarks.bfcl.measure import Fault
from envtuning.worlds.bfcl.package import TOOL_CLASSES, Package
from envtuning.worlds.bfcl.tasks import documents

SEED = 2_510
Half = Literal["looked at", "not looked at", "mixed"]


def first_variants() -> frozenset[str]:
    generator = random.Random(SEED)
    kinds = sorted({variant.split("/")[0] for variant in VARIANTS})
    return frozenset(generator.choice(sorted(v for v in VARIANTS if v.startswith(f"{kind}/"))) for kind in kinds)


def first_tools(package: Package) -> frozenset[str]:
    chosen: set[str] = set()
    for class_name in TOOL_CLASSES:
        names = sorted(document["name"] for document in documents(package, class_name))
        chosen.update(random.Random(f"{SEED} {class_name}").sample(names, len(names) // 2))
    return frozenset(chosen)


def half_of(package: Package, fault: Fault) -> Half:
    inside = (fault.variant in first_variants()) + (fault.tool in first_tools(package))
    return ("not looked at", "mixed", "looked at")[inside]
