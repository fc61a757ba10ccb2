"""``GroundTruth``: plays the right calls beside the agent's, and asks the official checkers about every turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
