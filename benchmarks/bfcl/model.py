"""A language model on the test's 400 tasks, by split: ``python -m benchmarks.bfcl model --model openai/NAME --max-cost 50``.

The paper's first table asks such models, on the authors' own half of the benchmark. Every reply is kept in a file before the next question is
asked, so an interrupted table continues without paying for a question twice; the caps include the cost of all replies in the file.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from benchmarks.bfcl.baselines import shown
from benchmarks.bfcl.text_table import aligned, ranged
from benchmarks.bfcl.trained import SCORES
from engineers.model.chat import ChatError, Message
from envtuning.errors import RunError
from envtuning.trainees.language.evaluate import capped_chat
from envtuning.worlds.bfcl.config import BFCLConfig
from envtuning.worlds.bfcl.package import SPLITS, Version
from envtuning.worlds.bfcl.reply_format import ReplyFormat
from envtuning.worlds.bfcl.world import BFCLCases, BFCLWorld
from envtuning.worlds.text_player import Messages


class Chat(Protocol):
    def answer(self, messages: list[Message]) -> str: ...


class KeptAnswers:
    """A policy that asks a chat, and keeps each reply under the conversation that it was the reply to."""

    def __init__(self, chat: Chat, file: Path, about: dict[str, Any], workers: int) -> None:
        self.chat, self.file, self.workers = chat, file, workers
        self.stopped: ChatError | None = None  # the player takes an error for the policy's own, and goes on
        self._lock = threading.Lock()
        self._known = _read(file, about)

    def reply(self, conversations: Sequence[Messages], *, seed: int = 0) -> list[str]:
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(self._one, conversations))

    def _one(self, messages: Messages) -> str:
        key = hashlib.sha256(json.dumps(messages).encode()).hexdigest()
        if key in self._known:
            return self._known[key]
        if self.stopped is not None:
            raise self.stopped
        try:
            text = self.chat.answer([{"role": m["role"], "content": m["content"]} for m in messages])  # type: ignore[typeddict-item]
        except ChatError as error:
            self.stopped = error
            raise
        with self._lock, self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"conversation": key, "reply": text}) + "\n")
            self._known[key] = text
        return text


def _read(file: Path, about: dict[str, Any]) -> dict[str, str]:
    """What the file holds, which must be of the same model and settings; a line that a kill cut off is not read."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(about) + "\n", encoding="utf-8")
        return {}
    first, *lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if json.loads(first) != about:
        raise SystemExit(f"{file} has answers of {first.strip()}, and this is {json.dumps(about)}: give another file")
    whole = [line for line in lines if line.endswith("\n")]
    if len(whole) < len(lines):
        file.write_text("".join([first, *whole]), encoding="utf-8")
    return {entry["conversation"]: entry["reply"] for entry in map(json.loads, whole)}


def run(
    version: Version,
    model: str,
    answers: str = "runs/bfcl-model.jsonl",
    reply_format: ReplyFormat = "readable",
    max_cost: float | None = None,
    max_tokens: int = 2_048,
    workers: int = 4,
) -> dict[str, Any]:
    """Each split's success and progress with intervals over scenarios. Raises ``RunError`` where a cap or a failure ended it."""
    chat = capped_chat(model, Path(answers), max_tokens=max_tokens, max_cost=max_cost)
    about = {"version": version, "model": model, "reply_format": reply_format} | chat.settings
    policy = KeptAnswers(chat, Path(answers), about, workers)
    return about | {
        "splits": by_split(policy, version, reply_format),
        "tokens": chat.meter.tokens,
        "cost": chat.meter.cost,
    }


def by_split(policy: KeptAnswers, version: Version, reply_format: ReplyFormat, least: int = 0) -> dict[str, Any]:
    """The test's tasks with the standard messages, as in the official benchmark; ``least``: only scenarios from this number on."""
    world = BFCLWorld(version=version)
    config = BFCLConfig(reply_format=reply_format)
    found: dict[str, Any] = {}
    for split in SPLITS:
        tasks = [task for task in world.cut.tasks(world.package, "test", [split]) if task.scenario >= least]
        episodes = world.play(policy, BFCLCases(tuple(task.id for task in tasks)), config, seed=0)
        if policy.stopped is not None:
            raise RunError(f"{policy.stopped}. Mend the cause, or raise the cap, and give the same command again")
        scenarios = [task.scenario for task in tasks]
        found[split] = {
            name: shown([episode.metrics[key] for episode in episodes], scenarios) for name, key in SCORES.items()
        }
    return found


def table(figures: dict[str, Any]) -> str:
    rows = [[split, *(ranged(*of[score]) for score in SCORES)] for split, of in figures["splits"].items()]
    return aligned([f"{figures['model']}, 100 tasks a split", *SCORES], rows)
