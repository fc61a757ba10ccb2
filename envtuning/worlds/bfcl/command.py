"""``python -m envtuning.worlds.bfcl install | verify``: install the benchmark's package, or check its files."""

from __future__ import annotations

import argparse
import subprocess
import sys

from envtuning.worlds.bfcl import package


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m envtuning.worlds.bfcl", description=__doc__)
    parser.add_argument("command", choices=["install", "verify"])
    parser.add_argument("--version", choices=[*package.VERSIONS, "all"], default="v4", help="default: v4")
    parser.add_argument("--path", help="verify: the folder of an unpacked wheel")
    chosen = parser.parse_args(arguments)
    versions = package.VERSIONS if chosen.version == "all" else (chosen.version,)
    try:
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
