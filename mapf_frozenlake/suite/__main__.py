"""``python -m mapf_frozenlake.suite --check | --write``: remake the shipped suites from their seeds."""

from __future__ import annotations

import argparse
import sys
import time

from mapf_frozenlake.suite.load import SUITES, suite_path
from mapf_frozenlake.suite.make import make_suite


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mapf_frozenlake.suite", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--check", action="store_true", help="remake the suites and compare them with the published checksums"
    )
    what.add_argument("--write", action="store_true", help="remake the suites and write their files")
    arguments = parser.parse_args()
    all_equal = True
    for name, published in SUITES.items():
        began = time.perf_counter()
        print(f"{name}: drawing and certifying its boards, a few seconds of CPU", flush=True)
        suite = make_suite(name)
        equal = suite.checksum == published
        all_equal &= equal
        print(
            f"{name}: {len(suite)} instances in {time.perf_counter() - began:.1f} s, checksum {suite.checksum}, "
            f"{'as published' if equal else f'published is {published}'}"
        )
        if arguments.write:
            print(f"written to {suite.save(suite_path(name))}")
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
