"""``BFCLMultiTurn-v0``: multi-turn tool use as a Gymnasium environment. Strings in, strings out; a bad reply is data."""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

from envtuning.worlds.any_text import CHARACTERS, AnyText
from envtuning.worlds.bfcl.calls import MAX_CHARACTERS
from envtuning.worlds.bfcl.episode import Conversation, HintPlace, Unlisted
from envtuning.worlds.bfcl.events import CallAugmenter
from envtuning.worlds.bfcl.package import SPLITS, Version, load
from envtuning.worlds.bfcl.prompts import TOOL_STYLES, ToolStyle
from envtuning.worlds.bfcl.reply_format import REPLY_FORMATS, ReplyFormat
from envtuning.worlds.bfcl.rewards import REWARDS, Reward
from envtuning.worlds.bfcl.tasks import Task, find_task, load_tasks
from envtuning.worlds.bfcl.transcript import failure_of

MAX_OBSERVATION = 1_000_000  # characters


class BFCLMultiTurnEnv(gym.Env[str, str]):
    """A conversation of the Berkeley Function-Calling Leaderboard's multi-turn part.

    The observation is what the agent reads: tools and question first, then results of its calls or the user's next
    question. The action is one call, a list of calls, or words that end the turn. With ``reward="progress"`` or
    ``"syntax"`` each turn pays its part as it ends, with ``"binary"`` the last one pays all.

    ``info`` has ``task``, ``slice`` (its split), ``turn``, ``turns``, ``tools`` (the documents of those offered now), and ``state_check``
    and ``response_check`` of the last turn that ended (None before the first, or if the turn has no ground truth). When the
    episode is over, it also has ``success`` (the official checker's verdict), ``failure`` (its kind or None), ``progress``,
    ``syntax``, ``trajectory`` (the official checker's input) and ``departures`` (calls that the official executor would have
    run differently; empty unless the agent is hostile). ``trajectory`` leaves out calls of Python's own functions, which the
    official executor would run.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        split: str | Sequence[str] = "base",
        version: Version = "v4",
        path: str | Path | None = None,
        *,
        tasks: Sequence[str] | None = None,
        reward: Reward = "progress",
        augmenter: CallAugmenter | None = None,
        hint_place: HintPlace = "after",
        tool_style: ToolStyle = "json",
        reply_format: ReplyFormat = "readable",
        unlisted: Unlisted = "run",
        render_mode: str | None = None,
    ) -> None:
        _raise_unless("reward", reward, REWARDS)
        _raise_unless("hint_place", hint_place, ("after", "instead"))
        _raise_unless("tool_style", tool_style, TOOL_STYLES)
        _raise_unless("reply_format", reply_format, REPLY_FORMATS)
        _raise_unless("unlisted", unlisted, ("run", "refuse"))
        _raise_unless("render_mode", render_mode, (None, "ansi"))
        self.package = load(version, path)
        splits = [split] if isinstance(split, str) else list(split)
        for name in splits:
            _raise_unless("split", name, SPLITS)
        if tasks is None and not splits:
            raise ValueError(f"split={split!r}: name at least one of {', '.join(SPLITS)}")
        if tasks is None:
            self.tasks: list[Task] = [task for name in splits for task in load_tasks(self.package, name)]
        else:
            self.tasks = [find_task(self.package, name) for name in tasks]
        if not self.tasks:
            raise ValueError(
                "tasks=[]: name at least one, e.g. multi_turn_base_17, or leave it out for all of the split"
            )
        self.render_mode = render_mode
        self.settings: dict[str, Any] = {
            "reward": reward,
            "augmenter": augmenter,
            "hint_place": hint_place,
            "tool_style": tool_style,
            "reply_format": reply_format,
            "unlisted": unlisted,
        }
        self.observation_space = AnyText(MAX_OBSERVATION, min_length=0, charset=CHARACTERS)
        self.action_space = AnyText(MAX_CHARACTERS, min_length=0, charset=CHARACTERS)
        self.conversation: Conversation | None = None
        self._copied: tuple[Conversation, int, list[dict[str, Any]]] | None = None

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin the conversation named by ``options={"task": id}``, or else a random one."""
        super().reset(seed=seed)
        options = dict(options or {})
        named = options.pop("task", None)
        if options:
            raise ValueError(f"options {sorted(options)} are not known: give task, e.g. multi_turn_base_17")
        if named is None:
            task = self.tasks[int(self.np_random.integers(len(self.tasks)))]
        else:
            task = named if isinstance(named, Task) else find_task(self.package, named)
        self.conversation = Conversation(self.package, task, **self.settings)
        return self.conversation.said, self._info(self.conversation)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """The limit of steps truncates the episode; the last answer terminates it."""
        talk = self.conversation
        if talk is None or talk.over:
            raise RuntimeError("no conversation is running: call reset first")
        if not isinstance(action, str):
            raise TypeError(f"an action of type {type(action).__name__}: give the reply as a string")
        paid = talk.act(action)
        cut_off = talk.over and not talk.records[-1].ended
        return talk.said, paid, talk.over and not cut_off, cut_off, self._info(talk)

    def render(self) -> str:  # type: ignore[override]
        if self.render_mode is None:
            raise ValueError("render_mode=None: make the env with render_mode='ansi' to render")
        return "" if self.conversation is None else self.conversation.said

    def _info(self, talk: Conversation) -> dict[str, Any]:
        check = talk.check
        info: dict[str, Any] = {
            "task": talk.task.id,
            "slice": talk.task.split,
            "turn": talk.turn,
            "turns": talk.task.turns,
            "tools": self._documents(talk),
            "state_check": None if check is None else check.state,
            "response_check": None if check is None else check.response,
        }
        if talk.over:
            scores = talk.scores()
            info |= scores | {"success": bool(scores["success"]), "score": scores["progress"], "turns": talk.task.turns}
            info |= {"failure": failure_of(talk), "trajectory": talk.trajectory, "departures": list(talk.departures)}
        return info

    def _documents(self, talk: Conversation) -> list[dict[str, Any]]:
        """The conversation's own copy, until it has more tools: a caller that changes it changes no other conversation's prompt."""
        if self._copied is None or self._copied[:2] != (talk, len(talk.tools)):
            as_bytes = marshal.dumps(talk.tools)  # they came from JSON; copy.deepcopy would take longer than a turn
            self._copied = (talk, len(talk.tools), marshal.loads(as_bytes))
        return self._copied[2]


def _raise_unless(name: str, value: Any, known: Sequence[Any]) -> None:
    if value not in known:
        raise ValueError(f"{name}={value!r}: give one of {', '.join(map(repr, known))}")
