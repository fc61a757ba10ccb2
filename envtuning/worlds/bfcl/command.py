"""``python -m envtuning.worlds.bfcl install | verify | templates``: install the benchmark's package, or check its files.

``templates`` prints the most frequent error messages on the training scenarios, as the ``hints:`` of a stage's config: an engineer
may write a hint for each.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from envtuning.worlds.bfcl import package


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m envtuning.worlds.bfcl", description=__doc__)
    parser.add_argument("command", choices=["install", "verify", "templates"])
    parser.add_argument("--version", choices=[*package.VERSIONS, "all"], default="v4", help="default: v4")
    parser.add_argument("--path", help="verify, templates: the folder of an unpacked wheel")
    parser.add_argument("--most", type=int, default=10, help="templates: how many to print (10)")
    chosen = parser.parse_args(arguments)
    versions = package.VERSIONS if chosen.version == "all" else (chosen.version,)
    try:
        if chosen.command == "templates":
            print_templates(package.load(versions[0], chosen.path), chosen.most)
            return 0
        for version in versions:
            if chosen.command == "install":
                root = package.install(version)
            else:
                root = package.find(version, chosen.path)
                package.verify(version, root)
            print(
                f"bfcl-eval {package.RELEASES[version].number} ({version}) in {root}: its files are the published ones"
            )
    except (package.PackageError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def print_templates(loaded: package.Package, most: int) -> None:
    """As YAML for a stage's config."""
    from envtuning.worlds.bfcl.hints.check import common_templates

    print("hints:")
    for template in common_templates(loaded, most):
        print(f'  {json.dumps(template)}: ""')
