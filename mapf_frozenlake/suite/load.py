"""``load_suite``: a shipped suite by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mapf_frozenlake.errors import LakeError
from mapf_frozenlake.instance_set import InstanceSet

# Name -> checksum of its content. A suite under a published name never changes.
SUITES = {
    "mapf-frozenlake-3150": "5f27d69cc7fad38e46976618660ef1195573b111ab04f6c7c2b025afd126b5c5",
    "quick": "102a034ccb09a79edb3770f7142dde17050d46d0bda9e2ac34ea19e2d590e4f4",
}


def suite_path(name: str) -> Path:
    """The path of a suite's file."""
    return Path(__file__).parent / "data" / f"{name}.lakes"


@cache
def load_suite(name: str) -> InstanceSet:
    """The suite of that name, checked against its published checksum.

    ``labels`` has the columns to group by: agents, size, hole_ratio, wait_subset.
    """
    if name not in SUITES:
        raise LakeError(f"no suite is called {name!r}: the suites are {', '.join(SUITES)}")
    suite = InstanceSet.load(suite_path(name))
    if suite.checksum != SUITES[name]:
        raise LakeError(
            f"{suite_path(name)} holds {suite.checksum[:12]}…, the published suite is {SUITES[name][:12]}…: reinstall the "
            "package, or remake the file by `python -m mapf_frozenlake.suite --write`"
        )
    return suite
