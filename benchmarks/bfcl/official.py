"""The official pipeline's verdict on a trajectory, for tests and tables."""

from __future__ import annotations

import contextlib
import copy
import json
import uuid
from collections.abc import Iterator
from typing import Any

from envtuning.worlds.bfcl.check import Trajectory
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.tasks import Task


@contextlib.contextmanager
def fresh_globals(package: Package) -> Iterator[None]:
    """Resets the package's globals to their state at import, before and after: it keeps instances and changes its own defaults."""
    known = set(vars(package.executor))
    twitter = package.tool_class("TwitterAPI").post_tweet
    defaults = twitter.__defaults__
    variables = vars(package.long_context).items()
    extensions = {name: value for name, value in variables if isinstance(value, dict) and not name.startswith("__")}
    pristine = copy.deepcopy(extensions)
    twitter.__defaults__ = copy.deepcopy(defaults)
    try:
        yield
    finally:
        for name in set(vars(package.executor)) - known:
            del vars(package.executor)[name]
        twitter.__defaults__ = defaults
        for name, value in extensions.items():
            value.clear()
            value.update(pristine[name])


def official_verdict(package: Package, task: Task, trajectory: Trajectory) -> dict[str, Any]:
    """The official pipeline's verdict on a trajectory, as in a fresh process. It evaluates the calls' text with ``eval``.

    Give it only trajectories that ``read_action`` has read.
    """
    if len(trajectory) != task.turns:
        return {"valid": False, "error_type": "multi_turn:force_terminated"}
    with fresh_globals(package):
        entry = {
            "id": task.id,
            "initial_config": {name: json.loads(text) for name, text in task.state_json.items()},
            "involved_classes": list(task.classes),
        }
        truth = [list(calls) for calls in task.ground_truth]
        name = f"run{uuid.uuid4().hex}"
        return package.checker.multi_turn_checker(trajectory, truth, entry, f"multi_turn_{task.split}", name)
