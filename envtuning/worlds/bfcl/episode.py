"""``Conversation``: plays one task. Its input and output are texts; it does not use Gymnasium."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from envtuning.worlds.bfcl import rewards
from envtuning.worlds.bfcl.calls import Call, Calls, EndOfTurn, Unreadable
from envtuning.worlds.bfcl.check import GroundTruth, Trajectory, TurnCheck
from envtuning.worlds.bfcl.events import CallAugmenter, CallEvent
from envtuning.worlds.bfcl.package import Package
from envtuning.worlds.bfcl.prompts import ToolStyle, added_tools, first_message
from envtuning.worlds.bfcl.reply_format import ReplyFormat, read_reply
from envtuning.worlds.bfcl.rewards import Reward, TurnRecord
from envtuning.worlds.bfcl.tasks import Task
from envtuning.worlds.bfcl.tools import Result, Toolbox

Unlisted = Literal["run", "refuse"]
HintPlace = Literal["after", "instead"]  # of the tool's message about an error
MASKED = "Error."  # stands for the message that a hint replaces


@dataclass
class _Turn:
    """The current turn."""

    steps: list[tuple[str, ...]] = field(default_factory=list)
    replies: int = 0
    unreadable: int = 0
    failed_calls: int = 0


class Conversation:
    """A task from its first question to its last answer.

    ``said`` is what the agent reads next. It is empty after the last turn's answer.
    """

    def __init__(
        self,
        package: Package,
        task: Task,
        *,
        reward: Reward = "progress",
        augmenter: CallAugmenter | None = None,
        hint_place: HintPlace = "after",
        tool_style: ToolStyle = "json",
        reply_format: ReplyFormat = "readable",
        unlisted: Unlisted = "run",
    ) -> None:
        self.package, self.task = package, task
        self.reward, self.tool_style, self.reply_format = reward, tool_style, reply_format
        self.augmenter, self.hint_place, self.unlisted = augmenter, hint_place, unlisted
        self.toolbox = Toolbox(package, task)
        self.turn = 0
        self.records: list[TurnRecord] = []
        self.results: list[str] = []  # of every call so far, in the checkers' form
        self.earlier: list[tuple[Call, Result]] = []  # this episode's calls
        self.departures: list[str] = []  # calls that the official executor would have run differently
        self.unlisted_calls = 0  # calls of tools that were held back or are excluded
        self.hints = 0
        self.over = False
        self._truth = GroundTruth(package, task)
        self._now = _Turn()
        self.tools = task.tools(package, 0)
        self._offered = by_name(self.tools)
        self.said = first_message(self.tools, task.questions[0], tool_style, reply_format)

    def act(self, text: str) -> float:
        """Take the agent's reply; returns its reward. Raises ``RuntimeError`` when the conversation is over."""
        if self.over:
            raise RuntimeError("the conversation is over: begin another")
        action = read_reply(text, self.reply_format)
        self._now.replies += 1
        if isinstance(action, EndOfTurn) or (isinstance(action, Calls) and not action.calls):
            return self._end_turn()
        if isinstance(action, Unreadable):
            self._now.unreadable += 1
            self.said = f"Error: {action.reason}"
        else:
            self.said = "\n".join(self._run(call) for call in action.calls)
            self._now.steps.append(tuple(str(call) for call in action.calls))
        if len(self._now.steps) + self._now.unreadable > self.package.step_limit:
            return self._cut_off()
        return 0.0

    @property
    def trajectory(self) -> Trajectory:
        """The official checker's input. It is one turn short if the limit of steps ended the episode.

        It leaves out calls that name no tool, because the official executor would run Python's own functions.
        """
        return [self._of_tools(record.steps) for record in self.records if record.ended]

    @property
    def check(self) -> TurnCheck | None:
        """The check of the last turn that ended."""
        return self.records[-1].check if self.records else None

    def scores(self) -> dict[str, float]:
        """Every reward of the episode, and the counts that explain them."""
        records, task = self.records, self.task
        return {
            "success": float(rewards.success(records, task.turns)),
            "progress": rewards.progress(records, task.checked_turns),
            "syntax": rewards.syntax(records, task.checked_turns),
            "calls": float(sum(record.calls for record in records)),
            "failed_calls": float(sum(record.failed_calls for record in records)),
            "unreadable": float(sum(record.unreadable for record in records)),
            "guessed_turns": float(sum(record.check is None and record.calls > 0 for record in records)),
            "unlisted_calls": float(self.unlisted_calls),
            "turns": float(len(records)),
        }

    def _run(self, call: Call) -> str:
        """What the agent reads of the call: its result, and a hint if there is one."""
        document = self._offered.get(call.name)
        result = self._result_of(call, offered=document is not None)
        hint = None
        if self.augmenter is not None:
            event = CallEvent(str(call), result.text, result.error, call, document, self.tools, self.earlier)
            hint = self.augmenter(event)
        self.earlier.append((call, result))
        if not hint:
            return result.text
        self.hints += 1
        return f"{MASKED if self.hint_place == 'instead' and result.error else result.text}\nHint: {hint}"

    def _result_of(self, call: Call, *, offered: bool) -> Result:
        """Runs the call, or refuses it, and counts it."""
        unlisted = not offered and call.name in self.toolbox.names
        self.unlisted_calls += unlisted
        if unlisted and self.unlisted == "refuse":
            # The same text as for a tool that does not exist: the agent must not learn that it will appear.
            text = f"Error during execution: name '{call.name}' is not defined"
            result = Result(text, True, f"{call.name}: not offered in turn {self.turn}, refused")
        else:
            result = self.toolbox.run(call)
        if result.departure:
            self.departures.append(result.departure)
        self.results.append(result.text)
        self._now.failed_calls += result.error
        return result

    def _of_tools(self, steps: Iterable[tuple[str, ...]]) -> list[list[str]]:
        """The steps without calls of Python's own functions, and without the steps that had no others."""
        kept = [[call for call in step if not self._is_pythons_own(call)] for step in steps]
        return [step for step in kept if step]

    def _is_pythons_own(self, call: str) -> bool:
        name = call.partition("(")[0]
        return name not in self.toolbox.names and self.package.executor_finds(name)

    def _record(self, ended: bool) -> TurnRecord:
        now = self._now
        check = self._truth.check(self.turn, self.toolbox, self.results, bool(self._of_tools(now.steps)))
        record = TurnRecord(tuple(now.steps), now.replies, now.unreadable, now.failed_calls, check, ended)
        self.records.append(record)
        return record

    def _end_turn(self) -> float:
        paid = self._pay(self._record(ended=True))
        self.turn += 1
        self._now = _Turn()
        if self.turn == self.task.turns:
            self.over, self.said = True, ""
        else:
            self.said = self._next_question()
        return paid

    def _cut_off(self) -> float:
        self.over = True
        return self._pay(self._record(ended=False))

    def _pay(self, record: TurnRecord) -> float:
        """This turn's part of the episode's reward. The parts add up to the whole."""
        if self.reward == "binary":
            return float(rewards.success(self.records, self.task.turns))
        paid = rewards.turn_progress(record) if self.reward == "progress" else rewards.turn_syntax(record)
        return paid / self.task.checked_turns

    def _next_question(self) -> str:
        self.tools = self.task.tools(self.package, self.turn)
        self._offered = by_name(self.tools)
        if self.turn in self.task.held_back:
            new = self.task.new_tools(self.package, self.turn)
            return added_tools(new, self.package.added_tools_sentence, self.tool_style)
        return self.task.questions[self.turn]

    def truth_instances(self) -> dict[str, Any]:
        """The ground truth's tools after the turns so far. For reports; an agent must not see them."""
        return self._truth.toolbox.instances


def by_name(tools: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {document["name"]: document for document in tools}
