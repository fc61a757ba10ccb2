"""A failed episode in words: the conversation of the first wrong turn, and what the result should have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from envtuning.worlds.bfcl.episode import Conversation
from envtuning.worlds.bfcl.hints import WrittenHints
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.tasks import Task

LONGEST_LINE, MOST_LINES = 300, 24


def failure_of(talk: Conversation) -> str | None:
    """The kind of the first failure; None for a solved task."""
    for record in talk.records:
        if not record.ended:
            return "too_many_steps"
        if record.check is not None and not record.check.right:
            if not record.check.called:
                return "said_nothing"
            return "missing_result" if record.check.state else "wrong_state"
    return None if len(talk.records) == talk.task.turns else "said_nothing"


def transcript(
    package: Package,
    task: Task,
    replies: Sequence[str],
    hints: Mapping[str, str] | None,
    rules: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[str, str]:
    """The conversation of the first wrong turn, and a sentence on what is wrong. Plays the replies again, with the given settings."""
    augmenter = None if hints is None else WrittenHints(hints)
    talk = Conversation(package, task, augmenter=augmenter, tool_style="none", **rules)
    lines = [f"User: {talk.said}"]
    for reply in replies:
        if talk.over:
            break
        judged = len(talk.records)
        talk.act(reply)
        lines.append(f"Agent: {reply}")
        if len(talk.records) == judged:
            lines += [f"  {line}" for line in talk.said.splitlines()]
        elif not talk.records[-1].passed:
            break
        else:
            lines = [f"User (turn {talk.turn + 1}): {talk.said}"]
    return "\n".join(_short(lines)), _explanation(task, talk)


def _explanation(task: Task, talk: Conversation) -> str:
    turn = len(talk.records) - 1
    record = talk.records[turn] if talk.records else None
    if record is None or record.check is None or record.check.right:
        return "The episode ended before its last turn."
    wanted = ", ".join(call.name for call in task.plan[turn])  # no values: the reader may be the model under validation
    if not record.check.called:
        what = "no call was made"
    elif not record.check.state:
        names = [
            f"{name}.{key}"
            for name, instance in talk.truth_instances().items()
            for key, value in vars(instance).items()
            if not key.startswith("_") and vars(talk.toolbox.instances[name]).get(key) != value
        ]
        what = f"the state differs in {', '.join(names[:3]) or 'what cannot be shown'}"
    else:
        what = "the states are right, but not every result was obtained"
    return f"Turn {turn + 1} of {task.turns}: {what}. The ground truth calls {wanted}."


def _short(lines: Sequence[str]) -> list[str]:
    cut = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …" for line in lines]
    if len(cut) <= MOST_LINES:
        return cut
    half = MOST_LINES // 2
    return [*cut[:half], f"… {len(cut) - 2 * half} lines …", *cut[-half:]]
