"""``Task``: one multi-turn conversation of the benchmark, as its files describe it.

A scenario is the number in a task's id. The four splits are variants of the same 200 scenarios. So every division of tasks (into
training and test, into bootstrap samples) is a division of scenarios.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from envtuning.worlds.bfcl.calls import Call, read_call
from envtuning.worlds.bfcl.package import SPLITS, Package, Split, ToolClass


@dataclass(frozen=True, eq=False)  # there is one object for each task
class Task:
    """A conversation: what the user says turn by turn, the tools' first state, and the ground truth's calls."""

    id: str  # "multi_turn_miss_func_17"
    split: Split
    scenario: int
    classes: tuple[ToolClass, ...]  # tool classes, in the order in which the benchmark resolves a name
    questions: tuple[str, ...]  # one per turn; "" where held-back tools appear
    ground_truth: tuple[tuple[str, ...], ...]  # one tuple of calls per turn; empty if nothing can be done in this turn
    state_json: dict[str, str]  # tool class -> its first state
    whole_state: str  # JSON: all first states in the task's file, including those of classes that it does not involve
    held_back: dict[int, tuple[str, ...]]  # turn -> tools that appear only then
    excluded: frozenset[str]  # tools that this task does not offer

    @property
    def turns(self) -> int:
        return len(self.ground_truth)

    @property
    def long_context(self) -> bool:
        return self.split == "long_context"

    @cached_property
    def checked_turns(self) -> int:
        """The number of turns with ground truth: only these are judged."""
        return sum(bool(calls) for calls in self.ground_truth)

    @cached_property
    def plan(self) -> tuple[tuple[Call, ...], ...]:
        """The ground truth as calls."""
        return tuple(tuple(read_call(text) for text in calls) for calls in self.ground_truth)

    def tools(self, package: Package, turn: int) -> list[dict[str, Any]]:
        """The documents of the tools offered in this turn, in the benchmark's order."""
        return _offered(package, self.classes, self.hidden(turn))

    def hidden(self, turn: int) -> frozenset[str]:
        """Tools of this task's classes that are not offered in this turn."""
        waiting = (name for since, names in self.held_back.items() if since > turn for name in names)
        return self.excluded.union(waiting)

    def new_tools(self, package: Package, turn: int) -> list[dict[str, Any]]:
        """The documents of the tools that first appear in this turn."""
        names = self.held_back.get(turn, ())
        return [document for document in _documents(package, self.classes) if document["name"] in names]


@cache
def load_tasks(package: Package, split: str) -> tuple[Task, ...]:
    """The 200 tasks of a split, by scenario. Raises ``ValueError`` for an unknown split."""
    if split not in SPLITS:
        raise ValueError(f"split={split!r}: give one of {', '.join(SPLITS)}")
    entries, answers = _lines(package.data_file(split)), _lines(package.data_file(split, answers=True))
    tasks = tuple(_task(entry, answer, split) for entry, answer in zip(entries, answers, strict=True))
    assert [task.scenario for task in tasks] == list(range(len(tasks))), "a task's number is its place in the file"
    return tasks


def find_task(package: Package, task_id: str) -> Task:
    """The task of this id. Raises ``ValueError`` for an unknown id."""
    if not isinstance(task_id, str):
        raise TypeError(f"task={task_id!r}: a task or its id, e.g. multi_turn_base_17")
    split, _, number = task_id.removeprefix("multi_turn_").rpartition("_")
    if split not in SPLITS or not number.isdecimal() or int(number) >= len(load_tasks(package, split)):
        raise ValueError(f"task={task_id!r}: ids are multi_turn_SPLIT_NUMBER, e.g. multi_turn_base_17")
    return load_tasks(package, split)[int(number)]


def scenario_of(task_id: str) -> int:
    """The scenario that a task is a variant of: the number in its id."""
    return int(task_id.rsplit("_", 1)[1])


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _task(entry: dict[str, Any], answer: dict[str, Any], split: Split) -> Task:
    assert entry["id"] == answer["id"], "questions and answers are in the same order"
    return Task(
        id=entry["id"],
        split=split,
        scenario=scenario_of(entry["id"]),
        classes=tuple(entry["involved_classes"]),
        questions=tuple("\n".join(message["content"] for message in turn) for turn in entry["question"]),
        ground_truth=tuple(tuple(turn) for turn in answer["ground_truth"]),
        state_json={name: json.dumps(entry["initial_config"].get(name, {})) for name in entry["involved_classes"]},
        whole_state=json.dumps(entry["initial_config"], sort_keys=True),
        held_back={int(turn): tuple(names) for turn, names in entry.get("missed_function", {}).items()},
        excluded=frozenset(entry.get("excluded_function", ())),
    )


@cache
def documents(package: Package, class_name: str) -> tuple[dict[str, Any], ...]:
    """The documents of one tool class, as the benchmark shows them to an agent."""
    return tuple(_lines(package.docs_file(class_name)))


def _documents(package: Package, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    return [document for name in classes for document in documents(package, name)]


@cache
def _offered(package: Package, classes: tuple[str, ...], hidden: frozenset[str]) -> list[dict[str, Any]]:
    return [document for document in _documents(package, classes) if document["name"] not in hidden]
