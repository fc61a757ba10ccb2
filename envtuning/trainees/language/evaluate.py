"""Evaluates any model on the papers' boards. It can be resumed, asks concurrently, and never exceeds its caps.

The model is named like an engineer's backend: ``openai/gpt-5-mini``, ``server/http://localhost:8000/v1#model``, ``local/FOLDER``.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import engineers
from engineers.model.chat import Chat, Completion, Message, Refused, TooLong
from engineers.model.ledger import Ledger, LedgerDamaged, Taken
from engineers.model.meter import BudgetExceeded, Meter
from envtuning import atomic
from envtuning.errors import RunError
from mapf_frozenlake import EvaluationTable, InstanceSet, LakeError, plan_prompt
from mapf_frozenlake.evaluation import evaluate
from mapf_frozenlake.evaluation.run import Progress
from mapf_frozenlake.text import TextStyle

DECISIVE = ("temperature", "seed", "thinking")  # settings of a chat that change its answers


class CappedChat:
    """Asks a chat from many threads. A question is asked only if its worst case, with all open questions, fits under the caps."""

    def __init__(self, chat: Chat, meter: Meter, max_tokens: int, ledger: Ledger | None = None) -> None:
        self.chat, self.meter, self.max_tokens = chat, meter, max_tokens
        self.ledger = ledger  # every question is written here before it is asked
        self._lock = threading.Lock()
        self._open: list[Taken] = []  # worst cases of all open questions

    def __call__(self, prompt: str) -> str:
        """The reply to one prompt. A cut or refused reply is returned as far as it exists."""
        return self.answer([{"role": "user", "content": prompt}])

    def answer(self, messages: list[Message]) -> str:
        """The reply to a conversation."""
        worst, line = self._reserve(messages)
        completion: Completion | None = None
        try:
            completion = self.chat.complete(messages, None, max_tokens=self.max_tokens)
            return completion.text
        except (TooLong, Refused) as error:
            if error.spent is None and isinstance(error, TooLong):
                raise  # the prompt itself does not fit
            completion = error.spent or Completion("")
            return completion.text
        finally:
            self._record_cost(messages, completion, worst, line)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that decide its answers, besides the model."""
        return {"max_tokens": self.max_tokens} | {
            name: getattr(self.chat, name) for name in DECISIVE if hasattr(self.chat, name)
        }

    def _reserve(self, messages: list[Message]) -> tuple[Taken, int | None]:
        """The question's worst case and its line in the ledger. Raises ``BudgetExceeded``."""
        with self._lock:
            own = self.meter
            kept = own.tokens, own.cost
            with_all = sum(self._open, Taken(own.tokens, own.cost or 0.0))
            own.tokens, own.cost = with_all.tokens, with_all.cost
            try:
                own.reserve(self.chat.model, messages, None, self.max_tokens)
            finally:
                own.tokens, own.cost = kept
            worst = own.worst_case(self.chat.model)
            line = None
            if self.ledger is not None:
                with atomic.storage_errors(self.ledger.path):
                    line = self.ledger.asks(worst)
            self._open.append(worst)
            return worst, line

    def _record_cost(
        self, messages: list[Message], completion: Completion | None, worst: Taken, line: int | None
    ) -> None:
        """Replaces the worst case by the real cost; a failure counts in full, because it may have been billed."""
        with self._lock:
            self._open.remove(worst)
            if completion is not None:
                prompt, answer, cost = self.meter.record(self.chat.model, messages, completion)
                really = Taken(prompt + answer, cost)
            else:
                really, after = worst, Taken(self.meter.tokens, self.meter.cost) + worst
                self.meter.tokens, self.meter.cost = after.tokens, after.cost
            if self.ledger is not None:
                with atomic.storage_errors(self.ledger.path):
                    self.ledger.took(really, line)


def ledger_beside(answers: Path | None) -> Ledger | None:
    """The ledger of the answers in this file, with failures and questions that were open at a kill. Raises ``LedgerDamaged``."""
    if answers is None:
        return None
    answers = Path(answers)
    ledger = Ledger(answers.with_name(answers.name + ".spent"))
    if not answers.exists() and ledger.path.exists():
        ledger.total()  # raises if the file is not a ledger
        ledger.path.unlink()
    return ledger


def capped_chat(
    model: str,
    answers: Path | None,
    *,
    max_tokens: int,
    max_cost: float | None = None,
    max_total_tokens: int | None = None,
    temperature: float | None = None,
    **options: Any,
) -> CappedChat:
    """The model of this name under caps. The caps include the cost of the answers that are already in this file."""
    if temperature is None and model.startswith("local/"):
        temperature = 0.0
    if temperature is not None:
        options["temperature"] = temperature
    try:
        chat = getattr(engineers.make(model, **options), "chat", None)
    except TypeError as error:  # it has no such option
        raise engineers.UnknownEngineer(str(error)) from error
    if chat is None:
        raise engineers.UnknownEngineer(
            f"{model!r} is not a language model: name one as openai/MODEL, server/http://HOST:PORT/v1#MODEL or local/FOLDER"
        )
    try:
        ledger = ledger_beside(answers)
        before = ledger.total() if ledger is not None else Taken()
    except LedgerDamaged as error:
        raise RunError(f"{error}, or remove it to count from 0") from error
    meter = Meter(max_total_tokens=max_total_tokens, max_cost=max_cost, tokens=before.tokens, cost=before.cost)
    return CappedChat(chat, meter, max_tokens, ledger)


def evaluate_model(
    model: str,
    suite: InstanceSet | str = "mapf-frozenlake-3150",
    *,
    answers: Path | None = None,
    style: TextStyle = "paper",
    workers: int = 4,
    max_tokens: int = 8_192,
    max_cost: float | None = None,
    max_total_tokens: int | None = None,
    temperature: float | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> tuple[EvaluationTable, Meter]:
    """The model's table on a suite, and its cost. Raises ``RunError`` if a cap or a failure ended it.

    ``answers`` keeps every reply as it comes. Questions with an answer in it are not asked or paid again, and the caps include
    their cost. The default of ``temperature`` is the provider's own, and 0 for a local model. ``options`` are the backend's.
    """
    caps: dict[str, Any] = {"max_tokens": max_tokens, "max_cost": max_cost, "max_total_tokens": max_total_tokens}
    asked = capped_chat(model, answers, **caps, temperature=temperature, **options)
    answered = 0

    def count(done: int, of: int) -> None:
        nonlocal answered
        answered = done
        if progress is not None:
            progress(done, of)

    try:
        table = evaluate(
            asked,
            suite,
            form="text",
            name=model,
            prompt=lambda instance: plan_prompt(instance, style),
            max_workers=workers,
            resume=answers,
            settings=asked.settings,
            progress=count,
        )
    except LakeError as error:
        raise RunError(str(error)) from error
    except engineers.ChatError as error:
        raise ended_early(error, answered, answers) from error
    return table.with_reference(), asked.meter


def ended_early(error: engineers.ChatError, answered: int, answers: Path | None) -> RunError:
    """What is kept of the replies so far, and how to go on."""
    kept = f"{answered} answers are kept in {answers}" if answers else "no answers were kept: give a file to keep them"
    remedy = "raise the cap" if isinstance(error, BudgetExceeded) else "fix the cause"
    return RunError(f"{error}. {kept}; {remedy} and give the same command again to go on")
