"""Scripts: the ground truth as an agent writes it.

A script lists an agent's calls by turn, without the answers that end the turns.
"""

from __future__ import annotations

from functools import lru_cache

from envtuning.worlds.bfcl.calls import Call, as_reply
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.reply_format import ReplyFormat, write_calls
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.bfcl.tools import parameters_of

Script = list[list[str]]  # turn, reply

DONE = "That is all I can do here."


def ground_truth_in(package: Package, task: Task, reply_format: ReplyFormat) -> Script:
    """Each turn's calls in one reply of this format; in the benchmark's own notation where the format allows it."""
    if reply_format == "readable":
        return [[as_reply(calls)] if calls else [] for calls in task.ground_truth]
    return [[write_calls(calls, reply_format)] if calls else [] for calls in named_plan(package, task)]


@lru_cache(maxsize=2048)
def named_plan(package: Package, task: Task) -> tuple[tuple[Call, ...], ...]:
    """The ground truth with every argument named."""
    # If two tools have the same name, the later one counts.
    classes = [package.tool_class(name) for name in reversed(task.classes)]

    def named(call: Call) -> Call:
        owner = next(tool_class for tool_class in classes if hasattr(tool_class, call.name))
        return call.with_named(parameters_of(owner, call.name))

    return tuple(tuple(map(named, turn)) for turn in task.plan)
