"""``TextWorld``: a world of your own questions. A task draws a question with its answer, and scores the reply. ::

    class Digits(TaskKnobs):
        digits: int = Field(2, ge=1, le=6, description="Digits of each number.")

    def add(rng, knobs):
        a, b = rng.integers(10**knobs.digits, size=2)
        return f"{a}+{b}=", str(a + b)

    world = TextWorld("sums", {"add": Task(Digits, add)}, "Write the sum of two numbers.")

A run's config names tasks as its slices: ``{tasks: {add: {share: 1.0, digits: 3}}}``. Replies come from a model, so only a
plain answer of about the length of the right one reaches a scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import gymnasium as gym
import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    create_model,
    field_serializer,
    with_config,
)
from typing_extensions import TypedDict

from engineers.model.replies import encodable, without_thoughts
from engineers.shared.places import with_place
from envtuning.worlds.any_text import CHARACTERS, AnyText
from envtuning.worlds.gym_cases import END_OF_SEEDS, TRAINING_SEEDS, Case, apportioned, digest, draw_cases
from envtuning.worlds.gym_task import FAILURES
from envtuning.worlds.talk_world import TalkWorld
from envtuning.worlds.text_scores import BLIND, Asked, Scorer, blind_score, in_words, same
from envtuning.worlds.world import About, Cases, InfeasibleConfig, Lesson, fingerprints_of

K = TypeVar("K", bound="TaskKnobs")

MAX_QUESTION, MAX_SAMPLED = 1_000_000, 1_000  # characters of the spaces' texts; longer replies are read too
MAX_REPLY = 1_000_000  # characters of a reply that are read
LONGER = 1_000  # characters that an answer may have beyond twice the length of the right one
DEEPEST = 20  # levels of nested brackets in an answer
OPENING, CLOSING = "([{", ")]}"


class TaskKnobs(BaseModel):
    """The knobs of every task: its part of the data. Derive from it, and add numbers with bounds and a description."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float = Field(1.0, ge=0.0, le=1.0, description="Part of the data.")


@dataclass(frozen=True)
class Task(Generic[K]):
    """One kind of question: its knobs, its draw, and the score of an answer."""

    knobs: type[K]
    make: Callable[[np.random.Generator, K], tuple[str, str] | Asked]  # a pure function of its arguments
    score: Scorer = same  # 0 to 1, where 1 is success


def ask(task: Task[K], knobs: K, seed: int) -> Asked:
    """The task's question for this seed."""
    made = Asked(*task.make(np.random.default_rng(seed), knobs))
    return made._replace(question=encodable(made.question), answer=encodable(made.answer))


def answer_in(reply: str) -> str:
    """The reply without its thoughts, or the content of its last ``<answer>…</answer>``."""
    said = without_thoughts(reply[:MAX_REPLY])
    return said.rpartition("<answer>")[2].partition("</answer>")[0].strip()


def unreadable(answer: str, right: str) -> str | None:
    """Why a scorer must not get this answer; None if it may."""
    if len(answer) > 2 * len(right) + LONGER:
        return "too_long"
    if any(not (sign.isprintable() or sign in "\n\r\t") for sign in answer):
        return "unreadable"
    depth = 0
    for sign in answer:
        depth = max(0, depth + (sign in OPENING) - (sign in CLOSING))
        if depth > DEEPEST:
            return "unreadable"
    return None


def judged(task: Task[Any], answer: str, asked: Asked) -> tuple[float, str | None]:
    """An answer's score, 0 to 1, and its kind of failure (None for a success)."""
    if (failure := unreadable(answer, asked.answer)) is not None:
        return 0.0, failure
    try:
        score = float(task.score(answer, asked))
    except Exception:  # the scorer may not be written for hostile answers
        score = 0.0
    score = min(max(score, 0.0), 1.0) if score == score else 0.0
    return score, None if score == 1.0 else "wrong"


class QuestionEnv(gym.Env[str, str]):
    """One question, one reply. ``asked`` is the question of the last reset."""

    observation_space = AnyText(MAX_QUESTION, min_length=0, charset=CHARACTERS)
    action_space = AnyText(MAX_SAMPLED, min_length=0, charset=CHARACTERS)

    def __init__(self, task: Task[Any], knobs: TaskKnobs) -> None:
        self.task, self.knobs = task, knobs
        self.asked = Asked("", "")
        self.reply = ""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        number = int(self.np_random.integers(END_OF_SEEDS)) if seed is None else seed
        self.asked, self.reply = ask(self.task, self.knobs, number), ""
        return self.asked.question, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.reply = answer_in(action)
        score, failure = judged(self.task, self.reply, self.asked)
        return "", score, True, False, {"success": failure is None, "failure": failure}


class TextWorld(TalkWorld[Any]):
    """A world of tasks, each with a name. A config maps the names of the tasks in use to their shares and knobs."""

    def __init__(self, name: str, tasks: Mapping[str, Task[Any]], environment: str, **about: Any) -> None:
        if not tasks:
            raise ValueError(f"the world {name!r} has no task: give at least one")
        self.tasks = dict(tasks)
        self._blind: dict[tuple[str, str], float] = {}  # by task and knobs
        self.config_type = config_of(self.tasks)
        failures = about.pop("failures", {})
        general = About(
            name=name,
            environment=environment,
            legend="Success: the answer scores 1.",
            failures=FAILURES
            | {
                "wrong": "the answer scores less than 1",
                "too_long": "the answer is more than twice as long as the right one and 1,000 characters",
                "unreadable": "the answer holds control characters, or too many brackets in brackets",
                "truncated": "the reply was cut off at its length limit",
            },
            case="question",
            unit="samples",
            score_in_words=in_words({name: task.score for name, task in self.tasks.items()}),
        )
        self.about = replace(general, **about, failures={**general.failures, **failures})

    def check(self, config: Any) -> None:
        """Draws a question for every slice in use, and scores its right answer: the scorer's errors on replies are not told.

        Raises ``InfeasibleConfig`` if a task's ``make`` or ``score`` raises an error.
        """
        super().check(config)
        for name in self.slices(config):
            task, tried = self.tasks[name], "no question can be drawn"
            try:
                asked = ask(task, config.tasks[name], 0)
                tried = "the right answer cannot be scored"
                task.score(asked.answer, asked)
            except Exception as error:  # the functions are the user's own
                raise InfeasibleConfig(f"slice {name}: {tried} ({with_place(error)})") from error

    def score(self, reward: float, terminated: bool, info: Mapping[str, Any]) -> float:
        return reward

    def blind_scores(self, config: Any) -> dict[str, float]:
        return {name: self._blind_score(name, config.tasks[name]) for name in self.slices(config)}

    def _blind_score(self, name: str, knobs: TaskKnobs) -> float:
        task, key = self.tasks[name], (name, knobs.model_dump_json(exclude={"share"}))
        if key not in self._blind:
            asked = [ask(task, knobs, number) for number in range(BLIND)]
            self._blind[key] = blind_score(asked, lambda answer, one: judged(task, answer, one)[0])
        return self._blind[key]

    def make(self, config: Any, slice: str) -> QuestionEnv:
        return QuestionEnv(self.tasks[slice], config.tasks[slice])

    def fingerprint(self, env: gym.Env, seed: int) -> bytes:
        """The question itself. So if one task holds out a question, no other task asks it either."""
        assert isinstance(env, QuestionEnv)
        return env.asked.question.encode()

    def picture(self, env: gym.Env) -> str:
        """The question, the right answer and the reply."""
        assert isinstance(env, QuestionEnv)
        return f"{env.asked.question}\n\nright: {env.asked.answer}\nreplied: {env.reply[:LONGER]}"

    def training(self, config: Any, count: int, *, seed: int, exclude: Sequence[Cases]) -> list[tuple[Case, Asked]]:
        """Training cases and their questions, each task with its share, in random order."""
        made: dict[tuple[str, int], Asked] = {}

        def fingerprint_of(name: str, number: int) -> str:
            made[name, number] = asked = ask(self.tasks[name], config.tasks[name], number)
            return digest(asked.question.encode())

        taken = fingerprints_of(exclude)
        wanted = apportioned(self.slices(config), count)
        drawn = draw_cases(wanted, fingerprint_of, seed=seed, seeds=TRAINING_SEEDS, taken=taken, distinct=False)
        order = np.random.default_rng(seed).permutation(count)
        return [(drawn[at], made[drawn[at].slice, drawn[at].seed]) for at in order]

    def lessons(self, config: Any, count: int, *, seed: int, exclude: Sequence[Cases]) -> list[Lesson]:
        drawn = self.training(config, count, seed=seed, exclude=exclude)
        return [Lesson(asked.question, asked.answer, case.slice) for case, asked in drawn]


def config_of(tasks: Mapping[str, Task[Any]]) -> type[BaseModel]:
    """The config class of these tasks, each with its own knobs; a task that a config does not name is not in use."""
    named: Any = TypedDict("Tasks", {name: task.knobs for name, task in tasks.items()}, total=False)  # type: ignore[misc]
    by_default = Field(
        default_factory=lambda: {name: task.knobs() for name, task in tasks.items()},
        description="The tasks in use, by name.",
    )
    tasks_in_use = with_config(ConfigDict(extra="forbid"))(named)
    return create_model("TasksConfig", __base__=_WithStrangers, tasks=(tasks_in_use, by_default))


class _WithStrangers(BaseModel):
    """A config built past its validators keeps the tasks that its class does not know when it is written, so that it can be refused."""

    model_config = ConfigDict(extra="forbid")

    @field_serializer("tasks", mode="wrap", check_fields=False)
    def _all(self, tasks: Any, as_declared: SerializerFunctionWrapHandler) -> Any:
        known = as_declared(tasks)
        return {**tasks, **known} if isinstance(tasks, dict) and len(tasks) > len(known) else known
