"""``GroundTruth``: plays the right calls beside the agent's, and asks the official checkers about every turn."""

from __future__ import annotations

import contextlib
import copy
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from envtuning.worlds.bfcl.bounds import tree_is_small
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.bfcl.tools import Toolbox

Trajectory = list[list[list[str]]]  # turn, step, call: the official checker's input


@dataclass(frozen=True)
class TurnCheck:
    """One turn that has ground truth, as the official checkers see it."""

    called: bool  # at least one call was made; without a call the official checker fails the turn
    state: bool  # the tools' states equal the ground truth's
    response: bool  # the agent got every result of the ground truth, in this turn or before

    @property
    def right(self) -> bool:
        return self.called and self.state and self.response


class GroundTruth:
    """The ground truth's own tools, which are called turn by turn beside the agent's."""

    def __init__(self, package: Package, task: Task) -> None:
        self.package, self.task = package, task
        self.toolbox = Toolbox(package, task)

    def check(self, turn: int, agent: Toolbox, results: Sequence[str], called: bool) -> TurnCheck | None:
        """Judge the turn that just ended; None if it has no ground truth. Call it for every turn, in order.

        ``results`` are the results of all the agent's calls so far: results of earlier turns count.
        """
        if not self.task.ground_truth[turn]:
            return None
        expected = [self.toolbox.run(call).text for call in self.task.plan[turn]]
        response = self.package.checker.response_checker(list(results), expected, turn)["valid"]
        return TurnCheck(called, self._same_state(agent), response)

    def _same_state(self, agent: Toolbox) -> bool:
        files = agent.instances.get("GorillaFileSystem")
        if files is not None and not tree_is_small(files.root):
            return False  # a comparison would not end; no ground truth has such a tree
        return self.package.checker.state_checker(agent.instances, self.toolbox.instances)["valid"]


def official_verdict(package: Package, task: Task, trajectory: Trajectory) -> dict[str, Any]:
    """The official pipeline's verdict on a trajectory, as in a fresh process. It evaluates the calls' text with ``eval``.

    It is for tests and tables, on trajectories that ``read_action`` has read. An environment never calls it.
    """
    if len(trajectory) != task.turns:
        return {"valid": False, "error_type": "multi_turn:force_terminated"}
    with _fresh_globals(package):
        entry = {
            "id": task.id,
            "initial_config": {name: json.loads(text) for name, text in task.state_json.items()},
            "involved_classes": list(task.classes),
        }
        truth = [list(calls) for calls in task.ground_truth]
        name = f"run{uuid.uuid4().hex}"
        return package.checker.multi_turn_checker(trajectory, truth, entry, f"multi_turn_{task.split}", name)


@contextlib.contextmanager
def _fresh_globals(package: Package) -> Iterator[None]:
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
