"""Prints the most frequent error messages on the training scenarios, as the ``hints:`` of a stage's config: an engineer may write a hint for
each. ``python -m benchmarks.bfcl.templates --most 20``
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter

from benchmarks.bfcl.scripts import perturbed, run_script
from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.hints.written import template_of
from envtuning.worlds.bfcl.package import VERSIONS, Package, load
from envtuning.worlds.bfcl.splits import by_scenario


def common_templates(package: Package, most: int = 10, seed: int = 0) -> list[str]:
    """The most frequent error templates of mistakes on the training scenarios: an engineer may write a hint for each."""
    counts: Counter[str] = Counter()
    for task in by_scenario().tasks(package, "train"):
        talk = run_script(
            Conversation(package, task, tool_style="none"), perturbed(package, task, random.Random(f"{seed} {task.id}"))
        )
        errors = [(call, result) for call, result in talk.earlier if result.error and call.name in talk.toolbox.names]
        counts.update(template_of(call.name, result.text) for call, result in errors)
    return [template for template, _ in counts.most_common(most)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl.templates", description=__doc__)
    parser.add_argument("--version", default="v4", choices=VERSIONS)
    parser.add_argument("--most", type=int, default=10, help="how many to print (10)")
    chosen = parser.parse_args(arguments)
    print("hints:")
    for template in common_templates(load(chosen.version), chosen.most):
        print(f'  {json.dumps(template)}: ""')


if __name__ == "__main__":
    main()
